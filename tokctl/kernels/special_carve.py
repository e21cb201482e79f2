"""Carving special spellings out of text: leftmost, and the longest of those that start at one place.

The spellings are a trie over byte classes, so that the time doesn't grow with their number; text without any of their
first bytes passes at memory speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit

DONE, PAUSED, OVERFLOW = range(3)

# cursor over the documents: the document, where its current piece starts, where to look on, pieces written
DOCUMENT, START, POSITION, N_PIECES = range(4)

_MAX_COUNT = np.iinfo(np.int64).max


class Trie(NamedTuple):
    """``classes int16[256]`` (0: in no spelling); ``next int32[states, classes]`` (0: dead); ``special int32[states]``.

    State 0 is the root, which nothing leads back to; ``special`` is the number of the spelling that ends there, or -1.
    """

    classes: np.ndarray
    next: np.ndarray
    special: np.ndarray


@jit
def match_special(trie, data, position, stop):
    """``(special, end)`` of the longest spelling that starts at ``position`` and ends by ``stop``, or ``(-1, position)``."""
    special = -1
    end = position
    state = np.int64(0)
    following, classes = trie.next, trie.classes
    i = position
    while i < stop:
        state = np.int64(following[state, classes[data[i]]])
        if state == 0:
            break
        i += 1
        if trie.special[state] >= 0:
            special = np.int64(trie.special[state])
            end = i
    return special, end


@jit
def carve(trie, data, documents, cursor, pieces, special_counts, max_bytes):
    """Cut ``documents`` (a ``word_count.Pieces``) into the pieces between specials, from the cursor on.

    Fills ``pieces`` from 0 (``cursor[N_PIECES]`` of them), adds each special's weight to ``special_counts int64[n]``.
    Returns DONE, PAUSED (pieces are full, or ``max_bytes`` are read) or OVERFLOW (a special's count passes 2**63 - 1;
    the special starts at ``cursor[POSITION]``).
    """
    n = 0
    document = cursor[DOCUMENT]
    start = cursor[START]
    position = cursor[POSITION]
    left = max_bytes
    status = DONE
    classes = trie.classes  # out of the tuple once: numba counts a reference each time
    root = trie.next[0]
    while document < documents.starts.size:
        stop = documents.stops[document]
        weight = documents.weights[document]
        if position >= stop or weight == 0:
            if n == pieces.starts.size:
                status = PAUSED
                break
            if start < stop and weight > 0:
                pieces.starts[n] = start
                pieces.stops[n] = stop
                pieces.weights[n] = weight
                pieces.slices[n] = documents.slices[document]
                n += 1
            document += 1
            if document < documents.starts.size:
                start = documents.starts[document]
                position = start
            continue
        if left <= 0:
            status = PAUSED
            break
        until = min(stop, position + left)
        before = position
        while position < until and root[classes[data[position]]] == 0:
            position += 1
        left -= position - before + 1
        if position == until:
            continue
        special, end = match_special(trie, data, position, stop)
        if special < 0:
            position += 1
            continue
        if n == pieces.starts.size:
            status = PAUSED
            break
        if special_counts[special] > _MAX_COUNT - weight:
            status = OVERFLOW
            break
        special_counts[special] += weight
        if start < position:
            pieces.starts[n] = start
            pieces.stops[n] = position
            pieces.weights[n] = weight
            pieces.slices[n] = documents.slices[document]
            n += 1
        start = end
        position = end
    cursor[DOCUMENT] = document
    cursor[START] = start
    cursor[POSITION] = position
    cursor[N_PIECES] = n
    return status
