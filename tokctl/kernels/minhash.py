"""MinHash signatures and their band keys.

The three schemes are those of datasketch 2: "affine32" and "affine64" mix a hash once (the finalizer of MurmurHash3)
and apply ``a * h + b`` in 32 or 64 bits; "legacy" is ``(a * h + b) mod 2^64 mod p``, cut to 32 bits, with p a Mersenne
prime. All constants come in as arguments.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit

_KEY_MIX = np.uint64(0x9FB21C651E98DF25)


@jit
def affine32(hashes, offsets, a, b, mix, out):
    """``out[i, k]`` (uint32) is the least ``a[k] * mix(h) + b[k]`` over text i's hashes (their low 32 bits).

    ``hashes`` uint64[], ``offsets`` int64[n + 1], ``a`` and ``b`` uint32[k], ``mix`` uint64[5] (shift, factor, shift,
    factor, shift). A text without hashes has the greatest value everywhere.
    """
    n_permutations = a.size
    shift_1, factor_1, shift_2, factor_2, shift_3 = mix[0], mix[1], mix[2], mix[3], mix[4]
    low_bits = np.uint64(0xFFFFFFFF)
    for text in range(offsets.size - 1):
        row = out[text]
        for k in range(n_permutations):
            row[k] = np.uint32(0xFFFFFFFF)
        i = offsets[text]
        stop = offsets[text + 1]
        while i < stop:
            # Four hashes a round, so that a signature value is loaded and stored once for four of them; a short last
            # round repeats a hash, which changes no minimum.
            h0 = _mix32(hashes[i], shift_1, factor_1, shift_2, factor_2, shift_3, low_bits)
            h1 = _mix32(hashes[min(i + 1, stop - 1)], shift_1, factor_1, shift_2, factor_2, shift_3, low_bits)
            h2 = _mix32(hashes[min(i + 2, stop - 1)], shift_1, factor_1, shift_2, factor_2, shift_3, low_bits)
            h3 = _mix32(hashes[min(i + 3, stop - 1)], shift_1, factor_1, shift_2, factor_2, shift_3, low_bits)
            for k in range(n_permutations):
                p0 = np.uint32(a[k] * h0 + b[k])
                p1 = np.uint32(a[k] * h1 + b[k])
                p2 = np.uint32(a[k] * h2 + b[k])
                p3 = np.uint32(a[k] * h3 + b[k])
                p0 = p1 if p1 < p0 else p0
                p2 = p3 if p3 < p2 else p2
                p0 = p2 if p2 < p0 else p0
                row[k] = p0 if p0 < row[k] else row[k]
            i += 4


@jit(inner=True)
def _mix32(h, shift_1, factor_1, shift_2, factor_2, shift_3, low_bits):
    h &= low_bits
    h = ((h ^ (h >> shift_1)) * factor_1) & low_bits
    h = ((h ^ (h >> shift_2)) * factor_2) & low_bits
    return np.uint32(h ^ (h >> shift_3))


@jit
def affine64(hashes, offsets, a, b, mix, out):
    """``out[i, k]`` (uint64), as ``affine32`` in 64 bits."""
    n_permutations = a.size
    for text in range(offsets.size - 1):
        row = out[text]
        for k in range(n_permutations):
            row[k] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for i in range(offsets[text], offsets[text + 1]):
            h = hashes[i]
            h = (h ^ (h >> mix[0])) * mix[1]
            h = (h ^ (h >> mix[2])) * mix[3]
            h ^= h >> mix[4]
            for k in range(n_permutations):
                value = a[k] * h + b[k]
                row[k] = value if value < row[k] else row[k]


@jit
def legacy(hashes, offsets, a, b, prime, prime_bits, max_hash, out):
    """``out[i, k]`` (uint64) is the least ``((a[k] * h + b[k]) mod 2^64 mod prime) & max_hash`` over low 32-bit hashes.

    ``prime`` is ``2^prime_bits - 1`` (uint64 both), so the remainder is a fold: 2^prime_bits counts as one.
    """
    n_permutations = a.size
    for text in range(offsets.size - 1):
        row = out[text]
        for k in range(n_permutations):
            row[k] = max_hash
        for i in range(offsets[text], offsets[text + 1]):
            h = hashes[i] & max_hash
            for k in range(n_permutations):
                value = a[k] * h + b[k]
                value = (value & prime) + (value >> prime_bits)
                value = value - prime if value >= prime else value
                value &= max_hash
                row[k] = value if value < row[k] else row[k]


@jit
def band_keys(signatures, n_bands, n_words, out):
    """``out[j, i]`` (uint64) is a hash of the words ``signatures[i, j * n_words:(j + 1) * n_words]`` of band j.

    ``signatures`` uint32[n, at least n_bands * n_words]; a value of 64 bits is two words.
    """
    for i in range(signatures.shape[0]):
        for j in range(n_bands):
            key = np.uint64(n_words)
            for k in range(j * n_words, (j + 1) * n_words):
                key = (key ^ np.uint64(signatures[i, k])) * _KEY_MIX
                key ^= key >> np.uint64(29)
            out[j, i] = key * _KEY_MIX
