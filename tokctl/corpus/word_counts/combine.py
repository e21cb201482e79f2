"""Adding up tables of word counts: in memory, and file by file for those counted on different machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tokctl.corpus.word_counts.counts import NO_WORDS, WordCounts, concatenated
from tokctl.corpus.word_counts.merge import merge_runs
from tokctl.corpus.word_counts.parquet import WordCountsFile, WordCountsWriter
from tokctl.corpus.word_counts.runs import CountsRun, Rows, Run
from tokctl.errors import DataError

_MERGE_BYTES = 64 << 20


def dense_parts(blocks: Iterable[Rows], slice_names: Sequence[str]) -> Iterator[WordCounts]:
    """Blocks of (word, slice) rows as tables; slice code c is ``slice_names[c]``, without names all is one.

    Columns are in the names' bytewise order, whatever the codes.
    """
    from tokctl.kernels.word_merge import spread

    order = sorted(range(len(slice_names)), key=lambda code: slice_names[code].encode())
    names = tuple(slice_names[code] for code in order)
    column_of = np.zeros(max(1, len(names)), np.int64)
    column_of[order] = np.arange(len(order))
    for rows in blocks:
        starts = np.ascontiguousarray(rows.starts)
        n_words = int(np.count_nonzero(np.diff(starts, prepend=-1)))
        offsets = np.empty(n_words + 1, np.int64)
        dense = np.zeros((n_words, len(column_of)), np.int64)
        spread(starts, rows.stops, rows.slices, rows.counts, column_of, offsets, dense)
        yield WordCounts(rows.data[: offsets[-1]], offsets, dense if names else dense[:, 0].copy(), names)


def _union(all_slices: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    if len({bool(slices) for slices in all_slices}) > 1:
        raise DataError(
            "some of the word counts have slices and some have none",
            hint="count all of them with the same slice key, or none",
            code="slices-differ",
        )
    return tuple(sorted({name for slices in all_slices for name in slices}, key=str.encode))


def _codes(slices: tuple[str, ...], names: tuple[str, ...]) -> np.ndarray:
    return np.array([names.index(name) for name in slices] or [0], np.int64)


def merge_tables(tables: Sequence[WordCounts]) -> WordCounts:
    """See :meth:`WordCounts.merge`."""
    if not tables:
        return NO_WORDS
    names = _union([table.slices for table in tables])
    runs: list[Run] = [CountsRun([table], _codes(table.slices, names)) for table in tables]
    blocks = merge_runs(runs, n_slices=max(1, len(names)), merge_bytes=_MERGE_BYTES)
    parts = list(dense_parts(blocks, names))
    if not parts:
        return WordCounts(NO_WORDS.data, NO_WORDS.offsets, np.empty((0, len(names)) if names else 0, np.int64), names)
    return concatenated(parts)


def merge_files(
    paths: Sequence[Path], out: Path, *, merge_bytes: int = _MERGE_BYTES, spill_dir: Path | None = None
) -> tuple[int, int]:
    """Add up files of word counts into one, streaming; returns ``(n_words, total)``.

    The same bytes as counting all their corpora at once. ``merge_bytes`` is for the buffers; on top, one row group a file
    (64 files at a time). DataError as for :meth:`WordCounts.merge`; ArtifactError: a broken file.
    """
    files = [WordCountsFile(path) for path in paths]
    names = _union([file.slices for file in files]) if files else ()
    runs: list[Run] = [CountsRun(file.groups(), _codes(file.slices, names)) for file in files]
    blocks = merge_runs(runs, n_slices=max(1, len(names)), merge_bytes=merge_bytes, spill_dir=spill_dir)
    with WordCountsWriter(out, names) as writer:
        for part in dense_parts(blocks, names):
            writer.append(part)
    return writer.n_words, writer.total
