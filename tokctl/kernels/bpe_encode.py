"""Encoding with BPE: find the words of a text, look each one up, merge the ones not seen before.

Words go through in groups: first the keys of a whole group are made and their places in the cache prefetched, then the ids
are written. A word that the cache doesn't have is looked for in the vocabulary (the tokens that stand for themselves when
a word spells them), else merged; then the cache has it.
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
from tokctl.kernels.merge_table import MergeTable
from tokctl.kernels.pattern_scan import scan
from tokctl.kernels.word_cache import KEY_WORDS, WordCache, emit_cached, first_place, is_cached, remember, word_cache
from tokctl.kernels.word_table import TokenTable, find_token, inline_key, is_inline, other_key, shift_of, token_of_key

DONE, PAUSED, OUT_FULL, LONG_WORD, UNKNOWN_BYTE = range(5)

LONGEST_WORD = 1 << 16  # longer words are merged in slices, by the caller
BLOCK_WORDS = 1024  # found by one scan
GROUP = 64  # looked up together: few enough that what was prefetched is still there
SPARE_IDS = 4  # ``out`` has room for these beyond one id a byte

# cursor: segment, next byte, ids written, end of what stopped the run
SEGMENT, POSITION, N_OUT, STOP = range(4)

_1 = np.uint64(1)


class Model(NamedTuple):
    """``byte_ids int32[256]`` (-1: not in the alphabet), ``byte_pairs uint64[65536]`` (``bpe_merge_word``), the table of merges
    and the vocabulary's word table."""

    byte_ids: np.ndarray
    byte_pairs: np.ndarray
    merge_table: MergeTable
    token_table: TokenTable


class Workspace(NamedTuple):
    """What one thread needs: its cache and the current block of words.

    Word k of the block is ``data[bounds[k]:bounds[k + 1]]``, int64[n + 1]; ``ends`` is ``bounds[1:]``, in the same memory.
    ``keys uint64[4 * GROUP]``; ``marks int64[n + 1]``: how many of the block's words each of its segments closes.
    """

    cache: WordCache
    bounds: np.ndarray
    ends: np.ndarray
    keys: np.ndarray
    marks: np.ndarray


class Segments(NamedTuple):
    """Stretches of ``data`` in order: ``starts``, ``stops``, ``tokens`` int64[n]; ``n_ids int64[n]`` is filled.

    ``tokens[i] >= 0``: the segment is that one token, whatever its bytes. -1: text. No word crosses a segment.
    """

    starts: np.ndarray
    stops: np.ndarray
    tokens: np.ndarray
    n_ids: np.ndarray


def workspace(cache: WordCache | None = None) -> Workspace:
    """An empty workspace, or one with the given cache."""
    bounds = np.zeros(BLOCK_WORDS + 1, np.int64)
    return Workspace(
        word_cache() if cache is None else cache,
        bounds,
        bounds[1:],
        np.zeros(KEY_WORDS * GROUP, np.uint64),
        np.zeros(BLOCK_WORDS + 1, np.int64),
    )


@jit(inner=True, borrows=True)
def _make_keys(data, bounds, first, last, slots, shift, keys):
    """Keys and first places of the words first .. last; returns the first word that is too long to be merged here, or last."""
    for k in range(first, last):
        begin = np.uint64(bounds[k])
        length = np.uint64(bounds[k + _1]) - begin
        if is_inline(data, begin, length):
            low, high = inline_key(data, begin, length)
        elif length <= np.uint64(LONGEST_WORD):
            low, high = other_key(data, begin, length)
        else:
            return k
        place = first_place(low, high, shift)
        prefetch(slots, place)
        row = np.uint64(KEY_WORDS) * (k - first)
        keys[row] = low
        keys[row + _1] = high
        keys[row + np.uint64(2)] = place
    return last


@jit(inner=True, borrows=True)
def _encode_unseen(data, start, stop, low, high, model, space, out, n_out):
    """Encode a word that is not in the cache; the new length of ``out``, or -1 - position of a byte without an id."""
    token = token_of_key(model.token_table, data, start, stop - start, low, high)
    if token >= 0:
        out[n_out] = np.uint32(token)
        return n_out + 1
    if stop - start <= SHORT_WORD:
        n = merge_short(data, start, stop, model.byte_ids, model.byte_pairs, model.merge_table, space)
        if n < 0:
            return -1 - (start - 1 - n)
        for i in range(n):
            out[n_out + i] = np.uint32(space.ids[i])
        return n_out + n
    unknown = start_merge(data, start, stop, model.byte_ids, model.merge_table, space)
    if unknown >= 0:
        return -1 - unknown
    continue_merge(model.merge_table, space, ALL_STEPS)
    return write_merged(space, out, n_out)


@jit(inner=True, borrows=True)
def _encode_others(data, first, k, last, model, work, space, out, n_out):
    """Encode the words from k on up to the first that the cache has in its first place: ``(k, n_out, unknown)``.

    ``unknown``: -1, or the position of a byte without an id in word k.
    """
    cache, bounds, keys = work.cache, work.bounds, work.keys
    written = np.int64(n_out)
    while k < last:
        row = np.uint64(KEY_WORDS) * (k - first)
        low, high, place = keys[row], keys[row + _1], keys[row + np.uint64(2)]
        begin, end = bounds[k], bounds[k + _1]
        if is_cached(cache.slots, place, cache.arena, data, begin, end - begin, low, high):
            break
        result = _encode_unseen(data, begin, end, low, high, model, space, out, written)
        if result < 0:
            return k, np.uint64(written), -1 - result
        remember(cache, data, begin, end - begin, low, high, place, out, written, result - written)
        written = result
        k += _1
    return k, np.uint64(written), np.int64(-1)


@jit(inner=True, borrows=True)
def _encode_block(data, segments, n_segments, model, work, space, out, cursor):
    """Encode the words of the block, which are those of ``n_segments`` segments from the cursor on, as far as they go.

    Returns a status of :func:`encode_segments`. With DONE the caller moves the cursor on; else it is left before the first
    word not encoded.
    """
    cache, bounds, keys, marks, n_ids = work.cache, work.bounds, work.keys, work.marks, segments.n_ids
    slots, arena, ids = cache.slots, cache.arena, cache.ids
    shift = shift_of(slots.size // 4)
    segment = cursor[SEGMENT]
    mark = 0
    n_out = np.uint64(cursor[N_OUT])
    first_out = n_out
    n = np.uint64(marks[n_segments - 1])
    status = DONE
    first = np.uint64(0)
    k = first
    position = bounds[0]
    while k < n:
        first = k
        last = _make_keys(data, bounds, first, min(n, first + np.uint64(GROUP)), slots, shift, keys)
        is_long = last == first
        if is_long:
            last = first + _1
        if np.uint64(out.size) < n_out + np.uint64(bounds[last] - bounds[first] + SPARE_IDS):
            status = OUT_FULL
            cursor[STOP] = bounds[last]
            break
        while k < last:
            while np.uint64(marks[mark]) <= k:
                n_ids[segment + mark] += np.int64(n_out - first_out)
                first_out = n_out
                mark += 1
            limit = min(last, np.uint64(marks[mark]))
            if is_long:
                token = find_token(model.token_table, data, bounds[k], bounds[last])
                if token < 0:
                    status = LONG_WORD
                    cursor[STOP] = bounds[last]
                    break
                out[n_out] = np.uint32(token)
                n_out += _1
                k = last
                break
            k, n_out = emit_cached(data, bounds, keys, first, k, limit, slots, arena, ids, out, n_out)
            if k < limit:
                k, n_out, position = _encode_others(data, first, k, limit, model, work, space, out, n_out)
                if position >= 0:
                    status = UNKNOWN_BYTE
                    break
        if status != DONE:
            break
    n_ids[segment + mark] += np.int64(n_out - first_out)
    cursor[N_OUT] = np.int64(n_out)
    if status != DONE:
        cursor[SEGMENT] = segment + mark
        cursor[POSITION] = position if status == UNKNOWN_BYTE else bounds[k]
    return status


@jit(inner=True, borrows=True)
def _encode_token(segments, out, cursor):
    """Write the one id of a segment that is a token; whether it fits."""
    segment = cursor[SEGMENT]
    if cursor[N_OUT] >= out.size:
        cursor[STOP] = cursor[POSITION] + 1
        return False
    out[cursor[N_OUT]] = np.uint32(segments.tokens[segment])
    cursor[N_OUT] += 1
    segments.n_ids[segment] = 1
    return True


@jit(inner=True, borrows=True)
def _go_to(segments, segment, cursor):
    """Move the cursor to the start of a segment."""
    cursor[SEGMENT] = segment
    if segment < segments.starts.size:
        cursor[POSITION] = segments.starts[segment]


@jit(borrows=True)
def encode_segments(automaton, data, segments, model, work, space, out, cursor, max_bytes):
    """Encode segments from the cursor on into ``out uint32[]``, the words of a text being those ``automaton`` finds.

    Returns DONE, PAUSED (about ``max_bytes`` are encoded), OUT_FULL (the text up to ``cursor[STOP]`` may not fit into the
    rest of ``out``: ids never outnumber bytes, and ``SPARE_IDS`` more are wanted), LONG_WORD (``cursor[POSITION]`` ..
    ``cursor[STOP]`` is for the caller) or UNKNOWN_BYTE (at ``cursor[POSITION]``).
    """
    starts, stops, tokens = segments.starts, segments.stops, segments.tokens
    n_segments = starts.size
    n_bytes = 0
    while cursor[SEGMENT] < n_segments:
        segment = cursor[SEGMENT]
        if tokens[segment] >= 0:
            if not _encode_token(segments, out, cursor):
                return OUT_FULL
            _go_to(segments, segment + 1, cursor)
            continue
        # A block: the words of as many adjoining segments as fill half of it, so that each scan has room to read ahead.
        position = cursor[POSITION]
        work.bounds[0] = position
        n_words = 0
        n_marks = 0
        is_split = False
        while True:
            if position < stops[segment]:
                found, position = scan(automaton, data, position, stops[segment], work.ends[n_words:])
                n_words += found
            work.marks[n_marks] = n_words
            n_marks += 1
            is_split = position < stops[segment]
            if is_split:
                break
            segment += 1
            if segment == n_segments or tokens[segment] >= 0 or starts[segment] != position:
                break
            if 2 * n_words > BLOCK_WORDS or n_marks == work.marks.size:
                break
        n_bytes += position - cursor[POSITION]
        status = _encode_block(data, segments, n_marks, model, work, space, out, cursor)
        if status != DONE:
            return status
        if is_split:
            cursor[SEGMENT] = segment
            cursor[POSITION] = position
        else:
            _go_to(segments, segment, cursor)
        if n_bytes >= max_bytes:
            return PAUSED
    return DONE


@jit(borrows=True)
def encode_words(data, segments, model, work, space, out, cursor, max_bytes):
    """Like :func:`encode_segments` where each text segment is one word."""
    n_segments = segments.starts.size
    n_bytes = 0
    while cursor[SEGMENT] < n_segments:
        segment = cursor[SEGMENT]
        start, stop = cursor[POSITION], segments.stops[segment]
        if segments.tokens[segment] >= 0:
            if not _encode_token(segments, out, cursor):
                return OUT_FULL
        elif start < stop:
            work.bounds[0] = start
            work.bounds[1] = stop
            work.marks[0] = 1
            status = _encode_block(data, segments, 1, model, work, space, out, cursor)
            if status != DONE:
                return status
            n_bytes += stop - start
        _go_to(segments, segment + 1, cursor)
        if n_bytes >= max_bytes:
            return PAUSED
    return DONE
