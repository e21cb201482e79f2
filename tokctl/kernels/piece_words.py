"""The words of many pieces of text in one call."""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels.pattern_scan import scan

# cursor: piece, position in it
PIECE, POSITION = range(2)

_AT_ONCE = 256


@jit
def split_pieces(automaton, data, starts, stops, tokens, cursor, owners, ends, max_bytes):
    """Fill ``ends`` and ``owners`` int64[m] with where words end and the pieces they are of, from the cursor on.

    Pieces are ``data[starts[i]:stops[i]]``; those with ``tokens[i] >= 0`` are passed over. Stops when the arrays are full
    or about ``max_bytes`` are read; returns the number of words. ``cursor[PIECE] == starts.size`` when all is read.
    """
    found_ends = np.empty(min(ends.size, _AT_ONCE), np.int64)
    n = 0
    left = max_bytes
    piece = cursor[PIECE]
    position = cursor[POSITION]
    while piece < starts.size and n + found_ends.size <= ends.size and left > 0:
        stop = stops[piece]
        if tokens[piece] < 0 and position < stop:
            found, after = scan(automaton, data, position, stop, found_ends)
            for i in range(found):
                owners[n + i] = piece
                ends[n + i] = found_ends[i]
            n += found
            left -= after - position
            position = after
        if tokens[piece] >= 0 or position >= stop:
            piece += 1
            left -= 1
            if piece < starts.size:
                position = starts[piece]
    cursor[PIECE] = piece
    cursor[POSITION] = position
    return n
