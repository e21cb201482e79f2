"""Rewriting UTF-8 code point by code point: normalisation forms, case mappings, removals; with where each byte comes from.

Text falls into segments: a code point that doesn't join what stands before it, and all that follows up to the next such
one. What the table leaves alone is copied; another segment is mapped, ordered by combining class and composed as UAX #15
says. A byte that is no part of well-formed UTF-8 is a segment of its own and stays.

The origin of a written code point is that of one code point of the segment, in the manner of tokenizers (whose offsets
must be met): the written code points take the read ones in turn; the further code points of a mapping take none and share
the place of the one before; a composite takes as many as were composed, and stands for the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import load8
from tokctl.kernels.code_point_map import CodePointMap, map_entry
from tokctl.kernels.code_points import decode, put_code_point
from tokctl.kernels.composition import S_BASE, S_COUNT, compose, order, point_of, split_syllable

# bits of RewriteTable.flags: mapped to something else; part of the segment before it; perhaps composed with what is before
MAPPED, JOINS, COMPOSES = 1, 2, 4

DONE, PAUSED, OUT_FULL = range(3)

# cursor: piece, position in it, bytes written, bytes of room that the next step needs
PIECE, POSITION, SIZE, NEEDED = range(4)

_LEAST_SLICE = 64
_HIGH_BITS = np.uint64(0x8080808080808080)


class RewriteTable(NamedTuple):
    """``flags`` and ``classes`` (canonical combining classes) uint8[0x110000]; ``mapped`` to int32 code points;
    ``pairs uint64[k]`` sorted keys ``first << 21 | second`` and ``composites int32[k]``; ``hangul int64[2]``: whether
    Hangul syllables are decomposed and composed; ``ascii int64[1]``: whether a flag is set below U+0080."""

    flags: np.ndarray
    classes: np.ndarray
    mapped: CodePointMap
    pairs: np.ndarray
    composites: np.ndarray
    hangul: np.ndarray
    ascii: np.ndarray


@jit
def rewrites(table, data, starts, stops, tokens, cursor, max_bytes):
    """Whether the text from the cursor (piece, position) on may change. Reads about ``max_bytes`` and moves the cursor.

    Texts are the pieces ``data[starts[i]:stops[i]]`` with ``tokens[i] < 0``. All is read where the answer is False and
    ``cursor[PIECE] == starts.size``. A True may be wrong, a False is not.
    """
    piece = cursor[PIECE]
    position = cursor[POSITION]
    left = max_bytes
    while piece < starts.size and left > 0:
        stop = stops[piece]
        if tokens[piece] < 0:
            until = min(stop, position + max(left, _LEAST_SLICE))
            at, last, flags = _skip(table, data, position, until, stop)
            if at < stop and (flags or last == position):
                cursor[PIECE] = piece
                cursor[POSITION] = position
                return True
            last = at if at == stop else last  # else marks that go on after the slice would lose what is before them
            left -= last - position
            position = last
        if tokens[piece] >= 0 or position >= stop:
            piece += 1
            left -= 1
            if piece < starts.size:
                position = starts[piece]
    cursor[PIECE] = piece
    cursor[POSITION] = position
    return False


@jit
def rewrite(table, data, starts, stops, tokens, origins, out, out_origins, out_starts, out_stops, cursor, max_bytes):
    """Rewrite pieces into ``out`` from the cursor on; pieces with ``tokens[i] >= 0`` are copied.

    ``origins int64[data.size]`` says what each byte of ``data`` stands for: p >= 0 a byte of the raw text, ~p the whole
    code point that begins at p there. The same of ``out`` goes to ``out_origins``, which is as long as ``out``. Both are
    empty where nobody asks. ``out_starts`` and
    ``out_stops`` int64[n] are filled. Returns DONE, PAUSED (about ``max_bytes`` are read) or OUT_FULL (the next step
    needs ``cursor[NEEDED]`` bytes after ``cursor[SIZE]``).
    """
    piece = cursor[PIECE]
    position = cursor[POSITION]
    size = cursor[SIZE]
    left = max_bytes
    status = DONE
    while piece < starts.size:
        start, stop = starts[piece], stops[piece]
        if position == start:
            out_starts[piece] = size
        if left <= 0:
            status = PAUSED
            break
        if tokens[piece] >= 0:
            at, last, flags = stop, stop, 0
        else:
            at, last, flags = _skip(table, data, position, min(stop, position + max(left, _LEAST_SLICE)), stop)
            if flags == 0 and at < stop and last == position:  # marks without end
                at, flags = position, JOINS
        # What is before ``begin`` stays; the segment that begins there may go on, or change.
        begin = last if (flags & JOINS or (flags == 0 and at < stop)) else at
        if size + begin - position > out.size:
            cursor[NEEDED] = begin - position
            status = OUT_FULL
            break
        for i in range(position, begin):
            out[size + i - position] = data[i]
        if out_origins.size:
            for i in range(position, begin):
                out_origins[size + i - position] = origins[i]
        size += begin - position
        left -= begin - position
        position = begin
        if flags:
            end, values = _segment(table, data, begin, at, stop)
            changes = _differs(data, begin, end, values)
            if size + 4 * values.size > out.size:
                cursor[NEEDED] = 4 * values.size
                status = OUT_FULL
                break
            if changes:
                size = _write(data, begin, values, origins, out, out_origins, size)
            else:
                for i in range(begin, end):
                    out[size + i - begin] = data[i]
                if out_origins.size:
                    for i in range(begin, end):
                        out_origins[size + i - begin] = origins[i]
                size += end - begin
            left -= end - begin
            position = end
        if position >= stop:
            out_stops[piece] = size
            piece += 1
            left -= 1
            if piece < starts.size:
                position = starts[piece]
    cursor[PIECE] = piece
    cursor[POSITION] = position
    cursor[SIZE] = size
    return status


@jit(inner=True)
def _skip(table, data, position, until, stop):
    """``(at, last, flags)``: pass over what stays as it is, up to a code point that may change (its ``flags``) at ``at``.

    ``flags`` is 0 where ``until`` is reached. ``last``: where the segment before ``at`` begins, ``at`` where none does.
    """
    flags_of, classes = table.flags, table.classes
    skips_ascii = table.ascii[0] == 0
    last = position
    joined = False  # whether something may join what begins at ``last``
    rank = 0  # of the last mark
    at = position
    while at < until:
        byte = data[at]
        if byte < 0x80 and skips_ascii:
            while at + 8 <= until and load8(data, at) & _HIGH_BITS == 0:
                at += 8
            while at < until and data[at] < 0x80:
                at += 1
            last = at - 1
            joined = True
            rank = 0
            continue
        point, width = decode(data, at, stop)
        if point < 0:
            at += 1
            joined = False
            rank = 0
            continue
        flags = flags_of[point]
        if flags == 0:
            last = at
            joined = True
            rank = 0
        elif flags & (MAPPED | COMPOSES) or classes[point] < rank or classes[point] == 0:
            return at, last if joined else at, np.int64(flags)
        else:
            if not joined:
                last = at
                joined = True
            rank = np.int64(classes[point])
        at += width
    return at, last if joined else at, np.int64(0)


@jit(inner=True)
def _segment(table, data, begin, at, stop):
    """``(end, values)``: the segment at ``begin``, whose code point at ``at`` is flagged, ends at ``end``.

    ``values int64[]`` are what is written: ``change << 32 | code point``, where change is 1 for a further code point of a
    mapping, 0 for one that takes the place of one read, -n for one that takes the places of n more.
    """
    _, width = decode(data, at, stop)
    end = at + width
    while end < stop:
        point, width = decode(data, end, stop)
        if point < 0 or table.flags[point] & JOINS == 0:
            break
        end += width
    n = 0
    i = begin
    while i < end:
        point, width = decode(data, i, stop)
        entry = map_entry(table.mapped, point)
        if entry:
            n += table.mapped.offsets[entry] - table.mapped.offsets[entry - 1]
        else:
            n += 3 if table.hangul[0] and S_BASE <= point < S_BASE + S_COUNT else 1
        i += width
    values = np.empty(n, np.int64)
    further = np.int64(1) << 32
    n = 0
    i = begin
    while i < end:
        point, width = decode(data, i, stop)
        entry = map_entry(table.mapped, point)
        if entry:
            first = table.mapped.offsets[entry - 1]
            for k in range(first, table.mapped.offsets[entry]):
                values[n] = np.int64(table.mapped.values[k]) | (further if k > first else 0)
                n += 1
        elif table.hangul[0] and S_BASE <= point < S_BASE + S_COUNT:
            n = split_syllable(values, n, point, further)
        else:
            values[n] = point
            n += 1
        i += width
    return end, order_and_compose(table, values[:n])


@jit
def order_and_compose(table, values):
    """``values int64[n]`` (code points, see ``_segment``) put in canonical order and composed, as the table says."""
    order(table.classes, values)
    if table.pairs.size:
        return compose(table.classes, table.pairs, table.composites, table.hangul[1] != 0, values)
    return values


@jit(inner=True)
def _differs(data, begin, end, values):
    """Whether the values are other code points than ``data[begin:end]``."""
    i = begin
    for k in range(values.size):
        if i == end:
            return True
        point, width = decode(data, i, end)
        if values[k] != point:
            return True
        i += width
    return i != end


@jit(inner=True)
def _write(data, begin, values, origins, out, out_origins, size):
    """Write the values of the segment at ``begin`` to ``out`` at ``size``; return the new size."""
    here = begin  # the next code point that is read
    before = begin  # the one before it
    for k in range(values.size):
        change = values[k] >> 32
        source = before if change > 0 else here
        if change <= 0:
            for _ in range(1 - change):
                before = here
                here += decode(data, here, data.size)[1]
        after = put_code_point(out, size, point_of(values[k]))
        if out_origins.size:
            origin = origins[source]
            if origin >= 0:
                origin = ~origin
            for i in range(size, after):
                out_origins[i] = origin
        size = after
    return size
