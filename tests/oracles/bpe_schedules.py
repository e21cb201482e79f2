"""Four orders in which the merges of a table can be applied to a word, each as plain as it can be written.

A table is ``(left, right) -> (rank, merged)``. Several pairs may share a rank (where ids are ranks, all splits of a token do).
``occurrence_priority`` is what tokctl, tokenizers and tiktoken do; the others agree with it on proper tables, in which the
merges that make a token come before all the merges that use it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import pairwise

Table = Mapping[tuple[int, int], tuple[int, int]]


def occurrence_priority(ids: Sequence[int], table: Table) -> list[int]:
    """The occurrence of lowest rank, the leftmost of several; one at a time."""
    ids = list(ids)
    while True:
        found = [(table[pair][0], at) for at, pair in enumerate(pairwise(ids)) if pair in table]
        if not found:
            return ids
        _, at = min(found)
        ids[at : at + 2] = [table[ids[at], ids[at + 1]][1]]


def selected_pair_rounds(ids: Sequence[int], table: Table) -> list[int]:
    """In each round all occurrences of the lowest rank there is, from left to right."""
    ids = list(ids)
    while True:
        ranks = [table[pair][0] for pair in pairwise(ids) if pair in table]
        if not ranks:
            return ids
        ids = _replace(ids, table, min(ranks))


def fixed_pass(ids: Sequence[int], table: Table) -> list[int]:
    """Each rank once, in order, from left to right, and never again."""
    ids = list(ids)
    for rank in sorted({rank for rank, _ in table.values()}):
        ids = _replace(ids, table, rank)
    return ids


def heap_form(ids: Sequence[int], table: Table) -> list[int]:
    """Occurrence priority with a linked list and a heap of (rank, position), whose stale entries are passed over."""
    symbols: list[int | None] = list(ids)
    following = [*range(1, len(symbols)), -1]
    preceding = list(range(-1, len(symbols) - 1))
    heap: list[tuple[int, int, int, int]] = []

    def push(at: int) -> None:
        if at >= 0 and following[at] >= 0:
            left, right = symbols[at], symbols[following[at]]
            assert left is not None and right is not None
            if (left, right) in table:
                heapq.heappush(heap, (table[left, right][0], at, left, right))

    for at in range(len(symbols) - 1):
        push(at)
    while heap:
        _, at, left, right = heapq.heappop(heap)
        if symbols[at] != left or following[at] < 0 or symbols[following[at]] != right:
            continue
        gone = following[at]
        symbols[at], symbols[gone] = table[left, right][1], None
        following[at] = following[gone]
        if following[at] >= 0:
            preceding[following[at]] = at
        push(preceding[at])
        push(at)
    return [symbol for symbol in symbols if symbol is not None]


def is_proper(table: Table) -> bool:
    """Whether every merge that makes a token comes before every merge that uses it."""
    made: dict[int, int] = {}
    for rank, merged in table.values():
        made[merged] = max(rank, made.get(merged, rank))
    return all(made.get(side, -1) < rank for pair, (rank, _) in table.items() for side in pair)


def _replace(ids: list[int], table: Table, rank: int) -> list[int]:
    result: list[int] = []
    at = 0
    while at < len(ids):
        found = table.get((ids[at], ids[at + 1])) if at + 1 < len(ids) else None
        if found is not None and found[0] == rank:
            result.append(found[1])
            at += 2
        else:
            result.append(ids[at])
            at += 1
    return result
