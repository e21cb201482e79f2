"""Extending a BPE vocabulary, as plain as it can be written: every word is encoded anew in every round.

A model is ``tokens`` (id -> bytes, None where an id is unused) and a way to encode a word. In each round the pairs of
neighbours of all encoded words are counted; the best pair is taken whose bytes are no token yet and whose new token, put
behind all others, is what the grown model encodes its bytes to, while its bytes give an older token as before or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from oracles.bpe_schedules import Table, occurrence_priority


class Model(NamedTuple):
    tokens: list[bytes | None]
    merges: list[tuple[int, int, int]] | None  # (left, right, merged) in rank order; None: ids are ranks
    whole_words: bool

    def table(self) -> Table:
        if self.merges is not None:
            return {(left, right): (rank, merged) for rank, (left, right, merged) in enumerate(self.merges)}
        ids = {token: i for i, token in enumerate(self.tokens) if token is not None}
        return {
            (ids[token[:middle]], ids[token[middle:]]): (i, i)
            for token, i in ids.items()
            for middle in range(1, len(token))
            if token[:middle] in ids and token[middle:] in ids
        }

    def merge(self, word: bytes, table: Table) -> list[int]:
        return occurrence_priority([self.tokens.index(word[i : i + 1]) for i in range(len(word))], table)

    def encode(self, word: bytes, table: Table) -> list[int]:
        if self.whole_words and word in self.tokens:
            return [self.tokens.index(word)]
        return self.merge(word, table)

    def grown(self, left: int, right: int, new: int) -> Model:
        token = (self.tokens[left] or b"") + (self.tokens[right] or b"")
        tokens = [*self.tokens, *[None] * (new - len(self.tokens)), token]
        merges = None if self.merges is None else [*self.merges, (left, right, new)]
        return Model(tokens, merges, self.whole_words)


def extend(
    model: Model,
    words: Sequence[tuple[bytes, int]],
    n_merges: int,
    *,
    first_new: int,
    taken: Sequence[bytes] = (),
    min_frequency: int = 2,
) -> tuple[list[tuple[int, int]], set[tuple[int, int]], Model]:
    """The new merges as pairs of ids, the pairs that were passed over on the way, and the model they make."""
    merges: list[tuple[int, int]] = []
    passed_over: set[tuple[int, int]] = set()
    while len(merges) < n_merges:
        table = model.table()
        counts: dict[tuple[int, int], int] = {}
        for word, count in words:
            for pair in pairwise(model.encode(word, table)):
                if pair not in passed_over:
                    counts[pair] = counts.get(pair, 0) + count
        best = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if best is None or counts[best] < min_frequency:
            break
        new = first_new + len(merges)
        grown = model.grown(*best, new)
        token = grown.tokens[new]
        after = grown.table()
        fits = (
            token not in model.tokens
            and token not in taken
            and grown.merge(token or b"", after) == [new]
            and all(
                (model.merge(old, table) == [i]) == (grown.merge(old, after) == [i])
                for i, old in enumerate(model.tokens)
                if old is not None
            )
        )
        if fits:
            model = grown
            merges.append(best)
        else:
            passed_over.add(best)
    return merges, passed_over, model
