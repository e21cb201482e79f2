"""Driving the rewriting kernel: a look whether anything changes, then slices into a growing buffer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tokctl.kernels._boundary import bytes_view, writable_view
from tokctl.tokenizer.aligned import IDENTITY, AlignedPieces

if TYPE_CHECKING:
    from tokctl.kernels.rewrite_text import RewriteTable

_SLICE_BYTES = 1 << 24


def rewrite_texts(table: RewriteTable, texts: AlignedPieces) -> AlignedPieces:
    """The text pieces rewritten as ``table`` says; ``texts`` itself, without a copy, where nothing changes."""
    from tokctl.kernels.rewrite_text import DONE, NEEDED, OUT_FULL, PIECE, POSITION, SIZE, rewrite, rewrites

    data, origins = bytes_view(texts.data), texts.origins
    starts, stops, tokens = (writable_view(a) for a in (texts.pieces.starts, texts.pieces.stops, texts.pieces.tokens))
    n = len(starts)
    cursor = np.zeros(4, np.int64)
    cursor[POSITION] = starts[0] if n else 0
    while cursor[PIECE] < n:
        if rewrites(table, data, starts, stops, tokens, cursor, _SLICE_BYTES):
            break
    else:
        return texts
    total = int((stops - starts).sum())
    out = np.empty(total + total // 8 + 64, np.uint8)
    out_origins = np.empty(len(out) if len(origins) else 0, np.int64)
    out_starts, out_stops = np.empty(n, np.int64), np.empty(n, np.int64)
    cursor[:] = 0
    cursor[POSITION] = starts[0]
    arguments = table, data, starts, stops, tokens, origins
    while True:
        status = rewrite(*arguments, out, out_origins, out_starts, out_stops, cursor, _SLICE_BYTES)
        if status == DONE:
            break
        if status == OUT_FULL:
            out = _grown(out, int(cursor[SIZE] + cursor[NEEDED]))
            if len(origins):
                out_origins = _grown(out_origins, len(out))
    size = int(cursor[SIZE])
    pieces = replace(texts.pieces, starts=out_starts, stops=out_stops)
    return AlignedPieces(out[:size], pieces, out_origins[:size] if len(origins) else IDENTITY, True)


def _grown(array: np.ndarray, least: int) -> np.ndarray:
    out = np.empty(max(least, len(array) * 3 // 2), array.dtype)
    out[: len(array)] = array
    return out
