"""Shards: the Parquet parts in which documents rest. The bytes depend on the rows and the schema alone.

A part ends with the row that brings it to ``target_bytes``, a row group with the one that brings it to ``ROW_GROUP_BYTES``
(both by the size of the values in memory), wherever batches begin and end. Files carry no time, host or path; only Arrow's version,
which stages have in their fingerprint.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokctl.artifacts.durable import disk_errors, fault_point
from tokctl.errors import ArtifactError

TARGET_BYTES = 256 << 20
ROW_GROUP_BYTES = 16 << 20
ROW_GROUP_ROWS = 1 << 16
_COMPRESSION_LEVEL = 3
_FEW_VALUES = ("source", "language", "license", "split")


@dataclass(frozen=True)
class ShardPart:
    """A finished part: file name, rows, size and sha256 of the file."""

    name: str
    rows: int
    bytes: int
    sha256: str


class ShardWriter:
    """Writes rows into ``directory/part-00000.parquet ...``; a directory of no rows has one empty part.

    Use as a context manager, or call ``close``, which returns the parts. Raises ArtifactError when the disk is full.
    """

    def __init__(self, directory: Path, schema: pa.Schema, target_bytes: int = TARGET_BYTES) -> None:
        if target_bytes < 1:
            raise ValueError("a part has at least one byte")
        self.schema = schema
        self.parts: list[ShardPart] = []
        self._directory = directory
        self._target = target_bytes
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._waiting_rows = 0
        self._part: _PartFile | None = None
        self._part_bytes = 0
        with disk_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        elif self._part is not None:
            self._part.abandon()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add the rows of ``batch``, whose schema is the writer's."""
        if batch.schema != self.schema:
            batch = pa.RecordBatch.from_arrays(
                [batch.column(f.name).cast(f.type) for f in self.schema], schema=self.schema
            )
        ends = np.cumsum(row_sizes(batch))
        start = 0
        base = 0
        while start < batch.num_rows:
            room = min(ROW_GROUP_BYTES - self._waiting_bytes, self._target - self._part_bytes - self._waiting_bytes)
            # the row that reaches the limit still belongs to the group
            stop = int(np.searchsorted(ends, base + max(room, 1), side="left")) + 1
            stop = min(stop, start + ROW_GROUP_ROWS - self._waiting_rows, batch.num_rows)
            self._waiting.append(batch.slice(start, stop - start))
            self._waiting_rows += stop - start
            self._waiting_bytes += int(ends[stop - 1]) - base
            start, base = stop, int(ends[stop - 1])
            if self._part_bytes + self._waiting_bytes >= self._target:
                self._end_part()
            elif self._waiting_bytes >= ROW_GROUP_BYTES or self._waiting_rows >= ROW_GROUP_ROWS:
                self._end_group()

    def close(self) -> list[ShardPart]:
        """Finish the last part; all parts in order."""
        if self._waiting or self._part is not None or not self.parts:
            self._end_part()
        return self.parts

    def _end_group(self) -> None:
        name = f"part-{len(self.parts):05d}.parquet"
        if self._part is None:
            self._part = _PartFile(self._directory / name, self.schema)
        if self._waiting:
            self._part.write(pa.Table.from_batches(self._waiting, self.schema))
        self._part_bytes += self._waiting_bytes
        self._waiting, self._waiting_bytes, self._waiting_rows = [], 0, 0

    def _end_part(self) -> None:
        self._end_group()
        assert self._part is not None
        self.parts.append(self._part.close())
        self._part, self._part_bytes = None, 0


class _PartFile:
    """One Parquet file, hashed while it is written."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._rows = 0
        with disk_errors(path):
            self._sink = _HashingFile(path.open("wb"))
            self._writer = pq.ParquetWriter(
                self._sink,
                schema,
                version="2.6",
                compression="zstd",
                compression_level=_COMPRESSION_LEVEL,
                use_dictionary=[name for name in schema.names if name in _FEW_VALUES],
                write_statistics=[name for name in schema.names if name not in ("text", "meta")],
            )

    def write(self, table: pa.Table) -> None:
        with disk_errors(self._path):
            self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
            fault_point("part-write")
        self._rows += table.num_rows

    def close(self) -> ShardPart:
        with disk_errors(self._path):
            self._writer.close()
            self._sink.finish()
        return ShardPart(self._path.name, self._rows, self._sink.size, self._sink.digest.hexdigest())

    def abandon(self) -> None:
        """Leave the unfinished file behind, without its footer."""
        self._sink.is_abandoned = True
        self._writer.close()
        self._sink.finish()


class _HashingFile:
    """What Arrow needs of a file, with the digest of what went through."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0
        self.closed = False
        self.is_abandoned = False

    def write(self, data: bytes) -> int:
        if self.is_abandoned:
            return len(data)
        self.digest.update(data)
        self._file.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.flush()

    def finish(self) -> None:
        self.closed = True
        self._file.close()


def row_sizes(batch: pa.RecordBatch) -> np.ndarray:
    """Bytes of the values of each row, int64[n]: the lengths of strings and lists of numbers, 8 for anything else."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        kind = column.type
        if any(
            test(kind)
            for test in (pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_string, pa.types.is_binary)
        ):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        elif pa.types.is_large_list(kind) and pa.types.is_primitive(kind.value_type):
            lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
            sizes += lengths * max(kind.value_type.bit_width // 8, 1)
        else:
            sizes += 8
    return sizes


def shard_paths(directory: Path) -> list[Path]:
    """The parts of a shard directory in order. Raises ArtifactError when there is none or one is missing in between."""
    paths = sorted(
        directory.glob("part-[0-9][0-9][0-9][0-9][0-9]*.parquet"), key=lambda path: (len(path.name), path.name)
    )
    if not paths:
        raise ArtifactError(
            f"{directory} holds no shards", hint="expected part-00000.parquet", code="no-shards", file=str(directory)
        )
    for number, path in enumerate(paths):
        if path.name != f"part-{number:05d}.parquet":
            raise ArtifactError(
                f"{directory} lacks part-{number:05d}.parquet", code="missing-part", file=str(directory)
            )
    return paths


def read_shards(directory: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a shard directory in order, a batch a row group, with ``columns`` (None: all).

    Raises ArtifactError for a part that is broken or lacks a column.
    """
    for path in shard_paths(directory):
        yield from read_part(path, columns)


def read_part(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of one part, a batch a row group; errors as for ``read_shards``."""
    yield from read_row_groups(path, None, columns)


def read_row_groups(
    path: Path, groups: Sequence[int] | None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups of a part (None: all), a batch a row group; errors as for ``read_shards``."""
    with part_errors(path), pq.ParquetFile(path, pre_buffer=False) as parquet:
        missing = sorted(set(columns or ()) - set(parquet.schema_arrow.names))
        if missing:
            raise ArtifactError(
                f"{path} has no column {missing[0]!r}",
                hint=f"columns found: {', '.join(parquet.schema_arrow.names)}", code="no-column", file=str(path),
            )  # fmt: skip
        for group in range(parquet.num_row_groups) if groups is None else groups:
            table = parquet.read_row_group(group, columns=None if columns is None else list(columns), use_threads=False)
            batches = (
                table.select(list(columns)).combine_chunks().to_batches()
                if columns
                else table.combine_chunks().to_batches()
            )
            yield from batches


def row_group_bytes(path: Path) -> list[int]:
    """The uncompressed bytes of each row group of a part; errors as for ``read_shards``."""
    with part_errors(path), pq.ParquetFile(path) as parquet:
        return [parquet.metadata.row_group(group).total_byte_size for group in range(parquet.num_row_groups)]


@contextlib.contextmanager
def part_errors(path: Path) -> Iterator[None]:
    """Turn what Arrow says of a broken or missing part into an ArtifactError."""
    try:
        yield
    except pa.ArrowCancelled:
        raise KeyboardInterrupt from None
    except (pa.ArrowException, OSError) as error:
        raise ArtifactError(
            f"{path} can't be read: {(str(error).splitlines() or ['?'])[0]}",
            hint="run 'tokctl verify' on its directory", code="broken-part", file=str(path),
        ) from None  # fmt: skip
