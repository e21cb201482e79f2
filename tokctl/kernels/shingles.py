"""Shingles: n successive words or characters of a canonical text, hashed, as sets.

A word is what stands between single spaces (canonical text has no other white space when words are asked for), so a
word shingle is a contiguous byte range. A character is a code point.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels.xxh3 import xxh3_64

_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_3 = np.uint64(0x94D049BB133111EB)
_SECOND = np.uint64(0x6A09E667F3BCC908)


@jit
def shingle_spans(data, offsets, by_character, n_words, n_characters, starts, stops, span_offsets):
    """Byte ranges of all shingles of the texts ``data[offsets[i]:offsets[i + 1]]``.

    ``by_character`` uint8[n] says which unit text i uses. ``starts``, ``stops`` int64[at least bytes of all texts] and
    ``span_offsets`` int64[n + 1] are written; text i has the spans ``span_offsets[i]:span_offsets[i + 1]``. A text of
    fewer than n units has none.
    """
    recent = np.empty(max(n_words, n_characters), np.int64)  # where the last n units start, a ring
    size = 0
    span_offsets[0] = 0
    for text in range(offsets.size - 1):
        start, stop = offsets[text], offsets[text + 1]
        n_units = 0
        if by_character[text]:
            for i in range(start, stop + 1):
                if i < stop and data[i] & 0xC0 == 0x80:
                    continue
                if n_units >= n_characters:
                    starts[size] = recent[n_units % n_characters]
                    stops[size] = i
                    size += 1
                recent[n_units % n_characters] = i
                n_units += 1
        else:
            word = start
            for i in range(start, stop + 1):
                if i < stop and data[i] != 0x20:
                    continue
                if i > word:
                    recent[n_units % n_words] = word
                    n_units += 1
                    if n_units >= n_words:
                        starts[size] = recent[n_units % n_words]
                        stops[size] = i
                        size += 1
                word = i + 1
        span_offsets[text + 1] = size


@jit
def hash_spans(data, starts, stops, out):
    """``out[i]`` (uint64) is XXH3 of ``data[starts[i]:stops[i]]``."""
    for i in range(starts.size):
        out[i] = xxh3_64(data, starts[i], stops[i])


@jit
def distinct(hashes, offsets, out, out_offsets, digests):
    """The set of each text's hashes, in order of first appearance, and a digest that doesn't depend on the order.

    ``hashes`` uint64[], ``offsets`` int64[n + 1]; ``out`` uint64 (as long as ``hashes``), ``out_offsets`` int64[n + 1]
    and ``digests`` uint64[n, 2] are written.
    """
    longest = 1
    for text in range(offsets.size - 1):
        longest = max(longest, offsets[text + 1] - offsets[text])
    capacity = 4
    while capacity < 2 * longest:
        capacity *= 2
    table = np.zeros(capacity, np.uint64)  # 0 is an empty slot; the hash 0 is kept apart
    size = 0
    out_offsets[0] = 0
    for text in range(offsets.size - 1):
        start, stop = offsets[text], offsets[text + 1]
        slots = 4
        while slots < 2 * (stop - start):
            slots *= 2
        for slot in range(slots):
            table[slot] = 0
        mask = np.uint64(slots - 1)
        has_zero = False
        first, second = np.uint64(0), np.uint64(0)
        for i in range(start, stop):
            value = hashes[i]
            mixed = _mix(value)
            if value == 0:
                if has_zero:
                    continue
                has_zero = True
            else:
                at = mixed & mask
                while table[at] != 0 and table[at] != value:
                    at = (at + np.uint64(1)) & mask
                if table[at] == value:
                    continue
                table[at] = value
            first += mixed
            second += _mix(value ^ _SECOND)
            out[size] = value
            size += 1
        out_offsets[text + 1] = size
        digests[text, 0] = _mix(first)
        digests[text, 1] = second


@jit(inner=True)
def _mix(value):
    """A bijection of uint64 that spreads all bits (the finalizer of SplitMix64)."""
    value += _MIX_1
    value = (value ^ (value >> np.uint64(30))) * _MIX_2
    value = (value ^ (value >> np.uint64(27))) * _MIX_3
    return value ^ (value >> np.uint64(31))
