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
from tokctl.kernels.composition import S_BASE, S_COUNT, compose, order, point_of, split_syllable

# what a code point is (bits of CanonicalTable.flags)
SPACE, DIGIT, PUNCTUATION, LETTER, UNSPACED, MAPPED, JOINS = 1, 2, 4, 8, 16, 32, 64

# columns of the facts about a document
N_LETTERS, N_UNSPACED, IS_EMPTY = range(3)

MAX_GROWTH = 3  # bytes out per byte in


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
    points = np.empty(stop - start, np.int64)
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
        size = put_code_point(out, size, normalised[k])
    return size


@jit
def normalise(table, points):
    """``int64[]``: ``points`` (int64[n]) decomposed, ordered, folded where the table folds, and composed."""
    has_hangul = table.pairs.size > 0
    work = _mapped(table.decomposed, points, has_hangul)
    order(table.classes, work)
    if table.folded.values.size:
        work = _mapped(table.folded, work, False)
        order(table.classes, work)
    composed = compose(table.classes, table.pairs, table.composites, has_hangul, work)
    for k in range(composed.size):
        composed[k] = point_of(composed[k])
    return composed


@jit(inner=True)
def _mapped(mapping, points, splits_hangul):
    size = 0
    for k in range(points.size):
        entry = map_entry(mapping, points[k])
        if entry:
            size += mapping.offsets[entry] - mapping.offsets[entry - 1]
        else:
            size += 3 if splits_hangul and S_BASE <= points[k] < S_BASE + S_COUNT else 1
    out = np.empty(size, np.int64)
    n = 0
    for k in range(points.size):
        point = points[k]
        entry = map_entry(mapping, point)
        if entry:
            for j in range(mapping.offsets[entry - 1], mapping.offsets[entry]):
                out[n] = mapping.values[j]
                n += 1
        elif splits_hangul and S_BASE <= point < S_BASE + S_COUNT:
            n = split_syllable(out, n, point, 0)
        else:
            out[n] = point
            n += 1
    return out[:n]
