"""Merging the symbols of one word in BPE order: the pair of lowest rank first, the leftmost of several.

One occurrence is merged at a time, so that a table whose merges aren't in order of creation is still followed exactly
as tokenizers and tiktoken do. Short words look for the minimum by scanning; long words keep a heap of (rank, position)
with stale entries, n log n in the worst case, and run in slices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels.merge_table import NO_PAIR, find_pair, merge_shift

SHORT_WORD = 40  # bytes; up to here looking for the minimum by scanning beats the heap
ALL_STEPS = np.int64(1) << np.int64(62)

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)

# state of a merge
N_SYMBOLS, HEAP_SIZE, FAILED_AT = range(3)


class MergeSpace(NamedTuple):
    """Working arrays for words of at most n bytes.

    ``ids int32[n]``; ``following``, ``preceding`` int32[n] (-1: none); ``values uint64[n]`` (table value of the pair
    that begins at a position, ``NO_PAIR`` if none); ``heap uint64[2 n]`` (rank << 32 | position); ``state int64[3]``.
    """

    ids: np.ndarray
    following: np.ndarray
    preceding: np.ndarray
    values: np.ndarray
    heap: np.ndarray
    state: np.ndarray


def merge_space(n_bytes: int) -> MergeSpace:
    """Working arrays for one word of at most ``n_bytes``: about 36 bytes for each byte of the word."""
    return MergeSpace(
        np.empty(n_bytes, np.int32),
        np.empty(n_bytes, np.int32),
        np.empty(n_bytes, np.int32),
        np.empty(n_bytes, np.uint64),
        np.empty(2 * n_bytes, np.uint64),
        np.zeros(3, np.int64),
    )


@jit(borrows=True)
def fill_byte_pairs(byte_ids, merge_table, byte_pairs):
    """``byte_pairs uint64[65536]``: what :func:`find_pair` gives for the ids of two bytes, at ``first << 8 | second``."""
    shift = merge_shift(merge_table)
    for first in range(256):
        for second in range(256):
            is_known = byte_ids[first] >= 0 and byte_ids[second] >= 0
            value = find_pair(merge_table, shift, byte_ids[first], byte_ids[second]) if is_known else NO_PAIR
            byte_pairs[first << 8 | second] = value


@jit(borrows=True)
def merge_short(data, start, stop, byte_ids, byte_pairs, merge_table, space):
    """Merge ``data[start:stop]`` in ``space.ids[:n]`` and return n; -1 - i if byte i of the word has no id.

    Quadratic in the length of the word with a small factor: for words of a few dozen bytes.
    """
    ids, values = space.ids, space.values
    shift = merge_shift(merge_table)
    n = stop - start
    for i in range(n):
        ids[i] = byte_ids[data[start + i]]
        if ids[i] < 0:
            return -1 - i
    for i in range(n - 1):
        values[i] = byte_pairs[np.int64(data[start + i]) << 8 | np.int64(data[start + i + 1])]
    while n > 1:
        best = NO_PAIR
        at = 0
        for i in range(n - 1):
            if values[i] < best:
                best = values[i]
                at = i
        if best == NO_PAIR:
            break
        ids[at] = np.int32(best & _LOW)
        n -= 1
        for i in range(at + 1, n):
            ids[i] = ids[i + 1]
            values[i] = values[i + 1]
        if at > 0:
            values[at - 1] = find_pair(merge_table, shift, ids[at - 1], ids[at])
        if at < n - 1:
            values[at] = find_pair(merge_table, shift, ids[at], ids[at + 1])
    return n


@jit(inner=True, borrows=True)
def _sift_down(heap, size, at):
    """Restore the heap's order below ``at``."""
    item = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= item:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = item


@jit(inner=True, borrows=True)
def _push(heap, size, item):
    """Add ``item`` to a heap of ``size`` and return the new size."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if heap[parent] <= item:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = item
    return size + 1


@jit(borrows=True)
def start_merge(data, start, stop, byte_ids, merge_table, space):
    """Set ``space`` up for the word ``data[start:stop]``; -1, or the first position whose byte has no id."""
    ids, values, heap = space.ids, space.values, space.heap
    shift = merge_shift(merge_table)
    n = stop - start
    for i in range(n):
        ids[i] = byte_ids[data[start + i]]
        if ids[i] < 0:
            return start + i
        space.preceding[i] = i - 1
        space.following[i] = i + 1
    space.following[n - 1] = -1
    size = 0
    values[n - 1] = NO_PAIR
    for i in range(n - 1):
        values[i] = find_pair(merge_table, shift, ids[i], ids[i + 1])
        if values[i] != NO_PAIR:
            heap[size] = (values[i] & ~_LOW) | np.uint64(i)
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        _sift_down(heap, size, at)
    space.state[N_SYMBOLS] = n
    space.state[HEAP_SIZE] = size
    return -1


@jit(borrows=True)
def continue_merge(merge_table, space, n_steps):
    """Take at most ``n_steps`` entries off the heap; whether the word is finished."""
    ids, following, preceding = space.ids, space.following, space.preceding
    values, heap = space.values, space.heap
    shift = merge_shift(merge_table)
    size = space.state[HEAP_SIZE]
    n = space.state[N_SYMBOLS]
    for _ in range(n_steps):
        if size == 0:
            break
        item = heap[0]
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            _sift_down(heap, size, 0)
        at = np.int64(item & _LOW)
        value = values[at]
        # Stale: the symbol was swallowed, or its neighbour changed. Another pair of the same rank here is as good.
        if value == NO_PAIR or (value >> _32) != (item >> _32):
            continue
        swallowed = following[at]
        after = following[swallowed]
        ids[at] = np.int32(value & _LOW)
        n -= 1
        values[swallowed] = NO_PAIR
        following[at] = after
        values[at] = NO_PAIR
        if after >= 0:
            preceding[after] = at
            value = find_pair(merge_table, shift, ids[at], ids[after])
            values[at] = value
            if value != NO_PAIR:
                size = _push(heap, size, (value & ~_LOW) | np.uint64(at))
        before = preceding[at]
        if before >= 0:
            value = find_pair(merge_table, shift, ids[before], ids[at])
            values[before] = value
            if value != NO_PAIR:
                size = _push(heap, size, (value & ~_LOW) | np.uint64(before))
    space.state[HEAP_SIZE] = size
    space.state[N_SYMBOLS] = n
    return size == 0


@jit(borrows=True)
def write_merged(space, out, n_out):
    """Write the finished word's ids to ``out uint32[]`` from ``n_out`` on and return the new length."""
    at = 0
    while at >= 0:
        out[n_out] = np.uint32(space.ids[at])
        n_out += 1
        at = space.following[at]
    return n_out
