"""Exact Jaccard of sorted sets, and the uniting of buckets, against Python sets."""

from __future__ import annotations

import random

import numpy as np
import pytest
from oracles import near_duplicates as oracle

from tokctl.kernels.jaccard import (
    COMPARED,
    SKIPPED,
    UNITED,
    Forest,
    find_all,
    is_similar,
    similarity,
    unite_buckets,
)


def _ragged(sets: list[set[int]]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([value for s in sets for value in sorted(s)], np.uint64)
    return values, np.cumsum([0, *(len(s) for s in sets)]).astype(np.int64)


def _forest(n: int) -> Forest:
    return Forest(
        np.arange(n, dtype=np.int64),
        np.zeros(1 << 8, np.uint64),
        np.full(n, -1, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
    )


def _families(rng: random.Random, n: int) -> list[set[int]]:
    """Sets of which some are edited copies of others."""
    sets: list[set[int]] = []
    for _ in range(n):
        if sets and rng.random() < 0.7:
            base = set(rng.choice(sets))
            base -= set(rng.sample(sorted(base), min(len(base) - 1, rng.randint(0, 3))))
            sets.append(base | {rng.randrange(10**6) for _ in range(rng.randint(0, 3))})
        else:
            sets.append({rng.randrange(10**6) for _ in range(rng.randint(1, 30))})
    return sets


def test_similarity_and_threshold_equal_python_sets() -> None:
    rng = random.Random(1)
    sets = [*_families(rng, 80), set(), set()]
    values, offsets = _ragged(sets)
    for i in range(len(sets)):
        for j in range(len(sets)):
            exact = oracle.jaccard(sets[i], sets[j])  # type: ignore[arg-type]
            assert similarity(values, offsets, i, j) == exact
            if sets[i] and sets[j]:
                for threshold in (0.1, 1 / 3, 0.5, 0.8, exact or 1.0, 1.0):
                    assert is_similar(values, offsets, i, j, threshold) == (exact >= threshold)


def test_the_threshold_is_inclusive_for_every_fraction() -> None:
    for union in range(1, 60):
        for common in range(1, union + 1):
            left = set(range(common + (union - common) // 2))
            right = set(range(common)) | set(range(1000, 1000 + union - len(left)))
            values, offsets = _ragged([left, right])
            exact = common / union
            assert is_similar(values, offsets, 0, 1, exact)
            assert not is_similar(values, offsets, 0, 1, np.nextafter(exact, 2))


@pytest.mark.parametrize("n_comparisons", [1, 7, 10**6])
def test_buckets_unite_exactly_the_components_of_similar_pairs(n_comparisons: int) -> None:
    for seed in range(30):
        rng = random.Random(seed)
        n = rng.randint(2, 40)
        sets = _families(rng, n)
        values, offsets = _ragged(sets)
        buckets = [rng.sample(range(n), rng.randint(2, n)) for _ in range(rng.randint(1, 6))]
        members = np.array([node for bucket in buckets for node in bucket], np.int64)
        bounds = np.cumsum([0, *(len(bucket) for bucket in buckets)]).astype(np.int64)
        forest, state, counts = _forest(n), np.zeros(3, np.int64), np.zeros(3, np.int64)
        n_calls = 1
        while not unite_buckets(forest, values, offsets, members, bounds, 0.6, 10**9, state, counts, n_comparisons):
            n_calls += 1
        find_all(forest.parent)
        together = {tuple(sorted((i, j))) for bucket in buckets for i in bucket for j in bucket if i != j}
        pairs = [(i, j) for i, j in together if oracle.jaccard(sets[i], sets[j]) >= 0.6]  # type: ignore[arg-type]
        assert forest.parent.tolist() == oracle.components(n, pairs)
        assert (forest.head == -1).all()
        assert counts[UNITED] == n - len(set(forest.parent.tolist())) and counts[SKIPPED] == 0
        assert n_calls == 1 or n_comparisons < 10**6


def test_a_bucket_of_similar_sets_costs_one_comparison_each() -> None:
    n = 3000
    common = set(range(50))
    sets = [common | {1000 + i} for i in range(n)]
    values, offsets = _ragged(sets)
    forest, counts = _forest(n), np.zeros(3, np.int64)
    bounds = np.array([0, n], np.int64)
    assert unite_buckets(forest, values, offsets, np.arange(n), bounds, 0.9, 2000, np.zeros(3, np.int64), counts, 10**9)
    find_all(forest.parent)
    assert not forest.parent.any()
    assert counts[COMPARED] == n - 1


def test_a_limit_on_failures_is_kept_and_counted() -> None:
    n, limit = 50, 10
    sets = [{1000 * i + k for k in range(5)} for i in range(n)]
    values, offsets = _ragged(sets)
    forest, counts = _forest(n), np.zeros(3, np.int64)
    bounds = np.array([0, n], np.int64)
    unite_buckets(forest, values, offsets, np.arange(n), bounds, 0.5, limit, np.zeros(3, np.int64), counts, 10**9)
    assert counts[COMPARED] + counts[SKIPPED] == n * (n - 1) // 2
    assert counts[COMPARED] == sum(min(i, limit) for i in range(n))


def test_one_signature() -> None:
    test_a_limit_on_failures_is_kept_and_counted()
    for kernel in (unite_buckets, is_similar, similarity, find_all):
        assert len(kernel.signatures) <= 1 or kernel in (is_similar, similarity)
    assert len(unite_buckets.signatures) == 1
