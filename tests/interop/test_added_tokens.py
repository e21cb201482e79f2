"""Added tokens one by one, each in five contexts, as the tokenizers library finds them: ids, offsets, masks."""

import itertools
import json

import pytest
from tokenizer.samples import small

from tokctl.tokenizer.formats import huggingface, load

tokenizers = pytest.importorskip("tokenizers")

FLAGS = ("lstrip", "rstrip", "normalized", "single_word", "special")
CONTEXTS = {
    "alone": "{}",
    "inside a word": "pre{}post",
    "spaces on both sides": "a  {} \n b",
    "at the edges": "{} in between {}",
    "doubled": "x {0}{0} y",
}
NORMALIZERS = {
    "none": None,
    "lowercase": {"type": "Lowercase"},
    "nfkc": {"type": "NFKC"},
}


def write(directory, tokens, normalizer):
    huggingface.export(small("gpt2", specials=()), directory)
    value = json.loads((directory / "tokenizer.json").read_text())
    size = len(value["model"]["vocab"])
    value["added_tokens"] = [
        {"id": size + k, "content": content} | {flag: flag in flags for flag in FLAGS}
        for k, (content, flags) in enumerate(tokens)
    ]
    value["normalizer"] = normalizer
    (directory / "tokenizer.json").write_text(json.dumps(value))
    return load(directory / "tokenizer.json"), tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("content", ["<DOC>", "yesterday", "Ｗide"])
def test_every_combination_of_flags_in_five_contexts(tmp_path, normalizer, content):
    for number, chosen in enumerate(itertools.product((False, True), repeat=len(FLAGS))):
        flags = [flag for flag, is_set in zip(FLAGS, chosen, strict=True) if is_set]
        directory = tmp_path / str(number)
        directory.mkdir()
        ours, theirs = write(directory, [(content, flags)], NORMALIZERS[normalizer])
        token_id = ours.added_tokens[0].id
        for name, context in CONTEXTS.items():
            for form in (content, content.upper(), content.capitalize()):
                text = context.format(form, form)
                expected = theirs.encode(text, add_special_tokens=False)
                found = ours.encode_with_offsets(text, "raw_codepoints", allowed_special="all")
                assert (found.ids, found.offsets) == (expected.ids, expected.offsets), (flags, name, form)
                is_control = [int(i == token_id and "special" in flags) for i in found.ids]
                assert found.special_mask == is_control
                if "special" in flags:
                    theirs.encode_special_tokens = True
                    without = theirs.encode(text, add_special_tokens=False)
                    theirs.encode_special_tokens = False
                    kept = ours.encode_with_offsets(text, "raw_codepoints")
                    assert (kept.ids, kept.offsets) == (without.ids, without.offsets)
                    assert token_id not in kept.ids
                    assert sum(kept.special_mask) == 0


def test_a_stripping_token_that_is_not_special_is_ordinary(tmp_path):
    ours, theirs = write(tmp_path, [("<DOC>", ["lstrip"])], None)
    (token,) = ours.added_tokens
    for text in (" <DOC>", "\u00a0 <DOC>", "<DOC>"):
        found = ours.encode_with_offsets(text, "raw_codepoints")
        assert found.ids == [token.id] == theirs.encode(text).ids
        assert found.offsets == [(0, len(text))]
        assert found.special_mask == [0]
        assert found.sequence_ids == [0]
    assert ours.special_ids == {}


def test_a_normalised_word_is_found_in_other_case(tmp_path):
    tokens = [("yesterday", ["normalized", "single_word"]), ("Tomorrow", ["single_word"])]
    ours, theirs = write(tmp_path, tokens, {"type": "Lowercase"})
    yesterday, tomorrow = (token.id for token in ours.added_tokens)
    assert ours.encode("Yesterday") == [yesterday] == theirs.encode("Yesterday").ids
    assert ours.encode("YESTERDAY.")[0] == yesterday
    assert ours.encode("Tomorrow") == [tomorrow]
    for text in ("Yesterdays", "tomorrow", "_Yesterday", "TOMORROW", "pre-Tomorrows"):
        assert {yesterday, tomorrow}.isdisjoint(ours.encode(text))
        assert ours.encode(text) == theirs.encode(text).ids


def test_a_control_token_that_is_not_allowed_hides_what_is_inside_it(tmp_path):
    ours, theirs = write(tmp_path, [("<|x|>", ["special"]), ("|x|", [])], None)
    control, ordinary = (token.id for token in ours.added_tokens)
    theirs.encode_special_tokens = True
    assert ours.encode("<|x|>") == theirs.encode("<|x|>").ids
    assert ordinary not in ours.encode("<|x|>")
    assert ours.encode("<|x|>", allowed_special=["<|x|>"]) == [control]
    assert ordinary in ours.encode("<|x|")
