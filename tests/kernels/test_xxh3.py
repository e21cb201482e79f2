"""XXH3 in a kernel is XXH3 of the library."""

from __future__ import annotations

import numpy as np
import xxhash

from tokctl.kernels._boundary import bytes_view
from tokctl.kernels.shingles import hash_spans


def _hash(data: np.ndarray, start: int, stop: int) -> int:
    out = np.empty(1, np.uint64)
    hash_spans(data, np.array([start], np.int64), np.array([stop], np.int64), out)
    return int(out[0])


def test_every_length_class_equals_the_library() -> None:
    data = np.random.default_rng(0).integers(0, 256, 9000, dtype=np.uint8)
    view = bytes_view(data)
    lengths = [*range(600), 1023, 1024, 1025, 1087, 1088, 1089, 2047, 2048, 2049, 8193]
    for length in lengths:
        for start in (0, 7):
            expected = xxhash.xxh3_64_intdigest(data[start : start + length].tobytes())
            assert _hash(view, start, start + length) == expected, length


def test_the_end_of_the_array_is_never_passed() -> None:
    for length in range(1, 300):
        data = np.arange(length, dtype=np.uint8)
        assert _hash(data, 0, length) == xxhash.xxh3_64_intdigest(data.tobytes())
    assert _hash(np.empty(0, np.uint8), 0, 0) == xxhash.xxh3_64_intdigest(b"")


def test_one_signature() -> None:
    _hash(bytes_view(b"read-only"), 0, 9)
    assert len(hash_spans.signatures) == 1
