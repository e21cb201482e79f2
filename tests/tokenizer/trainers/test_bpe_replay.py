"""Replaying a fit: fits pass, and every kind of wrong record is found."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokctl.errors import CheckFailed, UsageError
from tokctl.tokenizer.trainers.bpe import TIES, fit_bpe
from tokctl.tokenizer.trainers.bpe_replay import choose_ranks, replay
from tokctl.tokenizer.trainers.segments import Segments

RAW = [bytes([byte]) for byte in range(256)]


def ragged(words):
    data = np.frombuffer(b"".join(word for word, _ in words), np.uint8)
    offsets = np.cumsum([0, *(len(word) for word, _ in words)]).astype(np.int64)
    return data, offsets, np.array([count for _, count in words], np.int64)


def fit_and_segments(words, n_merges, **options):
    data, offsets, counts = ragged(words)
    fit = fit_bpe(data, offsets, counts, n_merges=n_merges, alphabet=RAW, **options)
    return fit, Segments(data.astype(np.int32), offsets, counts)


letters = st.sampled_from([b"a", b"b", b"c", b"\xc3", b"\xa9"])
word_lists = st.lists(
    st.tuples(
        st.one_of(st.lists(letters, max_size=12).map(b"".join), st.integers(1, 90).map(lambda n: b"a" * n)),
        st.sampled_from([0, 1, 1, 2, 3, 2**42]),
    ),
    max_size=10,
)


@pytest.mark.parametrize("ties", TIES)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    words=word_lists,
    n_merges=st.sampled_from([0, 3, 100]),
    min_frequency=st.sampled_from([1, 2, 3]),
    max_token_bytes=st.sampled_from([None, 1, 3, 8]),
)
def test_every_merge_of_a_fit_is_found_again(ties, words, n_merges, min_frequency, max_token_bytes):
    options = {"ties": ties, "min_frequency": min_frequency, "max_token_bytes": max_token_bytes}
    fit, segments = fit_and_segments(words, n_merges, **options)
    before = segments.symbols.copy()
    report = replay(segments, fit, tokens=RAW, ranks=range(len(fit.merges)), **options)
    assert report.ranks == tuple(range(len(fit.merges)))
    assert report.to_json() == {"replayed": len(fit.merges), "of": len(fit.merges), "merges": "all", "result": "equal"}
    assert (segments.symbols == before).all()


WORDS = [(b"low", 5), (b"lower", 2), (b"newest", 6), (b"widest", 3), (b"xyz", 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: {"pair_counts": f.pair_counts + (np.arange(len(f.merges)) == 3)},
            r"merge 3 .*8 occurrences, .*finds 7",
        ),
        (lambda f: {"n_tokens": f.n_tokens + (np.arange(len(f.merges) + 1) == 4)}, "merge 4 .*tokens before it"),
        (lambda f: {"ambiguous": ~f.ambiguous}, "merge 0 .*tie"),
        (lambda f: {"merges": f.merges[[0, 1, 4, *range(3, len(f.merges))]]}, "merge 2 .*the fit recorded"),
        (lambda f: {"best_remaining": f.best_remaining + 1}, "after the last merge"),
    ],
)
def test_a_wrong_record_is_found(change, message):
    fit, segments = fit_and_segments(WORDS, 100)
    assert fit.stopped == "min-frequency"
    replay(segments, fit, tokens=RAW, ranks=range(len(fit.merges)))
    with pytest.raises(CheckFailed, match=message) as caught:
        replay(segments, replace(fit, **change(fit)), tokens=RAW, ranks=range(len(fit.merges)))
    assert caught.value.code == "replay-differs"


def test_another_tie_break_is_found():
    fit, segments = fit_and_segments([(b"zy", 2), (b"ab", 2)], 2, ties="descending")
    with pytest.raises(CheckFailed, match=r"merge 0 .*b'z', b'y'.* it as the best pair, .*b'a', b'b'"):
        replay(segments, fit, tokens=RAW, ranks=[0], ties="ascending")


def test_a_pair_that_had_to_be_left_alone_is_no_difference():
    fit, segments = fit_and_segments([(b"ab", 2), (b"cd", 3)], 2)
    fit = replace(fit, merges=fit.merges[1:], pair_counts=fit.pair_counts[1:], ambiguous=fit.ambiguous[1:])
    fit = replace(fit, n_tokens=np.array([10, 8]), stopped="reached")
    with pytest.raises(CheckFailed, match="it as the best pair"):
        replay(segments, fit, tokens=RAW, ranks=[0])
    replay(segments, fit, tokens=RAW, ranks=[0], is_passed_over=lambda rank, left, right: (left, right) == (99, 100))


def test_the_table_of_pairs_grows_and_long_words_keep_their_counts():
    rng = np.random.default_rng(3)
    words = [(rng.integers(0, 256, 300_000, dtype=np.uint8).tobytes(), 1), (b"ab" * 40_000, 3)]
    fit, segments = fit_and_segments(words, 40)
    assert replay(segments, fit, tokens=RAW, ranks=[0, 20, 39]).ranks == (0, 20, 39)


def test_a_sample_has_the_first_the_last_and_always_the_same_others():
    ranks = choose_ranks(30_000, 64)
    assert (ranks[0], ranks[-1], len(ranks)) == (0, 29_999, 64)
    assert ranks == choose_ranks(30_000, "auto", n_symbols=10**7)
    assert ranks == sorted(set(ranks))
    digests = sorted((hashlib.sha256(b"0:%d" % rank).hexdigest(), rank) for rank in range(1, 9))
    assert choose_ranks(10, 4) == sorted([0, 9, digests[0][1], digests[1][1]])
    assert choose_ranks(10, "all") == choose_ranks(10, 10) == choose_ranks(10, 99) == list(range(10))
    assert choose_ranks(10, "auto", n_symbols=5) == list(range(10))
    assert choose_ranks(10, 1) == [0]
    assert choose_ranks(1, 5) == [0]
    assert choose_ranks(0, 5) == choose_ranks(0, "all") == []


@pytest.mark.parametrize("wanted", [0, -1, "some", True, 1.5])
def test_a_number_of_merges_that_is_none(wanted):
    with pytest.raises(UsageError, match="number of merges to replay"):
        choose_ranks(10, wanted)


def test_progress_counts_replayed_merges_and_may_stop():
    fit, segments = fit_and_segments(WORDS, 6)
    seen = []
    replay(segments, fit, tokens=RAW, ranks=[0, 5], on_step=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2, 2)
    assert {total for _, total in seen} == {2}

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(segments, fit, tokens=RAW, ranks=[0], on_step=stop)
