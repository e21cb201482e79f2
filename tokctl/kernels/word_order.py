"""Reading a word table in order: collect its slots, sort them bytewise, gather words and counts.

The order is by word (bytewise, a prefix first), then by slice. A radix sort orders the first eight bytes; stretches with
equal first eight bytes are ordered by the next eight, which are fetched once, and only what is still equal is compared as
words. Several threads can each order and gather a part of the words, see :func:`deal`.

A row is the number of a slot: of ``slots`` from 0 up, of ``short`` from -1 down.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import big_endian, compare_bytes, copy_bytes, prefetch, prefix8, store8
from tokctl.kernels.word_count import INLINE_BYTES, LENGTH_BITS

HISTOGRAM = 8 * 256

_LENGTH_MASK = np.uint64((1 << LENGTH_BITS) - 1)
_SHORT_BYTES_MASK = np.uint64((1 << 56) - 1)
_SHORT_RUN = 12
_AHEAD = 12


@jit(borrows=True)
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


@jit(borrows=True)
def deal(prefixes, rows, pivots, starts, out_prefixes, out_rows):
    """Deal the rows to parts: part k has the prefixes from ``pivots[k - 1]`` on and below ``pivots[k]``.

    ``pivots uint64[p - 1]``, sorted. Part k is ``out_*[starts[k]:starts[k + 1]]``; ``starts int64[p + 1]`` is written.
    """
    for k in range(starts.size):
        starts[k] = 0
    for i in range(prefixes.size):
        part = 0
        for pivot in pivots:
            part += np.int64(prefixes[i] >= pivot)
        starts[part + 1] += 1
    for k in range(1, starts.size):
        starts[k] += starts[k - 1]
    for i in range(prefixes.size):
        part = 0
        for pivot in pivots:
            part += np.int64(prefixes[i] >= pivot)
        at = starts[part]
        out_prefixes[at] = prefixes[i]
        out_rows[at] = rows[i]
        starts[part] = at + 1
    for k in range(starts.size - 1, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


@jit(inner=True, borrows=True)
def _pass(digit, begin, prefixes, rows, to_prefixes, to_rows):
    shift = np.uint64(8 * digit)
    for i in range(prefixes.size):
        prefix = prefixes[i]
        bucket = np.int64((prefix >> shift) & np.uint64(255)) + 256 * digit
        at = begin[bucket]
        begin[bucket] = at + 1
        to_prefixes[np.uint64(at)] = prefix
        to_rows[np.uint64(at)] = rows[i]


@jit(borrows=True)
def sort_prefixes(prefixes, rows, scratch_prefixes, scratch_rows, histogram):
    """Sort ``prefixes uint64[n]`` and with them ``rows int64[n]``: a radix sort by bytes, the last one first.

    ``scratch_*`` are as long; ``histogram int64[HISTOGRAM]`` is for the sort's own use. A byte that all share costs nothing.
    """
    n = prefixes.size
    for k in range(HISTOGRAM):
        histogram[k] = 0
    for i in range(n):
        prefix = prefixes[i]
        for digit in range(8):
            histogram[256 * digit + np.int64(prefix & np.uint64(255))] += 1
            prefix >>= np.uint64(8)
    is_away = False  # whether the rows are in the scratch arrays
    for digit in range(8):
        total = 0
        is_trivial = False
        for k in range(256 * digit, 256 * digit + 256):
            in_bucket = histogram[k]
            is_trivial |= in_bucket == n
            histogram[k] = total
            total += in_bucket
        if is_trivial:
            continue
        if is_away:
            _pass(digit, histogram, scratch_prefixes, scratch_rows, prefixes, rows)
        else:
            _pass(digit, histogram, prefixes, rows, scratch_prefixes, scratch_rows)
        is_away = not is_away
    if is_away:
        for i in range(n):
            prefixes[i] = scratch_prefixes[i]
            rows[i] = scratch_rows[i]


@jit(inner=True, borrows=True)
def _tag_of(short, slots, row):
    """Slice and length of a row's word, as in ``slots``."""
    return short[-2 - 2 * row] >> np.uint64(56) if row < 0 else slots[4 * row + 2]


@jit(inner=True, borrows=True)
def _next_eight(slots, arena, row):
    """Bytes 8 to 16 of a row's word as an ordered integer, zero-padded."""
    if row < 0:
        return np.uint64(0)
    value = slots[4 * row + 1]
    if np.int64(slots[4 * row + 2] & _LENGTH_MASK) <= INLINE_BYTES:
        return big_endian(value)
    return prefix8(arena, np.int64(value) + 8, np.int64(value) + 16)


@jit(inner=True, borrows=True)
def _is_before(table, left_next, left, right_next, right):
    """Whether row ``left`` comes before row ``right``; their words' first eight bytes are the same, the next are given."""
    if left_next != right_next:
        return left_next < right_next
    short, slots, arena = table.short, table.slots, table.arena
    left_tag = _tag_of(short, slots, left)
    right_tag = _tag_of(short, slots, right)
    left_length = np.int64(left_tag & _LENGTH_MASK)
    right_length = np.int64(right_tag & _LENGTH_MASK)
    if left_length > INLINE_BYTES and right_length > INLINE_BYTES:
        a = np.int64(slots[4 * left + 1])
        b = np.int64(slots[4 * right + 1])
        order = compare_bytes(arena, a + 16, a + left_length, arena, b + 16, b + right_length)
        if order != 0:
            return order < 0
    elif (
        left_length != right_length
    ):  # of two zero-padded words that look the same, the longer one goes on with NUL bytes
        return left_length < right_length
    return left_tag < right_tag


@jit(inner=True, borrows=True)
def _insertion_sort(table, following, rows, first, last):
    for i in range(first + 1, last):
        row, key = rows[i], following[i]
        j = i
        while j > first and _is_before(table, key, row, following[j - 1], rows[j - 1]):
            rows[j] = rows[j - 1]
            following[j] = following[j - 1]
            j -= 1
        rows[j] = row
        following[j] = key


@jit(inner=True, borrows=True)
def _merge_sort(table, following, rows, scratch_following, scratch_rows, first, last):
    """Bottom-up merge sort of ``rows[first:last]``: never quadratic, whatever the words share."""
    for begin in range(first, last, _SHORT_RUN):
        _insertion_sort(table, following, rows, begin, min(begin + _SHORT_RUN, last))
    width = _SHORT_RUN
    while width < last - first:
        for begin in range(first, last, 2 * width):
            middle = min(begin + width, last)
            end = min(begin + 2 * width, last)
            i, j = begin, middle
            for k in range(begin, end):
                takes_right = i == middle or (
                    j < end and _is_before(table, following[j], rows[j], following[i], rows[i])
                )
                taken = j if takes_right else i
                scratch_rows[k] = rows[taken]
                scratch_following[k] = following[taken]
                j += np.int64(takes_right)
                i += 1 - np.int64(takes_right)
        for k in range(first, last):
            rows[k] = scratch_rows[k]
            following[k] = scratch_following[k]
        width *= 2


@jit(borrows=True)
def order_equal_prefixes(table, prefixes, rows, following, scratch):
    """``prefixes`` is sorted and ``rows`` follows it: finish the order inside each stretch of equal prefixes.

    ``following uint64[n]`` and ``scratch int64[n]`` are written over, and so are the prefixes.
    """
    slots, arena = table.slots, table.arena
    n = rows.size
    for i in range(n):
        ahead = i + _AHEAD
        if ahead + 1 < n and rows[ahead] >= 0:
            prefix = prefixes[ahead]
            if prefix == prefixes[ahead - 1] or prefix == prefixes[ahead + 1]:
                prefetch(slots, 4 * rows[ahead])
        if (i > 0 and prefixes[i] == prefixes[i - 1]) or (i + 1 < n and prefixes[i] == prefixes[i + 1]):
            following[i] = _next_eight(slots, arena, rows[i])
    first = np.int64(0)
    while first < n:
        last = first + 1
        while last < n and prefixes[last] == prefixes[first]:
            last += 1
        if last - first > _SHORT_RUN:
            _merge_sort(table, following, rows, prefixes, scratch, first, last)
        elif last - first > 1:
            _insertion_sort(table, following, rows, first, last)
        first = last


@jit(borrows=True)
def total_bytes(table, rows):
    """Bytes of all the words in ``rows``."""
    short, slots = table.short, table.slots
    total = np.int64(0)
    for i in range(rows.size):
        if i + _AHEAD < rows.size:
            ahead = rows[i + _AHEAD]
            if ahead < 0:
                prefetch(short, -2 - 2 * ahead)
            else:
                prefetch(slots, 4 * ahead)
        total += np.int64(_tag_of(short, slots, rows[i]) & _LENGTH_MASK)
    return total


@jit(borrows=True)
def gather(table, rows, position, stop, data, offsets, slices, counts):
    """Write the words of ``rows``, in that order: bytes to ``data[position:stop]``, and for each word where it starts, its
    slice and its count. ``slices`` may be empty: then they are not wanted. All arrays but ``data`` are of ``rows``' length.
    """
    short, slots, arena = table.short, table.slots, table.arena
    for i in range(rows.size):
        if i + _AHEAD < rows.size:
            ahead = rows[i + _AHEAD]
            if ahead < 0:
                prefetch(short, -2 - 2 * ahead)
            else:
                prefetch(slots, 4 * ahead)
        row = rows[i]
        high = np.uint64(0)
        if row < 0:
            low = short[-2 - 2 * row]
            tag = low >> np.uint64(56)
            count = short[-1 - 2 * row]
        else:
            low = slots[4 * row]
            high = slots[4 * row + 1]
            tag = slots[4 * row + 2]
            count = slots[4 * row + 3]
        length = np.int64(tag & _LENGTH_MASK)
        offsets[i] = position
        if length > INLINE_BYTES:
            start = np.int64(high)
            copy_bytes(arena, start, start + length, data, position)
        elif position + 16 <= stop:  # what is written beyond the word, the next ones write over
            store8(data, position, low)
            store8(data, position + 8, high)
        else:
            for k in range(length):
                data[position + k] = np.uint8((low if k < 8 else high) >> np.uint64(8 * (k & 7)) & np.uint64(255))
        position += length
        if slices.size > 0:
            slices[i] = np.int64(tag >> np.uint64(LENGTH_BITS))
        counts[i] = np.int64(count)
