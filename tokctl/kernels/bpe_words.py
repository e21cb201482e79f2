"""The symbol pool of BPE fitting: the words as base symbols, and every pair's first occurrence list.

``pool`` is ``[n, 2]`` (int32, or int64 beyond 2**31 positions): column SYMBOL holds a token's id at its first and at its
last byte, so that both neighbours of a token are one look away; column WORD the number of the word. One separator stands
before, between and after the words, so byte ``i`` of the data in word ``w`` is at pool position ``i + w + 1``.
"""

from tokctl.kernels._jit import jit

SYMBOL = 0
WORD = 1
SEPARATOR = -1  # between words; also fills words whose count is zero
INSIDE = -2  # a position that has become the inside of a token


@jit
def fill_pool(data, offsets, counts, base_ids, first, last, pool):
    """Write words ``first .. last-1`` to the pool; returns -1, or the data position of a byte without a base id.

    ``base_ids`` is int32[256], -1 for a byte that is not in the alphabet.
    """
    for word in range(first, last):
        start, stop = offsets[word], offsets[word + 1]
        for i in range(start, stop):
            symbol = base_ids[data[i]]
            if symbol < 0:
                return i
            position = i + word + 1
            pool[position, SYMBOL] = symbol if counts[word] > 0 else SEPARATOR
            pool[position, WORD] = word
        pool[stop + word + 1, SYMBOL] = SEPARATOR
        pool[stop + word + 1, WORD] = word
    return -1


@jit
def fill_pool_with_symbols(symbols, offsets, counts, lengths, first, last, position, pool):
    """Write words ``first`` .. ``last - 1``, given as rows of symbols, from pool ``position`` on; returns the next position.

    ``lengths int64[]`` are the symbols' bytes, of which there is at least one.
    """
    for word in range(first, last):
        for i in range(offsets[word], offsets[word + 1]):
            symbol = symbols[i]
            length = lengths[symbol]
            for inside in range(position, position + length):
                pool[inside, SYMBOL] = INSIDE if counts[word] > 0 else SEPARATOR
                pool[inside, WORD] = word
            if counts[word] > 0:
                pool[position, SYMBOL] = symbol
                pool[position + length - 1, SYMBOL] = symbol
            position += length
        pool[position, SYMBOL] = SEPARATOR
        pool[position, WORD] = word
        position += 1
    return position


@jit
def count_windows(pool, counts, first, last, windows, weights):
    """Add the base pairs whose left symbol is at ``first .. last-1`` to two int64[n_base, n_base] tables.

    ``windows`` counts occurrences, ``weights`` adds up the counts of their words.
    """
    for position in range(first, last):
        left, right = pool[position, SYMBOL], pool[position + 1, SYMBOL]
        if left >= 0 and right >= 0:
            windows[left, right] += 1
            weights[left, right] += counts[pool[position, WORD]]


@jit
def place_windows(pool, first, last, cursors, occurrences):
    """Write each window's position to its pair's slice, in ascending order.

    ``cursors`` is int64[n_base, n_base]: the next free entry of the pair's slice, negative for pairs that have none.
    """
    for position in range(first, last):
        left, right = pool[position, SYMBOL], pool[position + 1, SYMBOL]
        if left >= 0 and right >= 0 and cursors[left, right] >= 0:
            occurrences[cursors[left, right]] = position
            cursors[left, right] += 1
