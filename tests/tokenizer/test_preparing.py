"""Texts that are rewritten before they are split: any bytes, offsets in every unit, refused control tokens."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer.samples import small

from tokctl.errors import DataError
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.encoding import UNITS
from tokctl.tokenizer.normalizers.lowercase import Lowercase
from tokctl.tokenizer.normalizers.prepend import Prepend
from tokctl.tokenizer.normalizers.replace import Replace
from tokctl.tokenizer.normalizers.strip import Strip
from tokctl.tokenizer.normalizers.unicode_form import UnicodeForm
from tokctl.tokenizer.pre_tokenizers.matching import Pattern
from tokctl.tokenizer.pre_tokenizers.prefix_space import PrefixSpace
from tokctl.tokenizer.pre_tokenizers.split_by import SplitBy
from tokctl.tokenizer.template import Template

NORMALIZERS = {
    "none": (),
    "nfc": (UnicodeForm("nfc"),),
    "nfkd, lower": (UnicodeForm("nfkd"), Lowercase()),
    "strip, prepend": (Strip(True, True), Prepend("▁é")),
    "replace": (Replace(Pattern(r"\s+"), ""), Replace(Pattern("a"), "éé")),
}
STEPS = {
    "none": (),
    "prefix": (PrefixSpace(),),
    "removing": (SplitBy(Pattern(r"\s"), "removed"), SplitBy(Pattern(r"[ab]|é(?=x)"), "merged-with-next")),
}
TOKENIZERS = {
    f"{name}; {steps}; trim {trim}": replace(
        small("llama3", special_layout="last"),
        normalizers=NORMALIZERS[name],
        steps=STEPS[steps],
        added_tokens=(
            *small("llama3", special_layout="last").added_tokens,
            AddedToken(1000, "Yes", single_word=True, normalized=True, special=False),
            AddedToken(1001, "<DOC>", lstrip=True, rstrip=True, special=False),
        ),
        template=replace(Template(), trim_offsets=trim, trim_keeps_first=trim),
    )
    for name, steps, trim in itertools.product(NORMALIZERS, STEPS, (False, True))
}
PARTS = [
    "a",
    "b ",
    "é",
    "e\u0301",
    "\u0301",
    "ﬁ",
    "İ",
    " \u3000",
    "Yes",
    "yes",
    " <DOC>\n",
    "<|pad|>",
    "\U0001f600",
    "1",
]
TEXTS = st.lists(st.one_of(st.sampled_from(PARTS).map(str.encode), st.binary(max_size=4)), max_size=8).map(b"".join)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(texts=st.lists(TEXTS, max_size=5))
def test_any_bytes_have_ids_and_offsets_inside_their_text(name, texts):
    tokenizer = TOKENIZERS[name]
    ids, bounds = tokenizer.encode_flat(texts, allowed_special="all", add_special_tokens=True)
    lengths = {
        "raw_utf8_bytes": [len(text) for text in texts],
        "raw_codepoints": [len(text.decode("utf-8", "surrogateescape")) for text in texts],
        "normalized_codepoints": [
            len(tokenizer.normalize(text, "all").decode("utf-8", "surrogateescape")) + 40 for text in texts
        ],
    }
    for unit in UNITS:
        found = tokenizer.encode_flat_with_offsets(texts, unit, allowed_special="all", add_special_tokens=True)
        assert found.ids.tolist() == ids.tolist()
        assert found.offsets.tolist() == bounds.tolist()
        for i, length in enumerate(lengths[unit]):
            alone = tokenizer.encode_with_offsets(texts[i], unit, allowed_special="all", add_special_tokens=True)
            assert found.text(i) == alone  # what stands beside a text in its batch changes nothing
            for start, stop in alone.offsets:
                assert 0 <= start <= stop <= length
    for i, text in enumerate(texts):
        part = ids[bounds[i] : bounds[i + 1]].tolist()
        assert tokenizer.decode_bytes(part) == tokenizer.normalize(text, "all")


def test_bytes_of_unchanged_characters_keep_their_own_place():
    tokenizer = replace(small("none", 0, specials=()), normalizers=(UnicodeForm("nfc"),))
    assert tokenizer.encode_with_offsets("é").offsets == [(0, 1), (1, 2)]
    # the composite stands for its first character, as in tokenizers
    assert tokenizer.encode_with_offsets("éxe\u0301y").offsets == [(0, 1), (1, 2), (2, 3), (3, 4), (3, 4), (6, 7)]
    in_normalized = tokenizer.encode_with_offsets("xe\u0301y", "normalized_codepoints")
    assert in_normalized.offsets == [(0, 1), (1, 2), (1, 2), (2, 3)]


def test_a_refused_control_token_is_found_in_normalised_text_too():
    base = small("gpt2", special_layout="last")
    token = AddedToken(base.vocab_size, "stop", normalized=True)
    tokenizer = replace(base, added_tokens=(*base.added_tokens, token), normalizers=(Lowercase(),))
    for text, offset in (("a <|pad|>", 2), ("éx STOP", 4), ("stop", 0)):
        with pytest.raises(DataError) as caught:
            tokenizer.encode_with_offsets(text, special_in_text="error")
        assert (caught.value.code, caught.value.where.row, caught.value.where.offset) == ("special-in-text", 0, offset)
        with pytest.raises(DataError):
            tokenizer.encode(text, special_in_text="error")
    assert tokenizer.encode("STOP", special_in_text="error", allowed_special=["stop"]) == [token.id]
