"""BPE-dropout (Provilkov et al. 2020): merging in which each possible merge is left out with probability p at each step.

The method draws for every pair of the word and then merges the survivor of lowest rank, the leftmost of several. Drawing in
order of rank, then position, and stopping at the first survivor gives the same, with as few draws as can be: those that
follow would decide nothing. A word is finished when all of its pairs are dropped in one step.

The draws are Philox 4x32-10 (Salmon et al. 2011): the numbers of a word are a function of a 64-bit key and of the word's
number in its text, so that no word depends on another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels.bpe_merge_word import (
    ALL_STEPS,
    HEAP_SIZE,
    N_SYMBOLS,
    MergeSpace,
    _push,
    _sift_down,
    merge_space,
    start_merge,
    write_merged,
)
from tokctl.kernels.merge_table import NO_PAIR, find_pair, merge_shift

DONE, PAUSED, OUT_FULL, LONG_WORD, UNKNOWN_BYTE = range(5)

# cursor: next word of the block, ids written, place of a byte without an id
WORD, N_OUT, AT = range(3)
# draws: key, number of the word in its text, draws so far, dropped entries waiting
KEY, OCCURRENCE, N_DRAWS, N_DROPPED = range(4)

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


class DropSpace(NamedTuple):
    """Working arrays for words of at most n bytes: ``merge``; ``dropped uint64[2 n]``, the heap's entries that were dropped in
    this step; ``draws int64[4]``; ``lanes uint64[4]``, the current block of draws."""

    merge: MergeSpace
    dropped: np.ndarray
    draws: np.ndarray
    lanes: np.ndarray


def drop_space(n_bytes: int) -> DropSpace:
    """Working arrays for one word of at most ``n_bytes``: about 52 bytes for each byte of the word."""
    return DropSpace(
        merge_space(n_bytes), np.empty(2 * n_bytes, np.uint64), np.zeros(4, np.int64), np.zeros(4, np.uint64)
    )


@jit
def philox(key, block, occurrence, lanes):
    """Fill ``lanes uint64[4]`` with the 32-bit numbers of Philox 4x32-10 for the counter (block, occurrence), low halves first."""
    c0, c1 = np.uint64(block) & _LOW, np.uint64(block) >> _32
    c2, c3 = np.uint64(occurrence) & _LOW, np.uint64(occurrence) >> _32
    k0, k1 = np.uint64(key) & _LOW, np.uint64(key) >> _32
    for _ in range(10):
        first = _M0 * c0
        second = _M1 * c2
        c0 = (second >> _32) ^ c1 ^ k0
        c1 = second & _LOW
        c2 = (first >> _32) ^ c3 ^ k1
        c3 = first & _LOW
        k0 = (k0 + _W0) & _LOW
        k1 = (k1 + _W1) & _LOW
    lanes[0], lanes[1], lanes[2], lanes[3] = c0, c1, c2, c3


@jit
def start_drop(data, start, stop, byte_ids, merge_table, key, occurrence, space):
    """Set ``space`` up for the word ``data[start:stop]``; -1, or the first position whose byte has no id."""
    space.draws[KEY] = key
    space.draws[OCCURRENCE] = occurrence
    space.draws[N_DRAWS] = 0
    space.draws[N_DROPPED] = 0
    return start_merge(data, start, stop, byte_ids, merge_table, space.merge)


@jit
def continue_drop(merge_table, threshold, space, n_steps):
    """Take at most ``n_steps`` entries off the heap; whether the word is finished.

    A draw below ``threshold uint64`` (p * 2**32) drops its merge for this step.
    """
    merge = space.merge
    ids, following, preceding, values, heap = merge.ids, merge.following, merge.preceding, merge.values, merge.heap
    dropped, lanes = space.dropped, space.lanes
    shift = merge_shift(merge_table)
    size = merge.state[HEAP_SIZE]
    n = merge.state[N_SYMBOLS]
    n_draws = space.draws[N_DRAWS]
    n_dropped = space.draws[N_DROPPED]
    for _ in range(n_steps):
        if size == 0:
            break
        item = heap[0]
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            _sift_down(heap, size, 0)
        at = np.int64(item & _LOW)
        value = values[at]
        if value == NO_PAIR or (value >> _32) != (item >> _32):  # stale, as in continue_merge; takes no draw
            continue
        if n_draws & 3 == 0:
            philox(space.draws[KEY], n_draws >> 2, space.draws[OCCURRENCE], lanes)
        number = lanes[n_draws & 3]
        n_draws += 1
        if number < threshold:
            dropped[n_dropped] = item
            n_dropped += 1
            continue
        swallowed = following[at]
        after = following[swallowed]
        ids[at] = np.int32(value & _LOW)
        n -= 1
        values[swallowed] = NO_PAIR
        following[at] = after
        values[at] = NO_PAIR
        if after >= 0:
            preceding[after] = at
        for k in range(n_dropped):  # a new step: what was dropped may be merged again
            size = _push(heap, size, dropped[k])
        n_dropped = 0
        place = at
        for _ in range(2):  # the pair that begins here, then the one before it
            if place >= 0 and following[place] >= 0:
                value = find_pair(merge_table, shift, ids[place], ids[following[place]])
                values[place] = value
                if value != NO_PAIR:
                    size = _push(heap, size, (value & ~_LOW) | np.uint64(place))
            place = np.int64(preceding[at])
    merge.state[HEAP_SIZE] = size
    merge.state[N_SYMBOLS] = n
    space.draws[N_DRAWS] = n_draws
    space.draws[N_DROPPED] = n_dropped
    return size == 0


@jit
def drop_words(
    data, start, ends, key, first_occurrence, byte_ids, merge_table, threshold, space, out, cursor, max_bytes
):
    """Encode the words that end at ``ends int64[n]``, the first one beginning at ``start``, from ``cursor[WORD]`` on.

    Word k of the block is number ``first_occurrence + k`` of its text. Returns DONE, PAUSED (about ``max_bytes`` are done),
    OUT_FULL (the next word may not fit into the rest of ``out uint32[]``), LONG_WORD (the next word is longer than ``space``
    has room for) or UNKNOWN_BYTE (at ``cursor[AT]``).
    """
    n_out = cursor[N_OUT]
    status = DONE
    n_bytes = 0
    word = cursor[WORD]
    while word < ends.size:
        begin = start if word == 0 else ends[word - 1]
        length = ends[word] - begin
        if length > space.merge.ids.size:
            status = LONG_WORD
            break
        if out.size - n_out < length:
            status = OUT_FULL
            break
        if n_bytes >= max_bytes:
            status = PAUSED
            break
        unknown = start_drop(data, begin, ends[word], byte_ids, merge_table, key, first_occurrence + word, space)
        if unknown >= 0:
            cursor[AT] = unknown
            status = UNKNOWN_BYTE
            break
        continue_drop(merge_table, threshold, space, ALL_STEPS)
        n_out = write_merged(space.merge, out, n_out)
        n_bytes += length
        word += 1
    cursor[WORD] = word
    cursor[N_OUT] = n_out
    return status
