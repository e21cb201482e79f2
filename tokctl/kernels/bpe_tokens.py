"""Over a whole vocabulary: which pairs make a token, and which tokens their own bytes give."""

from __future__ import annotations

from tokctl.kernels._jit import jit
from tokctl.kernels.bpe_merge_word import ALL_STEPS, SHORT_WORD, continue_merge, merge_short, start_merge
from tokctl.kernels.word_table import find_token


@jit(borrows=True)
def split_pairs(token_ids, table, left, right, merged):
    """Every split of every token into two tokens: fills ``left``, ``right``, ``merged`` int32[] and returns their number.

    ``table`` is the word table of all the tokens. With empty output arrays only the number is returned.
    """
    data, offsets = table.data, table.offsets
    n = 0
    for k in range(token_ids.size):
        token = token_ids[k]
        start, stop = offsets[token], offsets[token + 1]
        for middle in range(start + 1, stop):
            first = find_token(table, data, start, middle)
            if first < 0:
                continue
            second = find_token(table, data, middle, stop)
            if second < 0:
                continue
            if left.size > 0:
                left[n] = first
                right[n] = second
                merged[n] = token
            n += 1
    return n


@jit(borrows=True)
def encodes_to_itself(data, offsets, token_ids, byte_ids, byte_pairs, merge_table, space, result):
    """For each token, by merging alone: 1 if its bytes become that one token, else 0 (``result uint8[n]``)."""
    for k in range(token_ids.size):
        token = token_ids[k]
        start, stop = offsets[token], offsets[token + 1]
        result[k] = 0
        if stop - start <= SHORT_WORD:
            n = merge_short(data, start, stop, byte_ids, byte_pairs, merge_table, space)
            result[k] = n == 1 and space.ids[0] == token
        elif start_merge(data, start, stop, byte_ids, merge_table, space) < 0:
            continue_merge(merge_table, space, ALL_STEPS)
            result[k] = space.following[0] < 0 and space.ids[0] == token
