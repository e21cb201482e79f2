"""MinHash in plain integers, from the definitions: one shingle, one permutation at a time."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence

BITS = {"affine32": 32, "affine64": 64, "legacy": 32}
_MERSENNE_61 = 2**61 - 1


def sha1_hash(data: bytes, bits: int) -> int:
    """The first ``bits`` bits of SHA-1 as a little-endian integer."""
    return int(struct.unpack("<Q", hashlib.sha1(data).digest()[:8])[0]) % 2**bits


def fmix32(h: int) -> int:
    """The 32-bit finalizer of MurmurHash3 (Austin Appleby, public domain)."""
    h ^= h >> 16
    h = h * 0x85EBCA6B % 2**32
    h ^= h >> 13
    h = h * 0xC2B2AE35 % 2**32
    return h ^ (h >> 16)


def fmix64(h: int) -> int:
    """The 64-bit finalizer of MurmurHash3."""
    h ^= h >> 33
    h = h * 0xFF51AFD7ED558CCD % 2**64
    h ^= h >> 33
    h = h * 0xC4CEB9FE1A85EC53 % 2**64
    return h ^ (h >> 33)


def signature(
    shingles: Iterable[bytes],
    permutations: Sequence[tuple[int, int]],
    scheme: str,
    hash_of: Callable[[bytes, int], int] = sha1_hash,
) -> list[int]:
    """The least permuted hash for each permutation ``(a, b)``; the greatest value of the scheme for no shingles."""
    bits = BITS[scheme]
    values = [2**bits - 1] * len(permutations)
    for shingle in shingles:
        h = hash_of(shingle, bits)
        for k, (a, b) in enumerate(permutations):
            if scheme == "affine32":
                permuted = (a * fmix32(h) + b) % 2**32
            elif scheme == "affine64":
                permuted = (a * fmix64(h) + b) % 2**64
            else:
                permuted = (a * h + b) % 2**64 % _MERSENNE_61 % 2**32
            values[k] = min(values[k], permuted)
    return values
