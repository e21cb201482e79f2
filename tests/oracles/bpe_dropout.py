"""BPE-dropout (Provilkov et al. 2020) as slowly as it can be said, over Philox 4x32-10 (Salmon et al. 2011).

Of the draws of one step only those up to the first survivor matter, in order of rank, then position: it is the one that is
merged. So that is how many are drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_M = 0xFFFFFFFF


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Four 32-bit numbers from a counter of four and a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        first, second = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second & _M, (first >> 32) ^ c3 ^ k1, first & _M
        k0, k1 = (k0 + 0x9E3779B9) & _M, (k1 + 0xBB67AE85) & _M
    return [c0, c1, c2, c3]


def sample_key(seed: int, epoch: int, view: int, sample: bytes) -> int:
    """The 64-bit key of a sample."""
    numbers = b"".join(number.to_bytes(8, "little") for number in (seed, epoch, view))
    return int.from_bytes(hashlib.sha256(b"tokctl-bpe-dropout-v1\0" + numbers + sample).digest()[:8], "little")


def draws(key: int, occurrence: int) -> Iterator[int]:
    """The 32-bit draws of one word: the counter is (block, occurrence), each low half first."""
    block = 0
    while True:
        counter = (block & _M, block >> 32, occurrence & _M, occurrence >> 32)
        yield from philox(counter, (key & _M, key >> 32))
        block += 1


class Draw(NamedTuple):
    """One draw: the symbols then, which pair it was for, what came, and whether the merge was dropped."""

    symbols: tuple[int, ...]
    rank: int
    position: int
    value: int
    dropped: bool


def encode_word(
    ids: Sequence[int],
    table: Mapping[tuple[int, int], tuple[int, int]],
    p: float,
    numbers: Iterator[int],
    trace: list[Draw] | None = None,
) -> list[int]:
    """The ids of a word; ``table`` is (left, right) -> (rank, merged). ``trace`` is filled with every draw."""
    ids = list(ids)
    threshold = round(p * 2**32)
    while True:
        pairs = [(*table[ids[at], ids[at + 1]], at) for at in range(len(ids) - 1) if (ids[at], ids[at + 1]) in table]
        survivor = None
        for rank, merged, at in sorted(pairs, key=lambda found: (found[0], found[2])):
            value = next(numbers)
            if trace is not None:
                trace.append(Draw(tuple(ids), rank, at, value, value < threshold))
            if value >= threshold:
                survivor = at, merged
                break
        if survivor is None:
            return ids
        at, merged = survivor
        ids[at : at + 2] = [merged]
