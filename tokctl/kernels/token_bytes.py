"""From ids back to bytes.

A token of at most 15 bytes is a row of 16: its bytes, zero-padded, and their number in the last one. Writing all 16 and
moving on by that number takes no branch; the next token overwrites what was too much.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import copy_bytes, load8, store8

ROW = 16
LONG, NOTHING = 16, 17  # in place of the number of bytes: look the bytes up; the id stands for nothing

_1 = np.uint64(1)
_8 = np.uint64(8)
_56 = np.uint64(56)


@jit(borrows=True)
def fill_token_rows(data, offsets, kinds, rows):
    """Fill ``rows uint8[16 V]`` of the vocabulary ``data``, ``offsets``; ``kinds uint8[V]`` is 0 where an id is nothing."""
    for token in range(kinds.size):
        start, stop = offsets[token], offsets[token + 1]
        row = ROW * token
        for i in range(ROW):
            rows[row + i] = 0
        if kinds[token] == 0:
            rows[row + ROW - 1] = NOTHING
        elif stop - start >= ROW:
            rows[row + ROW - 1] = LONG
        else:
            copy_bytes(data, start, stop, rows, row)
            rows[row + ROW - 1] = stop - start


@jit(borrows=True)
def measure_ids(ids, offsets, rows):
    """How many bytes ``ids uint32[]`` stand for, or -1 - k if ``ids[k]`` stands for nothing."""
    n_tokens = np.uint64(offsets.size - 1)
    n_bytes = np.int64(0)
    for k in range(ids.size):
        token = np.uint64(ids[k])
        if token >= n_tokens:
            return np.int64(-1 - k)
        length = np.int64(rows[token * np.uint64(ROW) + np.uint64(ROW - 1)])
        if length >= LONG:
            if length == NOTHING:
                return np.int64(-1 - k)
            length = offsets[token + _1] - offsets[token]
        n_bytes += length
    return n_bytes


@jit(borrows=True)
def decode_ids(ids, data, offsets, rows, out):
    """Write the bytes of ``ids uint32[]`` one after another; ``out uint8[]`` has exactly their size."""
    at = np.uint64(0)
    safe = np.int64(out.size - ROW)  # up to here all of a row fits
    for k in range(ids.size):
        token = np.uint64(ids[k])
        row = token * np.uint64(ROW)
        last = load8(rows, row + _8)
        length = last >> _56
        if length < np.uint64(LONG) and np.int64(at) <= safe:
            store8(out, at, load8(rows, row))
            store8(out, at + _8, last)
        else:
            length = np.uint64(offsets[token + _1] - offsets[token])
            copy_bytes(data, offsets[token], offsets[token + _1], out, np.int64(at))
        at += length
    return np.int64(at)
