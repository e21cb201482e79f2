"""Reading a word table in order: collect its slots, sort them bytewise, gather words and counts.

The order is by word (bytewise, a prefix first), then by slice. Most of it is a plain integer sort of the first eight
bytes, done outside by numpy; here only the stretches with equal first eight bytes are put in order.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import big_endian, compare_bytes, copy_bytes, prefix8
from tokctl.kernels.word_count import INLINE_BYTES, LENGTH_BITS

_LENGTH_MASK = np.uint64((1 << LENGTH_BITS) - 1)
_SHORT_RUN = 12


@jit
def collect(slots, arena, prefixes, rows):
    """Write the slot number and the 8-byte prefix (as an ordered integer) of each of the table's words; return n."""
    n = 0
    for slot in range(slots.size // 4):
        tag = slots[4 * slot + 2]
        if tag == np.uint64(0):
            continue
        length = np.int64(tag & _LENGTH_MASK)
        if length <= INLINE_BYTES:
            prefixes[n] = big_endian(slots[4 * slot])
        else:
            start = np.int64(slots[4 * slot + 1])
            prefixes[n] = prefix8(arena, start, start + length)
        rows[n] = slot
        n += 1
    return n


@jit
def _is_before(slots, arena, left, right):
    """Whether slot ``left`` comes before slot ``right``; both words have the same first eight bytes."""
    left_tag = slots[4 * left + 2]
    right_tag = slots[4 * right + 2]
    left_length = np.int64(left_tag & _LENGTH_MASK)
    right_length = np.int64(right_tag & _LENGTH_MASK)
    order = 0
    if left_length <= INLINE_BYTES or right_length <= INLINE_BYTES:
        # bytes 8..16 of both; when these are equal too, the shorter word is a prefix of the other (or the same word)
        a = slots[4 * left + 1]
        if left_length > INLINE_BYTES:
            at = np.int64(a) + 8
            a = prefix8(arena, at, at + 8)
        else:
            a = big_endian(a)
        b = slots[4 * right + 1]
        if right_length > INLINE_BYTES:
            at = np.int64(b) + 8
            b = prefix8(arena, at, at + 8)
        else:
            b = big_endian(b)
        if a != b:
            return a < b
        if left_length != right_length:
            return left_length < right_length
    else:
        a_start = np.int64(slots[4 * left + 1])
        b_start = np.int64(slots[4 * right + 1])
        order = compare_bytes(arena, a_start + 8, a_start + left_length, arena, b_start + 8, b_start + right_length)
    if order != 0:
        return order < 0
    return left_tag >> np.uint64(LENGTH_BITS) < right_tag >> np.uint64(LENGTH_BITS)


@jit
def _insertion_sort(slots, arena, rows, first, last):
    for i in range(first + 1, last):
        row = rows[i]
        j = i
        while j > first and _is_before(slots, arena, row, rows[j - 1]):
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


@jit
def _merge_sort(slots, arena, rows, scratch, first, last):
    """Bottom-up merge sort of ``rows[first:last]``: never quadratic, whatever the words share."""
    for begin in range(first, last, _SHORT_RUN):
        _insertion_sort(slots, arena, rows, begin, min(begin + _SHORT_RUN, last))
    width = _SHORT_RUN
    while width < last - first:
        for begin in range(first, last, 2 * width):
            middle = min(begin + width, last)
            end = min(begin + 2 * width, last)
            i, j, k = begin, middle, begin
            while i < middle and j < end:
                if _is_before(slots, arena, rows[j], rows[i]):
                    scratch[k] = rows[j]
                    j += 1
                else:
                    scratch[k] = rows[i]
                    i += 1
                k += 1
            while i < middle:
                scratch[k] = rows[i]
                i += 1
                k += 1
            while j < end:
                scratch[k] = rows[j]
                j += 1
                k += 1
        for k in range(first, last):
            rows[k] = scratch[k]
        width *= 2


@jit
def order_equal_prefixes(slots, arena, prefixes, rows, scratch):
    """``prefixes`` is sorted and ``rows`` follows it: finish the order inside each stretch of equal prefixes."""
    n = rows.size
    first = np.int64(0)
    while first < n:
        last = first + 1
        while last < n and prefixes[last] == prefixes[first]:
            last += 1
        if last - first > _SHORT_RUN:
            _merge_sort(slots, arena, rows, scratch, first, last)
        elif last - first > 1:
            _insertion_sort(slots, arena, rows, first, last)
        first = last


@jit
def total_bytes(slots, rows):
    """Bytes of all the words in ``rows``."""
    total = 0
    for row in rows:
        total += np.int64(slots[4 * row + 2] & _LENGTH_MASK)
    return total


@jit
def gather(slots, arena, rows, data, offsets, slices, counts):
    """Write the words of ``rows``, in that order: bytes to ``data``, ``offsets int64[n + 1]``, slices, counts."""
    position = 0
    offsets[0] = 0
    for i in range(rows.size):
        at = 4 * rows[i]
        tag = slots[at + 2]
        length = np.int64(tag & _LENGTH_MASK)
        if length <= INLINE_BYTES:
            value = slots[at]
            for k in range(min(length, 8)):
                data[position + k] = np.uint8(value & np.uint64(255))
                value >>= np.uint64(8)
            value = slots[at + 1]
            for k in range(8, length):
                data[position + k] = np.uint8(value & np.uint64(255))
                value >>= np.uint64(8)
        else:
            start = np.int64(slots[at + 1])
            copy_bytes(arena, start, start + length, data, position)
        position += length
        offsets[i + 1] = position
        slices[i] = np.int64(tag >> np.uint64(LENGTH_BITS))
        counts[i] = np.int64(slots[at + 3])
