"""Counting words the slow way: cut out the specials, cut each piece into words, and count them in a dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

Split = Callable[[bytes], list[bytes]]


def cut_specials(text: bytes, specials: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """(pieces, specials found): leftmost first, the longest of those that start at one place."""
    pieces, found = [], []
    start = position = 0
    while position < len(text):
        here = [special for special in specials if text.startswith(special, position)]
        if not here:
            position += 1
            continue
        longest = max(here, key=len)
        pieces.append(text[start:position])
        found.append(longest)
        position += len(longest)
        start = position
    pieces.append(text[start:])
    return pieces, found


def count_words(
    documents: Iterable[tuple[bytes, str, int]], split: Split, specials: Sequence[bytes] = ()
) -> tuple[dict[tuple[bytes, str], int], dict[bytes, int]]:
    """Counts of (word, slice), and of specials, of documents (text, slice, weight)."""
    words: Counter[tuple[bytes, str]] = Counter()
    found: Counter[bytes] = Counter()
    for text, slice_name, weight in documents:
        pieces, specials_here = cut_specials(text, specials)
        for special in specials_here:
            found[special] += weight
        for piece in pieces:
            for word in split(piece):
                words[word, slice_name] += weight
    return {key: n for key, n in words.items() if n}, {special: found[special] for special in specials}


def dense(words: dict[tuple[bytes, str], int], slices: Sequence[str]) -> list[tuple[bytes, list[int]]]:
    """Rows (word, a count for each slice), sorted by word."""
    distinct = sorted({word for word, _ in words})
    return [(word, [words.get((word, name), 0) for name in slices]) for word in distinct]
