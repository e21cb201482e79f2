"""The symbol pool of BPE fitting: the words as base symbols, and every pair's first occurrence list.

``pool`` is ``[n, 2]`` (int32, or int64 beyond 2**31 positions): column SYMBOL holds a token's id at its first and at its
last byte, so that both neighbours of a token are one look away; column WEIGHT the count of its word, or ``-1 - i`` for a
count ``heavy[i]`` that is too large for the column (``heavy int64[k]``). One separator stands before, between and after the
words, so byte ``i`` of the data in word ``w`` is at pool position ``i + w + 1``.
"""

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels.pair_table import (
    COUNT,
    EMPTY,
    KEY,
    LENGTH,
    START,
    is_listed,
    pair_hash,
    pair_key,
    put,
    slot_of,
)

SYMBOL = 0
WEIGHT = 1
SEPARATOR = -1  # between words; also fills words whose count is zero
INSIDE = -2  # a position that has become the inside of a token


@jit(inner=True, borrows=True)
def weight_of(pool, heavy, position):
    """The count of the word to which a byte at ``position`` belongs."""
    weight = np.int64(pool[position, WEIGHT])
    return heavy[-1 - weight] if weight < 0 else weight


@jit(inner=True, borrows=True)
def data_position(offsets, position):
    """Where the byte at a position of the pool is in the data."""
    low, high = np.int64(0), np.int64(offsets.shape[0] - 1)
    while high - low > 1:
        word = (low + high) >> 1
        if offsets[word] + word + 1 <= position:
            low = word
        else:
            high = word
    return position - low - 1


@jit(borrows=True)
def fill_pool(data, offsets, counts, weights, base_ids, first, last, pool, windows):
    """Write words ``first .. last-1`` to the pool; returns -1, or the data position of a byte without a base id.

    ``weights`` are the words' counts as column WEIGHT holds them; ``base_ids`` is int32[256], -1 for a byte that is not in the
    alphabet. To ``windows`` int64[n_base, n_base, 2] are added the occurrences of each pair, and their words' counts.
    """
    for word in range(first, last):
        stop = offsets[word + 1]
        count, weight = counts[word], weights[word]
        before = np.int64(SEPARATOR)
        for i in range(offsets[word], stop):
            symbol = np.int64(base_ids[data[i]])
            if symbol < 0:
                return i
            if count == 0:
                symbol = np.int64(SEPARATOR)
            position = i + word + 1
            pool[position, SYMBOL] = symbol
            pool[position, WEIGHT] = weight
            if before >= 0:
                windows[before, symbol, 0] += 1
                windows[before, symbol, 1] += count
            before = symbol
        pool[stop + word + 1, SYMBOL] = SEPARATOR
        pool[stop + word + 1, WEIGHT] = 0
    return -1


@jit(borrows=True)
def place_windows(data, offsets, counts, base_ids, first, last, cursors, occurrences):
    """Write the positions of the windows in words ``first .. last-1`` to their pairs' slices, in ascending order.

    ``cursors`` is int64[n_base, n_base]: the next free entry of the pair's slice, negative for pairs that have none.
    """
    for word in range(first, last):
        start, stop = offsets[word], offsets[word + 1]
        if start == stop or counts[word] == 0:
            continue
        left = base_ids[data[start]]
        for i in range(start + 1, stop):
            right = base_ids[data[i]]
            cursor = cursors[left, right]
            if cursor >= 0:
                occurrences[cursor] = i + word
                cursors[left, right] = cursor + 1
            left = right


@jit(borrows=True)
def fill_pool_with_rows(symbols, offsets, weights, lengths, first, last, position, pool):
    """Write words ``first .. last - 1``, given as rows of symbols, from pool ``position`` on; returns the next position.

    ``lengths int64[]`` are the symbols' bytes, of which there is at least one.
    """
    for word in range(first, last):
        weight = weights[word]
        for i in range(offsets[word], offsets[word + 1]):
            symbol = symbols[i]
            length = lengths[symbol]
            for inside in range(position, position + length):
                pool[inside, SYMBOL] = INSIDE if weight != 0 else SEPARATOR
                pool[inside, WEIGHT] = weight
            if weight != 0:
                pool[position, SYMBOL] = symbol
                pool[position + length - 1, SYMBOL] = symbol
            position += length
        pool[position, SYMBOL] = SEPARATOR
        pool[position, WEIGHT] = 0
        position += 1
    return position


@jit(borrows=True)
def count_pairs(pool, heavy, lengths, first, last, max_token_bytes, passed_over, part, n_parts, table):
    """Add the windows of one hash part of the pairs to ``table``, from the token at ``first`` to the one before ``last``.

    Returns (the position to go on from, the largest count that a pair reached). ``part`` of ``n_parts`` (a power of two)
    selects pairs by hash, so that a table of any size serves any number of pairs, one part after the other. Pairs longer
    than ``max_token_bytes`` and those ``passed_over`` (int64[], ascending keys) are left out.
    """
    best = np.int64(0)
    position = np.int64(first)
    while position < last:
        left = np.int64(pool[position, SYMBOL])
        if left < 0:
            position += 1
            continue
        length = lengths[left]
        right = np.int64(pool[position + length, SYMBOL])
        if right >= 0 and length + lengths[right] <= max_token_bytes:
            key = pair_key(left, right)
            # The table's slot comes from the low bits, the part from higher ones.
            if (pair_hash(key) >> np.uint64(40)) & np.uint64(n_parts - 1) == part and not is_listed(passed_over, key):
                slot = slot_of(table, key)
                if table[slot, KEY] == EMPTY:
                    put(table, key, np.int64(0), np.int64(0), np.int64(0))
                table[slot, LENGTH] += 1
                table[slot, COUNT] += weight_of(pool, heavy, position)
                best = max(best, table[slot, COUNT])
        position += length
    return position, best


@jit(borrows=True)
def place_pairs(pool, lengths, first, last, table, occurrences):
    """Write the windows' positions to the slices of the pairs that ``table`` holds, in ascending order.

    Returns the position to go on from. Each pair's START is its cursor, which ends behind its slice.
    """
    position = np.int64(first)
    while position < last:
        left = np.int64(pool[position, SYMBOL])
        if left < 0:
            position += 1
            continue
        right = np.int64(pool[position + lengths[left], SYMBOL])
        if right >= 0:
            slot = slot_of(table, pair_key(left, right))
            if table[slot, KEY] != EMPTY:
                occurrences[table[slot, START]] = position
                table[slot, START] += 1
        position += lengths[left]
    return position
