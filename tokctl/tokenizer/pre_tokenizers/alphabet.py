"""Classes of code points that no set of a pattern tells apart: the alphabet of its automaton."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints
from tokctl.tokenizer.unicode_tables import N_CODE_POINTS


def partition(sets: Sequence[CodePoints]) -> tuple[np.ndarray, np.ndarray]:
    """``(class_of int32[0x110000], member bool[n_sets, n_classes])``, classes numbered by their first code point."""
    edges = np.unique(np.concatenate([np.array([0], np.int64), *(points.bounds for points in sets)]))
    edges = edges[edges < N_CODE_POINTS]
    inside = np.array([points.contains(edges) for points in sets], bool).reshape(len(sets), edges.size)
    keys = np.packbits(inside, axis=0)
    _, first, inverse = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int32)
    rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
    of_edge = rank[inverse.reshape(-1)]
    class_of = np.repeat(of_edge, np.diff(np.append(edges, N_CODE_POINTS)))
    return class_of, inside[:, np.sort(first)]


def two_stage(class_of: np.ndarray, block_size: int = 128) -> tuple[np.ndarray, np.ndarray]:
    """``(block int32[n / block_size], block_class uint8[block_size * n_blocks])``: equal blocks are stored once.

    The class of ``x`` is ``block_class[block[x // block_size] + x % block_size]``.
    """
    blocks = class_of.astype(np.uint8).reshape(-1, block_size)
    numbers: dict[bytes, int] = {}
    block = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in blocks], np.int32)
    block_class = np.frombuffer(b"".join(numbers), np.uint8).copy()
    return block * np.int32(block_size), block_class
