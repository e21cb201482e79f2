"""Character-level BPE beside subword-nmt and tokenizers on real text in many languages."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from interop import peer_fits

import tokctl
from tokctl.tokenizer.formats import huggingface
from tokctl.tokenizer.formats.probe_texts import probe_texts

UNK = {"specials": ["<unk>", "</s>"], "unk": "<unk>", "eos": "</s>"}


@pytest.fixture(scope="module")
def documents() -> list[str]:
    return peer_fits.documents("udhr")


@pytest.fixture(scope="module")
def words(documents) -> Counter[str]:
    return Counter(word for text in documents for word in text.split())


def spelled_merges(tokenizer) -> list[tuple[str, str]]:
    tokens = [None if token is None else token.decode() for token in tokenizer.model.vocabulary.tokens()]
    return [(tokens[left], tokens[right]) for left, right in tokenizer.model.merges.tolist()]


def fit(words, n_merges, **options):
    start = tokctl.fit(
        "bpe", words, vocab_size=1 << 20, unit="character", on_short="warn", min_frequency=2**60, **options
    )
    return tokctl.fit("bpe", words, vocab_size=start.vocab_size + n_merges, unit="character", **options)


def test_merges_and_segmentation_of_subword_nmt(words, documents):
    learn_bpe = pytest.importorskip("subword_nmt.learn_bpe")
    apply_bpe = pytest.importorskip("subword_nmt.apply_bpe")
    dictionary = io.StringIO("".join(f"{word} {count}\n" for word, count in words.items()))
    codes = io.StringIO()
    learn_bpe.learn_bpe(dictionary, codes, 500, min_frequency=2, is_dict=True)
    theirs = [tuple(line.split(" ")) for line in codes.getvalue().splitlines()[1:]]
    tokenizer = fit(words, 500, ties="subword-nmt")
    assert spelled_merges(tokenizer) == theirs
    codes.seek(0)
    bpe = apply_bpe.BPE(codes)
    spelled = [token.decode() for token in tokenizer.model.vocabulary.tokens()]
    for word in list(words)[:3000]:
        expected = [piece.removesuffix("@@") for piece in bpe.segment_tokens([word])]
        assert [spelled[i].removesuffix("</w>") for i in tokenizer.encode(word)] == expected
    for text in documents[:40]:
        assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())


@pytest.mark.parametrize(
    "options",
    [
        {"ties": "subword-nmt"},
        {"pattern": "gpt2"},
        {"pattern": "gpt2", "end_of_word": ""},
        {"pattern": "none", "end_of_word": "·"},
        {"pattern": "deepseek-v3"},
    ],
    ids=str,
)
def test_tokenizers_agrees_with_the_export(options, documents, tmp_path):
    pytest.importorskip("tokenizers")
    counts = tokctl.count_words(documents[:120], options.get("pattern", "whitespace"))
    tokenizer = fit(counts, 2000, **UNK, **options)
    huggingface.export(tokenizer, tmp_path)
    texts = [*documents[100:160], *probe_texts(tokenizer, 3000), "unbekannt: \U0001f9ff ☃x x☃ ☃☃"]
    result = huggingface.verify_huggingface(tokenizer, tmp_path, texts)
    assert result["status"] == "verified", result["first_divergence"]
    assert result["unreachable"]["n"] == 0


def test_offsets_are_those_of_tokenizers(documents, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = fit(tokctl.count_words(documents[:60], "whitespace"), 1000, **UNK)
    huggingface.export(tokenizer, tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in [*documents[50:90], " a\u3000\n ☃b ☃"]:
        expected = theirs.encode(text, add_special_tokens=False)
        found = tokenizer.encode_with_offsets(text, "raw_codepoints")
        assert (found.ids, found.offsets) == (expected.ids, expected.offsets)


def test_merges_of_tokenizers_without_a_marker(documents):
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"\s+"), "isolated")
    counts = tokctl.count_words(documents, r"\s+")
    size = fit(counts, 0, end_of_word="", pattern=r"\s+").vocab_size + 3000
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, min_frequency=2, show_progress=False)
    theirs.train_from_iterator(documents, trainer)
    vocab = theirs.get_vocab()
    ours = tokctl.fit("bpe", counts, vocab_size=size, unit="character", end_of_word="", pattern=r"\s+")
    assert {token.decode(): i for i, token in enumerate(ours.model.vocabulary.tokens())} == vocab


def test_what_the_formats_cannot_carry_is_refused(tmp_path):
    for options, message in [
        ({}, "drop characters outside the alphabet"),
        ({**UNK, "end_of_word_as": "symbol"}, "here it is a symbol"),
    ]:
        tokenizer = tokctl.fit("bpe", {"low": 5}, vocab_size=100, unit="character", on_short="warn", **options)
        with pytest.raises(tokctl.errors.ArtifactError, match=message):
            huggingface.export(tokenizer, tmp_path)
    from tokctl.tokenizer.formats import tiktoken

    with pytest.raises(tokctl.errors.ArtifactError, match="base tokens are characters"):
        tiktoken.export(tokenizer, tmp_path)
