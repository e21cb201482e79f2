"""Encoding with BPE: find the words of a text, look each one up, merge the ones not seen before.

Two word tables (layout in ``word_table.py``). The vocabulary's is fixed: the tokens that stand for themselves when a word
spells them. The cache holds the words met so far; when it is full it is emptied, which costs time and never changes an id.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import prefetch
from tokctl.kernels.bpe_merge_word import (
    ALL_STEPS,
    SHORT_WORD,
    continue_merge,
    merge_short,
    start_merge,
    write_merged,
)
from tokctl.kernels.pattern_scan import scan
from tokctl.kernels.word_table import INLINE_BYTES, find_token, probe, slot_shift, word_key

DONE, PAUSED, OUT_FULL, LONG_WORD, UNKNOWN_BYTE = range(5)

MAX_CACHED_BYTES = 255
LONGEST_WORD = 1 << 16  # longer words are merged in slices, by the caller
BLOCK_WORDS = 512

# state of the cache
N_WORDS, MAX_WORDS, ARENA_USED, IDS_USED = range(4)
# cursor: segment, next byte, ids written, end of the word that stopped the run
SEGMENT, POSITION, N_OUT, STOP = range(4)

_40 = np.uint64(40)
_32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class Model(NamedTuple):
    """``byte_ids int32[256]`` (-1: not in the alphabet), ``pair_slots uint64[]``, the vocabulary's word table
    ``token_slots uint64[]`` and its ``token_arena uint8[]`` (the bytes of the vocabulary)."""

    byte_ids: np.ndarray
    pair_slots: np.ndarray
    token_slots: np.ndarray
    token_arena: np.ndarray


class Workspace(NamedTuple):
    """What one thread needs: the cache (``slots uint64[4 c]``, ``arena uint8[]``, ``ids uint32[]``, ``state int64[4]``)
    and the current block of words (``ends int64[n]``, ``keys uint64[3 n]``: low, high, hash)."""

    slots: np.ndarray
    arena: np.ndarray
    ids: np.ndarray
    state: np.ndarray
    ends: np.ndarray
    keys: np.ndarray


class Segments(NamedTuple):
    """Stretches of ``data`` in order: ``starts``, ``stops``, ``tokens`` int64[n]; ``n_ids int64[n]`` is filled.

    ``tokens[i] >= 0``: the segment is that one token, whatever its bytes. -1: text. No word crosses a segment.
    """

    starts: np.ndarray
    stops: np.ndarray
    tokens: np.ndarray
    n_ids: np.ndarray


def workspace(cache_slots: int = 1 << 19) -> Workspace:
    """An empty workspace; ``cache_slots`` is a power of two. The default takes at most 36 MB and holds 290,000 words."""
    max_words = cache_slots * 9 // 16
    return Workspace(
        np.zeros(4 * cache_slots, np.uint64),
        np.empty(16 * cache_slots, np.uint8),
        np.empty(4 * cache_slots, np.uint32),
        np.array([0, max_words, 0, 0], np.int64),
        np.empty(BLOCK_WORDS, np.int64),
        np.empty(3 * BLOCK_WORDS, np.uint64),
    )


@jit
def _emit(slots, ids, slot, out, n_out):
    """Write the ids of a found word and return the new length of ``out``."""
    value = slots[4 * slot + 3]
    n_ids = np.int64(slots[4 * slot + 2] >> _40)
    if n_ids == 1:
        out[n_out] = np.uint32(value)
    elif n_ids == 2:
        out[n_out] = np.uint32(value & _LOW)
        out[n_out + 1] = np.uint32(value >> _32)
    else:
        first = np.int64(value)
        for i in range(n_ids):
            out[n_out + i] = ids[first + i]
    return n_out + n_ids


@jit
def _remember(work, shift, data, start, length, low, high, h, slot, out, first, n_ids):
    """Put a word and its ids ``out[first : first + n_ids]`` into the cache, emptying it first when it is full."""
    slots, state = work.slots, work.state
    arena_bytes = length if length > INLINE_BYTES else 0
    arena_ids = n_ids if n_ids > 2 else 0
    if (
        state[N_WORDS] >= state[MAX_WORDS]
        or state[ARENA_USED] + arena_bytes > work.arena.size
        or state[IDS_USED] + arena_ids > work.ids.size
    ):
        slots[:] = np.uint64(0)
        state[N_WORDS] = 0
        state[ARENA_USED] = 0
        state[IDS_USED] = 0
        slot = np.int64(h >> shift)
    if arena_bytes > 0:
        used = state[ARENA_USED]
        work.arena[used : used + length] = data[start : start + length]
        state[ARENA_USED] = used + length
        high = np.uint64(used)
    if n_ids == 1:
        value = np.uint64(out[first])
    elif n_ids == 2:
        value = np.uint64(out[first]) | (np.uint64(out[first + 1]) << _32)
    else:
        used = state[IDS_USED]
        work.ids[used : used + n_ids] = out[first : first + n_ids]
        state[IDS_USED] = used + n_ids
        value = np.uint64(used)
    slots[4 * slot] = low
    slots[4 * slot + 1] = high
    slots[4 * slot + 2] = (np.uint64(n_ids) << _40) | np.uint64(length)
    slots[4 * slot + 3] = value
    state[N_WORDS] += 1


@jit
def _encode_unseen(data, start, stop, low, high, h, slot, shift, token_shift, model, work, space, out, n_out):
    """Encode a word that is not in the cache; the new length of ``out``, or -1 - position of a byte without an id."""
    length = stop - start
    first = n_out
    token_slot = probe(model.token_slots, model.token_arena, token_shift, data, start, length, low, high, h)
    if token_slot >= 0:
        out[n_out] = np.uint32(model.token_slots[4 * token_slot + 3])
        n_out += 1
    elif length <= SHORT_WORD:
        n = merge_short(data, start, stop, model.byte_ids, model.pair_slots, space)
        if n < 0:
            return -1 - (start - 1 - n)
        for i in range(n):
            out[n_out + i] = np.uint32(space.ids[i])
        n_out += n
    else:
        unknown = start_merge(data, start, stop, model.byte_ids, model.pair_slots, space)
        if unknown >= 0:
            return -1 - unknown
        continue_merge(model.pair_slots, space, ALL_STEPS)
        n_out = write_merged(space, out, n_out)
    if length <= MAX_CACHED_BYTES:
        _remember(work, shift, data, start, length, low, high, h, slot, out, first, n_out - first)
    return n_out


@jit
def _encode_block(data, start, n, segment, segments, model, work, space, out, cursor):
    """Encode the ``n`` words of a block that begins at ``start``; the cursor is left before the first word not encoded."""
    slots = work.slots
    shift = slot_shift(slots)
    token_shift = slot_shift(model.token_slots)
    begin = start
    for k in range(n):
        end = work.ends[k]
        low, high, h = word_key(data, begin, end)
        work.keys[3 * k] = low
        work.keys[3 * k + 1] = high
        work.keys[3 * k + 2] = h
        prefetch(slots, np.int64(h >> shift) * 4)
        begin = end
    n_out = cursor[N_OUT]
    first = n_out
    status = DONE
    begin = start
    for k in range(n):
        end = work.ends[k]
        if out.size - n_out < end - begin:
            status = OUT_FULL
            cursor[STOP] = end
            break
        low = work.keys[3 * k]
        high = work.keys[3 * k + 1]
        h = work.keys[3 * k + 2]
        slot = probe(slots, work.arena, shift, data, begin, end - begin, low, high, h)
        if slot >= 0:
            n_out = _emit(slots, work.ids, slot, out, n_out)
        else:
            if end - begin > LONGEST_WORD:
                token = find_token(model.token_slots, model.token_arena, token_shift, data, begin, end)
                if token < 0:
                    status = LONG_WORD
                    cursor[STOP] = end
                    break
            result = _encode_unseen(
                data, begin, end, low, high, h, -1 - slot, shift, token_shift, model, work, space, out, n_out
            )
            if result < 0:
                status = UNKNOWN_BYTE
                begin = -1 - result
                break
            n_out = result
        begin = end
    cursor[N_OUT] = n_out
    cursor[POSITION] = begin
    segments.n_ids[segment] += n_out - first
    return status


@jit
def encode_segments(automaton, data, segments, model, work, space, out, cursor, max_bytes):
    """Encode segments from the cursor on into ``out uint32[]``, the words of a text being those ``automaton`` finds.

    Returns DONE, PAUSED (about ``max_bytes`` are encoded), OUT_FULL (a word that ends at ``cursor[STOP]`` may not fit
    into the rest of ``out``; ids never outnumber bytes), LONG_WORD (``cursor[POSITION]`` .. ``cursor[STOP]`` is for
    the caller) or UNKNOWN_BYTE (at ``cursor[POSITION]``).
    """
    n_segments = segments.starts.size
    n_bytes = 0
    while cursor[SEGMENT] < n_segments:
        segment = cursor[SEGMENT]
        stop = segments.stops[segment]
        if segments.tokens[segment] >= 0:
            if cursor[N_OUT] >= out.size:
                cursor[STOP] = cursor[POSITION] + 1
                return OUT_FULL
            out[cursor[N_OUT]] = np.uint32(segments.tokens[segment])
            cursor[N_OUT] += 1
            segments.n_ids[segment] = 1
            cursor[POSITION] = stop
        while cursor[POSITION] < stop:
            start = cursor[POSITION]
            n, position = scan(automaton, data, start, stop, work.ends)
            status = _encode_block(data, start, n, segment, segments, model, work, space, out, cursor)
            if status != DONE:
                return status
            n_bytes += position - start
            if n_bytes >= max_bytes:
                return PAUSED
        cursor[SEGMENT] += 1
        if cursor[SEGMENT] < n_segments:
            cursor[POSITION] = segments.starts[cursor[SEGMENT]]
    return DONE


@jit
def encode_words(data, segments, model, work, space, out, cursor, max_bytes):
    """Like :func:`encode_segments` where each text segment is one word."""
    n_segments = segments.starts.size
    n_bytes = 0
    while cursor[SEGMENT] < n_segments:
        segment = cursor[SEGMENT]
        stop = segments.stops[segment]
        start = cursor[POSITION]
        if segments.tokens[segment] >= 0:
            if cursor[N_OUT] >= out.size:
                cursor[STOP] = start + 1
                return OUT_FULL
            out[cursor[N_OUT]] = np.uint32(segments.tokens[segment])
            cursor[N_OUT] += 1
            segments.n_ids[segment] = 1
        elif start < stop:
            work.ends[0] = stop
            status = _encode_block(data, start, 1, segment, segments, model, work, space, out, cursor)
            if status != DONE:
                return status
            n_bytes += stop - start
        cursor[SEGMENT] += 1
        if cursor[SEGMENT] < n_segments:
            cursor[POSITION] = segments.starts[cursor[SEGMENT]]
        if n_bytes >= max_bytes:
            return PAUSED
    return DONE
