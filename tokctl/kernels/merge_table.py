"""What two tokens merge to: an open-addressing table of pairs of ids.

Most look-ups are for pairs that don't merge. They should touch as little memory as possible, so the slots are 4 bytes:

    slots[s]      8 bits of the pair's hash << 24 | number of its entry + 1; 0 = empty
    entries[4 i]  left id, right id, rank, id of the merged token

The entries lie in the order given, by rank: those of the frequent merges lie together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._pages import table_of_zeros

MAX_PAIRS = (1 << 24) - 2
NO_PAIR = np.uint64(0xFFFFFFFFFFFFFFFF)

_MIX = np.uint64(0x9E3779B97F4A7C15)
_1 = np.uint64(1)
_2 = np.uint64(2)
_3 = np.uint64(3)
_8 = np.uint64(8)
_32 = np.uint64(32)
_MARK = np.uint64(0xFF000000)
_NUMBER = np.uint64(0x00FFFFFF)


class MergeTable(NamedTuple):
    """``slots uint32[capacity]`` (a power of two above n), ``entries uint32[4 n]``."""

    slots: np.ndarray
    entries: np.ndarray


def merge_table(left: np.ndarray, right: np.ndarray, ranks: np.ndarray, merged: np.ndarray) -> MergeTable:
    """The table of n <= MAX_PAIRS pairs, ``int32[n]`` each, best in the order of their ranks. Of equal pairs the last counts."""
    if len(left) > MAX_PAIRS:
        raise ValueError(f"{len(left)} pairs; a table holds {MAX_PAIRS}")
    capacity = 1 << max(4, (2 * len(left)).bit_length())
    slots = table_of_zeros(capacity // 2).view(np.uint32)
    entries = table_of_zeros(2 * max(len(left), 1)).view(np.uint32)
    fill_merge_table(left, right, ranks, merged, slots, entries)
    return MergeTable(slots, entries)


@jit(inner=True, borrows=True)
def merge_shift(table):
    """How far a 64-bit hash is shifted down to number the slots of a table."""
    capacity = table.slots.size
    shift = 64
    while capacity > 1:
        capacity >>= 1
        shift -= 1
    return np.uint64(shift)


@jit(inner=True, borrows=True)
def _find_entry(slots, entries, shift, left, right):
    """``(number, slot)`` of a pair's entry; number -1: it has none, and the slot is where it would go."""
    h = ((np.uint64(left) << _32) | np.uint64(right)) * _MIX
    slot = h >> shift
    mark = (h >> (shift - _8)) << np.uint64(24) & _MARK
    mask = np.uint64(slots.size - 1)
    while True:
        found = np.uint64(slots[slot])
        if found == np.uint64(0):
            return np.int64(-1), slot
        if found & _MARK == mark:
            at = ((found & _NUMBER) - _1) << _2
            if entries[at] == np.uint32(left) and entries[at + _1] == np.uint32(right):
                return np.int64(at >> _2), slot
        slot = (slot + _1) & mask


@jit(borrows=True)
def fill_merge_table(left, right, ranks, merged, slots, entries):
    """Put pairs (``left``, ``right``, ``ranks``, ``merged``: int32[n]) into the empty table."""
    shift = merge_shift(MergeTable(slots, entries))
    for k in range(left.size):
        number, slot = _find_entry(slots, entries, shift, left[k], right[k])
        if number < 0:
            number = np.int64(k)
            h = ((np.uint64(left[k]) << _32) | np.uint64(right[k])) * _MIX
            slots[slot] = np.uint32(((h >> (shift - _8)) << np.uint64(24) & _MARK) | np.uint64(k + 1))
            entries[4 * k] = np.uint32(left[k])
            entries[4 * k + 1] = np.uint32(right[k])
        entries[4 * number + 2] = np.uint32(ranks[k])
        entries[4 * number + 3] = np.uint32(merged[k])


@jit(inner=True, borrows=True)
def find_pair(table, shift, left, right):
    """``rank << 32 | merged id`` of the pair of ids, or ``NO_PAIR``; ``shift`` is :func:`merge_shift`'s."""
    number, _ = _find_entry(table.slots, table.entries, shift, left, right)
    if number < 0:
        return NO_PAIR
    at = np.uint64(number) << _2
    return (np.uint64(table.entries[at + _2]) << _32) | np.uint64(table.entries[at + _3])
