"""Word tables: from the bytes of a word to something small, by one probe.

Open addressing on flat arrays, 32 bytes a slot, two slots to a cache line:

    slots[4 s]      first 8 bytes of the word          | of a long word: its 64-bit hash
    slots[4 s + 1]  bytes 8..16, zero-padded           | of a long word: where it starts in the table's arena
    slots[4 s + 2]  n_ids << 40 | length; 0 = empty      (words are never empty)
    slots[4 s + 3]  the one id, or first id | second id << 32, or where n_ids ids start in an id arena

Words of at most 16 bytes are the slot; only longer ones are compared with bytes kept elsewhere.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import equal_bytes, load8, load_short

INLINE_BYTES = 16

_LENGTH_MASK = np.uint64((1 << 40) - 1)
_40 = np.uint64(40)
_32 = np.uint64(32)
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)
_MIX_3 = np.uint64(0xA0761D6478BD642F)


@jit
def slot_shift(slots):
    """How far a 64-bit hash is shifted down to number the slots of a word table."""
    capacity = slots.size // 4
    shift = 64
    while capacity > 1:
        capacity >>= 1
        shift -= 1
    return np.uint64(shift)


@jit
def _hash_long(data, start, stop):
    """64-bit hash of a word of more than 8 bytes."""
    h = np.uint64(stop - start) * _MIX_1
    i = start
    while i + 8 <= stop:
        h = (h ^ load8(data, i)) * _MIX_2
        h ^= h >> _32
        i += 8
    h = (h ^ load8(data, stop - 8)) * _MIX_2
    return h ^ (h >> _32)


@jit
def word_key(data, start, stop):
    """``(low, high, hash)`` of the word: its bytes if they fit, else its hash and 0."""
    length = np.uint64(stop - start)
    if stop - start <= INLINE_BYTES:
        low, high = load_short(data, start, stop)
    else:
        low, high = _hash_long(data, start, stop), np.uint64(0)
    h = (low ^ (length * _MIX_3)) * _MIX_1
    h = ((h ^ (h >> _32)) ^ high) * _MIX_2
    return low, high, (h ^ (h >> _32)) * _MIX_1


@jit
def probe(slots, arena, shift, data, start, length, low, high, h):
    """The slot that holds the word, or -1 - the empty slot where it would go."""
    mask = slots.size // 4 - 1
    slot = np.int64(h >> shift)
    tag = np.uint64(length)
    while True:
        found = slots[4 * slot + 2]
        if found == np.uint64(0):
            return -1 - slot
        if slots[4 * slot] == low and (found & _LENGTH_MASK) == tag:
            if length <= INLINE_BYTES:
                if slots[4 * slot + 1] == high:
                    return slot
            elif equal_bytes(data, start, arena, np.int64(slots[4 * slot + 1]), length):
                return slot
        slot = (slot + 1) & mask


@jit
def fill_token_table(data, offsets, token_ids, slots):
    """Put the tokens ``data[offsets[i]:offsets[i + 1]]``, i in ``token_ids int32[]``, into the empty word table ``slots``.

    The table's arena is ``data``. Returns -1, or the id of the first token whose bytes another one already has.
    """
    shift = slot_shift(slots)
    for k in range(token_ids.size):
        token = token_ids[k]
        start, stop = offsets[token], offsets[token + 1]
        low, high, h = word_key(data, start, stop)
        slot = probe(slots, data, shift, data, start, stop - start, low, high, h)
        if slot >= 0:
            return np.int64(token)
        slot = -1 - slot
        slots[4 * slot] = low
        slots[4 * slot + 1] = high if stop - start <= INLINE_BYTES else np.uint64(start)
        slots[4 * slot + 2] = (np.uint64(1) << _40) | np.uint64(stop - start)
        slots[4 * slot + 3] = np.uint64(token)
    return np.int64(-1)


@jit
def find_token(slots, arena, shift, data, start, stop):
    """The id of the token that is ``data[start:stop]``, or -1."""
    low, high, h = word_key(data, start, stop)
    slot = probe(slots, arena, shift, data, start, stop - start, low, high, h)
    return np.int64(slots[4 * slot + 3]) if slot >= 0 else np.int64(-1)
