"""Exact Jaccard similarity of sorted sets, and the uniting of candidate buckets by it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit

# what the work on buckets counts
COMPARED, UNITED, SKIPPED = range(3)
_STEPS_A_CHECK = 16
# where it stands: bucket, member of it, lists in it
BUCKET, MEMBER, N_LISTS = range(3)


class Forest(NamedTuple):
    """Components of nodes: ``parent int64[n]``, where a root is its own parent and the lowest node of its component.

    ``failed uint64[2^k]`` remembers pairs (low << 32 | high, plus one) that were compared and are not similar. The
    members of a bucket hang in one ring a component: ``head int64[n]`` by root (-1: none), ``next int64[n]`` by member,
    ``roots int64[n]`` the roots that have a ring; empty between buckets.
    """

    parent: np.ndarray
    failed: np.ndarray
    head: np.ndarray
    next: np.ndarray
    roots: np.ndarray


@jit
def intersection(values, left, left_stop, right, right_stop, needed):
    """Common elements of two sorted ranges of ``values`` (uint64), or -1 as soon as there can't be ``needed`` of them."""
    common = 0
    while left < left_stop and right < right_stop:
        rest = min(left_stop - left, right_stop - right)
        if common + rest < needed:
            return -1
        for _ in range(min(rest, _STEPS_A_CHECK)):  # neither side ends within these
            a = values[left]
            b = values[right]
            common += a == b
            left += a <= b
            right += b <= a
    return common if common >= needed else -1


@jit
def similarity(values, offsets, left, right):
    """Jaccard similarity (float64) of the sets of two nodes; two empty sets are equal."""
    if left == right:
        return 1.0
    n_left = offsets[left + 1] - offsets[left]
    n_right = offsets[right + 1] - offsets[right]
    if n_left + n_right == 0:
        return 1.0
    common = intersection(values, offsets[left], offsets[left + 1], offsets[right], offsets[right + 1], 0)
    return common / (n_left + n_right - common)


@jit
def similarities(values, offsets, left, right, out):
    """``out[i]`` (float64) is the similarity of the nodes ``left[i]`` and ``right[i]``."""
    for i in range(left.size):
        out[i] = similarity(values, offsets, left[i], right[i])


@jit
def is_similar(values, offsets, left, right, threshold):
    """Whether ``common / union >= threshold`` in float64, stopping as soon as the answer is known."""
    n_left = offsets[left + 1] - offsets[left]
    n_right = offsets[right + 1] - offsets[right]
    total = n_left + n_right
    needed = np.int64(
        threshold * total / (1.0 + threshold)
    )  # then to the least count that passes, whatever the rounding
    while needed > 0 and needed - 1 >= threshold * (total - needed + 1):
        needed -= 1
    while needed < total and needed / (total - needed) < threshold:
        needed += 1
    if needed > min(n_left, n_right):
        return False
    common = intersection(values, offsets[left], offsets[left + 1], offsets[right], offsets[right + 1], needed)
    return common >= 0 and common / (total - common) >= threshold


@jit
def find(parent, node):
    """The root of a node's component; halves the path on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@jit(inner=True)
def unite(parent, left, right):
    """Join two components; the lower root stays one. The root of both."""
    left, right = find(parent, left), find(parent, right)
    if left > right:
        left, right = right, left
    parent[right] = left
    return left


@jit
def unite_buckets(forest, values, offsets, members, buckets, threshold, max_failures, state, counts, n_comparisons):
    """Join similar nodes that share a bucket ``members[buckets[j]:buckets[j + 1]]``; whether all buckets are done.

    Nodes of one component need no comparison; a node is compared with the members of each other component in its
    bucket until one is similar. So in the end any two similar nodes of a bucket are in one component, and a bucket
    whose nodes are all similar costs one comparison each. A node that has met ``max_failures`` dissimilar ones in a
    bucket is compared no further there; the pairs left out are counted.

    ``values`` uint64[] and ``offsets`` int64[n + 1] are the sorted sets of the nodes. Runs until ``n_comparisons`` are
    made, from and to ``state`` (int64[3], zeros at first); ``counts`` int64[3] is added to.
    """
    bucket, i, n_lists = state[BUCKET], state[MEMBER], state[N_LISTS]
    limit = counts[COMPARED] + n_comparisons
    while bucket < buckets.size - 1:
        i = max(i, buckets[bucket])
        while i < buckets[bucket + 1]:
            if counts[COMPARED] >= limit:
                state[BUCKET], state[MEMBER], state[N_LISTS] = bucket, i, n_lists
                return False
            n_lists = _place(forest, values, offsets, members[i], n_lists, threshold, max_failures, counts)
            i += 1
        for j in range(n_lists):
            forest.head[forest.roots[j]] = -1
        n_lists = 0
        bucket += 1
    state[BUCKET], state[MEMBER], state[N_LISTS] = bucket, i, n_lists
    return True


@jit
def _place(forest, values, offsets, node, n_lists, threshold, max_failures, counts):
    """Compare ``node`` with the rings of the bucket, join it with the similar ones, and put it into its ring."""
    head, following, roots = forest.head, forest.next, forest.roots
    root = find(forest.parent, node)
    failures = 0
    j = 0
    while j < n_lists:
        other = roots[j]
        is_met = False
        if other != root:
            candidate = head[other]
            while True:
                if failures >= max_failures:
                    counts[SKIPPED] += 1
                elif _passes(forest.failed, values, offsets, node, candidate, threshold, counts):
                    is_met = True
                    head[other] = candidate  # what many are similar to is asked first
                    break
                else:
                    failures += 1
                candidate = following[candidate]
                if candidate == head[other]:
                    break
        if not is_met:
            j += 1
            continue
        counts[UNITED] += 1
        joined = unite(forest.parent, root, other)
        ring = head[other]
        head[other] = -1
        n_lists -= 1
        roots[j] = roots[n_lists]  # not looked at yet, or the node's own: j stays
        if head[root] >= 0:
            own = head[root]
            head[root] = -1
            following[own], following[ring] = following[ring], following[own]
            for k in range(n_lists):
                if roots[k] == root:
                    roots[k] = joined
                    break
        else:
            roots[n_lists] = joined
            n_lists += 1
        head[joined] = ring
        root = joined
    if head[root] >= 0:
        following[node] = following[head[root]]
        following[head[root]] = node
    else:
        head[root] = node
        following[node] = node
        roots[n_lists] = root
        n_lists += 1
    return n_lists


@jit(inner=True)
def _passes(failed, values, offsets, left, right, threshold, counts):
    """Whether two nodes are similar; pairs that are not are remembered, as they often share several bands."""
    pair = (np.uint64(min(left, right)) << np.uint64(32)) | np.uint64(max(left, right))
    slot = (pair * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    slot &= np.uint64(failed.size - 1)
    if failed[slot] == pair + np.uint64(1):
        return False
    counts[COMPARED] += 1
    if is_similar(values, offsets, left, right, threshold):
        return True
    failed[slot] = pair + np.uint64(1)
    return False


@jit
def find_all(parent):
    """Point every node at its root."""
    for node in range(parent.size):
        parent[node] = parent[parent[node]]  # a root is the lowest of its component, so lower nodes are done already
