"""The vocabulary's word table: from the bytes of a word to a token. And the key by which words are known.

A word of at most 15 bytes *is* its key: ``low`` holds its first 8 bytes, ``high`` the others, zero-padded, with the length
in the top byte. The key of a longer word is a hash of 120 bits with 16 in the top byte; whoever finds it compares bytes.

Most words that are looked up are no token; one byte a slot of the table says so:

    marks[s]                    7 bits of the key's hash, and 1; 0 = empty
    ids[s]                      the token
    keys[2 id], keys[2 id + 1]  low and high of its key
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import equal16, equal_bytes, load8
from tokctl.kernels._pages import table_of_zeros

INLINE_BYTES = 15
LONG_TAG = np.uint64(16)  # in the top byte of ``high``

_MASKS = np.array([(1 << (8 * min(max(n - at, 0), 8))) - 1 for n in range(16) for at in (0, 8)], np.uint64)
_1 = np.uint64(1)
_8 = np.uint64(8)
_32 = np.uint64(32)
_56 = np.uint64(56)
_BYTE = np.uint64(255)
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)


class TokenTable(NamedTuple):
    """``marks uint8[capacity]`` (a power of two), ``ids int32[capacity]``, ``keys uint64[2 V]``, and the vocabulary:
    ``data uint8[]``, ``offsets int64[V + 1]``."""

    marks: np.ndarray
    ids: np.ndarray
    keys: np.ndarray
    data: np.ndarray
    offsets: np.ndarray


def token_table(data: np.ndarray, offsets: np.ndarray, token_ids: np.ndarray) -> tuple[TokenTable, int]:
    """The table of the tokens ``token_ids int32[n]``; and -1 or the first whose bytes another one has."""
    capacity = 1 << max(4, (2 * len(token_ids)).bit_length())
    marks = table_of_zeros(capacity // 8).view(np.uint8)
    ids = table_of_zeros(capacity // 2).view(np.int32)
    keys = table_of_zeros(2 * max(len(offsets) - 1, 1))
    table = TokenTable(marks, ids, keys, data, offsets)
    return table, int(fill_token_table(token_ids, table))


@jit(inner=True, borrows=True)
def shift_of(capacity):
    """How far a 64-bit hash is shifted down to number ``capacity`` slots, a power of two."""
    shift = 64
    while capacity > 1:
        capacity >>= 1
        shift -= 1
    return np.uint64(shift)


@jit(inner=True, borrows=True)
def key_hash(low, high):
    """64-bit hash of a key, good at the top: multiplying carries every byte there."""
    return low * _MIX_1 + high * _MIX_2


@jit(inner=True, borrows=True)
def is_inline(data, start, length):
    """Whether :func:`inline_key` can read the word; ``start`` and ``length`` are uint64."""
    return length <= np.uint64(INLINE_BYTES) and start + np.uint64(16) <= np.uint64(data.size)


@jit(inner=True, borrows=True)
def inline_key(data, start, length):
    """``(low, high)`` of a word for which ``is_inline`` holds."""
    row = length + length
    low = load8(data, start) & _MASKS[row]
    return low, (load8(data, start + _8) & _MASKS[row + _1]) | (length << _56)


@jit(inner=True, borrows=True)
def other_key(data, start, length):
    """``(low, high)`` of any word: one that is long, or so close to the end of ``data`` that 16 bytes can't be read."""
    stop = start + length
    low = np.uint64(0)
    high = np.uint64(0)
    if length <= np.uint64(INLINE_BYTES):
        for i in range(length):
            byte = np.uint64(data[start + i])
            if i < _8:
                low |= byte << (i * _8)
            else:
                high |= byte << ((i - _8) * _8)
        return low, high | (length << _56)
    low = length * _MIX_2
    at = start
    while at < stop:
        if at + np.uint64(16) > stop:
            at = stop - np.uint64(16)
        low = (low ^ load8(data, at)) * _MIX_1
        low ^= low >> _32
        high = (high ^ load8(data, at + _8)) * _MIX_2
        high ^= high >> _32
        at += np.uint64(16)
    low = (low + high) * _MIX_1
    high = (high ^ (low >> _32)) * _MIX_2
    return low ^ (low >> _32), (high >> _8) | (LONG_TAG << _56)


@jit(inner=True, borrows=True)
def word_key(data, start, stop):
    """``(low, high)`` of the word ``data[start:stop]``."""
    begin = np.uint64(start)
    length = np.uint64(stop) - begin
    if is_inline(data, begin, length):
        return inline_key(data, begin, length)
    return other_key(data, begin, length)


@jit(inner=True, borrows=True)
def _find_key(table, shift, data, start, length, low, high):
    """``(slot, mark)``: where the token is that is the word, or the empty slot where it would go, and its mark."""
    marks, keys = table.marks, table.keys
    h = key_hash(low, high)
    slot = h >> shift
    mark = (h >> (shift - _8) & _BYTE) | _1
    mask = np.uint64(marks.size - 1)
    while True:
        found = np.uint64(marks[slot])
        if found == np.uint64(0):
            return slot, mark
        if found == mark:
            token = np.uint64(table.ids[slot])
            if equal16(keys, token + token, low, high):
                if high >> _56 != LONG_TAG:
                    return slot, mark
                first = table.offsets[token]
                if table.offsets[token + _1] - first == length and equal_bytes(data, start, table.data, first, length):
                    return slot, mark
        slot = (slot + _1) & mask


@jit(borrows=True)
def fill_token_table(token_ids, table):
    """Put tokens ``int32[]`` into the empty table. Returns -1, or the id of the first token whose bytes another one has."""
    shift = shift_of(table.marks.size)
    for k in range(token_ids.size):
        token = np.uint64(token_ids[k])
        start, stop = table.offsets[token], table.offsets[token + _1]
        low, high = word_key(table.data, start, stop)
        slot, mark = _find_key(table, shift, table.data, start, stop - start, low, high)
        if table.marks[slot] != 0:
            return np.int64(token)
        table.marks[slot] = np.uint8(mark)
        table.ids[slot] = token_ids[k]
        table.keys[token + token] = low
        table.keys[token + token + _1] = high
    return np.int64(-1)


@jit(inner=True, borrows=True)
def token_of_key(table, data, start, length, low, high):
    """The id of the token that is the word with this key, or -1."""
    slot, _ = _find_key(table, shift_of(table.marks.size), data, start, length, low, high)
    return np.int64(table.ids[slot]) if table.marks[slot] != 0 else np.int64(-1)


@jit(borrows=True)
def find_token(table, data, start, stop):
    """The id of the token that is ``data[start:stop]``, or -1."""
    low, high = word_key(data, start, stop)
    return token_of_key(table, data, start, stop - start, low, high)
