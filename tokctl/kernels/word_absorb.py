"""Adding one word table to another, so that what several threads have counted is sorted once and not merged.

Slots are read in order, which is the order of the hashes, so that the other table is walked from start to end too.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import copy_bytes, equal_bytes
from tokctl.kernels.word_count import (
    ARENA_FULL,
    ARENA_USED,
    DONE,
    INLINE_BYTES,
    LENGTH_BITS,
    MAX_SHORT,
    MAX_WORDS,
    N_SHORT,
    N_WORDS,
    NEEDED,
    OVERFLOW,
    SHORT_FULL,
    TABLE_FULL,
    hash_key,
    shift_of,
    short_hash,
)

# cursor over the slots of the table that is absorbed; as rows of ``word_order``, the next ones are -1 - SHORT and SLOT
SHORT, SLOT = range(2)

_LENGTH_MASK = np.uint64((1 << LENGTH_BITS) - 1)
_MAX_COUNT = np.uint64(np.iinfo(np.int64).max)


@jit(borrows=True)
def absorb_short(source, target, cursor):
    """Add the short words of ``source`` (a ``word_count.Table``) to ``target``, from ``cursor[SHORT]`` on.

    Returns DONE, SHORT_FULL or OVERFLOW (the word is in the slot where the cursor stands). ``source`` is not changed.
    """
    theirs, ours, state = source.short, target.short, target.state
    shift = shift_of(ours.size // 2)
    mask = np.uint64(ours.size // 2 - 1)
    for slot in range(cursor[SHORT], theirs.size // 2):
        key = theirs[2 * slot]
        if key == np.uint64(0):
            continue
        count = theirs[2 * slot + 1]
        to = short_hash(key) >> shift
        while ours[to * np.uint64(2)] != key and ours[to * np.uint64(2)] != np.uint64(0):
            to = (to + np.uint64(1)) & mask
        at = to * np.uint64(2)
        if ours[at] == np.uint64(0):
            if state[N_SHORT] >= state[MAX_SHORT]:
                cursor[SHORT] = slot
                return SHORT_FULL
            ours[at] = key
            state[N_SHORT] += 1
        if ours[at + np.uint64(1)] > _MAX_COUNT - count:
            cursor[SHORT] = slot
            return OVERFLOW
        ours[at + np.uint64(1)] += count
    cursor[SHORT] = theirs.size // 2
    return DONE


@jit(borrows=True)
def absorb_slots(source, target, cursor):
    """The same for all other words, from ``cursor[SLOT]`` on: DONE, TABLE_FULL, ARENA_FULL or OVERFLOW."""
    theirs, their_arena = source.slots, source.arena
    ours, arena, state = target.slots, target.arena, target.state
    shift = shift_of(ours.size // 4)
    mask = np.uint64(ours.size // 4 - 1)
    for slot in range(cursor[SLOT], theirs.size // 4):
        tag = theirs[4 * slot + 2]
        if tag == np.uint64(0):
            continue
        low = theirs[4 * slot]
        high = theirs[4 * slot + 1]
        count = theirs[4 * slot + 3]
        length = np.int64(tag & _LENGTH_MASK)
        is_long = length > INLINE_BYTES
        to = hash_key(low, np.uint64(0) if is_long else high, tag) >> shift
        status = DONE
        while True:
            at = to * np.uint64(4)
            found = ours[at + np.uint64(2)]
            if found == tag and ours[at] == low:
                if is_long:
                    same = equal_bytes(their_arena, np.int64(high), arena, np.int64(ours[at + np.uint64(1)]), length)
                else:
                    same = ours[at + np.uint64(1)] == high
                if same:
                    if ours[at + np.uint64(3)] > _MAX_COUNT - count:
                        status = OVERFLOW
                    else:
                        ours[at + np.uint64(3)] += count
                    break
            if found == np.uint64(0):
                if state[N_WORDS] >= state[MAX_WORDS]:
                    status = TABLE_FULL
                    break
                if is_long:
                    used = state[ARENA_USED]
                    if used + length > arena.size:
                        state[NEEDED] = length
                        status = ARENA_FULL
                        break
                    copy_bytes(their_arena, np.int64(high), np.int64(high) + length, arena, used)
                    state[ARENA_USED] = used + length
                    high = np.uint64(used)
                ours[at] = low
                ours[at + np.uint64(1)] = high
                ours[at + np.uint64(2)] = tag
                ours[at + np.uint64(3)] = count
                state[N_WORDS] += 1
                break
            to = (to + np.uint64(1)) & mask
        if status != DONE:
            cursor[SLOT] = slot
            return status
    cursor[SLOT] = theirs.size // 4
    return DONE
