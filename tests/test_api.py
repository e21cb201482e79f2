"""The promised Python names, each used once as the interface says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tokctl

TEXTS = ["the cat sat on the mat", "a cat and a hat, the cat's hat"]


def test_every_public_name_resolves_and_importing_loads_nothing():
    import subprocess
    import sys

    for name in tokctl.__all__:
        assert getattr(tokctl, name) is not None
    code = "import sys, tokctl; assert not {'numpy', 'numba', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fit_from_counts_a_mapping_and_a_path(tmp_path):
    counts = tokctl.count_words(TEXTS, "gpt2")
    mapping = dict(counts.items())
    counts.write_parquet(tmp_path / "words.parquet")
    hashes = {
        tokctl.fit("bpe", source, vocab_size=262).semantic_hash
        for source in (counts, mapping, tmp_path / "words.parquet")
    }
    assert len(hashes) == 1


def test_several_sizes_are_nested():
    counts = tokctl.count_words(TEXTS, "gpt2")
    sizes = tokctl.fit("bpe", counts, vocab_size=[258, 262], specials=["<s>"])
    assert sorted(sizes) == [258, 262]
    assert [sizes[258].token_bytes(i) for i in range(258)] == [sizes[262].token_bytes(i) for i in range(258)]
    assert sizes[262].vocab_size == 262


def test_worked_example_with_an_alphabet_of_four():
    tokenizer = tokctl.fit(
        "bpe", {b"aaab": 2, b"daaabac": 1}, vocab_size=7, alphabet=[b"a", b"b", b"c", b"d"], pattern="none"
    )
    assert [tokenizer.token_bytes(i) for i in range(7)] == [b"a", b"b", b"c", b"d", b"aa", b"ab", b"aaab"]
    assert tokenizer.encode(b"daaabac") == [3, 6, 0, 2]
    with pytest.raises(tokctl.DataError, match="fill a vocabulary of 8"):
        tokctl.fit("bpe", {b"aaab": 2, b"daaabac": 1}, vocab_size=8, alphabet=[b"a", b"b", b"c", b"d"], pattern="none")


def test_counts_beyond_32_and_40_bits():
    for count in (2**31, 2**41):
        tokenizer = tokctl.fit("bpe", {b"ss": count, b"xy": 10}, vocab_size=257)
        assert tokenizer.token_bytes(256) == b"ss"


def test_too_large_a_vocabulary_is_explained_with_its_arithmetic():
    with pytest.raises(tokctl.DataError) as caught:
        tokctl.fit("bpe", {b"aaaa": 1}, vocab_size=1000, min_frequency=1)
    assert "0 specials + 256 bytes + 744 merges = 1,000" in caught.value.message
    short = tokctl.fit("bpe", {b"aaaa": 1}, vocab_size=1000, min_frequency=1, on_short="warn")
    assert short.vocab_size == 258


def test_encode_flat_and_offsets():
    tokenizer = tokctl.fit("bpe", tokctl.count_words(TEXTS, "gpt2"), vocab_size=262)
    ids, offsets = tokenizer.encode_flat(TEXTS)
    assert ids.dtype == np.uint32 and offsets.dtype == np.int64
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)] == tokenizer.encode_batch(TEXTS)
    encoding = tokenizer.encode_with_offsets("a €", unit="raw_codepoints")
    assert encoding.offsets[-1] == (2, 3) and len(encoding.ids) == len(encoding.offsets)


def test_minhash_signature_known_answers():
    assert tokctl.minhash_signature([b"Hello"], 4, 1).tolist() == [3231258861, 1388533999, 831950533, 1845606703]
    legacy = tokctl.minhash_signature([b"Hello"], 4, 1, scheme="legacy").tolist()
    assert legacy == [734825475, 960773806, 359816889, 342714745]


def test_unknown_model_names_the_known_ones():
    with pytest.raises(tokctl.UsageError) as caught:
        tokctl.fit("gru", {b"a": 1}, vocab_size=300)
    assert "bpe" in caught.value.hint
