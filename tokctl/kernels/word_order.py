"""Reading a word table in order: collect its slots, sort them bytewise, gather words and counts.

The order is by word (bytewise, a prefix first), then by slice. Most of it is a plain integer sort of the first eight
bytes, done outside by numpy; here only the stretches with equal first eight bytes are put in order.

A row is the number of a slot: of ``slots`` from 0 up, of ``short`` from -1 down.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import big_endian, compare_bytes, copy_bytes, prefetch, prefix8
from tokctl.kernels.word_count import INLINE_BYTES, LENGTH_BITS

_LENGTH_MASK = np.uint64((1 << LENGTH_BITS) - 1)
_SHORT_BYTES_MASK = np.uint64((1 << 56) - 1)
_SHORT_RUN = 12
_AHEAD = 12


@jit
def collect(table, prefixes, rows):
    """Write the row and the 8-byte prefix (as an ordered integer) of each of the table's words; return n."""
    short, slots, arena = table.short, table.slots, table.arena
    n = 0
    for slot in range(short.size // 2):
        key = short[2 * slot]
        if key != np.uint64(0):
            prefixes[n] = big_endian(key & _SHORT_BYTES_MASK)
            rows[n] = -1 - slot
            n += 1
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
def _is_before(table, left, right):
    """Whether row ``left`` comes before row ``right``; both words have the same first eight bytes."""
    short, slots, arena = table.short, table.slots, table.arena
    if left < 0 or right < 0:
        # One of them has at most seven bytes: the longer one begins with it and goes on with NUL bytes.
        left_tag = short[-2 - 2 * left] >> np.uint64(56) if left < 0 else slots[4 * left + 2]
        right_tag = short[-2 - 2 * right] >> np.uint64(56) if right < 0 else slots[4 * right + 2]
        if left_tag & _LENGTH_MASK != right_tag & _LENGTH_MASK:
            return left_tag & _LENGTH_MASK < right_tag & _LENGTH_MASK
        return left_tag < right_tag
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
def _insertion_sort(table, rows, first, last):
    for i in range(first + 1, last):
        row = rows[i]
        j = i
        while j > first and _is_before(table, row, rows[j - 1]):
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


@jit
def _merge_sort(table, rows, scratch, first, last):
    """Bottom-up merge sort of ``rows[first:last]``: never quadratic, whatever the words share."""
    for begin in range(first, last, _SHORT_RUN):
        _insertion_sort(table, rows, begin, min(begin + _SHORT_RUN, last))
    width = _SHORT_RUN
    while width < last - first:
        for begin in range(first, last, 2 * width):
            middle = min(begin + width, last)
            end = min(begin + 2 * width, last)
            i, j, k = begin, middle, begin
            while i < middle and j < end:
                if _is_before(table, rows[j], rows[i]):
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
def order_equal_prefixes(table, prefixes, rows, scratch):
    """``prefixes`` is sorted and ``rows`` follows it: finish the order inside each stretch of equal prefixes."""
    n = rows.size
    first = np.int64(0)
    while first < n:
        last = first + 1
        while last < n and prefixes[last] == prefixes[first]:
            last += 1
        if last - first > _SHORT_RUN:
            _merge_sort(table, rows, scratch, first, last)
        elif last - first > 1:
            _insertion_sort(table, rows, first, last)
        first = last


@jit
def total_bytes(table, rows):
    """Bytes of all the words in ``rows``."""
    short, slots = table.short, table.slots
    total = np.int64(0)
    for row in rows:
        if row < 0:
            total += np.int64(short[-2 - 2 * row] >> np.uint64(56))
        else:
            total += np.int64(slots[4 * row + 2] & _LENGTH_MASK)
    return total


@jit
def gather(table, rows, data, offsets, slices, counts):
    """Write the words of ``rows``, in that order: bytes to ``data``, ``offsets int64[n + 1]``, slices, counts.

    ``slices`` may be empty: then they are not wanted.
    """
    short, slots, arena = table.short, table.slots, table.arena
    position = 0
    offsets[0] = 0
    for i in range(rows.size):
        if i + _AHEAD < rows.size:
            ahead = rows[i + _AHEAD]
            if ahead < 0:
                prefetch(short, -2 - 2 * ahead)
            else:
                prefetch(slots, 4 * ahead)
        row = rows[i]
        if row < 0:
            value = short[-2 - 2 * row]
            length = np.int64(value >> np.uint64(56))
            tag = np.uint64(0)
            count = short[-1 - 2 * row]
        else:
            value = slots[4 * row]
            tag = slots[4 * row + 2]
            length = np.int64(tag & _LENGTH_MASK)
            count = slots[4 * row + 3]
        if length <= INLINE_BYTES:
            for k in range(min(length, 8)):
                data[position + k] = np.uint8(value & np.uint64(255))
                value >>= np.uint64(8)
            if length > 8:
                value = slots[4 * row + 1]
                for k in range(8, length):
                    data[position + k] = np.uint8(value & np.uint64(255))
                    value >>= np.uint64(8)
        else:
            start = np.int64(slots[4 * row + 1])
            copy_bytes(arena, start, start + length, data, position)
        position += length
        offsets[i + 1] = position
        if slices.size > 0:
            slices[i] = np.int64(tag >> np.uint64(LENGTH_BITS))
        counts[i] = np.int64(count)
