"""XXH3 (64 bits, seed 0) of a byte range, written from the published specification of xxHash.

Shingles are hashed millions of times, so the hash runs inside kernels; ``xxhash.xxh3_64`` is its oracle.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import big_endian, load8

_SECRET = np.frombuffer(
    bytes.fromhex(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
        "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
        "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
        "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
    )
    + b"\0" * 8,  # so that an 8-byte load of the last secret bytes stays inside
    dtype=np.uint8,
)

_U32 = np.uint64(0xFFFFFFFF)
_PRIME32_1 = np.uint64(0x9E3779B1)
_PRIME32_2 = np.uint64(0x85EBCA77)
_PRIME32_3 = np.uint64(0xC2B2AE3D)
_PRIME64_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME64_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME64_3 = np.uint64(0x165667B19E3779F9)
_PRIME64_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME64_5 = np.uint64(0x27D4EB2F165667C5)
_PRIME_MX1 = np.uint64(0x165667919E3779F9)
_PRIME_MX2 = np.uint64(0x9FB21C651E98DF25)
_STRIPE, _STRIPES_PER_BLOCK = 64, 16
_BLOCK = _STRIPE * _STRIPES_PER_BLOCK

_WORDS = [int.from_bytes(_SECRET[i : i + 8].tobytes(), "little") for i in range(_SECRET.size - 7)]
_KEY_OF_0 = np.uint64(_WORDS[56] ^ _WORDS[64])
_KEY_TO_3 = np.uint64((_WORDS[0] ^ _WORDS[4]) & 0xFFFFFFFF)
_KEY_TO_8 = np.uint64(_WORDS[8] ^ _WORDS[16])
_KEY_LOW_16 = np.uint64(_WORDS[24] ^ _WORDS[32])
_KEY_HIGH_16 = np.uint64(_WORDS[40] ^ _WORDS[48])


@jit(inner=True)
def xxh3_64(data, start, stop):
    """``uint64``: XXH3 of ``data[start:stop]`` (``data`` uint8[n])."""
    length = stop - start
    if length <= 16:
        return _hash_to_16(data, start, length)
    if length <= 240:
        return _hash_to_240(data, start, length)
    return _hash_long(data, start, length)


@jit(inner=True)
def _hash_to_16(data, start, length):
    n = np.uint64(length)
    if length > 8:
        low = load8(data, start) ^ _KEY_LOW_16
        high = load8(data, start + length - 8) ^ _KEY_HIGH_16
        return _avalanche(n + big_endian(low) + high + _fold(low, high))
    if length >= 4:
        first = _load4(data, start)
        last = _load4(data, start + length - 4)
        h = (last + (first << np.uint64(32))) ^ _KEY_TO_8
        h ^= _rotate(h, 49) ^ _rotate(h, 24)
        h *= _PRIME_MX2
        h ^= (h >> np.uint64(35)) + n
        h *= _PRIME_MX2
        return h ^ (h >> np.uint64(28))
    if length > 0:
        combined = np.uint64(data[start]) << np.uint64(16)
        combined |= np.uint64(data[start + (length >> 1)]) << np.uint64(24)
        combined |= np.uint64(data[start + length - 1]) | (n << np.uint64(8))
        return _avalanche_xxh64(combined ^ _KEY_TO_3)
    return _avalanche_xxh64(_KEY_OF_0)


@jit(inner=True)
def _hash_to_240(data, start, length):
    accumulator = np.uint64(length) * _PRIME64_1
    if length <= 128:
        last = start + length - 16
        for i in range((length - 1) // 32, -1, -1):
            accumulator += _mix16(data, start + 16 * i, 32 * i)
            accumulator += _mix16(data, last - 16 * i, 32 * i + 16)
        return _avalanche(accumulator)
    for i in range(8):
        accumulator += _mix16(data, start + 16 * i, 16 * i)
    accumulator = _avalanche(accumulator)
    for i in range(8, length // 16):
        accumulator += _mix16(data, start + 16 * i, 16 * (i - 8) + 3)
    accumulator += _mix16(data, start + length - 16, 136 - 17)
    return _avalanche(accumulator)


@jit(inner=True)
def _hash_long(data, start, length):
    lanes = np.empty(8, np.uint64)
    lanes[0], lanes[1], lanes[2], lanes[3] = _PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3
    lanes[4], lanes[5], lanes[6], lanes[7] = _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1
    n_blocks = (length - 1) // _BLOCK
    for block in range(n_blocks):
        for stripe in range(_STRIPES_PER_BLOCK):
            _accumulate(lanes, data, start + block * _BLOCK + stripe * _STRIPE, 8 * stripe)
        for i in range(8):
            h = lanes[i]
            h ^= h >> np.uint64(47)
            h ^= load8(_SECRET, 128 + 8 * i)
            lanes[i] = h * _PRIME32_1
    tail = n_blocks * _BLOCK
    for stripe in range((length - 1 - tail) // _STRIPE):
        _accumulate(lanes, data, start + tail + stripe * _STRIPE, 8 * stripe)
    _accumulate(lanes, data, start + length - _STRIPE, 121)
    result = np.uint64(length) * _PRIME64_1
    for i in range(4):
        left = lanes[2 * i] ^ load8(_SECRET, 11 + 16 * i)
        right = lanes[2 * i + 1] ^ load8(_SECRET, 19 + 16 * i)
        result += _fold(left, right)
    return _avalanche(result)


@jit(inner=True)
def _accumulate(lanes, data, position, secret):
    for i in range(8):
        value = load8(data, position + 8 * i)
        keyed = value ^ load8(_SECRET, secret + 8 * i)
        lanes[i ^ 1] += value
        lanes[i] += (keyed & _U32) * (keyed >> np.uint64(32))


@jit(inner=True)
def _mix16(data, position, secret):
    low = load8(data, position) ^ load8(_SECRET, secret)
    high = load8(data, position + 8) ^ load8(_SECRET, secret + 8)
    return _fold(low, high)


@jit(inner=True)
def _fold(left, right):
    """The two halves of the 128-bit product, xored: schoolbook multiplication of 32-bit halves."""
    shift = np.uint64(32)
    left_low, left_high = left & _U32, left >> shift
    right_low, right_high = right & _U32, right >> shift
    low = left_low * right_low
    cross = left_high * right_low + (low >> shift)
    middle = left_low * right_high + (cross & _U32)
    high = left_high * right_high + (cross >> shift) + (middle >> shift)
    return ((middle << shift) | (low & _U32)) ^ high


@jit(inner=True)
def _avalanche(h):
    h ^= h >> np.uint64(37)
    h *= _PRIME_MX1
    return h ^ (h >> np.uint64(32))


@jit(inner=True)
def _avalanche_xxh64(h):
    h ^= h >> np.uint64(33)
    h *= _PRIME64_2
    h ^= h >> np.uint64(29)
    h *= _PRIME64_3
    return h ^ (h >> np.uint64(32))


@jit(inner=True)
def _load4(data, position):
    value = np.uint64(data[position]) | (np.uint64(data[position + 1]) << np.uint64(8))
    value |= np.uint64(data[position + 2]) << np.uint64(16)
    return value | (np.uint64(data[position + 3]) << np.uint64(24))


@jit(inner=True)
def _rotate(value, bits):
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))
