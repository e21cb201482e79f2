"""The vocabulary's word table: from the bytes of a word to a token, by one probe. And the key by which words are known.

A word of at most 15 bytes *is* its key: ``low`` holds its first 8 bytes, ``high`` the others, zero-padded, with the length
in the top byte. The key of a longer word is a hash of 120 bits with 16 in the top byte; whoever finds it compares bytes.

Open addressing on one flat array, 32 bytes a slot, two slots to a cache line:

    slots[4 s], slots[4 s + 1]  the key; high == 0: empty   (words are never empty)
    slots[4 s + 2]              where the token's bytes start in the table's arena
    slots[4 s + 3]              length << 32 | id
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import equal16, equal_bytes, load8

INLINE_BYTES = 15
LONG_TAG = np.uint64(16)  # in the top byte of ``high``

_MASKS = np.array([(1 << (8 * min(max(n - at, 0), 8))) - 1 for n in range(16) for at in (0, 8)], np.uint64)
_1 = np.uint64(1)
_4 = np.uint64(4)
_8 = np.uint64(8)
_32 = np.uint64(32)
_56 = np.uint64(56)
_LOW = np.uint64(0xFFFFFFFF)
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)


@jit(borrows=True)
def slot_shift(slots):
    """How far a 64-bit hash is shifted down to number the slots of a word table."""
    capacity = slots.size // 4
    shift = 64
    while capacity > 1:
        capacity >>= 1
        shift -= 1
    return np.uint64(shift)


@jit(inner=True, borrows=True)
def first_place(low, high, shift):
    """Index into ``slots`` of the slot where a key is looked for first. Multiplying carries every byte to the top bits."""
    return ((low * _MIX_1 + high * _MIX_2) >> shift) * _4


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
def find_key(slots, arena, shift, data, start, length, low, high):
    """``(found, place)``: the slot of a word in a vocabulary's table, or the empty one where it would go."""
    mask = np.uint64(slots.size - 1)
    place = first_place(low, high, shift)
    while slots[place + _1] != np.uint64(0):
        if equal16(slots, place, low, high):
            if high >> _56 != LONG_TAG:
                return True, place
            if slots[place + np.uint64(3)] >> _32 == np.uint64(length) and equal_bytes(
                data, start, arena, np.int64(slots[place + np.uint64(2)]), length
            ):
                return True, place
        place = (place + _4) & mask
    return False, place


@jit(borrows=True)
def fill_token_table(data, offsets, token_ids, slots):
    """Put the tokens ``data[offsets[i]:offsets[i + 1]]``, i in ``token_ids int32[]``, into the empty word table ``slots``.

    The table's arena is ``data``. Returns -1, or the id of the first token whose bytes another one already has.
    """
    shift = slot_shift(slots)
    for k in range(token_ids.size):
        token = token_ids[k]
        start, stop = offsets[token], offsets[token + 1]
        low, high = word_key(data, start, stop)
        found, place = find_key(slots, data, shift, data, start, stop - start, low, high)
        if found:
            return np.int64(token)
        slots[place] = low
        slots[place + _1] = high
        slots[place + np.uint64(2)] = np.uint64(start)
        slots[place + np.uint64(3)] = (np.uint64(stop - start) << _32) | np.uint64(token)
    return np.int64(-1)


@jit(inner=True, borrows=True)
def token_of_key(slots, arena, shift, data, start, length, low, high):
    """The id of the token that is the word with this key, or -1."""
    found, place = find_key(slots, arena, shift, data, start, length, low, high)
    return np.int64(slots[place + np.uint64(3)] & _LOW) if found else np.int64(-1)


@jit(borrows=True)
def find_token(slots, arena, shift, data, start, stop):
    """The id of the token that is ``data[start:stop]``, or -1."""
    low, high = word_key(data, start, stop)
    return token_of_key(slots, arena, shift, data, start, stop - start, low, high)
