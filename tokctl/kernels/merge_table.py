"""What two tokens merge to: an open-addressing table of pairs of ids.

Most look-ups are for pairs that don't merge. They should touch as little memory as possible: one byte a slot says enough.

    marks[s]        7 bits of the pair's hash, and 1; 0 = empty
    entries[4 s]    left id, right id, rank, id of the merged token
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._pages import table_of_zeros

NO_PAIR = np.uint64(0xFFFFFFFFFFFFFFFF)

_MIX = np.uint64(0x9E3779B97F4A7C15)
_1 = np.uint64(1)
_2 = np.uint64(2)
_3 = np.uint64(3)
_8 = np.uint64(8)
_32 = np.uint64(32)
_BYTE = np.uint64(255)


class MergeTable(NamedTuple):
    """``marks uint8[capacity]`` (a power of two above the number of pairs), ``entries uint32[4 * capacity]``."""

    marks: np.ndarray
    entries: np.ndarray


def merge_table(left: np.ndarray, right: np.ndarray, ranks: np.ndarray, merged: np.ndarray) -> MergeTable:
    """The table of n pairs, ``int32[n]`` each. Of equal pairs the last counts."""
    capacity = 1 << max(4, (2 * len(left)).bit_length())
    table = MergeTable(table_of_zeros(capacity // 8).view(np.uint8), table_of_zeros(2 * capacity).view(np.uint32))
    fill_merge_table(left, right, ranks, merged, table)
    return table


@jit(inner=True, borrows=True)
def merge_shift(table):
    """How far a 64-bit hash is shifted down to number the slots of a table."""
    capacity = table.marks.size
    shift = 64
    while capacity > 1:
        capacity >>= 1
        shift -= 1
    return np.uint64(shift)


@jit(inner=True, borrows=True)
def _find(table, shift, left, right):
    """``(slot, mark)``: where the pair is, or the empty slot where it would go, and its mark."""
    marks, entries = table.marks, table.entries
    h = ((np.uint64(left) << _32) | np.uint64(right)) * _MIX
    slot = h >> shift
    mark = (h >> (shift - _8) & _BYTE) | _1
    mask = np.uint64(marks.size - 1)
    while True:
        found = np.uint64(marks[slot])
        if found == np.uint64(0):
            return slot, mark
        if found == mark:
            at = slot << _2
            if entries[at] == np.uint32(left) and entries[at + _1] == np.uint32(right):
                return slot, mark
        slot = (slot + _1) & mask


@jit(borrows=True)
def fill_merge_table(left, right, ranks, merged, table):
    """Put pairs (``left``, ``right``, ``ranks``, ``merged``: int32[n]) into the empty table."""
    shift = merge_shift(table)
    for k in range(left.size):
        slot, mark = _find(table, shift, left[k], right[k])
        table.marks[slot] = np.uint8(mark)
        at = slot << _2
        table.entries[at] = np.uint32(left[k])
        table.entries[at + _1] = np.uint32(right[k])
        table.entries[at + _2] = np.uint32(ranks[k])
        table.entries[at + _3] = np.uint32(merged[k])


@jit(inner=True, borrows=True)
def find_pair(table, shift, left, right):
    """``rank << 32 | merged id`` of the pair of ids, or ``NO_PAIR``; ``shift`` is :func:`merge_shift`'s."""
    slot, _ = _find(table, shift, left, right)
    if table.marks[slot] == 0:
        return NO_PAIR
    at = slot << _2
    return (np.uint64(table.entries[at + _2]) << _32) | np.uint64(table.entries[at + _3])
