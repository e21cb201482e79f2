"""Finding the spellings of added tokens in stretches of text: leftmost, and the longest of those that start together."""

from __future__ import annotations

from tokctl.kernels._jit import jit
from tokctl.kernels.special_carve import match_special

# cursor: segment, position
SEGMENT, POSITION = range(2)


@jit
def find_spellings(trie, data, starts, stops, tokens, cursor, found, max_bytes):
    """Fill ``found int64[n, 4]`` with (segment, start, stop, spelling) of matches in the text segments.

    Segments are ``data[starts[i]:stops[i]]`` with ``tokens[i] < 0`` (int64 arrays); others are passed over. Begins at
    ``cursor`` (segment, position) and stops when ``found`` is full or about ``max_bytes`` are read; returns the number
    found. ``cursor[SEGMENT] == starts.size`` when everything is read.
    """
    n = 0
    segment = cursor[SEGMENT]
    position = cursor[POSITION]
    left = max_bytes
    while segment < starts.size and n < found.shape[0] and left > 0:
        stop = stops[segment]
        before = position
        if tokens[segment] < 0:
            until = min(stop, position + left)
            while position < until:
                if trie.next[0, trie.classes[data[position]]] == 0:
                    position += 1
                    continue
                spelling, end = match_special(trie, data, position, stop)
                if spelling < 0:
                    position += 1
                    continue
                found[n, 0] = segment
                found[n, 1] = position
                found[n, 2] = end
                found[n, 3] = spelling
                n += 1
                position = end
                if n == found.shape[0]:
                    break
        else:
            position = stop
        left -= position - before
        if position >= stop:
            segment += 1
            left -= 1
            if segment < starts.size:
                position = starts[segment]
    cursor[SEGMENT] = segment
    cursor[POSITION] = position
    return n
