"""The state of a BPE fit: made from words, enlarged when the pair table is full, and asked what is left at the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokctl.kernels import bpe_merge, bpe_words, pair_heap, pair_table
from tokctl.kernels.bpe_merge import FitState
from tokctl.kernels.pair_heap import Spelling
from tokctl.tokenizer.trainers.bpe_windows import Bytes, Pairs, Rows, counted_pairs, weights_of

_MIN_CAPACITY = 1 << 12
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
    n_base = len(alphabet)
    n_positions = len(data) + len(counts) + 1
    index_type = np.int64 if wide or n_positions > _MAX_NARROW else np.int32
    weights, heavy = weights_of(counts, index_type)
    lengths = np.array([len(token) for token in alphabet], np.int64)
    base_bytes = np.frombuffer(b"".join(alphabet), np.uint8)
    base_starts = np.cumsum(lengths) - lengths
    avoided = np.sort(np.array([left << 32 | right for left, right in passed_over], np.int64))

    pool = np.empty((n_positions, 2), index_type)
    pool[0] = bpe_words.SEPARATOR
    words = (
        Bytes(data, offsets, counts, alphabet)
        if rows is None
        else Rows(*rows, lengths, heavy, min_frequency, max_token_bytes, avoided)
    )
    found = words.fill(pool, weights)
    kept = found.counts >= min_frequency
    kept &= lengths[found.keys >> 32] + lengths[found.keys & 0xFFFFFFFF] <= max_token_bytes
    kept &= ~np.isin(found.keys, avoided)
    pairs = Pairs(*(column[kept] for column in found))
    table = _new_table(len(pairs.keys))
    pair_table.put_all(table, *pairs, pairs.starts)

    # Each merge takes one window away and makes at most two, so all rounds together make at most 2 * n_windows;
    # pages that are never written cost no memory.
    n_symbols = np.diff(offsets if rows is None else rows[1])
    n_windows = int(np.maximum(n_symbols - 1, 0).sum())
    n_merges = min(n_merges, n_windows)
    n_placed = int(pairs.n_windows.sum())
    occurrences = np.empty(n_placed + (2 * n_windows if n_merges else 0), index_type)
    words.place(pairs, table, pool, occurrences)

    n_ids = n_base + n_merges
    spelling = Spelling(
        # The base tokens' bytes stand behind the data.
        data=np.concatenate([data, base_bytes]) if ties in _COMPARED else np.empty(0, np.uint8),
        at=np.zeros(n_ids, np.int64),
        length=np.ones(n_ids, np.int64),
        is_compared=np.array([_COMPARED.get(ties, 0)], np.int64),
    )
    spelling.at[:n_base] = len(data) + base_starts
    spelling.length[:n_base] = lengths
    n_chars = np.zeros(n_ids, np.int64)
    n_chars[:n_base] = np.add.reduceat((base_bytes & 0xC0) != 0x80, base_starts, dtype=np.int64)
    state = bpe_merge.FitState(
        pool=pool,
        heavy=heavy,
        offsets=offsets,
        occurrences=occurrences,
        table=table,
        heap=np.empty((len(table), 3), np.int64),
        spelling=spelling,
        n_chars=n_chars,
        gathered=np.zeros((2, n_ids, 2), np.int64),
        beside=np.empty((int(pairs.n_windows.max(initial=0)), 2), np.int32),
        touched=np.empty((2, n_ids), np.int32),
        merges=np.empty((n_merges, 2), np.int32),
        pair_counts=np.empty(n_merges, np.int64),
        ambiguous=np.empty(n_merges, np.uint8),
        n_tokens=np.empty(n_merges + 1, np.int64),
        control=np.zeros(8, np.int64),
        limits=np.zeros(4, np.int64),
        passed_over=avoided,
    )
    state.n_tokens[0] = np.dot(n_symbols, counts)
    state.control[bpe_merge.N_OCCURRENCES] = n_placed
    state.control[bpe_merge.N_ROWS] = len(pairs.keys)
    state.control[bpe_merge.BOUND] = pairs.counts.max(initial=0)
    state.limits[bpe_merge.N_BASE] = n_base
    state.limits[bpe_merge.MIN_FREQUENCY] = min_frequency
    state.limits[bpe_merge.MAX_TOKEN_BYTES] = max_token_bytes
    state.limits[bpe_merge.TIES] = _TIES[ties]
    return state


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
    # The heap refills from the new table, where no pair is better than the one that was about to be merged.
    state.control[bpe_merge.HEAP_SIZE] = 0
    state.control[bpe_merge.BOUND] = state.control[bpe_merge.BEST_COUNT]
    return state._replace(table=table, heap=np.empty((len(table), 3), np.int64))


def best_rare(state: FitState) -> int:
    """The highest count among the pairs that are rarer than the minimum frequency; 0 if there are none."""
    highest = int(state.limits[bpe_merge.MIN_FREQUENCY]) - 1
    best = 0
    if highest > 0:
        for _, best in counted_pairs(
            state.pool,
            len(state.pool),
            state.heavy,
            state.spelling.length,
            int(state.limits[bpe_merge.MAX_TOKEN_BYTES]),
            state.passed_over,
        ):
            if best == highest:
                break
    return best
