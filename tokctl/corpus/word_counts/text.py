"""Text on its way into the kernels: Arrow arrays as flat bytes, and words that only the regex fallback can find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokctl.errors import DataError
from tokctl.kernels._boundary import bytes_view, writable_view

if TYPE_CHECKING:
    from tokctl.kernels.word_count import Pieces
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

_REGEX_WORDS = 1 << 16  # words from the regex fallback are counted so many at a time


def flat_text(chunk: pa.Array, first_row: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """``(data uint8[], offsets int64[n + 1])`` of an Arrow (large) string or binary array.

    Shares its memory; 32-bit offsets are widened. DataError: another type, or a null (row: its index + ``first_row``).
    """
    kind = chunk.type
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        dtype: Any = np.int64
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        dtype = np.int32
    else:
        raise DataError(
            f"documents are {kind}, not text",
            hint="choose a text column: string, large_string, binary or large_binary",
            code="not-text",
        )
    if chunk.null_count:
        row = first_row + int(np.flatnonzero(pc.is_null(chunk).to_numpy(zero_copy_only=False))[0])
        raise DataError("a document is null", hint="leave it out or make it empty", code="null-text", row=row)
    if not len(chunk):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offset_buffer, data_buffer = chunk.buffers()
    offsets = np.frombuffer(offset_buffer, dtype)[chunk.offset : chunk.offset + len(chunk) + 1]
    data = bytes_view(data_buffer) if data_buffer is not None else np.empty(0, np.uint8)
    return data, writable_view(offsets.astype(np.int64, copy=False))


def text_parts(texts: pa.Array | pa.ChunkedArray, max_bytes: int) -> Iterator[pa.Array]:
    """Arrow strings or binaries in slices of at most ``max_bytes``, or one text; shares their memory.

    DataError as from :func:`flat_text`, with the row counted from the first chunk on.
    """
    first_row = 0
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        offsets = flat_text(chunk, first_row)[1]
        first, n = 0, len(chunk)
        while first < n:
            fitting = int(np.searchsorted(offsets, offsets[first] + max_bytes, side="right")) - 1
            last = min(max(fitting, first + 1), n)
            yield chunk.slice(first, last - first)
            first = last
        first_row += n


def regex_words(pre_tokenizer: PreTokenizer, data: np.ndarray, pieces: Pieces) -> Iterator[Pieces]:
    """The words of each piece as pieces, found by a pattern that only the ``regex`` module can run."""
    from tokctl.kernels.word_count import Pieces

    columns: list[tuple[np.ndarray, ...]] = []
    n = 0
    for start, stop, weight, code in zip(*(column.tolist() for column in pieces), strict=True):
        if start == stop or weight == 0:
            continue
        ends = pre_tokenizer.split(data[start:stop]) + start
        starts = np.concatenate([np.array([start], np.int64), ends[:-1]])
        columns.append((starts, ends, np.full(ends.size, weight, np.int64), np.full(ends.size, code, np.int64)))
        n += ends.size
        if n >= _REGEX_WORDS:
            yield Pieces(*map(np.concatenate, zip(*columns, strict=True)))
            columns, n = [], 0
    if columns:
        yield Pieces(*map(np.concatenate, zip(*columns, strict=True)))
