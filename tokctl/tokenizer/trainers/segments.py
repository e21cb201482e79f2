"""Words as symbols: what a BPE fit begins from, and what a replay of it counts again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tokctl.kernels._boundary import bytes_view, writable_view

SLICE_ROWS = 1 << 16  # rows per call of a kernel, so that Ctrl-C is heard


@dataclass(frozen=True, eq=False)
class Segments:
    """Rows of symbols: row i is ``symbols[offsets[i]:offsets[i + 1]]`` (int32, int64[n + 1]) and occurs ``counts[i]`` times."""

    symbols: np.ndarray
    offsets: np.ndarray
    counts: np.ndarray


def byte_segments(data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, alphabet: Sequence[bytes]) -> Segments:
    """Words as bytes: the symbol of a byte is its place in ``alphabet``, which has every byte of the words."""
    numbers = np.zeros(256, np.int32)
    numbers[np.frombuffer(b"".join(alphabet), np.uint8)] = np.arange(len(alphabet), dtype=np.int32)
    data = bytes_view(data)[offsets[0] : offsets[-1]]
    return Segments(numbers[data], np.asarray(offsets, np.int64) - offsets[0], np.asarray(counts, np.int64))


def merged_segments(segments: Segments, merges: np.ndarray, n_base: int) -> Segments:
    """The rows after ``merges int32[m, 2]``, merge k making symbol ``n_base + k``; the rows given stay as they are."""
    from tokctl.kernels.bpe_merge_word import merge_space
    from tokctl.kernels.bpe_symbols import merge_words, pack_rows
    from tokctl.kernels.merge_table import merge_table

    symbols = segments.symbols.astype(np.int32)
    offsets = np.ascontiguousarray(segments.offsets, np.int64)
    n_symbols = np.diff(offsets)
    if len(merges):
        pairs = np.ascontiguousarray(merges, np.int32)
        numbers = np.arange(len(pairs), dtype=np.int32)
        table = merge_table(pairs[:, 0].copy(), pairs[:, 1].copy(), numbers, numbers + np.int32(n_base))
        space = merge_space(max(64, int(n_symbols.max(initial=0))))
        for first in range(0, len(n_symbols), SLICE_ROWS):
            merge_words(symbols, offsets, n_symbols, first, min(first + SLICE_ROWS, len(n_symbols)), table, space)
    packed = pack_rows(symbols, offsets, n_symbols)
    return Segments(symbols[:packed], np.concatenate([np.zeros(1, np.int64), np.cumsum(n_symbols)]), segments.counts)


def split_at(symbols: np.ndarray, offsets: np.ndarray, counts: np.ndarray, is_gap: np.ndarray) -> Segments:
    """Rows of symbols without those where ``is_gap bool[n]``, each cut in two there; empty rows are left out."""
    if not is_gap.any():
        return Segments(symbols, offsets, counts)
    begins = np.zeros(len(symbols) + 1, np.bool_)
    begins[offsets] = True
    begins[1:] |= is_gap
    kept = ~is_gap
    row = np.cumsum(begins[:-1])[kept]
    begins = np.concatenate([[True], row[1:] != row[:-1]]) if len(row) else np.empty(0, np.bool_)
    starts = np.flatnonzero(begins)
    words = (np.searchsorted(offsets, np.flatnonzero(kept), side="right") - 1)[starts]
    return Segments(
        writable_view(symbols[kept]),
        np.concatenate([starts, [len(row)]]).astype(np.int64),
        writable_view(counts[words]),
    )
