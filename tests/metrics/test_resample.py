from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import metrics as oracle

from tokctl.metrics.resample import N_RESAMPLES, interval, quantile_rank, resample, weights


def test_split_mix_reference_values():
    # The published test vector of SplitMix64 with seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [oracle.split_mix(1234567, i) for i in range(3)] == expected


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_weights_equal_the_oracle(n):
    got = np.concatenate(list(weights("all", n)))
    assert got.shape == (N_RESAMPLES, n)
    picks = oracle.drawn("all", n)
    assert (got.sum(axis=1) == n).all()
    for row in (0, 1, N_RESAMPLES - 1):
        assert got[row].tolist() == [picks[row].count(i) for i in range(n)]


def test_chunks_do_not_change_the_draws(monkeypatch):
    whole = np.concatenate(list(weights("x", 50)))
    monkeypatch.setattr("tokctl.metrics.resample._CELLS", 137)
    assert np.array_equal(np.concatenate(list(weights("x", 50))), whole)


def test_every_document_is_drawn_about_once_a_resample():
    mean = np.concatenate(list(weights("slice", 200))).mean(axis=0)
    assert abs(mean.mean() - 1) < 1e-12
    assert mean.min() > 0.85 and mean.max() < 1.15


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2**40)), min_size=1, max_size=8))
def test_sums_and_quantiles_equal_the_oracle(rows):
    lengths = np.array([[row[0]] for row in rows], np.int64)
    columns = np.array(rows, np.int64)
    quantiles = [Fraction(1, 2), Fraction(19, 20), Fraction(1)]
    sums, picked = resample("label", columns, lengths, quantiles)
    for r, picks in enumerate(oracle.drawn("label", len(rows))):
        assert sums[r].tolist() == [sum(rows[i][j] for i in picks) for j in range(2)]
        drawn = [rows[i][0] for i in picks]
        assert picked[r, 0].tolist() == [oracle.percentile(drawn, q) for q in quantiles]


def test_sums_beyond_float_precision_are_exact():
    big = np.array([[2**55 + 1], [2**55 + 3]], np.int64)
    sums, _ = resample("all", big, big, [Fraction(1)])
    assert set(sums[:, 0].tolist()) == {2**56 + 2, 2**56 + 4, 2**56 + 6}


def test_ranks_and_interval():
    assert [quantile_rank(Fraction(1, 2), n) for n in (1, 2, 3, 4)] == [1, 1, 2, 2]
    assert [quantile_rank(Fraction(19, 20), n) for n in (1, 19, 20, 21)] == [1, 19, 19, 20]
    assert interval(np.arange(1, 1000)[::-1]) == (25, 975)


def test_nothing_to_resample():
    with pytest.raises(ValueError, match="0 documents"):
        next(weights("all", 0))
