"""A fit that goes on from its first merges is the fit of one run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokctl.errors import DataError
from tokctl.tokenizer.trainers.bpe import TIES, BPEFit, fit_bpe
from tokctl.tokenizer.trainers.bpe_resume import first_merges, resume_bpe
from tokctl.tokenizer.trainers.segments import byte_segments, merged_segments

RAW = [bytes([byte]) for byte in range(256)]


def ragged(words):
    data = np.frombuffer(b"".join(word for word, _ in words), np.uint8)
    offsets = np.cumsum([0, *(len(word) for word, _ in words)]).astype(np.int64)
    return data, offsets, np.array([count for _, count in words], np.int64)


def same(left: BPEFit, right: BPEFit) -> bool:
    arrays = ("merges", "pair_counts", "ambiguous", "n_tokens")
    return all(
        getattr(left, name).dtype == getattr(right, name).dtype
        and getattr(left, name).tolist() == getattr(right, name).tolist()
        for name in arrays
    ) and (left.stopped, left.best_remaining) == (right.stopped, right.best_remaining)


letters = st.sampled_from([b"a", b"b", b"c", b"\xc3", b"\xa9"])
word_bytes = st.lists(letters, max_size=12).map(b"".join) | st.integers(1, 90).map(lambda n: b"a" * n)
word_lists = st.lists(st.tuples(word_bytes, st.sampled_from([0, 1, 1, 2, 3, 2**42])), max_size=10)


@pytest.mark.parametrize("ties", TIES)
@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    words=word_lists,
    n_merges=st.sampled_from([0, 3, 20, 100]),
    share=st.floats(0, 1),
    min_frequency=st.sampled_from([1, 2, 3]),
    max_token_bytes=st.sampled_from([None, 3, 8]),
    passed_over=st.lists(st.tuples(st.integers(97, 99), st.integers(97, 99)), max_size=2),
)
def test_going_on_from_any_merge(ties, words, n_merges, share, min_frequency, max_token_bytes, passed_over):
    options = {
        "ties": ties,
        "min_frequency": min_frequency,
        "max_token_bytes": max_token_bytes,
        "passed_over": passed_over,
    }
    whole = fit_bpe(*ragged(words), n_merges=n_merges, alphabet=RAW, **options)
    segments = byte_segments(*ragged(words), RAW)
    n = round(share * len(whole.merges))
    resumed = resume_bpe(segments, first_merges(whole, n), n_merges=n_merges, alphabet=RAW, **options)
    assert same(resumed, whole)


def test_what_is_made_on_the_way_can_be_gone_on_from():
    rng = np.random.default_rng(2)
    words = [(rng.integers(97, 101, 30, dtype=np.uint8).tobytes(), int(rng.integers(1, 9))) for _ in range(60)]
    partials = []
    whole = fit_bpe(*ragged(words), n_merges=300, alphabet=RAW, on_partial=lambda so_far: partials.append(so_far()))
    assert len(partials) > 1
    assert [len(p.merges) for p in partials] == sorted(len(p.merges) for p in partials)
    segments = byte_segments(*ragged(words), RAW)
    for partial in partials:
        assert partial.merges.tolist() == whole.merges[: len(partial.merges)].tolist()
    inner, steps = [], []
    resumed = resume_bpe(
        segments,
        partials[0],
        n_merges=300,
        alphabet=RAW,
        on_step=lambda done, total: steps.append((done, total)),
        on_partial=lambda so_far: inner.append(so_far()),
    )
    assert same(resumed, whole)
    assert steps[-1] == (len(whole.merges), 300)
    assert same(resume_bpe(segments, inner[0], n_merges=300, alphabet=RAW), whole)


def test_merged_rows_leave_the_rows_they_come_from():
    segments = byte_segments(*ragged([(b"aaab", 2), (b"", 1), (b"ab", 1)]), RAW)
    merged = merged_segments(segments, np.array([[97, 97], [97, 98], [256, 257]]), 256)
    assert merged.symbols.tolist() == [258, 257]
    assert merged.offsets.tolist() == [0, 1, 1, 2]
    assert segments.symbols.tolist() == list(b"aaabab")


def test_merges_of_other_words_are_refused():
    fit = fit_bpe(*ragged([(b"abab", 3)]), n_merges=2, alphabet=RAW, min_frequency=1)
    segments = byte_segments(*ragged([(b"abac", 3)]), RAW)
    with pytest.raises(DataError, match="made from other words"):
        resume_bpe(segments, fit, n_merges=3, alphabet=RAW)
    broken = BPEFit(np.array([[300, 97]], np.int32), fit.pair_counts, fit.ambiguous, fit.n_tokens, "reached", 0)
    with pytest.raises(DataError, match="the id 300 too early"):
        resume_bpe(segments, broken, n_merges=3, alphabet=RAW)
