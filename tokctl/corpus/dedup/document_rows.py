"""Documents on disk or in Arrow memory as numbered rows that can be read again.

Deduplication never keeps texts: it keeps numbers about rows, and reads the rows it doubts about a second time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tokctl.corpus.shards import part_errors
from tokctl.errors import DataError

BATCH_ROWS = 1024
BATCH_BYTES = 1 << 20  # text that one step of work holds, unless a single document is longer

Result = TypeVar("Result")
OnStep = Callable[[int, int], None]


class TextBatch(NamedTuple):
    """Texts of ``rows int64[n]``: text i is ``data[offsets[i]:offsets[i + 1]]`` (uint8, int64[n + 1])."""

    rows: np.ndarray
    data: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class _Piece:
    """A row group of a file, or a table: ``n_rows`` rows from ``first_row`` on."""

    name: str
    first_row: int
    n_rows: int
    read: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


class DocumentRows:
    """Rows of the document schema, numbered from 0 in the order given; each pass reads them anew."""

    def __init__(self, pieces: Iterable[tuple[str, int, Callable[[Sequence[str]], Iterator[pa.RecordBatch]]]]) -> None:
        self._pieces: list[_Piece] = []
        self.n_rows = 0
        for name, n_rows, read in pieces:
            self._pieces.append(_Piece(name, self.n_rows, n_rows, read))
            self.n_rows += n_rows

    @classmethod
    def from_parquet(cls, paths: Iterable[str | Path]) -> DocumentRows:
        """The rows of Parquet parts, one row group read at a time."""
        pieces = []
        for path in paths:
            with part_errors(Path(path)):
                metadata = pq.read_metadata(path)
            for group in range(metadata.num_row_groups):
                pieces.append((str(path), metadata.row_group(group).num_rows, _row_group_reader(Path(path), group)))
        return cls(pieces)

    @classmethod
    def from_batches(cls, batches: Iterable[pa.RecordBatch | pa.Table]) -> DocumentRows:
        """The rows of Arrow record batches or tables in memory."""
        return cls((f"batch {i}", batch.num_rows, _memory_reader(batch)) for i, batch in enumerate(batches))

    def batches(
        self, columns: Sequence[str], wanted: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
        """``(rows int64[n], batch)`` in row order; with ``wanted`` (bool[n_rows]) only those rows.

        Raises DataError when a column is missing or a part no longer has the rows it had.
        """
        for piece in self._pieces:
            if wanted is not None and not wanted[piece.first_row : piece.first_row + piece.n_rows].any():
                continue
            row = piece.first_row
            for batch in piece.read(columns):
                rows = np.arange(row, row + batch.num_rows, dtype=np.int64)
                row += batch.num_rows
                if wanted is not None:
                    chosen = wanted[rows[0] : rows[0] + rows.size]
                    if not chosen.all():
                        rows, batch = rows[chosen], batch.filter(pa.array(chosen))
                if rows.size:
                    yield rows, batch
            if row != piece.first_row + piece.n_rows:
                raise DataError(
                    f"{piece.name} changed while it was read: {row - piece.first_row} rows instead of {piece.n_rows}",
                    hint="wait until it is complete, then run again",
                    code="input-changed",
                    file=piece.name,
                )

    def text_batches(self, wanted: np.ndarray | None = None) -> Iterator[TextBatch]:
        """The texts in row order, in steps of about ``BATCH_BYTES``."""
        for rows, batch in self.batches(["text"], wanted):
            data, offsets = ragged_text(batch.column(0), int(rows[0]))
            start = 0
            while start < rows.size:
                stop = int(np.searchsorted(offsets, offsets[start] + BATCH_BYTES, side="right")) - 1
                stop = min(max(stop, start + 1), rows.size)
                yield TextBatch(rows[start:stop], data, offsets[start : stop + 1])
                start = stop

    def map_texts(
        self,
        work: Callable[[TextBatch], Result],
        *,
        wanted: np.ndarray | None = None,
        workers: int = 1,
        on_step: OnStep | None = None,
    ) -> Iterator[tuple[TextBatch, Result]]:
        """``work`` over all texts on ``workers`` threads; results in row order, whatever the number of threads.

        ``on_step(rows done, rows wanted)`` is called after each batch.
        """
        total = self.n_rows if wanted is None else int(np.count_nonzero(wanted))
        done = 0
        for batch, result in _in_order(work, self.text_batches(wanted), workers):
            yield batch, result
            done += batch.rows.size
            if on_step is not None:
                on_step(done, total)


def ragged_text(column: pa.Array, first_row: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """``(data uint8[], offsets int64[n + 1])`` of a string or binary array, without copying the text.

    Raises DataError for another type or a null, naming its row (``first_row`` is the number of the first one).
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    elif pa.types.is_binary(column.type):
        column = column.cast(pa.large_binary())
    if not (pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)):
        raise DataError(f"the column text holds {column.type}, not text", code="bad-schema")
    if column.null_count:
        row = first_row + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError("the column text holds a null", code="null-text", row=row)
    _, offset_buffer, data_buffer = column.buffers()
    n = len(column)
    if offset_buffer is None or n == 0:
        return np.empty(0, np.uint8), np.zeros(n + 1, np.int64)
    offsets = np.frombuffer(offset_buffer, np.int64, n + 1, 8 * column.offset)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return data, offsets


def _row_group_reader(path: Path, group: int) -> Callable[[Sequence[str]], Iterator[pa.RecordBatch]]:
    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with part_errors(path), pq.ParquetFile(path) as file:
            missing = [name for name in columns if name not in file.schema_arrow.names]
            if missing:
                raise _missing_column(missing[0], str(path))
            yield from file.iter_batches(BATCH_ROWS, row_groups=[group], columns=list(columns))

    return read


def _memory_reader(table: pa.RecordBatch | pa.Table) -> Callable[[Sequence[str]], Iterator[pa.RecordBatch]]:
    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        missing = [name for name in columns if name not in table.schema.names]
        if missing:
            raise _missing_column(missing[0], None)
        chosen = table.select(list(columns))
        yield from (pa.Table.from_batches([chosen]) if isinstance(chosen, pa.RecordBatch) else chosen).to_batches(
            BATCH_ROWS
        )

    return read


def _missing_column(name: str, file: str | None) -> DataError:
    hint = "deduplication reads document shards, as `extract` writes them"
    return DataError(f"no column {name!r}", hint=hint, code="bad-schema", file=file)


def _in_order(
    work: Callable[[TextBatch], Result], batches: Iterable[TextBatch], workers: int
) -> Iterator[tuple[TextBatch, Result]]:
    if workers <= 1:
        for batch in batches:
            yield batch, work(batch)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[tuple[TextBatch, Future[Result]]] = deque()
        for batch in batches:
            waiting.append((batch, pool.submit(work, batch)))
            if len(waiting) > 2 * workers:
                oldest, future = waiting.popleft()
                yield oldest, future.result()
        while waiting:
            oldest, future = waiting.popleft()
            yield oldest, future.result()
