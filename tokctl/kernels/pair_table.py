"""Open-addressing table of symbol pairs: one 32-byte row a pair, so that a probe reads one cache line.

``table`` is ``int64[capacity, 4]``, capacity a power of two, linear probing. A row is never taken out; the owner copies
the rows that still matter into a new table (``copy_rows``) when the old one is full.
"""

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import prefetch

KEY = 0  # left id << 32 | right id, or EMPTY
COUNT = 1  # weighted number of windows
START = 2  # first entry of the pair's slice of the occurrence pool
LENGTH = 3  # entries of that slice
EMPTY = np.int64(-1)


@jit(inner=True, borrows=True)
def pair_key(left, right):
    """The pair as one int64, ordered as (left, right) is."""
    return (np.int64(left) << np.int64(32)) | np.int64(right)


@jit(inner=True, borrows=True)
def pair_hash(key):
    """A 64-bit mix of ``key`` whose low and middle bits are both usable."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@jit(inner=True, borrows=True)
def slot_of(table, key):
    """Row that holds ``key``, or the empty row where it belongs."""
    mask = np.uint64(table.shape[0] - 1)
    slot = pair_hash(key) & mask
    while table[slot, KEY] != key and table[slot, KEY] != EMPTY:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@jit(inner=True, borrows=True)
def prefetch_row(table, key):
    """Ask for the cache line where a search for ``key`` begins."""
    prefetch(table, np.int64(4) * np.int64(pair_hash(key) & np.uint64(table.shape[0] - 1)))


@jit(inner=True, borrows=True)
def put(table, key, count, start, length):
    """Write a row for ``key``, which must not be in the table; the caller keeps the table from filling up."""
    slot = slot_of(table, key)
    table[slot, KEY] = key
    table[slot, COUNT] = count
    table[slot, START] = start
    table[slot, LENGTH] = length


@jit(inner=True, borrows=True)
def is_listed(keys, key):
    """Whether ``key`` is among ``keys int64[k]``, which ascend."""
    low, high = 0, keys.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < keys.shape[0] and keys[low] == key


@jit(borrows=True)
def copy_rows(source, target, min_count):
    """Copy the rows whose count is at least ``min_count`` from ``source`` to ``target``; returns how many."""
    n_rows = 0
    for slot in range(source.shape[0]):
        if source[slot, KEY] != EMPTY and source[slot, COUNT] >= min_count:
            put(target, source[slot, KEY], source[slot, COUNT], source[slot, START], source[slot, LENGTH])
            n_rows += 1
    return n_rows


@jit(borrows=True)
def n_rows_from(table, min_count):
    """How many rows have a count of at least ``min_count``."""
    n_rows = 0
    for slot in range(table.shape[0]):
        if table[slot, KEY] != EMPTY and table[slot, COUNT] >= min_count:
            n_rows += 1
    return n_rows


@jit(borrows=True)
def put_all(table, keys, counts, lengths, starts):
    """Write a row for each of the given pairs, which must not be in the table."""
    for i in range(keys.shape[0]):
        put(table, keys[i], counts[i], starts[i], lengths[i])
