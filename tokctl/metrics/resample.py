"""The paired bootstrap over documents, from a counter-based generator in exact integer arithmetic.

Resamples depend on a label and the number of documents only, so every candidate and the baseline see the same ones:
intervals of ratios between them are paired (Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13:
the percentile interval). 999 resamples make its ends the 25th smallest and the 25th largest value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil

import numpy as np

N_RESAMPLES = 999
_CELLS = 1 << 20  # weights held at once


def weights(label: str, n_documents: int, n_resamples: int = N_RESAMPLES) -> Iterator[np.ndarray]:
    """How often each document is drawn: chunks ``int64[r, n_documents]``, ``n_resamples`` rows in all.

    Draw ``i`` is SplitMix64 (Steele, Lea & Flood, 2014) of counter ``i`` under the first 8 bytes of SHA-256 of the
    label; its upper 32 bits, multiplied by ``n_documents`` and shifted, choose the document. Needs n_documents in
    1..2**32-1.
    """
    if not 0 < n_documents < 2**32:
        raise ValueError(f"can't resample {n_documents} documents")
    digest = hashlib.sha256(b"tokctl-bootstrap-v1\0" + label.encode()).digest()
    seed = np.uint64(int.from_bytes(digest[:8], "big"))
    rows = max(1, _CELLS // n_documents)
    for first in range(0, n_resamples, rows):
        n_rows = min(rows, n_resamples - first)
        counter = np.arange(first * n_documents, (first + n_rows) * n_documents, dtype=np.uint64)
        drawn = ((_split_mix(seed, counter) >> np.uint64(32)) * np.uint64(n_documents)) >> np.uint64(32)
        cells = drawn.astype(np.int64) + np.repeat(np.arange(n_rows) * n_documents, n_documents)
        yield np.bincount(cells, minlength=n_rows * n_documents).reshape(n_rows, n_documents)


def _split_mix(seed: np.uint64, counter: np.ndarray) -> np.ndarray:
    state = seed + (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def quantile_rank(quantile: Fraction, n: int) -> int:
    """The nearest rank, 1..n: the smallest k with k/n >= quantile. ``quantile`` in (0, 1]."""
    return ceil(quantile * n)


def resample(
    label: str, columns: np.ndarray, lengths: np.ndarray, quantiles: Sequence[Fraction]
) -> tuple[np.ndarray, np.ndarray]:
    """Sums and quantiles in each resample of the rows.

    ``columns int64[n, k]`` -> sums ``int64[N_RESAMPLES, k]``; ``lengths int64[n, m]`` -> nearest-rank quantiles
    ``int64[N_RESAMPLES, m, len(quantiles)]``. Values are not negative. Exact: a sum is never rounded.
    """
    n = len(columns)
    # Integers below 2**53 add exactly in float64, in any order, so the fast matrix product is as good as the exact one.
    fits = columns.size == 0 or n * int(columns.max()) < 2**53
    exact_columns = columns.astype(np.float64 if fits else np.int64)
    orders = np.argsort(lengths, axis=0, kind="stable")
    ranks = np.array([quantile_rank(quantile, n) for quantile in quantiles], np.int64)
    sums, picked = [], []
    for chunk in weights(label, n):
        sums.append((chunk.astype(exact_columns.dtype) @ exact_columns).astype(np.int64))
        values = np.empty((len(chunk), lengths.shape[1], len(ranks)), np.int64)
        for j in range(lengths.shape[1]):
            ordered = lengths[orders[:, j], j]
            cumulated = np.cumsum(chunk[:, orders[:, j]], axis=1)
            for row in range(len(chunk)):
                values[row, j] = ordered[np.searchsorted(cumulated[row], ranks)]
        picked.append(values)
    return np.concatenate(sums), np.concatenate(picked)


def interval(values: np.ndarray) -> tuple[float, float]:
    """The 95 % percentile interval of N_RESAMPLES values: the 25th from either end."""
    ordered = np.sort(values)
    tail = (len(values) + 1) * 25 // 1000
    return ordered[tail - 1].item(), ordered[len(values) - tail].item()
