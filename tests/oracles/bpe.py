"""The slow recount trainer: byte-level BPE by recounting every pair from scratch in every round.

Nothing is incremental and nothing is clever, so that each line can be checked by eye. It also says whether a choice was
*ambiguous* (another pair had the same count), which tells a legitimate difference between trainers from a bug.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class Fit(NamedTuple):
    merges: list[tuple[int, int]]
    pair_counts: list[int]
    ambiguous: list[bool]
    n_tokens: list[int]  # weighted number of tokens before the first merge, then after each
    stopped: str  # reached | no-pairs | min-frequency
    best_remaining: int


def n_code_points(string: bytes) -> int:
    """Number of code points of a UTF-8 string; for any other bytes, the number of bytes that are not 80..BF."""
    return sum(not 0x80 <= byte <= 0xBF for byte in string)


def replace(symbols: list[int], pair: tuple[int, int], new: int) -> list[int]:
    """Replace ``pair`` by ``new``, left to right, without overlap."""
    result = []
    i = 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            result.append(new)
            i += 2
        else:
            result.append(symbols[i])
            i += 1
    return result


def fit(
    words: Sequence[tuple[bytes | Sequence[int], int]],
    n_merges: int,
    *,
    alphabet: Sequence[bytes] = tuple(bytes([b]) for b in range(256)),
    ties: str = "ascending",
    min_frequency: int = 2,
    max_token_bytes: int | None = None,
    passed_over: Sequence[tuple[int, int]] = (),
) -> Fit:
    """``words`` are bytes of an alphabet of single bytes, or rows of numbers of the alphabet's strings."""
    strings = list(alphabet)
    ids = {string: number for number, string in enumerate(alphabet)}
    texts = [
        ([ids[bytes([byte])] for byte in word] if isinstance(word, bytes) else list(word), count)
        for word, count in words
        if count > 0
    ]
    done = Fit([], [], [], [sum(len(symbols) * count for symbols, count in texts)], "reached", 0)

    while True:
        counts: dict[tuple[int, int], int] = {}  # in the order in which the pairs are met in the text
        for symbols, count in texts:
            for pair in pairwise(symbols):
                if pair in passed_over:
                    continue
                if max_token_bytes is None or len(strings[pair[0]] + strings[pair[1]]) <= max_token_bytes:
                    counts[pair] = counts.get(pair, 0) + count
        best = max(counts.values(), default=0)
        if len(done.merges) == n_merges:
            return done._replace(best_remaining=best)
        if best == 0:
            return done._replace(stopped="no-pairs")
        if best < min_frequency:
            return done._replace(stopped="min-frequency", best_remaining=best)

        tied = [pair for pair, count in counts.items() if count == best]
        if ties == "ascending":
            pair = min(tied)
        elif ties == "descending":
            pair = max(tied)
        elif ties == "first-seen":
            pair = tied[0]
        elif ties == "sentencepiece":
            joined = {pair: strings[pair[0]] + strings[pair[1]] for pair in tied}
            pair = min(tied, key=lambda pair: (n_code_points(joined[pair]), joined[pair], pair))
        elif ties == "subword-nmt":
            largest = max((strings[left], strings[right]) for left, right in tied)
            pair = min(pair for pair in tied if (strings[pair[0]], strings[pair[1]]) == largest)
        else:
            raise ValueError(ties)

        texts = [(replace(symbols, pair, len(strings)), count) for symbols, count in texts]
        strings.append(strings[pair[0]] + strings[pair[1]])
        done.merges.append(pair)
        done.pair_counts.append(best)
        done.ambiguous.append(len(tied) > 1)
        done.n_tokens.append(sum(len(symbols) * count for symbols, count in texts))


def encode(word: bytes, merges: Sequence[tuple[int, int]], alphabet: Sequence[bytes]) -> list[int]:
    """Apply the merges one after the other, each to the whole word."""
    symbols = [list(alphabet).index(bytes([byte])) for byte in word]
    for rank, pair in enumerate(merges):
        symbols = replace(symbols, tuple(pair), len(alphabet) + rank)
    return symbols
