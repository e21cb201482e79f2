"""Does the order of merging matter? Over a vocabulary: where merging a token's own bytes steps back in rank."""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels.bpe_merge_word import HEAP_SIZE, continue_merge, start_merge
from tokctl.kernels.merge_table import NO_PAIR

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


@jit
def find_rank_falls(data, offsets, token_ids, byte_ids, merge_table, space, result):
    """For each token: 1 if merging its bytes takes a merge of lower rank after one of higher rank, else 0.

    ``data uint8[]``, ``offsets int64[V + 1]``: the vocabulary; ``token_ids int32[n]``, ``result uint8[n]``. ``space``
    has room for the longest of these tokens. The merges are those of occurrence priority.
    """
    for k in range(token_ids.size):
        token = token_ids[k]
        result[k] = 0
        if start_merge(data, offsets[token], offsets[token + 1], byte_ids, merge_table, space) >= 0:
            continue
        highest = np.uint64(0)
        while space.state[HEAP_SIZE] > 0:
            item = space.heap[0]
            rank = item >> _32
            value = space.values[np.int64(item & _LOW)]
            if value != NO_PAIR and value >> _32 == rank:
                if rank < highest:
                    result[k] = 1
                    break
                highest = rank
            continue_merge(merge_table, space, 1)
