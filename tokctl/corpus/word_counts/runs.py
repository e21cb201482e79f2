"""Sorted runs of (word, slice, count) rows, in memory and on disk, read block by block for a merge."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tokctl.kernels._boundary import bytes_view, writable_view

if TYPE_CHECKING:
    from tokctl.corpus.word_counts.counts import WordCounts


class Rows(NamedTuple):
    """Rows sorted by (word, slice), unique: ``data uint8[]``; ``starts, stops, slices, counts`` int64[n].

    Word i is ``data[starts[i]:stops[i]]``; rows of one word may share its bytes; ``slices`` are codes.
    """

    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    slices: np.ndarray
    counts: np.ndarray

    @property
    def n_rows(self) -> int:
        return int(self.counts.size)

    def part(self, first: int, last: int) -> Rows:
        """Rows ``first`` to ``last``; shares memory."""
        return Rows(self.data, *(column[first:last] for column in self[1:]))

    def n_within(self, first: int, max_rows: int, max_bytes: int) -> int:
        """How many rows from ``first`` on are at most ``max_rows`` and ``max_bytes`` of words; one at least."""
        last = min(first + max_rows, self.n_rows)
        lengths = np.cumsum(self.stops[first:last] - self.starts[first:last])
        return max(1, int(np.searchsorted(lengths, max_bytes, side="right")))


class Run(Protocol):
    """Where a merge reads from."""

    def next_rows(self, max_rows: int, max_bytes: int) -> tuple[Rows, bool]:
        """The next rows and whether they are the last; at least one row unless the run is empty."""

    def delete(self) -> None:
        """Free what the run holds; called when it is read."""


class MemoryRun:
    """A run that is in memory as a whole."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._next = 0

    def next_rows(self, max_rows: int, max_bytes: int) -> tuple[Rows, bool]:
        first = self._next
        if first < self._rows.n_rows:
            self._next += self._rows.n_within(first, max_rows, max_bytes)
        return self._rows.part(first, self._next), self._next >= self._rows.n_rows

    def take_all(self) -> Rows:
        """All rows from where reading stands; the run is read."""
        rows, self._rows = self._rows.part(self._next, self._rows.n_rows), _NO_ROWS
        return rows

    def delete(self) -> None:
        self._rows = _NO_ROWS


class FileRun:
    """A run on disk: ``PATH.rows`` int64[n, 3] of (length, slice, count) and ``PATH.words``, their bytes end to end.

    The files live only as long as the merge, so they are plain arrays in the machine's byte order.
    """

    def __init__(self, path: Path, n_rows: int) -> None:
        self._path = path
        self._n_rows = n_rows
        self._row = 0
        self._byte = 0

    @classmethod
    def write(cls, path: Path, blocks: Iterable[Rows]) -> FileRun:
        """Write blocks of rows, which follow each other in order, as one run."""
        from tokctl.kernels.word_merge import copy_words

        n_rows = 0
        with path.with_suffix(".rows").open("wb") as rows_file, path.with_suffix(".words").open("wb") as words_file:
            for rows in blocks:
                lengths = rows.stops - rows.starts
                np.stack([lengths, rows.slices, rows.counts], axis=1).tofile(rows_file)
                words = np.empty(int(lengths.sum()), np.uint8)
                copy_words(
                    bytes_view(rows.data), writable_view(rows.starts), writable_view(rows.stops), words
                )  # rows of one word share bytes in memory, not on disk
                words.tofile(words_file)
                n_rows += rows.n_rows
        return cls(path, n_rows)

    def next_rows(self, max_rows: int, max_bytes: int) -> tuple[Rows, bool]:
        n = min(max_rows, self._n_rows - self._row)
        table = np.fromfile(self._path.with_suffix(".rows"), np.int64, 3 * n, offset=24 * self._row).reshape(n, 3)
        stops = np.cumsum(table[:, 0])
        if n:
            n = max(1, int(np.searchsorted(stops, max_bytes, side="right")))
        n_bytes = int(stops[n - 1]) if n else 0
        data = np.fromfile(self._path.with_suffix(".words"), np.uint8, n_bytes, offset=self._byte)
        self._row += n
        self._byte += n_bytes
        table, stops = table[:n], stops[:n]
        return Rows(data, stops - table[:, 0], stops, table[:, 1], table[:, 2]), self._row >= self._n_rows

    def delete(self) -> None:
        self._path.with_suffix(".rows").unlink(missing_ok=True)
        self._path.with_suffix(".words").unlink(missing_ok=True)


class CountsRun:
    """Parts of a :class:`WordCounts`, one after another, as a run; ``code_of`` maps its columns to slice codes."""

    def __init__(self, parts: Iterable[WordCounts], code_of: np.ndarray) -> None:
        self._pairs = (rows for part in parts if (rows := _rows_of(part, code_of)).n_rows)
        self._run = MemoryRun(_NO_ROWS)
        self._ahead: Rows | None = None
        self._is_open = False

    def next_rows(self, max_rows: int, max_bytes: int) -> tuple[Rows, bool]:
        if not self._is_open:
            self._is_open = True
            self._ahead = next(self._pairs, None)
        rows, is_last = self._run.next_rows(max_rows, max_bytes)
        if rows.n_rows == 0 and self._ahead is not None:
            self._run = MemoryRun(self._ahead)
            self._ahead = next(self._pairs, None)
            rows, is_last = self._run.next_rows(max_rows, max_bytes)
        return rows, is_last and self._ahead is None

    def delete(self) -> None:
        self._run.delete()


def _rows_of(counts: WordCounts, code_of: np.ndarray) -> Rows:
    """The (word, slice) pairs of a table that occur, ordered by word, then slice code."""
    starts, stops = counts.offsets[:-1], counts.offsets[1:]
    dense = counts.counts if counts.counts.ndim == 2 else counts.counts[:, None]
    if dense.shape[1] == 1:
        return Rows(counts.data, starts, stops, np.full(counts.n_words, code_of[0], np.int64), dense[:, 0])
    columns = np.argsort(code_of, kind="stable")
    words, order = np.nonzero(dense[:, columns])
    chosen = columns[order]
    return Rows(counts.data, starts[words], stops[words], code_of[chosen], dense[words, chosen])


_NO_ROWS = Rows(np.empty(0, np.uint8), *(np.empty(0, np.int64) for _ in range(4)))
