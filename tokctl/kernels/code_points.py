"""Numbering the code points of UTF-8 bytes."""

from __future__ import annotations

from tokctl.kernels._jit import jit


@jit
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
