"""Sennrich's BPE as his paper prints it: words as strings of symbols with spaces between, recounted in every round.

``suffix=False`` is the paper's form (``l o w </w>``), ``suffix=True`` subword-nmt's (``l o w</w>``). The tie-break is
subword-nmt's: of the pairs with the highest count the lexicographically largest.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

Symbols = tuple[str, ...]


def spell(word: str, *, marker: str, suffix: bool) -> Symbols:
    """A word as base symbols."""
    if suffix:
        return (*word[:-1], word[-1] + marker)
    return (*word, marker)


def replace(symbols: Symbols, pair: tuple[str, str]) -> Symbols:
    """``pair`` joined, left to right, without overlap."""
    result: list[str] = []
    i = 0
    while i < len(symbols):
        if symbols[i : i + 2] == pair:
            result.append(pair[0] + pair[1])
            i += 2
        else:
            result.append(symbols[i])
            i += 1
    return tuple(result)


def fit(
    words: Mapping[str, int], n_merges: int, *, marker: str = "</w>", suffix: bool = True, min_frequency: int = 2
) -> list[tuple[str, str]]:
    """The merges of a dictionary."""
    spelled = [(spell(word, marker=marker, suffix=suffix), count) for word, count in words.items()]
    merges: list[tuple[str, str]] = []
    while len(merges) < n_merges:
        counts: dict[tuple[str, str], int] = {}
        for symbols, count in spelled:
            for pair in pairwise(symbols):
                counts[pair] = counts.get(pair, 0) + count
        if not counts or max(counts.values()) < min_frequency:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        spelled = [(replace(symbols, best), count) for symbols, count in spelled]
    return merges


def encode(word: str, merges: list[tuple[str, str]], *, marker: str = "</w>", suffix: bool = True) -> Symbols:
    """One merge after another, each to the whole word."""
    symbols = spell(word, marker=marker, suffix=suffix)
    for pair in merges:
        symbols = replace(symbols, pair)
    return symbols
