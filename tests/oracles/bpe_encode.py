"""The slow encoder: merge the pair of lowest rank, the leftmost of several, until none is left.

Two functions for the two forms of a BPE vocabulary. Nothing is cached or indexed, so that each line can be checked by eye.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def encode_word(word: bytes, byte_ids: Mapping[int, int], merges: Sequence[tuple[int, int, int]]) -> list[int]:
    """Ids of a word; ``merges`` are (left, right, merged) in rank order. KeyError for a byte without an id."""
    ids = [byte_ids[byte] for byte in word]
    ranks = {(left, right): rank for rank, (left, right, _) in enumerate(merges)}
    while True:
        best = None
        for at in range(len(ids) - 1):
            rank = ranks.get((ids[at], ids[at + 1]))
            if rank is not None and (best is None or rank < best[0]):
                best = (rank, at)
        if best is None:
            return ids
        rank, at = best
        ids[at : at + 2] = [merges[rank][2]]


def encode_word_by_ranks(word: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """Ids of a word by tiktoken's rule: a word that is a token is that token; else the lowest rank of joined bytes merges."""
    if word in ranks:
        return [ranks[word]]
    parts = [word[i : i + 1] for i in range(len(word))]
    while True:
        best = None
        for at in range(len(parts) - 1):
            rank = ranks.get(parts[at] + parts[at + 1])
            if rank is not None and (best is None or rank < best[0]):
                best = (rank, at)
        if best is None:
            return [ranks[part] for part in parts]
        _, at = best
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
