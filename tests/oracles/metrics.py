"""Metric values, slow and obvious: lists of documents, fractions, and the bootstrap drawn document by document."""

from __future__ import annotations

import hashlib
from fractions import Fraction

N_RESAMPLES = 999


def split_mix(seed: int, counter: int) -> int:
    mask = 2**64 - 1
    state = (seed + (counter + 1) * 0x9E3779B97F4A7C15) & mask
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
    return state ^ (state >> 31)


def drawn(label: str, n: int) -> list[list[int]]:
    """For each resample the documents drawn, by index."""
    seed = int.from_bytes(hashlib.sha256(b"tokctl-bootstrap-v1\0" + label.encode()).digest()[:8], "big")
    return [[((split_mix(seed, r * n + i) >> 32) * n) >> 32 for i in range(n)] for r in range(N_RESAMPLES)]


def interval(values: list) -> list:
    """The 25th smallest and the 25th largest of 999 values."""
    ordered = sorted(values)
    return [ordered[24], ordered[974]]


def percentile(lengths: list[int], quantile: Fraction) -> int:
    """The shortest length that at least ``quantile`` of the documents don't exceed."""
    return min(x for x in lengths if Fraction(sum(y <= x for y in lengths), len(lengths)) >= quantile)


def ratio(label: str, above: list[int], below: list[int]) -> tuple[float, list[float]]:
    resamples = drawn(label, len(above))
    values = [sum(above[i] for i in picked) / sum(below[i] for i in picked) for picked in resamples]
    return sum(above) / sum(below), interval(values)


def quantile(label: str, lengths: list[int], q: Fraction) -> tuple[int, list[int]]:
    resamples = drawn(label, len(lengths))
    return percentile(lengths, q), interval([percentile([lengths[i] for i in picked], q) for picked in resamples])
