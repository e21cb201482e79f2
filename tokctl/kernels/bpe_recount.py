"""Counting the pairs of the current tokens from scratch, in a table of bounded size.

Needed once, when a fit ends because every pair left is rarer than the minimum frequency: such pairs are not kept in the
pair table, and a user wants to know how far the best of them is from the limit.
"""

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels.bpe_words import SYMBOL, WORD
from tokctl.kernels.pair_table import COUNT, EMPTY, KEY, is_listed, pair_hash, pair_key, slot_of


@jit
def recount(pool, counts, lengths, first, last, max_token_bytes, passed_over, part, n_parts, table):
    """Add the windows of one hash part of the pairs to ``table``, from the token at ``first`` to the one before ``last``.

    Returns (the position to go on from, the largest count that a pair reached). ``part`` of ``n_parts`` (a power of two)
    selects pairs by hash, so that a table of any size serves any number of pairs, one part after the other. The pairs
    ``passed_over`` (int64[], ascending keys) are left out.
    """
    best = 0
    position = first
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
            if (pair_hash(key) >> 40) & (n_parts - 1) == part and not is_listed(passed_over, key):
                slot = slot_of(table, key)
                if table[slot, KEY] == EMPTY:
                    table[slot, KEY] = key
                    table[slot, COUNT] = 0
                table[slot, COUNT] += counts[pool[position, WORD]]
                best = max(best, table[slot, COUNT])
        position += length
    return position, best
