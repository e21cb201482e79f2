"""Counting words: scan, hash and probe in blocks, over two open-addressing tables on flat arrays.

Most words of a text are short. A word of at most 7 bytes without a slice takes a slot of 16 bytes, four to a cache line:

    short[2 s]      the bytes, zero-padded | length << 56; 0 = empty     (words are never empty)
    short[2 s + 1]  count, an int64 that is never negative

All other words take a slot of 32 bytes:

    slots[4 s]      first 8 bytes of the word          | of a long word: its 64-bit hash
    slots[4 s + 1]  bytes 8..16, zero-padded           | of a long word: where it starts in the arena
    slots[4 s + 2]  slice << 40 | length; 0 = empty
    slots[4 s + 3]  count

Words of at most 16 bytes are the slot; only longer ones are compared with bytes kept elsewhere. A (word, slice) pair
is one key, so that a corpus of many slices costs only the pairs that occur. Slice 0 counts as none.

A block of words is scanned and hashed before the first of them is probed: by then the prefetched lines have arrived.
Every kernel stops when something is full and can be called again: the cursor stands before the first word not counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import copy_bytes, equal_bytes, load8, load_short, prefetch
from tokctl.kernels.pattern_scan import scan

DONE, PAUSED, TABLE_FULL, SHORT_FULL, ARENA_FULL, OVERFLOW = range(6)

LENGTH_BITS = 40
INLINE_BYTES = 16
SHORT_BYTES = 7

# state of a table
N_WORDS, MAX_WORDS, N_SHORT, MAX_SHORT, ARENA_USED, NEEDED = range(6)
# cursor over the pieces; the word that stopped the count is data[POSITION:STOP]
PIECE, POSITION, STOP = range(3)

_LENGTH_MASK = np.uint64((1 << LENGTH_BITS) - 1)
_MAX_COUNT = np.uint64(np.iinfo(np.int64).max)
_MIX_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)
_MIX_3 = np.uint64(0xA0761D6478BD642F)
_ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
PLACE_BITS = 20
_PLACE_MASK = np.int64((1 << PLACE_BITS) - 1)


class Table(NamedTuple):
    """The hash tables, each capacity a power of two: ``short uint64[2 * capacity]``, ``slots uint64[4 * capacity]``;
    ``arena uint8[]``, ``state int64[6]``."""

    short: np.ndarray
    slots: np.ndarray
    arena: np.ndarray
    state: np.ndarray


class Block(NamedTuple):
    """The words between scanning and probing: ``ends int64[n]``; of the short ones ``short uint64[3 n]`` (key, slot, place),
    of the others ``keys uint64[4 n]`` (low, high, tag, slot) and ``places int64[n]``; a place is piece << PLACE_BITS | number
    in the block. ``starts int64[n]``. Arrays of the last two kinds have one entry to spare."""

    ends: np.ndarray
    starts: np.ndarray
    short: np.ndarray
    keys: np.ndarray
    places: np.ndarray


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


@jit(inner=True, borrows=True)
def hash_key(low, high, tag):
    """64-bit hash of a key; the table takes its top bits. The high half is not mixed in for long words (it is an address)."""
    h = (low ^ (tag * _MIX_3)) * _MIX_1
    h = ((h ^ (h >> np.uint64(32))) ^ high) * _MIX_2
    return (h ^ (h >> np.uint64(32))) * _MIX_1


@jit(inner=True, borrows=True)
def short_hash(key):
    """64-bit hash of a short word's key."""
    return (key ^ (key >> np.uint64(31))) * _MIX_1


@jit(inner=True, borrows=True)
def shift_of(capacity):
    """How far a hash is shifted down to number the slots of a table of ``capacity``."""
    shift = 64
    while capacity > 1:
        capacity >>= 1
        shift -= 1
    return np.uint64(shift)


@jit(inner=True, borrows=True)
def _short_key(data, start, length):
    """The key of a word of 1 to 7 bytes; of a longer one, a key that means nothing."""
    if start + 8 <= data.size:
        n = min(length, SHORT_BYTES)
        low = load8(data, start) & (_ALL_BITS >> np.uint64(64 - 8 * n))
    else:
        low = np.uint64(0)
        for i in range(min(length, SHORT_BYTES)):
            low |= np.uint64(data[start + i]) << np.uint64(8 * i)
    return low | (np.uint64(length) << np.uint64(56))


@jit(inner=True, borrows=True)
def _inline_words(data, start, length):
    """``(low, high)``: the bytes of a word of at most 16 bytes, zero-padded; like ``load_short``, but without a branch
    that only the length of the word decides."""
    if length < 8 or start + 16 > data.size:
        return load_short(data, start, start + length)
    half = np.uint64(4 * (length - 8))  # a shift by 64 is none, so that it is made in two steps
    return load8(data, start), load8(data, start + 8) & ~((_ALL_BITS << half) << half)


@jit(inner=True, borrows=True)
def _hash_words(
    data, start, first, last, piece, longest_short, ends, starts, short_words, places, short, shift, n_short, n_long
):
    """Hash the words ``first .. last-1`` of the block, which follow each other from ``start`` on in one piece, and ask for
    the lines of their slots; longer words are only listed. Returns (n_short, n_long), how many there are of both kinds in
    the block so far. No branch depends on the length of a word: it would be mispredicted too often.
    """
    place = np.int64(piece) << np.int64(PLACE_BITS)
    for k in range(np.uint64(first), np.uint64(last)):
        end = ends[k]
        length = end - start
        key = _short_key(data, start, length)
        slot = short_hash(key) >> shift
        prefetch(short, np.int64(slot) * 2)
        at = np.uint64(3 * n_short)
        short_words[at] = key
        short_words[at + np.uint64(1)] = slot
        short_words[at + np.uint64(2)] = np.uint64(place) | k
        places[np.uint64(n_long)] = place | np.int64(k)
        is_long = np.int64(length > longest_short)
        n_long += is_long
        n_short += 1 - is_long
        starts[k] = start
        start = end
    return n_short, n_long


@jit(inner=True, borrows=True)
def _hash_long_words(data, n_long, slices, block, slots):
    """Hash the longer words of the block and ask for the lines of their slots."""
    starts, ends, keys, places = block.starts, block.ends, block.keys, block.places
    shift = shift_of(slots.size // 4)
    for j in range(n_long):
        k = places[j] & _PLACE_MASK
        start = starts[k]
        length = ends[k] - start
        tag = np.uint64(slices[places[j] >> np.int64(PLACE_BITS)]) << np.uint64(LENGTH_BITS) | np.uint64(length)
        if length <= INLINE_BYTES:
            low, high = _inline_words(data, start, length)
        else:
            low, high = hash_long(data, start, start + length), np.uint64(0)
        slot = hash_key(low, high, tag) >> shift
        prefetch(slots, np.int64(slot) * 4)
        keys[4 * j] = low
        keys[4 * j + 1] = high
        keys[4 * j + 2] = tag
        keys[4 * j + 3] = slot


@jit(inner=True, borrows=True)
def _count_block(data, n_short, n_long, pieces, block, table, cursor):
    """Count the hashed words of the block; on anything but DONE the cursor stands at the first word not counted.

    TABLE_FULL and SHORT_FULL, where there may be too little room for all of them, leave the cursor as it was.
    """
    # Arrays out of their tuples first: numba counts a reference each time that one is taken out.
    short, slots, arena, state = table.short, table.slots, table.arena, table.state
    starts, ends, short_words, keys, places = block.starts, block.ends, block.short, block.keys, block.places
    weights = pieces.weights
    if state[N_SHORT] + n_short > state[MAX_SHORT]:
        return SHORT_FULL
    if state[N_WORDS] + n_long > state[MAX_WORDS]:
        return TABLE_FULL
    _hash_long_words(data, n_long, pieces.slices, block, slots)
    status = DONE
    stopped = np.int64(1) << np.int64(62)  # the place of the word that could not be counted
    mask = np.uint64(slots.size // 4 - 1)
    for j in range(n_long):
        low = keys[4 * j]
        high = keys[4 * j + 1]
        tag = keys[4 * j + 2]
        slot = keys[4 * j + 3]
        k = places[j] & _PLACE_MASK
        length = ends[k] - starts[k]
        weight = np.uint64(weights[places[j] >> np.int64(PLACE_BITS)])
        while True:
            at = slot * np.uint64(4)
            found = slots[at + np.uint64(2)]
            if found == tag and slots[at] == low:
                if length <= INLINE_BYTES:
                    same = slots[at + np.uint64(1)] == high
                else:
                    same = equal_bytes(data, starts[k], arena, np.int64(slots[at + np.uint64(1)]), length)
                if same:
                    if slots[at + np.uint64(3)] > _MAX_COUNT - weight:
                        status = OVERFLOW
                    else:
                        slots[at + np.uint64(3)] += weight
                    break
            if found == np.uint64(0):
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
                slots[at + np.uint64(1)] = high
                slots[at + np.uint64(2)] = tag
                slots[at + np.uint64(3)] = weight
                state[N_WORDS] += 1
                break
            slot = (slot + np.uint64(1)) & mask
        if status != DONE:
            stopped = places[j]
            break
    n_new = 0
    mask = np.uint64(short.size // 2 - 1)
    for j in range(n_short):
        place = np.int64(short_words[3 * j + 2])
        if place >= stopped:
            break
        key = short_words[3 * j]
        slot = short_words[3 * j + 1]
        weight = np.uint64(weights[place >> np.int64(PLACE_BITS)])
        while True:
            at = slot * np.uint64(2)
            found = short[at]
            if found == key:
                break
            if found == np.uint64(0):
                short[at] = key
                n_new += 1
                break
            slot = (slot + np.uint64(1)) & mask
        if short[at + np.uint64(1)] > _MAX_COUNT - weight:
            status = OVERFLOW
            stopped = place
            break
        short[at + np.uint64(1)] += weight
    state[N_SHORT] += n_new
    if status != DONE:
        k = stopped & _PLACE_MASK
        cursor[PIECE] = stopped >> np.int64(PLACE_BITS)
        cursor[POSITION] = starts[k]
        cursor[STOP] = ends[k]
    return status


@jit
def count_scanned(automaton, data, pieces, block, table, cursor, max_words):
    """Count the words that ``automaton`` finds in each piece of ``data``, from the cursor on.

    Returns DONE, PAUSED (about ``max_words`` are counted), TABLE_FULL, SHORT_FULL, ARENA_FULL (``state[NEEDED]`` more bytes)
    or OVERFLOW (the word is ``data[cursor[POSITION]:cursor[STOP]]``). A piece of weight 0 is passed over.
    """
    # Arrays out of their tuples first: numba counts a reference each time that one is taken out.
    ends, word_starts, short_words, places, short = block.ends, block.starts, block.short, block.places, table.short
    shift = shift_of(short.size // 2)
    starts, stops, weights, slices = pieces.starts, pieces.stops, pieces.weights, pieces.slices
    n_pieces = starts.size
    enough = ends.size // 2  # a scan that finds little room would read ahead for nothing
    piece = cursor[PIECE]
    position = cursor[POSITION]
    counted = 0
    while piece < n_pieces:
        n, n_short, n_long = np.int64(0), np.int64(0), np.int64(0)
        while n < enough and piece < n_pieces:
            stop = stops[piece]
            if position < stop and weights[piece] > 0:
                start = position
                found, position = scan(automaton, data, position, stop, ends[n:])
                longest_short = SHORT_BYTES if slices[piece] == 0 else 0
                n_short, n_long = _hash_words(
                    data,
                    start,
                    n,
                    n + found,
                    piece,
                    longest_short,
                    ends,
                    word_starts,
                    short_words,
                    places,
                    short,
                    shift,
                    n_short,
                    n_long,
                )
                n += found
            else:
                piece += 1
                position = starts[piece] if piece < n_pieces else 0
        status = _count_block(data, n_short, n_long, pieces, block, table, cursor)
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
    ends, word_starts, short_words, places, short = block.ends, block.starts, block.short, block.places, table.short
    shift = shift_of(short.size // 2)
    starts, stops, weights, slices = pieces.starts, pieces.stops, pieces.weights, pieces.slices
    n_pieces = starts.size
    piece = cursor[PIECE]
    counted = 0
    while piece < n_pieces:
        n, n_short, n_long = np.int64(0), np.int64(0), np.int64(0)
        while n < ends.size and piece < n_pieces:
            if stops[piece] > starts[piece] and weights[piece] > 0:
                ends[n] = stops[piece]
                longest_short = SHORT_BYTES if slices[piece] == 0 else 0
                n_short, n_long = _hash_words(
                    data,
                    starts[piece],
                    n,
                    n + 1,
                    piece,
                    longest_short,
                    ends,
                    word_starts,
                    short_words,
                    places,
                    short,
                    shift,
                    n_short,
                    n_long,
                )
                n += 1
            piece += 1
        status = _count_block(data, n_short, n_long, pieces, block, table, cursor)
        if status != DONE:
            return status
        cursor[PIECE] = piece
        counted += n
        if counted >= max_words:
            return PAUSED
    return DONE


@jit(borrows=True)
def rehash_short(old_short, short):
    """Move every word of ``old_short`` into the empty, larger ``short``."""
    shift = shift_of(short.size // 2)
    mask = np.int64(short.size // 2 - 1)
    for old in range(0, old_short.size, 2):
        key = old_short[old]
        if key == np.uint64(0):
            continue
        slot = np.int64(short_hash(key) >> shift)
        while short[2 * slot] != np.uint64(0):
            slot = (slot + 1) & mask
        short[2 * slot] = key
        short[2 * slot + 1] = old_short[old + 1]


@jit(borrows=True)
def rehash(old_slots, slots):
    """Move every word of ``old_slots`` into the empty, larger ``slots``."""
    shift = shift_of(slots.size // 4)
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
