"""Canonical text for comparison: NFC, case folding, white space, digits and punctuation in one pass over UTF-8.

The pass copies what the table leaves alone. Under NFC, text falls into segments: a starter that can't combine with what
stands before it, and all that follows up to the next such starter. A segment of one code point has its result in the
table; a code point that joins the one before (a combining mark, a Hangul vowel) takes the pass back to the start of
its segment, which is then decomposed, ordered, folded and composed as UAX #15 says (folding stands between two
decompositions: definition D145 of the Unicode Standard).

A byte that is not part of valid UTF-8 becomes the three bytes of the lone surrogate U+DC80 + (byte - 0x80), which no
valid text contains: two different texts stay different even where dropped punctuation brings stray bytes together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels.code_point_map import CodePointMap, map_entry
from tokctl.kernels.code_points import decode, put_code_point

# what a code point is (bits of CanonicalTable.flags)
SPACE, DIGIT, PUNCTUATION, LETTER, UNSPACED, MAPPED, JOINS = 1, 2, 4, 8, 16, 32, 64

# columns of the facts about a document
N_LETTERS, N_UNSPACED, IS_EMPTY = range(3)

MAX_GROWTH = 3  # bytes out per byte in

_S_BASE, _L_BASE, _V_BASE, _T_BASE = 0xAC00, 0x1100, 0x1161, 0x11A7
_L_COUNT, _V_COUNT, _T_COUNT = 19, 21, 28
_S_COUNT = _L_COUNT * _V_COUNT * _T_COUNT
_SCRATCH = 128
_SHORT_RUN = 24


class CanonicalTable(NamedTuple):
    """What to do with each code point under one set of options.

    ``flags uint8[0x110000]``; ``classes uint8[0x110000]`` canonical combining classes; ``single`` the UTF-8 bytes of a
    MAPPED code point that stands alone; ``decomposed`` and ``folded`` code points; ``pairs uint64[k]`` sorted keys
    ``first << 21 | second`` and ``composites int32[k]``.
    """

    flags: np.ndarray
    classes: np.ndarray
    single: CodePointMap
    decomposed: CodePointMap
    folded: CodePointMap
    pairs: np.ndarray
    composites: np.ndarray


@jit
def canonicalise(table, data, offsets, out, out_offsets, facts):
    """Canonical bytes of ``data[offsets[i]:offsets[i + 1]]`` for each i, one after another in ``out``.

    ``data`` uint8[], ``offsets`` int64[n + 1], ``out`` uint8 of at least ``MAX_GROWTH`` times the input,
    ``out_offsets`` int64[n + 1] and ``facts`` int64[n, 3] are written. A document of which nothing is left keeps its
    own bytes and is marked IS_EMPTY.
    """
    size = 0
    out_offsets[0] = 0
    for document in range(offsets.size - 1):
        start, stop = offsets[document], offsets[document + 1]
        end = _canonicalise_one(table, data, start, stop, out, size, facts[document])
        facts[document, IS_EMPTY] = end == size
        if end == size:
            for i in range(start, stop):
                out[size + i - start] = data[i]
            end = size + stop - start
        size = end
        out_offsets[document + 1] = size


@jit(inner=True)
def _canonicalise_one(table, data, start, stop, out, size, facts):
    first = size
    n_letters, n_unspaced = 0, 0
    space_waits = False
    segment_in, segment_out = -1, size  # where the current segment begins; -1: nothing to join
    i = start
    while i < stop:
        byte = data[i]
        if byte < 0x80:
            point, width = np.int64(byte), 1
        else:
            point, width = decode(data, i, stop)
        if point < 0:
            if space_waits and size > first:
                out[size] = 0x20
                size += 1
            space_waits = False
            size = put_code_point(out, size, 0xDC00 + np.int64(byte))
            segment_in = -1
            i += 1
            continue
        flags = table.flags[point]
        if flags & LETTER:
            n_letters += 1
            n_unspaced += (flags & UNSPACED) != 0
        if flags & (SPACE | DIGIT | PUNCTUATION | MAPPED | JOINS) == 0:
            if space_waits:
                if size > first:
                    out[size] = 0x20
                    size += 1
                space_waits = False
            segment_in, segment_out = i, size
            out[size] = byte
            for k in range(1, width):
                out[size + k] = data[i + k]
            size += width
            i += width
            continue
        if flags & SPACE:
            space_waits = True
            segment_in = -1
            i += width
            continue
        if flags & PUNCTUATION:
            i += width
            continue
        if space_waits:
            if size > first:
                out[size] = 0x20
                size += 1
            space_waits = False
        if flags & JOINS:
            if segment_in < 0:
                segment_in, segment_out = i, size
            stop_of_segment, letters, unspaced = _segment_end(table, data, i + width, stop)
            size = _write_segment(table, data, segment_in, stop_of_segment, out, segment_out)
            n_letters += letters
            n_unspaced += unspaced
            i = stop_of_segment
            segment_in = -1  # the segment is complete: what follows begins another
            continue
        segment_in, segment_out = i, size
        if flags & DIGIT:
            out[size] = 0x30
            size += 1
        else:
            entry = map_entry(table.single, point)
            for k in range(table.single.offsets[entry - 1], table.single.offsets[entry]):
                out[size] = table.single.values[k]
                size += 1
        i += width
    facts[N_LETTERS] = n_letters
    facts[N_UNSPACED] = n_unspaced
    return size


@jit(inner=True)
def _segment_end(table, data, i, stop):
    """Where the segment that is at least up to ``i`` ends, and the letters met on the way there."""
    letters, unspaced = 0, 0
    while i < stop:
        point, width = decode(data, i, stop)
        if point < 0 or table.flags[point] & (JOINS | PUNCTUATION) == 0:
            break
        if table.flags[point] & LETTER:
            letters += 1
            unspaced += (table.flags[point] & UNSPACED) != 0
        i += width
    return i, letters, unspaced


@jit(inner=True)
def _write_segment(table, data, start, stop, out, size):
    """Normalise the code points of ``data[start:stop]`` into ``out`` at ``size``; return the new size."""
    points = np.empty(max(_SCRATCH, stop - start), np.int32)
    n = 0
    i = start
    while i < stop:
        point, width = decode(data, i, stop)
        flags = table.flags[point]
        if flags & DIGIT:
            point = 0x30
        if not flags & PUNCTUATION:
            points[n] = point
            n += 1
        i += width
    normalised = normalise(table, points[:n])
    for k in range(normalised.size):
        size = put_code_point(out, size, np.int64(normalised[k]))
    return size


@jit
def normalise(table, points):
    """``int32[]``: ``points`` (int32[n]) decomposed, ordered, folded where the table folds, and composed."""
    work = _mapped(table.decomposed, points, True)
    _order(table.classes, work)
    if table.folded.values.size:
        work = _mapped(table.folded, work, False)
        _order(table.classes, work)
    return _compose(table, work)


@jit
def _mapped(mapping, points, hangul):
    size = 0
    for k in range(points.size):
        entry = map_entry(mapping, points[k])
        if entry:
            size += mapping.offsets[entry] - mapping.offsets[entry - 1]
        elif hangul and _S_BASE <= points[k] < _S_BASE + _S_COUNT:
            size += 3
        else:
            size += 1
    out = np.empty(size, np.int32)
    n = 0
    for k in range(points.size):
        point = np.int64(points[k])
        entry = map_entry(mapping, point)
        if entry:
            for j in range(mapping.offsets[entry - 1], mapping.offsets[entry]):
                out[n] = mapping.values[j]
                n += 1
        elif hangul and _S_BASE <= point < _S_BASE + _S_COUNT:
            index = point - _S_BASE
            out[n] = _L_BASE + index // (_V_COUNT * _T_COUNT)
            out[n + 1] = _V_BASE + (index // _T_COUNT) % _V_COUNT
            n += 2
            if index % _T_COUNT:
                out[n] = _T_BASE + index % _T_COUNT
                n += 1
        else:
            out[n] = point
            n += 1
    return out[:n]


@jit
def _order(classes, points):
    """Canonical ordering in place: each run of non-starters sorted by combining class, equal classes as they stood."""
    i = 0
    while i < points.size:
        if classes[points[i]] == 0:
            i += 1
            continue
        j = i
        while j < points.size and classes[points[j]] != 0:
            j += 1
        if j - i <= _SHORT_RUN:
            for k in range(i + 1, j):
                point = points[k]
                rank = classes[point]
                m = k
                while m > i and classes[points[m - 1]] > rank:
                    points[m] = points[m - 1]
                    m -= 1
                points[m] = point
        else:  # a counting sort, so that no run takes quadratic time
            starts = np.zeros(257, np.int64)
            for k in range(i, j):
                starts[np.int64(classes[points[k]]) + 1] += 1
            for k in range(256):
                starts[k + 1] += starts[k]
            run = points[i:j].copy()
            for k in range(run.size):
                rank = np.int64(classes[run[k]])
                points[i + starts[rank]] = run[k]
                starts[rank] += 1
        i = j


@jit(inner=True)
def _compose(table, points):
    """Canonical composition in place; the view that is left."""
    n = 0
    starter = -1
    last_class = 0  # class of the last code point kept after the starter; 0: none stands between
    for k in range(points.size):
        point = np.int64(points[k])
        rank = np.int64(table.classes[point])
        if starter >= 0 and (n == starter + 1 or 0 < last_class < rank):
            composite = _pair(table, np.int64(points[starter]), point)
            if composite >= 0:
                points[starter] = composite
                continue
        if rank == 0:
            starter = n
        last_class = rank
        points[n] = point
        n += 1
    return points[:n]


@jit(inner=True)
def _pair(table, first, second):
    """The primary composite of two code points, or -1."""
    if _L_BASE <= first < _L_BASE + _L_COUNT and _V_BASE <= second < _V_BASE + _V_COUNT:
        return _S_BASE + ((first - _L_BASE) * _V_COUNT + second - _V_BASE) * _T_COUNT
    is_open = _S_BASE <= first < _S_BASE + _S_COUNT and (first - _S_BASE) % _T_COUNT == 0
    if is_open and _T_BASE < second < _T_BASE + _T_COUNT:
        return first + second - _T_BASE
    key = np.uint64((first << 21) | second)
    low, high = 0, table.pairs.size
    while low < high:
        middle = (low + high) >> 1
        if table.pairs[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < table.pairs.size and table.pairs[low] == key:
        return np.int64(table.composites[low])
    return np.int64(-1)
