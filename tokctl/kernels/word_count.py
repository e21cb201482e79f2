"""Counting words: scan, hash and probe in blocks, over an open-addressing table on flat arrays.

One slot is 32 bytes, two to a cache line, and holds all that a probe reads:

    slots[4 s]      first 8 bytes of the word          | of a long word: its 64-bit hash
    slots[4 s + 1]  bytes 8..16, zero-padded           | of a long word: where it starts in the arena
    slots[4 s + 2]  slice << 40 | length; 0 = empty      (words are never empty)
    slots[4 s + 3]  count, an int64 that is never negative

Words of at most 16 bytes are the slot; only longer ones are compared with bytes kept elsewhere. A (word, slice) pair
is one key, so that a corpus of many slices costs only the pairs that occur.

A block of words is scanned and hashed before the first of them is probed: by then the prefetched lines have arrived.
Every kernel stops when something is full and can be called again: the cursor stands before the first word not counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import copy_bytes, equal_bytes, load8, load_short, prefetch
from tokctl.kernels.pattern_scan import scan

DONE, PAUSED, TABLE_FULL, ARENA_FULL, OVERFLOW = range(5)

LENGTH_BITS = 40
INLINE_BYTES = 16

# state of a table
N_WORDS, MAX_WORDS, ARENA_USED, NEEDED = range(4)
# cursor over the pieces
PIECE, POSITION, STOP = range(3)

_LENGTH_MASK = np.uint64((1 << LENGTH_BITS) - 1)
_MAX_COUNT = np.uint64(np.iinfo(np.int64).max)
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)
_MIX_3 = np.uint64(0xA0761D6478BD642F)


class Table(NamedTuple):
    """The hash table: ``slots uint64[4 * capacity]`` (capacity a power of two), ``arena uint8[]``, ``state int64[4]``."""

    slots: np.ndarray
    arena: np.ndarray
    state: np.ndarray


class Block(NamedTuple):
    """The words between scanning and probing: ``ends``, ``starts``, ``pieces`` int64[n]; ``keys`` uint64[4 n]."""

    ends: np.ndarray
    starts: np.ndarray
    pieces: np.ndarray
    keys: np.ndarray  # low, high, tag, hash


class Pieces(NamedTuple):
    """Stretches of ``data`` that no word crosses: ``starts``, ``stops``, ``weights``, ``slices``, all int64[n]."""

    starts: np.ndarray
    stops: np.ndarray
    weights: np.ndarray
    slices: np.ndarray


@jit
def hash_long(data, start, stop):
    """64-bit hash of the bytes of a long word (more than 16 bytes)."""
    h = np.uint64(stop - start) * _MIX_1
    i = start
    while i + 8 <= stop:
        h = (h ^ load8(data, i)) * _MIX_2
        h ^= h >> np.uint64(32)
        i += 8
    h = (h ^ load8(data, stop - 8)) * _MIX_2
    return h ^ (h >> np.uint64(29))


@jit
def hash_key(low, high, tag):
    """64-bit hash of a key; the table takes its top bits. The high half is not mixed in for long words (it is an address)."""
    h = (low ^ (tag * _MIX_3)) * _MIX_1
    h = ((h ^ (h >> np.uint64(32))) ^ high) * _MIX_2
    return (h ^ (h >> np.uint64(32))) * _MIX_1


@jit
def _slot_shift(slots):
    """How far a hash is shifted down to a slot number."""
    shift = 64
    capacity = slots.size // 4
    while capacity > 1:
        capacity >>= 1
        shift -= 1
    return np.uint64(shift)


@jit
def _count_block(data, n, pieces, block, table, cursor):
    """Count the ``n`` words of the block; on anything but DONE the cursor stands at the first word not counted."""
    # Arrays out of their tuples first: numba counts a reference each time that one is taken out.
    slots, arena, state = table.slots, table.arena, table.state
    starts, ends, owners, keys = block.starts, block.ends, block.pieces, block.keys
    weights, slices = pieces.weights, pieces.slices
    shift = _slot_shift(slots)
    mask = np.int64(slots.size // 4 - 1)
    for k in range(n):
        start, end = starts[k], ends[k]
        tag = (np.uint64(slices[owners[k]]) << np.uint64(LENGTH_BITS)) | np.uint64(end - start)
        if end - start <= INLINE_BYTES:
            low, high = load_short(data, start, end)
        else:
            low, high = hash_long(data, start, end), np.uint64(0)
        h = hash_key(low, high, tag)
        keys[4 * k] = low
        keys[4 * k + 1] = high
        keys[4 * k + 2] = tag
        keys[4 * k + 3] = h
        prefetch(slots, np.int64(h >> shift) * 4)
    for k in range(n):
        low = keys[4 * k]
        high = keys[4 * k + 1]
        tag = keys[4 * k + 2]
        slot = np.int64(keys[4 * k + 3] >> shift)
        weight = np.uint64(weights[owners[k]])
        length = ends[k] - starts[k]
        status = DONE
        while True:
            at = 4 * slot
            found = slots[at + 2]
            if found == tag and slots[at] == low:
                if length <= INLINE_BYTES:
                    same = slots[at + 1] == high
                else:
                    same = equal_bytes(data, starts[k], arena, np.int64(slots[at + 1]), length)
                if same:
                    if slots[at + 3] > _MAX_COUNT - weight:
                        status = OVERFLOW
                    else:
                        slots[at + 3] += weight
                    break
            if found == np.uint64(0):
                if state[N_WORDS] >= state[MAX_WORDS]:
                    status = TABLE_FULL
                    break
                if length > INLINE_BYTES:
                    used = state[ARENA_USED]
                    if used + length > arena.size:
                        state[NEEDED] = length
                        status = ARENA_FULL
                        break
                    copy_bytes(data, starts[k], ends[k], arena, used)
                    state[ARENA_USED] = used + length
                    high = np.uint64(used)
                slots[at] = low
                slots[at + 1] = high
                slots[at + 2] = tag
                slots[at + 3] = weight
                state[N_WORDS] += 1
                break
            slot = (slot + 1) & mask
        if status != DONE:
            cursor[PIECE] = owners[k]
            cursor[POSITION] = starts[k]
            cursor[STOP] = ends[k]
            return status
    return DONE


@jit
def count_scanned(automaton, data, pieces, block, table, cursor, max_words):
    """Count the words that ``automaton`` finds in each piece of ``data``, from the cursor on.

    Returns DONE, PAUSED (about ``max_words`` are counted), TABLE_FULL, ARENA_FULL (``state[NEEDED]`` more bytes) or
    OVERFLOW (the word is ``data[cursor[POSITION]:cursor[STOP]]``). A piece of weight 0 is passed over.
    """
    starts, ends, owners = block.starts, block.ends, block.pieces
    n_pieces = pieces.starts.size
    enough = ends.size // 2  # a scan that finds little room would read ahead for nothing
    piece = cursor[PIECE]
    position = cursor[POSITION]
    counted = 0
    while piece < n_pieces:
        n = 0
        while n < enough and piece < n_pieces:
            stop = pieces.stops[piece]
            if position < stop and pieces.weights[piece] > 0:
                start = position
                found, position = scan(automaton, data, position, stop, ends[n:])
                for k in range(n, n + found):
                    starts[k] = start
                    start = ends[k]
                    owners[k] = piece
                n += found
            else:
                piece += 1
                position = pieces.starts[piece] if piece < n_pieces else 0
        status = _count_block(data, n, pieces, block, table, cursor)
        if status != DONE:
            return status
        cursor[PIECE] = piece
        cursor[POSITION] = position
        counted += n
        if counted >= max_words:
            return PAUSED
    return DONE


@jit
def count_given(data, pieces, block, table, cursor, max_words):
    """Count each piece as one word; otherwise like :func:`count_scanned`. Empty pieces are no words."""
    starts, ends, owners = block.starts, block.ends, block.pieces
    piece_starts, piece_stops, weights = pieces.starts, pieces.stops, pieces.weights
    n_pieces = piece_starts.size
    piece = cursor[PIECE]
    counted = 0
    while piece < n_pieces:
        n = 0
        while n < ends.size and piece < n_pieces:
            if piece_stops[piece] > piece_starts[piece] and weights[piece] > 0:
                starts[n] = piece_starts[piece]
                ends[n] = piece_stops[piece]
                owners[n] = piece
                n += 1
            piece += 1
        status = _count_block(data, n, pieces, block, table, cursor)
        if status != DONE:
            return status
        cursor[PIECE] = piece
        counted += n
        if counted >= max_words:
            return PAUSED
    return DONE


@jit
def rehash(old_slots, slots):
    """Move every word of ``old_slots`` into the empty, larger ``slots``."""
    shift = _slot_shift(slots)
    mask = np.int64(slots.size // 4 - 1)
    for old in range(0, old_slots.size, 4):
        tag = old_slots[old + 2]
        if tag == np.uint64(0):
            continue
        low = old_slots[old]
        high = old_slots[old + 1]
        is_long = np.int64(tag & _LENGTH_MASK) > INLINE_BYTES
        slot = np.int64(hash_key(low, np.uint64(0) if is_long else high, tag) >> shift)
        while slots[4 * slot + 2] != np.uint64(0):
            slot = (slot + 1) & mask
        slots[4 * slot] = low
        slots[4 * slot + 1] = high
        slots[4 * slot + 2] = tag
        slots[4 * slot + 3] = old_slots[old + 3]
