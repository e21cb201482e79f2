"""The heap of candidate pairs against a sorted list."""

import numpy as np
import pytest

from tokctl.kernels import pair_heap
from tokctl.kernels._jit import jit
from tokctl.kernels.pair_heap import Spelling
from tokctl.kernels.pair_table import pair_key


@jit
def push_all(heap, counts, ties, keys, spelling):
    size = np.int64(0)
    for i in range(counts.shape[0]):
        size = pair_heap.push(heap, size, counts[i], ties[i], keys[i], spelling)
    return size


@jit
def order_all(heap, counts, ties, keys, spelling):
    heap[:, pair_heap.COUNT] = counts
    heap[:, pair_heap.TIE] = ties
    heap[:, pair_heap.KEY] = keys
    size = np.int64(counts.shape[0])
    pair_heap.order(heap, size, spelling)
    return size


@jit
def drain(heap, size, spelling, keys):
    n_keys = size
    for i in range(n_keys):
        keys[i] = heap[0, pair_heap.KEY]
        size = pair_heap.drop_top(heap, size, spelling)
    return size


@jit
def keys_of(left, right, keys):
    for i in range(left.shape[0]):
        keys[i] = pair_key(left[i], right[i])


STRINGS = [b"a", b"b", b"ab", b"ba", b"b\x00", b"\xff", b"aba"]


def spelling(is_compared: bool) -> Spelling:
    lengths = np.array([len(string) for string in STRINGS])
    return Spelling(
        np.frombuffer(bytearray(b"".join(STRINGS)), np.uint8),
        np.cumsum(lengths) - lengths,
        lengths,
        np.array([is_compared], np.int64),
    )


@pytest.mark.parametrize("fill", [push_all, order_all])
@pytest.mark.parametrize("is_compared", [False, True])
def test_pairs_leave_in_order(fill, is_compared):
    rng = np.random.default_rng(1)
    for n_pairs in [1, 2, 3, 10, 49]:
        chosen = rng.permutation(49)[:n_pairs]
        left, right = chosen // 7, chosen % 7
        keys = np.empty(n_pairs, np.int64)
        keys_of(left, right, keys)
        counts, ties = rng.integers(1, 4, n_pairs), rng.integers(-1, 2, n_pairs)
        heap = np.empty((n_pairs, 3), np.int64)
        size = fill(heap, counts, ties, keys, spelling(is_compared))
        got = np.empty(n_pairs, np.int64)
        assert drain(heap, size, spelling(is_compared), got) == 0

        def rank(i, left=left, right=right, counts=counts, ties=ties):
            joined = STRINGS[left[i]] + STRINGS[right[i]] if is_compared else b""
            return -counts[i], ties[i], joined, left[i], right[i]

        assert got.tolist() == [keys[i] for i in sorted(range(n_pairs), key=rank)]


def test_keys_order_as_pairs():
    left, right = np.array([0, 0, 1, 2**31 - 1]), np.array([1, 2**31 - 1, 0, 2**31 - 1])
    keys = np.empty(4, np.int64)
    keys_of(left, right, keys)
    assert sorted(keys.tolist()) == keys.tolist()
    assert (keys >> 32).tolist() == left.tolist()
    assert (keys & 0xFFFFFFFF).tolist() == right.tolist()
