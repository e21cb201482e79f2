"""The cache of words already encoded: from the key of a word (``word_table.py``) to its ids.

A cache line holds two slots of 32 bytes. A word has one first place; its second place is the other slot of that line. Where
both are taken, the newer word replaces the one in its second place. Replacing costs time and never changes an id.

    slots[4 s], slots[4 s + 1]   the key; high == 0: empty
    slots[4 s + 2]               first id | second id << 32
    slots[4 s + 3]               third id | number of ids << 32

Longer words and words of more than three ids are kept elsewhere, with ``ELSEWHERE`` set in the number of ids:

    slots[4 s + 2]               where its ids start in ``ids`` | where its bytes start in ``arena`` << 32
    slots[4 s + 3]               length | number of ids << 32 | ELSEWHERE << 32

When ``ids`` or ``arena`` is full the whole cache is emptied, so that its memory is bounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import copy_bytes, equal16, equal_bytes, store8
from tokctl.kernels._pages import table_of_zeros
from tokctl.kernels.word_table import LONG_TAG, key_hash

MAX_CACHED_BYTES = 255
INLINE_IDS = 3
KEY_WORDS = 4  # keys[4 k]: low, high, first place, unused

# state of the cache
ARENA_USED, IDS_USED = range(2)

_1 = np.uint64(1)
_2 = np.uint64(2)
_3 = np.uint64(3)
_4 = np.uint64(4)
_32 = np.uint64(32)
_56 = np.uint64(56)
_LOW = np.uint64(0xFFFFFFFF)
_ELSEWHERE = np.uint64(1 << 31)


class WordCache(NamedTuple):
    """``slots uint64[4 * 2**b]``; ``arena uint8[]``, ``ids uint32[]`` of at least MAX_CACHED_BYTES; ``state int64[2]``.

    Each thread has its own.
    """

    slots: np.ndarray
    arena: np.ndarray
    ids: np.ndarray
    state: np.ndarray


def word_cache(slot_bits: int = 19) -> WordCache:
    """An empty cache of ``2**slot_bits`` slots. By default it takes at most 48 MB, of which unused parts are never touched."""
    n_slots = 1 << slot_bits
    return WordCache(
        table_of_zeros(4 * n_slots),
        np.empty(max(32 * n_slots, MAX_CACHED_BYTES), np.uint8),
        np.empty(max(8 * n_slots, MAX_CACHED_BYTES), np.uint32),
        np.zeros(2, np.int64),
    )


@jit(inner=True, borrows=True)
def first_place(low, high, shift):
    """Index into ``slots`` of a key's first place; ``shift`` is ``shift_of`` the number of slots."""
    return (key_hash(low, high) >> shift) * _4


@jit(inner=True, borrows=True)
def _is_spelled(slots, place, arena, data, start, length):
    """Whether the word, whose key the slot has, is the slot's; only long words can differ."""
    return slots[place + _1] >> _56 != LONG_TAG or (
        slots[place + _3] & _LOW == np.uint64(length)
        and equal_bytes(data, start, arena, np.int64(slots[place + _2] >> _32), length)
    )


@jit(inner=True, borrows=True)
def is_cached(slots, place, arena, data, start, length, low, high):
    """Whether :func:`emit_cached` will find the word whose first place is ``place``."""
    if not equal16(slots, place, low, high):
        place ^= _4
        if not equal16(slots, place, low, high):
            return False
    return _is_spelled(slots, place, arena, data, start, length)


@jit(inner=True, borrows=True)
def emit_cached(data, bounds, keys, first, k, last, slots, arena, ids, out, n_out):
    """Write the ids of the words k .. last to ``out uint32[]``, up to the first word that is not in its first place.

    Word k is ``data[bounds[k]:bounds[k + 1]]`` and has the key ``keys[4 * (k - first):]``. Returns ``(k, n_out)``. ``out`` has
    room for four ids beyond those of the words.
    """
    while k < last:
        row = (k - first) * _4
        low, high, place = keys[row], keys[row + _1], keys[row + _2]
        if not equal16(slots, place, low, high):
            place ^= _4
            if not equal16(slots, place, low, high):
                break
        value = slots[place + _3]
        n_ids = value >> _32
        if n_ids <= np.uint64(INLINE_IDS):
            store8(out, n_out, slots[place + _2])
            store8(out, n_out + _2, value)
        else:
            begin = bounds[k]
            if not _is_spelled(slots, place, arena, data, begin, bounds[k + _1] - begin):
                break
            n_ids &= ~_ELSEWHERE
            at = slots[place + _2] & _LOW
            for i in range(n_ids):
                out[n_out + i] = ids[at + i]
        n_out += n_ids
        k += _1
    return k, n_out


@jit(inner=True, borrows=True)
def remember(cache, data, start, length, low, high, place, out, first, n_ids):
    """Put a word that is not there, with the ids ``out[first : first + n_ids]``, into the cache."""
    if length > MAX_CACHED_BYTES:
        return
    slots, state = cache.slots, cache.state
    is_long = high >> _56 == LONG_TAG
    if is_long or n_ids > INLINE_IDS:
        n_bytes = length if is_long else 0
        at, id_at = state[ARENA_USED], state[IDS_USED]
        if at + n_bytes > cache.arena.size or id_at + n_ids > cache.ids.size:
            for i in range(slots.size):
                slots[i] = np.uint64(0)
            at = id_at = np.int64(0)
        copy_bytes(data, start, start + n_bytes, cache.arena, at)
        copy_bytes(out, first, first + n_ids, cache.ids, id_at)
        state[ARENA_USED] = at + n_bytes
        state[IDS_USED] = id_at + n_ids
        refer = np.uint64(id_at) | (np.uint64(at) << _32)
        value = np.uint64(length) | ((np.uint64(n_ids) | _ELSEWHERE) << _32)
    else:
        refer = np.uint64(out[first])
        value = np.uint64(n_ids) << _32
        if n_ids > 1:
            refer |= np.uint64(out[first + 1]) << _32
        if n_ids > 2:
            value |= np.uint64(out[first + 2])
    if slots[place + _1] != np.uint64(0):
        place ^= _4
    slots[place] = low
    slots[place + _1] = high
    slots[place + _2] = refer
    slots[place + _3] = value
