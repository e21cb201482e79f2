"""The merges of the released trainers on real text in many languages: tokenizers and rustbpe.

The words come from tokenizers' own pre-tokenizer, so that only the fitting is compared.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from interop import peer_fits

from tokctl.tokenizer.byte_order import byte_alphabet, unspell_bytes
from tokctl.tokenizer.trainers.bpe import BPEFit, fit_bpe


@pytest.fixture(scope="module")
def documents() -> list[str]:
    texts = peer_fits.documents("udhr")
    assert len(texts) > 100
    return texts


@pytest.fixture(scope="module")
def words(documents) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    split = pytest.importorskip("tokenizers").pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    counts = Counter(word for text in documents for word, _ in split(text))
    items = sorted((unspell_bytes(word), count) for word, count in counts.items())
    return (
        np.frombuffer(b"".join(word for word, _ in items), np.uint8),
        np.cumsum([0, *(len(word) for word, _ in items)]),
        np.array([count for _, count in items]),
    )


def fit_with_tokenizers(documents, *, n_merges, specials=(), **options) -> list[tuple[bytes, bytes]]:
    pytest.importorskip("tokenizers")
    size = len(specials) + 256 + n_merges
    tokenizer = peer_fits.fit_tokenizers(documents, size, peer_fits.built_in_gpt2(), specials=specials, **options)
    return peer_fits.tokenizers_merges(tokenizer)


def spelled_merges(result: BPEFit, alphabet) -> list[tuple[bytes, bytes]]:
    strings = list(alphabet)
    merges = []
    for left, right in result.merges.tolist():
        merges.append((strings[left], strings[right]))
        strings.append(strings[left] + strings[right])
    return merges


@pytest.mark.parametrize(
    ("n_merges", "min_frequency", "max_token_bytes"),
    [
        (1_000, 2, None),
        (8_000, 2, None),
        (30_000, 5, None),
        (100_000, 2, None),
        (8_000, 0, 4),
        (8_000, 3, 9),
        (99, 2, 2),
    ],
)
def test_merges_equal_tokenizers(documents, words, n_merges, min_frequency, max_token_bytes):
    # tokenizers' limit is exclusive, ours inclusive.
    limit = {} if max_token_bytes is None else {"max_token_length": max_token_bytes + 1}
    theirs = fit_with_tokenizers(documents, n_merges=n_merges, min_frequency=min_frequency, **limit)
    alphabet = byte_alphabet("gpt2")
    ours = fit_bpe(
        *words,
        n_merges=n_merges,
        alphabet=alphabet,
        ties="ascending",
        min_frequency=min_frequency,
        max_token_bytes=max_token_bytes,
    )
    assert spelled_merges(ours, alphabet) == theirs
    if n_merges >= 1_000:  # with enough ties to see a wrong tie-break
        assert ours.ambiguous.any()
    assert (ours.stopped == "reached") == (len(theirs) == n_merges)


def test_specials_first_do_not_change_the_merges(documents, words):
    theirs = fit_with_tokenizers(documents, n_merges=1_500, min_frequency=2, specials=["<s>", "</s>", "<pad>"])
    alphabet = byte_alphabet("gpt2")
    assert spelled_merges(fit_bpe(*words, n_merges=1_500, alphabet=alphabet), alphabet) == theirs


def test_tokens_equal_rustbpe(documents, words):
    pytest.importorskip("rustbpe")
    n_merges = 8_000
    theirs = peer_fits.fit_rustbpe(documents, 256 + n_merges, "gpt2")
    alphabet = byte_alphabet("raw")
    strings = list(alphabet)
    for left, right in fit_bpe(*words, n_merges=n_merges, alphabet=alphabet).merges.tolist():
        strings.append(strings[left] + strings[right])
    assert strings == theirs


@pytest.mark.parametrize("lengths", [range(1, 40), [2, 3, 4, 5, 6, 7, 8, 9, 64, 100, 127]])
def test_runs_of_one_letter_equal_tokenizers(lengths):
    # Overlapping windows and odd remainders: aaa, aaaa, aaaaa, ... and the same between other letters.
    documents = [f"x{'a' * n}b{'a' * n} {'ab' * n} {'aab' * n}" for n in lengths]
    split = pytest.importorskip("tokenizers").pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    counts = Counter(unspell_bytes(word) for text in documents for word, _ in split(text))
    data = np.frombuffer(b"".join(counts), np.uint8)
    offsets = np.cumsum([0, *map(len, counts)])
    alphabet = byte_alphabet("gpt2")
    ours = fit_bpe(data, offsets, np.array([*counts.values()]), n_merges=500, alphabet=alphabet, min_frequency=1)
    assert spelled_merges(ours, alphabet) == fit_with_tokenizers(documents, n_merges=500, min_frequency=1)
