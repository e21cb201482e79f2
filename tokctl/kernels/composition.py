"""Canonical ordering and composition of code points (UAX #15), for all that normalises text.

Values are ``int64``: a code point in the low 32 bits, and above it a change, which composition adds up and whose meaning
is the caller's; plain code points are values whose change is 0.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit

S_BASE, _L_BASE, _V_BASE, _T_BASE = 0xAC00, 0x1100, 0x1161, 0x11A7
_L_COUNT, _V_COUNT, _T_COUNT = 19, 21, 28
S_COUNT = _L_COUNT * _V_COUNT * _T_COUNT
_SHORT_RUN = 24


@jit(inner=True)
def split_syllable(values, n, point, change):
    """Write the two or three jamo of a Hangul syllable to ``values[n:]``, with ``change`` (shifted) from the second on.

    Returns the new n.
    """
    index = point - S_BASE
    values[n] = _L_BASE + index // (_V_COUNT * _T_COUNT)
    values[n + 1] = change | (_V_BASE + (index // _T_COUNT) % _V_COUNT)
    if index % _T_COUNT == 0:
        return n + 2
    values[n + 2] = change | (_T_BASE + index % _T_COUNT)
    return n + 3


@jit(inner=True)
def point_of(value):
    """The code point of a value."""
    return value & 0xFFFFFFFF


@jit(inner=True)
def order(classes, values):
    """Canonical ordering in place: each run of marks sorted by combining class (``classes uint8[]`` by code point), equal
    classes as they stood."""
    i = 0
    while i < values.size:
        if classes[point_of(values[i])] == 0:
            i += 1
            continue
        j = i
        while j < values.size and classes[point_of(values[j])] != 0:
            j += 1
        if j - i <= _SHORT_RUN:
            for k in range(i + 1, j):
                value = values[k]
                rank = classes[point_of(value)]
                m = k
                while m > i and classes[point_of(values[m - 1])] > rank:
                    values[m] = values[m - 1]
                    m -= 1
                values[m] = value
        else:  # a counting sort, so that no run takes quadratic time
            places = np.zeros(257, np.int64)
            for k in range(i, j):
                places[np.int64(classes[point_of(values[k])]) + 1] += 1
            for k in range(256):
                places[k + 1] += places[k]
            run = np.empty(j - i, np.int64)
            for k in range(run.size):
                run[k] = values[i + k]
            for k in range(run.size):
                rank = classes[point_of(run[k])]
                values[i + places[rank]] = run[k]
                places[rank] += 1
        i = j


@jit(inner=True)
def compose(classes, pairs, composites, has_hangul, values):
    """Canonical composition in place, of Hangul too if asked for; the view that is left.

    A composite has the change of its parts and one less: it takes the places of both.
    """
    n = 0
    starter = -1
    last_class = 0  # class of the last code point kept after the starter; 0: none stands between
    for k in range(values.size):
        value = values[k]
        rank = np.int64(classes[point_of(value)])
        if starter >= 0 and (n == starter + 1 or 0 < last_class < rank):
            composite = _pair(pairs, composites, has_hangul, point_of(values[starter]), point_of(value))
            if composite >= 0:
                change = (values[starter] >> 32) + (value >> 32) - 1
                values[starter] = (change << 32) | composite
                continue
        if rank == 0:
            starter = n
        last_class = rank
        values[n] = value
        n += 1
    return values[:n]


@jit(inner=True)
def _pair(pairs, composites, has_hangul, first, second):
    """The primary composite of two code points, or -1."""
    if has_hangul:
        if _L_BASE <= first < _L_BASE + _L_COUNT and _V_BASE <= second < _V_BASE + _V_COUNT:
            return S_BASE + ((first - _L_BASE) * _V_COUNT + second - _V_BASE) * _T_COUNT
        is_open = S_BASE <= first < S_BASE + S_COUNT and (first - S_BASE) % _T_COUNT == 0
        if is_open and _T_BASE < second < _T_BASE + _T_COUNT:
            return first + second - _T_BASE
    key = np.uint64((first << 21) | second)
    low, high = 0, pairs.size
    while low < high:
        middle = (low + high) >> 1
        if pairs[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < pairs.size and pairs[low] == key:
        return np.int64(composites[low])
    return np.int64(-1)
