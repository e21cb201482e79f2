"""The state of a BPE fit: made from words, enlarged when the pair table is full, and asked what is left at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tokctl.errors import DataError
from tokctl.kernels import bpe_merge, bpe_recount, bpe_words, pair_heap, pair_table
from tokctl.kernels.bpe_merge import FitState
from tokctl.kernels.pair_heap import Spelling

# How many positions one call of a scanning kernel covers, so that Ctrl-C is heard.
_SCAN = 1 << 24
_MIN_CAPACITY = 1 << 12
_RECOUNT_CAPACITY = 1 << 20
# Beyond as many positions they take 64 bits.
_MAX_NARROW = 2**31 - 1

_TIES = {
    "ascending": bpe_merge.ASCENDING,
    "descending": bpe_merge.DESCENDING,
    "first-seen": bpe_merge.FIRST_SEEN,
    "sentencepiece": bpe_merge.SENTENCEPIECE,
    "subword-nmt": bpe_merge.SUBWORD_NMT,
}
_COMPARED = {"sentencepiece": pair_heap.MERGED, "subword-nmt": pair_heap.PAIRWISE}


def prepare(
    data: np.ndarray,
    offsets: np.ndarray,
    counts: np.ndarray,
    *,
    n_merges: int,
    alphabet: Sequence[bytes],
    ties: str,
    min_frequency: int,
    max_token_bytes: int,
    rows: tuple[np.ndarray, np.ndarray] | None = None,
    passed_over: Sequence[tuple[int, int]] = (),
    wide: bool = False,
) -> FitState:
    """The state before the first merge; ``rows``: the words as symbols (``data`` and ``offsets`` are then their bytes).

    ``wide`` forces the 64-bit positions of inputs beyond 2**31.
    """
    n_base, n_words = len(alphabet), len(counts)
    n_positions = len(data) + n_words + 1
    index_type = np.int64 if wide or n_positions > _MAX_NARROW else np.int32

    base_lengths = np.array([len(token) for token in alphabet], np.int64)
    base_bytes = np.frombuffer(b"".join(alphabet), np.uint8)
    base_starts = np.cumsum(base_lengths) - base_lengths
    avoided = np.sort(np.array([left << 32 | right for left, right in passed_over], np.int64))
    pool = np.empty((n_positions, 2), index_type)
    pool[0] = bpe_words.SEPARATOR
    if rows is None:
        windows = _windows_of_bytes(data, offsets, counts, alphabet, pool)
    else:
        windows = _windows_of_symbols(*rows, counts, base_lengths, pool)
    kept = windows.weights >= min_frequency
    kept &= base_lengths[windows.keys >> 32] + base_lengths[windows.keys & 0xFFFFFFFF] <= max_token_bytes
    kept &= ~np.isin(windows.keys, avoided)
    n_windows = int(windows.lengths.sum())
    keys, weights, lengths = windows.keys[kept], windows.weights[kept], windows.lengths[kept]
    starts = np.cumsum(lengths) - lengths

    # Each merge takes one window away and makes at most two, so all rounds together make at most 2 * n_windows;
    # pages that are never written cost no memory.
    n_merges = min(n_merges, n_windows)
    occurrences = np.empty(int(lengths.sum()) + (2 * n_windows if n_merges else 0), index_type)
    windows.place(kept, starts, occurrences)

    table = _new_table(len(keys))
    pair_table.put_all(table, keys, weights, starts, lengths)

    n_symbols = n_base + n_merges
    spelling = Spelling(
        # The base tokens' bytes stand behind the data.
        data=np.concatenate([data, base_bytes]) if ties in _COMPARED else np.empty(0, np.uint8),
        at=np.zeros(n_symbols, np.int64),
        length=np.ones(n_symbols, np.int64),
        is_compared=np.array([_COMPARED.get(ties, 0)], np.int64),
    )
    spelling.at[:n_base] = len(data) + base_starts
    spelling.length[:n_base] = base_lengths
    n_chars = np.zeros(n_symbols, np.int64)
    n_chars[:n_base] = np.add.reduceat((base_bytes & 0xC0) != 0x80, base_starts, dtype=np.int64)
    state = bpe_merge.FitState(
        pool=pool,
        counts=counts,
        occurrences=occurrences,
        table=table,
        heap=np.empty((len(table), 3), np.int64),
        spelling=spelling,
        n_chars=n_chars,
        gathered=np.zeros((n_symbols, 4), np.int64),
        touched=np.empty((2, n_symbols), np.int64),
        merges=np.empty((n_merges, 2), np.int32),
        pair_counts=np.empty(n_merges, np.int64),
        ambiguous=np.empty(n_merges, np.uint8),
        n_tokens=np.empty(n_merges + 1, np.int64),
        control=np.zeros(7, np.int64),
        limits=np.zeros(4, np.int64),
        passed_over=avoided,
    )
    state.n_tokens[0] = np.dot(np.diff(offsets if rows is None else rows[1]), counts)
    state.control[bpe_merge.N_OCCURRENCES] = lengths.sum()
    state.control[bpe_merge.N_ROWS] = len(keys)
    state.limits[bpe_merge.N_BASE] = n_base
    state.limits[bpe_merge.MIN_FREQUENCY] = min_frequency
    state.limits[bpe_merge.MAX_TOKEN_BYTES] = max_token_bytes
    state.limits[bpe_merge.TIES] = _TIES[ties]
    return state


class _Windows(NamedTuple):
    """The pairs before the first merge: ``keys``, ``weights``, ``lengths`` (windows) int64[n], keys ascending.

    ``place(kept, starts, occurrences)`` writes the windows' positions of the pairs ``kept bool[n]`` to their slices, which
    begin at ``starts``, in ascending order.
    """

    keys: np.ndarray
    weights: np.ndarray
    lengths: np.ndarray
    place: Callable[[np.ndarray, np.ndarray, np.ndarray], None]


def _windows_of_bytes(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, alphabet: Sequence[bytes], pool: np.ndarray
) -> _Windows:
    """Fill the pool with the words' bytes and count their pairs, in two dense tables."""
    n_base, n_positions = len(alphabet), len(pool)
    base_ids = np.full(256, -1, np.int32)
    base_ids[np.frombuffer(b"".join(alphabet), np.uint8)] = np.arange(n_base, dtype=np.int32)
    for first, last in _word_ranges(offsets):
        bad = bpe_words.fill_pool(data, offsets, counts, base_ids, first, last, pool)
        if bad >= 0:
            row = int(np.searchsorted(offsets, bad, side="right")) - 1
            raise DataError(
                f"byte 0x{data[bad]:02x} of word {row} is not in the alphabet of {n_base} base tokens",
                hint="give an alphabet that holds every byte of the words; all 256 bytes is the default",
                row=row,
                offset=int(bad - offsets[row]),
                code="byte-not-in-alphabet",
            )
    windows = np.zeros((n_base, n_base), np.int64)
    weights = np.zeros((n_base, n_base), np.int64)
    for first in range(0, n_positions - 1, _SCAN):
        bpe_words.count_windows(pool, counts, first, min(first + _SCAN, n_positions - 1), windows, weights)
    left, right = np.nonzero(windows)

    def place(kept: np.ndarray, starts: np.ndarray, occurrences: np.ndarray) -> None:
        cursors = np.full((n_base, n_base), -1, np.int64)
        cursors[left[kept], right[kept]] = starts
        for first in range(0, n_positions - 1, _SCAN):
            bpe_words.place_windows(pool, first, min(first + _SCAN, n_positions - 1), cursors, occurrences)

    return _Windows((left.astype(np.int64) << 32) | right, weights[left, right], windows[left, right], place)


def _windows_of_symbols(
    symbols: np.ndarray, offsets: np.ndarray, counts: np.ndarray, lengths: np.ndarray, pool: np.ndarray
) -> _Windows:
    """Fill the pool with the words' symbols and count their pairs, by sorting them."""
    position = 1
    for first, last in _word_ranges(offsets):
        position = bpe_words.fill_pool_with_symbols(symbols, offsets, counts, lengths, first, last, position, pool)
    words = np.repeat(np.arange(len(counts)), np.diff(offsets))
    ends = np.cumsum(lengths[symbols])
    is_window = (words[:-1] == words[1:]) & (counts[words[:-1]] > 0)
    positions = (ends - lengths[symbols] + words + 1)[:-1][is_window]
    keys = ((symbols[:-1].astype(np.int64) << 32) | symbols[1:])[is_window]
    order = np.argsort(keys, kind="stable")
    positions, keys = positions[order], keys[order]
    weights = counts[words[:-1]][is_window][order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(keys), 1), np.bool_), keys[1:] != keys[:-1]]))
    n_windows = np.diff(np.concatenate([starts, [len(keys)]]))

    def place(kept: np.ndarray, slices: np.ndarray, occurrences: np.ndarray) -> None:
        chosen = np.repeat(kept, n_windows)
        occurrences[: int(chosen.sum())] = positions[chosen]

    return _Windows(keys[starts], np.add.reduceat(weights, starts) if len(starts) else weights, n_windows, place)


def _word_ranges(offsets: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of words that hold about ``_SCAN`` bytes each."""
    n_words = len(offsets) - 1
    cuts = np.searchsorted(offsets, np.arange(_SCAN, int(offsets[-1]), _SCAN))
    edges = np.unique(np.concatenate([[0], cuts, [n_words]])).tolist()
    return list(pairwise(edges))


def _new_table(n_rows: int) -> np.ndarray:
    """An empty pair table that is at most half full with ``n_rows`` rows, so that a quarter is free for new ones."""
    capacity = _MIN_CAPACITY
    while capacity < 2 * n_rows:
        capacity *= 2
    table = np.empty((capacity, 4), np.int64)
    table[:, pair_table.KEY] = pair_table.EMPTY
    return table


def grow(state: FitState) -> FitState:
    """The same state with a table that has room for the next merge, without the pairs that have become too rare."""
    min_frequency = int(state.limits[bpe_merge.MIN_FREQUENCY])
    n_live = int(pair_table.n_rows_from(state.table, min_frequency))
    table = _new_table(n_live + int(state.control[bpe_merge.ROOM_NEEDED]))
    state.control[bpe_merge.N_ROWS] = pair_table.copy_rows(state.table, table, min_frequency)
    # The heap refills from the new table.
    state.control[bpe_merge.HEAP_SIZE] = 0
    return state._replace(table=table, heap=np.empty((len(table), 3), np.int64))


def best_rare(state: FitState) -> int:
    """The highest count among the pairs that are rarer than the minimum frequency; 0 if there are none."""
    highest = int(state.limits[bpe_merge.MIN_FREQUENCY]) - 1
    if highest < 1:
        return 0
    n_positions = len(state.pool)
    capacity = _MIN_CAPACITY
    while capacity < min(2 * n_positions, _RECOUNT_CAPACITY):
        capacity *= 2
    n_parts = 1
    while n_parts * capacity < 2 * n_positions:
        n_parts *= 2
    best = 0
    table = np.empty((capacity, 4), np.int64)
    for part in range(n_parts):
        table[:, pair_table.KEY] = pair_table.EMPTY
        position = 0
        while position < n_positions:
            position, count = bpe_recount.recount(
                state.pool,
                state.counts,
                state.spelling.length,
                position,
                min(position + _SCAN, n_positions),
                int(state.limits[bpe_merge.MAX_TOKEN_BYTES]),
                state.passed_over,
                part,
                n_parts,
                table,
            )
            best = max(best, int(count))
            if best == highest:
                return best
    return best
