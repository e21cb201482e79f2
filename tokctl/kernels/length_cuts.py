"""Cutting long texts at lengths counted in code points."""

from __future__ import annotations

from tokctl.kernels._jit import jit
from tokctl.kernels.code_points import sequence_length

# cursor: next byte, code points since the last cut by length, code points of the run of one kind, whether it is white space
POSITION, N_POINTS, RUN, IS_SPACE = range(4)


@jit
def is_space(data, at, length):
    """Whether the UTF-8 sequence at ``at`` is one of the 29 characters that Python's ``str.isspace`` holds for white space."""
    lead = data[at]
    if length == 1:
        return 9 <= lead <= 13 or 28 <= lead <= 32
    if length == 2:
        return lead == 0xC2 and (data[at + 1] == 0x85 or data[at + 1] == 0xA0)
    if length == 4 or lead < 0xE1 or lead > 0xE3:
        return False
    second, third = data[at + 1], data[at + 2]
    if lead == 0xE1:
        return second == 0x9A and third == 0x80  # U+1680
    if lead == 0xE3:
        return second == 0x80 and third == 0x80  # U+3000
    if second == 0x80:
        return third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF  # U+2000-200A, 2028, 2029, 202F
    return second == 0x81 and third == 0x9F  # U+205F


@jit
def find_length_cuts(data, stop, max_points, max_run, cursor, cuts, max_bytes):
    """Write where the text that ends at ``stop`` is cut, from ``cursor int64[4]`` on, to ``cuts int64[]``; returns how many.

    A cut comes after every ``max_points`` code points; between these, within a run of white space or of anything else,
    after every ``max_run`` of its code points. The text is done when ``cursor[POSITION] == stop``: it may pause when ``cuts``
    is full or about ``max_bytes`` are read. A byte that is no part of well-formed UTF-8 is one code point.
    """
    at = cursor[POSITION]
    n_points, run, was_space = cursor[N_POINTS], cursor[RUN], cursor[IS_SPACE] != 0
    pause = min(stop, at + max_bytes)
    n = 0
    while at < pause and n < cuts.size:
        length = sequence_length(data, at, stop)
        space = is_space(data, at, length)
        if n_points == max_points:
            cuts[n] = at
            n += 1
            n_points = 0
            run = 0
        if run == 0 or space != was_space:
            run = 1
            was_space = space
        elif run == max_run:
            cuts[n] = at
            n += 1
            run = 1
        else:
            run += 1
        n_points += 1
        at += length
    cursor[POSITION], cursor[N_POINTS], cursor[RUN], cursor[IS_SPACE] = at, n_points, run, was_space
    return n
