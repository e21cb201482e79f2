"""Binary heap of candidate pairs: highest count first, then the smallest tie number, then (optionally) the merged string.

``heap`` is ``int64[capacity, 3]``. ``spelling`` decides among equal counts and equal tie numbers; it is a NamedTuple of
arrays: with ``is_compared[0] == MERGED`` the strings that the pairs would make are compared bytewise, the smaller first; with
``PAIRWISE`` the left strings and then the right ones, the larger first. The last resort is the smaller pair, so the order
is total.
"""

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit

COUNT = 0
TIE = 1
KEY = 2
MERGED, PAIRWISE = 1, 2
TOP = np.int64(0)  # typed, because a literal would compile a callee once more


class Spelling(NamedTuple):
    """Where each symbol's bytes are: ``data[at[id] : at[id] + length[id]]``."""

    data: np.ndarray  # uint8[n]
    at: np.ndarray  # int64[n_symbols]
    length: np.ndarray  # int64[n_symbols]
    is_compared: np.ndarray  # int64[1]


@jit(inner=True, borrows=True)
def _joined_byte(spelling, left, right, i):
    """Byte ``i`` of left's bytes followed by right's."""
    n_left = spelling.length[left]
    if i < n_left:
        return spelling.data[spelling.at[left] + i]
    return spelling.data[spelling.at[right] + i - n_left]


@jit(inner=True, borrows=True)
def _spelled_before(spelling, key, other):
    """Whether ``key``'s merged string is smaller bytewise than ``other``'s; the smaller key if they are equal."""
    left, right = key >> np.int64(32), key & np.int64(0xFFFFFFFF)
    other_left, other_right = other >> np.int64(32), other & np.int64(0xFFFFFFFF)
    n = spelling.length[left] + spelling.length[right]
    n_other = spelling.length[other_left] + spelling.length[other_right]
    for i in range(min(n, n_other)):
        byte = _joined_byte(spelling, left, right, i)
        other_byte = _joined_byte(spelling, other_left, other_right, i)
        if byte != other_byte:
            return byte < other_byte
    if n != n_other:
        return n < n_other
    return key < other


@jit(inner=True, borrows=True)
def _order_of(spelling, symbol, other):
    """-1, 0 or 1: how the bytes of one symbol stand to another's; a prefix is smaller."""
    if symbol == other:
        return 0
    n, n_other = spelling.length[symbol], spelling.length[other]
    at, other_at = spelling.at[symbol], spelling.at[other]
    for i in range(min(n, n_other)):
        byte, other_byte = spelling.data[at + i], spelling.data[other_at + i]
        if byte != other_byte:
            return -1 if byte < other_byte else 1
    return 0 if n == n_other else -1 if n < n_other else 1


@jit(inner=True, borrows=True)
def _larger_before(spelling, key, other):
    """Whether ``key``'s two strings, left before right, are larger bytewise than ``other``'s; the smaller key if equal."""
    order = _order_of(spelling, key >> np.int64(32), other >> np.int64(32))
    if order == 0:
        order = _order_of(spelling, key & np.int64(0xFFFFFFFF), other & np.int64(0xFFFFFFFF))
    return key < other if order == 0 else order > 0


@jit(inner=True, borrows=True)
def _comes_first(heap, entry, count, tie, key, spelling):
    """Whether heap entry ``entry`` comes before (count, tie, key)."""
    if heap[entry, COUNT] != count:
        return heap[entry, COUNT] > count
    if heap[entry, TIE] != tie:
        return heap[entry, TIE] < tie
    if spelling.is_compared[0] == PAIRWISE:
        return _larger_before(spelling, heap[entry, KEY], key)
    if spelling.is_compared[0] == MERGED:
        return _spelled_before(spelling, heap[entry, KEY], key)
    return heap[entry, KEY] < key


@jit(inner=True, borrows=True)
def _write(heap, entry, count, tie, key):
    heap[entry, COUNT] = count
    heap[entry, TIE] = tie
    heap[entry, KEY] = key


@jit(inner=True, borrows=True)
def _copy(heap, source, target):
    heap[target, COUNT] = heap[source, COUNT]
    heap[target, TIE] = heap[source, TIE]
    heap[target, KEY] = heap[source, KEY]


@jit(inner=True, borrows=True)
def push(heap, size, count, tie, key, spelling):
    """Add an entry to a heap of ``size`` entries; returns the new size."""
    entry = size
    while entry > 0:
        parent = (entry - 1) >> 1
        if _comes_first(heap, parent, count, tie, key, spelling):
            break
        _copy(heap, parent, entry)
        entry = parent
    _write(heap, entry, count, tie, key)
    return size + 1


@jit(inner=True, borrows=True)
def sink(heap, size, entry, count, tie, key, spelling):
    """Put (count, tie, key) at ``entry`` or below it, wherever the order wants it."""
    while True:
        child = 2 * entry + 1
        if child >= size:
            break
        other = child + 1
        if other < size and _comes_first(heap, other, heap[child, COUNT], heap[child, TIE], heap[child, KEY], spelling):
            child = other
        if not _comes_first(heap, child, count, tie, key, spelling):
            break
        _copy(heap, child, entry)
        entry = child
    _write(heap, entry, count, tie, key)


@jit(inner=True, borrows=True)
def drop_top(heap, size, spelling):
    """Remove the first entry; returns the new size."""
    size -= 1
    if size > 0:
        sink(heap, size, TOP, heap[size, COUNT], heap[size, TIE], heap[size, KEY], spelling)
    return size


@jit(inner=True, borrows=True)
def order(heap, size, spelling):
    """Make a heap of ``size`` entries that are in any order."""
    for entry in range(size // 2 - 1, -1, -1):
        sink(heap, size, entry, heap[entry, COUNT], heap[entry, TIE], heap[entry, KEY], spelling)
