"""Code points in UTF-8 bytes: reading, writing and numbering them."""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit


@jit(inner=True)
def sequence_length(data, at, stop):
    """Length of the well-formed UTF-8 sequence at ``at`` (Unicode table 3-7), or 1 for a byte that begins none."""
    lead = data[at]
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 1
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if at + length > stop:
        return 1
    low, high = 0x80, 0xBF
    if lead == 0xE0:
        low = 0xA0
    elif lead == 0xED:
        high = 0x9F
    elif lead == 0xF0:
        low = 0x90
    elif lead == 0xF4:
        high = 0x8F
    if data[at + 1] < low or data[at + 1] > high:
        return 1
    for i in range(at + 2, at + length):
        if data[i] & 0xC0 != 0x80:
            return 1
    return length


@jit
def number_code_points(data, numbers):
    """Fill ``numbers int64[n]``: the number of the code point that each byte belongs to.

    A byte that is no part of well-formed UTF-8 is one code point of its own.
    """
    at = 0
    number = 0
    while at < data.size:
        length = sequence_length(data, at, data.size)
        for i in range(at, at + length):
            numbers[i] = number
        at += length
        number += 1


@jit
def decode(data, i, stop):
    """``(code point, bytes)`` of the UTF-8 sequence at ``i``; ``(-1, 1)`` where none is valid."""
    lead = np.int64(data[i])
    if lead < 0x80:
        return lead, 1
    if lead < 0xC2 or lead > 0xF4:
        return np.int64(-1), 1
    width = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if i + width > stop:
        return np.int64(-1), 1
    point = lead & (0x7F >> width)
    for k in range(1, width):
        byte = np.int64(data[i + k])
        if byte & 0xC0 != 0x80:
            return np.int64(-1), 1
        point = (point << 6) | (byte & 0x3F)
    if width == 3 and (point < 0x800 or 0xD800 <= point < 0xE000):
        return np.int64(-1), 1
    if width == 4 and (point < 0x10000 or point > 0x10FFFF):
        return np.int64(-1), 1
    return point, width


@jit(inner=True)
def put_code_point(out, size, point):
    """Write the UTF-8 of ``point`` (a surrogate too) at ``out[size:]``; return the new size."""
    if point < 0x80:
        out[size] = point
        return size + 1
    if point < 0x800:
        out[size] = 0xC0 | (point >> 6)
        out[size + 1] = 0x80 | (point & 0x3F)
        return size + 2
    if point < 0x10000:
        out[size] = 0xE0 | (point >> 12)
        out[size + 1] = 0x80 | ((point >> 6) & 0x3F)
        out[size + 2] = 0x80 | (point & 0x3F)
        return size + 3
    out[size] = 0xF0 | (point >> 18)
    out[size + 1] = 0x80 | ((point >> 12) & 0x3F)
    out[size + 2] = 0x80 | ((point >> 6) & 0x3F)
    out[size + 3] = 0x80 | (point & 0x3F)
    return size + 4


@jit
def origin_ends(data, origins):
    """Replace each of ``origins int64[n]`` by where that part of ``data`` ends: p by p + 1, ~p by the end of the code
    point that begins at p."""
    for i in range(origins.size):
        if origins[i] >= 0:
            origins[i] += 1
        else:
            origins[i] = ~origins[i] + sequence_length(data, ~origins[i], data.size)
