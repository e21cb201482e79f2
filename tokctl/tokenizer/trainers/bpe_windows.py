"""The windows before a fit's first merge: the words are written to the pool, their pairs counted and their places listed.

Words of single bytes have few pairs, which a dense table counts. Rows of other tokens may have as many pairs as windows:
these are counted in a hash table of bounded size, one part of the pairs after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tokctl.errors import DataError
from tokctl.kernels import bpe_words, pair_table

# How many positions one call of a scanning kernel covers, so that Ctrl-C is heard.
_SCAN = 1 << 24
_MIN_CAPACITY = 1 << 12
_MIN_BOUND = 1 << 20


class Pairs(NamedTuple):
    """Pairs as the table of pairs has them: ``keys``, weighted ``counts`` and numbers of windows, int64[n] each."""

    keys: np.ndarray
    counts: np.ndarray
    n_windows: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """Where each pair's slice of the occurrence lists begins."""
        return np.cumsum(self.n_windows) - self.n_windows


class Bytes:
    """Words as bytes: ``data uint8[]``, ``offsets int64[n + 1]``, ``counts int64[n]``; each byte is in ``alphabet``."""

    def __init__(self, data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, alphabet: Sequence[bytes]) -> None:
        self._words = data, offsets, counts
        self._n_base = len(alphabet)
        self._base_ids = np.full(256, -1, np.int32)
        self._base_ids[np.frombuffer(b"".join(alphabet), np.uint8)] = np.arange(len(alphabet), dtype=np.int32)

    def fill(self, pool: np.ndarray, weights: np.ndarray) -> Pairs:
        """Write the words to the pool and count their pairs; keys ascend."""
        data, offsets, counts = self._words
        windows = np.zeros((self._n_base, self._n_base, 2), np.int64)
        for first, last in word_ranges(offsets):
            bad = bpe_words.fill_pool(data, offsets, counts, weights, self._base_ids, first, last, pool, windows)
            if bad >= 0:
                row = int(np.searchsorted(offsets, bad, side="right")) - 1
                raise DataError(
                    f"byte 0x{data[bad]:02x} of word {row} is not in the alphabet of {self._n_base} base tokens",
                    hint="give an alphabet that holds every byte of the words; all 256 bytes is the default",
                    row=row,
                    offset=int(bad - offsets[row]),
                    code="byte-not-in-alphabet",
                )
        left, right = np.nonzero(windows[:, :, 0])
        n_windows, weighted = windows[left, right].T.copy()
        return Pairs((left << 32) | right, weighted, n_windows)

    def place(self, pairs: Pairs, table: np.ndarray, pool: np.ndarray, occurrences: np.ndarray) -> None:
        """Write the places of the windows of ``pairs``, which ``table`` holds, to their slices, in ascending order."""
        data, offsets, counts = self._words
        cursors = np.full((self._n_base, self._n_base), -1, np.int64)
        cursors[pairs.keys >> 32, pairs.keys & 0xFFFFFFFF] = pairs.starts
        for first, last in word_ranges(offsets):
            bpe_words.place_windows(data, offsets, counts, self._base_ids, first, last, cursors, occurrences)


class Rows:
    """Words as rows of symbols ``int32[]``, ``offsets int64[n + 1]``; ``lengths int64[]`` are the symbols' bytes."""

    def __init__(
        self,
        symbols: np.ndarray,
        offsets: np.ndarray,
        lengths: np.ndarray,
        heavy: np.ndarray,
        min_frequency: int,
        max_token_bytes: int,
        passed_over: np.ndarray,
    ) -> None:
        self._rows = symbols, offsets
        self._lengths = lengths
        self._counting = heavy, lengths, max_token_bytes, passed_over
        self._min_frequency = min_frequency

    def fill(self, pool: np.ndarray, weights: np.ndarray) -> Pairs:
        """Write the words to the pool and count their pairs; those that can't be merged are left out."""
        symbols, offsets = self._rows
        position = 1
        for first, last in word_ranges(offsets):
            position = bpe_words.fill_pool_with_rows(
                symbols, offsets, weights, self._lengths, first, last, position, pool
            )
        found = [
            table[(table[:, pair_table.KEY] != pair_table.EMPTY) & (table[:, pair_table.COUNT] >= self._min_frequency)]
            for table, _ in counted_pairs(pool, len(symbols), *self._counting)
        ]
        rows = np.concatenate(found)
        return Pairs(
            rows[:, pair_table.KEY].copy(), rows[:, pair_table.COUNT].copy(), rows[:, pair_table.LENGTH].copy()
        )

    def place(self, pairs: Pairs, table: np.ndarray, pool: np.ndarray, occurrences: np.ndarray) -> None:
        """Write the places of the windows of ``pairs``, which ``table`` holds, to their slices, in ascending order."""
        position = 0
        while position < len(pool):
            end = min(position + _SCAN, len(pool))
            position = bpe_words.place_pairs(pool, self._lengths, position, end, table, occurrences)
        table[:, pair_table.START] -= table[:, pair_table.LENGTH]


def counted_pairs(
    pool: np.ndarray,
    n_tokens: int,
    heavy: np.ndarray,
    lengths: np.ndarray,
    max_token_bytes: int,
    passed_over: np.ndarray,
) -> Iterator[tuple[np.ndarray, int]]:
    """Count the pairs of at most ``n_tokens`` tokens in the pool, part by part: (their table, the highest count so far).

    The table has at most 16 bytes a token (or 32 MB), and is used again for the next part.
    """
    capacity, n_parts, bound = _MIN_CAPACITY, 1, max(_MIN_BOUND, n_tokens // 4)
    while capacity < min(2 * n_tokens, bound):
        capacity *= 2
    while n_parts * capacity < 2 * n_tokens:
        n_parts *= 2
    table = np.empty((capacity, 4), np.int64)
    best = 0
    for part in range(n_parts):
        table[:, pair_table.KEY] = pair_table.EMPTY
        position = 0
        while position < len(pool):
            end = min(position + _SCAN, len(pool))
            position, count = bpe_words.count_pairs(
                pool, heavy, lengths, position, end, max_token_bytes, passed_over, part, n_parts, table
            )
            best = max(best, int(count))
        yield table, best


def weights_of(counts: np.ndarray, index_type: type) -> tuple[np.ndarray, np.ndarray]:
    """The words' counts as the pool holds them, and ``heavy``: those that its type is too small for."""
    large = np.flatnonzero(counts > np.iinfo(index_type).max)
    weights: np.ndarray = counts.astype(index_type, copy=False)
    weights[large] = -1 - np.arange(len(large))
    return weights, counts[large]


def word_ranges(offsets: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of words that hold about as many bytes or symbols as one call of a kernel covers."""
    cuts = np.searchsorted(offsets, np.arange(_SCAN, int(offsets[-1]), _SCAN))
    edges = np.unique(np.concatenate([[0], cuts, [len(offsets) - 1]])).tolist()
    return list(pairwise(edges))
