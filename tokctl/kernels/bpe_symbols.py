"""Words as rows of symbols: merged further in place, and their pairs counted from scratch.

This is the slow path beside the fitting kernel: it shares neither its pool nor its pair table. A word's symbols stand at
``symbols[offsets[w] : offsets[w] + n_symbols[w]]``; the room up to ``offsets[w + 1]`` stays as the symbols become fewer.
Symbols are never negative.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels.bpe_merge_word import (
    ALL_STEPS,
    HEAP_SIZE,
    N_SYMBOLS,
    SHORT_WORD,
    continue_merge,
)
from tokctl.kernels.merge_table import NO_PAIR, find_pair, merge_shift

# Columns of the table of pairs.
KEY, COUNT, FIRST = range(3)
NO_KEY = np.int64(-1)

_LOW = np.uint64(0xFFFFFFFF)


@jit(inner=True, borrows=True)
def _merge_short(symbols, start, n, merge_table, shift, values):
    """Merge ``symbols[start : start + n]`` in place and return their new number; quadratic with a small factor."""
    for i in range(n - 1):
        values[i] = find_pair(merge_table, shift, symbols[start + i], symbols[start + i + 1])
    while n > 1:
        best = NO_PAIR
        at = 0
        for i in range(n - 1):
            if values[i] < best:
                best = values[i]
                at = i
        if best == NO_PAIR:
            break
        symbols[start + at] = np.int32(best & _LOW)
        n -= 1
        for i in range(at + 1, n):
            symbols[start + i] = symbols[start + i + 1]
            values[i] = values[i + 1]
        if at > 0:
            values[at - 1] = find_pair(merge_table, shift, symbols[start + at - 1], symbols[start + at])
        if at < n - 1:
            values[at] = find_pair(merge_table, shift, symbols[start + at], symbols[start + at + 1])
    return n


@jit(inner=True, borrows=True)
def _push(heap, size, item):
    """Add ``item`` to a heap of ``size`` entries, smallest first, and return the new size."""
    at = size
    while at > 0 and heap[(at - 1) >> 1] > item:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = item
    return size + 1


@jit(inner=True, borrows=True)
def _merge_long(symbols, start, n, merge_table, shift, space):
    """The same with a heap: n log n."""
    size = np.int64(0)
    for i in range(n):
        space.ids[i] = symbols[start + i]
        space.preceding[i] = i - 1
        space.following[i] = i + 1 if i + 1 < n else -1
        space.values[i] = NO_PAIR
        if i + 1 < n:
            space.values[i] = find_pair(merge_table, shift, symbols[start + i], symbols[start + i + 1])
        if space.values[i] != NO_PAIR:
            size = _push(space.heap, size, (space.values[i] & ~_LOW) | np.uint64(i))
    space.state[N_SYMBOLS] = n
    space.state[HEAP_SIZE] = size
    continue_merge(merge_table, space, ALL_STEPS)
    n = 0
    at = 0
    while at >= 0:
        symbols[start + n] = space.ids[at]
        n += 1
        at = space.following[at]
    return n


@jit(borrows=True)
def merge_words(symbols, offsets, n_symbols, first, last, merge_table, space):
    """Merge words ``first`` to ``last - 1`` with the pairs of a ``MergeTable``, lowest rank first, leftmost of several.

    ``symbols int32[]``, ``offsets int64[n_words + 1]``, ``n_symbols int64[n_words]``; ``space`` has room for the longest
    word and for ``SHORT_WORD`` symbols.
    """
    shift = merge_shift(merge_table)
    for word in range(first, last):
        n = n_symbols[word]
        if n < 2:
            continue
        if n <= SHORT_WORD:
            n_symbols[word] = _merge_short(symbols, offsets[word], n, merge_table, shift, space.values)
        else:
            n_symbols[word] = _merge_long(symbols, offsets[word], n, merge_table, shift, space)


@jit(borrows=True)
def pack_rows(symbols, offsets, n_symbols):
    """Move the symbols left of all words together, in place; how many there are."""
    n = 0
    for word in range(n_symbols.size):
        start = offsets[word]
        for i in range(start, start + n_symbols[word]):
            symbols[n] = symbols[i]
            n += 1
    return n


@jit(inner=True, borrows=True)
def _slot_of(table, key):
    """The row that holds ``key``, or the empty row where it belongs."""
    mask = np.uint64(table.shape[0] - 1)
    mixed = np.uint64(key) * np.uint64(0xD6E8FEB86659FD93)
    slot = (mixed ^ (mixed >> np.uint64(29))) & mask
    while table[slot, KEY] != key and table[slot, KEY] != NO_KEY:
        slot = (slot + np.uint64(1)) & mask
    return slot


@jit(borrows=True)
def copy_pairs(source, target):
    """Copy every row of one table of pairs into another, which is empty and has room."""
    for row in range(source.shape[0]):
        if source[row, KEY] != NO_KEY:
            slot = _slot_of(target, source[row, KEY])
            for column in range(3):
                target[slot, column] = source[row, column]


@jit(borrows=True)
def count_pairs(symbols, offsets, n_symbols, counts, lengths, max_bytes, first, last, table, n_rows):
    """Add the windows of words ``first`` to ``last - 1`` to ``table``; returns (the word to go on from, rows in use).

    ``table int64[capacity, 3]``: key (left << 32 | right, ``NO_KEY`` for an empty row), sum of the words' ``counts
    int64[n_words]``, place of the first window in ``symbols``; capacity is a power of two. Pairs of more than
    ``max_bytes`` bytes (``lengths int64[]`` by symbol) and words that occur never are left out. It stops before a word
    that could fill more than half of the table.
    """
    capacity = table.shape[0]
    for word in range(first, last):
        weight = counts[word]
        n = n_symbols[word]
        if weight == 0 or n < 2:
            continue
        if n_rows + n > capacity // 2:
            return word, n_rows
        start = offsets[word]
        for i in range(start, start + n - 1):
            left, right = np.int64(symbols[i]), np.int64(symbols[i + 1])
            if lengths[left] + lengths[right] > max_bytes:
                continue
            key = (left << np.int64(32)) | right
            slot = _slot_of(table, key)
            if table[slot, KEY] == NO_KEY:
                table[slot, KEY] = key
                table[slot, COUNT] = 0
                table[slot, FIRST] = i
                n_rows += 1
            table[slot, COUNT] += weight
    return last, n_rows
