"""Word counts on disk: one Parquet file, large_binary ``word`` and int64 ``count``, or ``count:NAME`` for each slice.

Words are delta-encoded (each shares a prefix with the one before) and compressed with zstd: on 289,186 words of English
1.5 MB, where plain uncompressed columns take 7.1 MB, at the same reading time. Row groups end by a rule about the words alone,
so that the bytes don't depend on how the counting went.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tokctl.corpus.word_counts.counts import NO_WORDS, WordCounts, concatenated
from tokctl.corpus.word_counts.merge import shown
from tokctl.errors import ArtifactError, DataError

# A row group ends after this many words (fewer with many slices), or before the word that would pass this many bytes.
GROUP_WORDS = 1 << 16
GROUP_COUNTS = 1 << 20
GROUP_BYTES = 4 << 20

_MAX_WORD_BYTES = (1 << 31) - (1 << 20)  # a Parquet page and a value in it are below 2 GiB
_METADATA_KEY = b"tokctl.word_counts"
_COUNT = "count"


def _schema(slices: tuple[str, ...]) -> pa.Schema:
    names = [f"{_COUNT}:{name}" for name in slices] if slices else [_COUNT]
    fields = [pa.field("word", pa.large_binary(), nullable=False)]
    fields += [pa.field(name, pa.int64(), nullable=False) for name in names]
    description = json.dumps({"version": 1, "slices": list(slices)}, ensure_ascii=True, separators=(",", ":"))
    return pa.schema(fields, metadata={_METADATA_KEY: description.encode()})


class WordCountsWriter:
    """Writes word counts, part after part in order, to one Parquet file; use it in a ``with`` statement.

    ``slices``: names, sorted bytewise. Counts ``n_words`` and ``total`` while it writes.
    """

    def __init__(self, path: Path, slices: tuple[str, ...] = ()) -> None:
        self.n_words = 0
        self.total = 0
        self._path = path
        self._slices = slices
        self._schema = _schema(slices)
        self._group_words = max(1, min(GROUP_WORDS, GROUP_COUNTS // max(1, len(slices))))
        self._parts: list[WordCounts] = []
        self._pending_words = self._pending_bytes = 0
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            compression="zstd",
            use_dictionary=False,
            column_encoding={name: "DELTA_BYTE_ARRAY" if name == "word" else "PLAIN" for name in self._schema.names},
            write_statistics=False,  # the least and greatest word would be copied into the footer, whatever their length
        )

    def append(self, part: WordCounts) -> None:
        """Words that come after all that are appended; keeps what does not fill a row group, without copying."""
        if part.slices != self._slices:
            raise ValueError(f"slices {part.slices} appended to a file of {self._slices}")
        if not part.n_words:
            return
        lengths = np.diff(part.offsets)
        longest = int(lengths.argmax())
        if lengths[longest] > _MAX_WORD_BYTES:
            raise DataError(
                f"the word {shown(part.word(longest))} is longer than a Parquet file can hold",
                hint="split it: choose a pattern other than none, or cut the documents",
                code="word-too-long",
            )
        self.n_words += part.n_words
        self.total += part.total
        self._parts.append(part)
        self._pending_words += part.n_words
        self._pending_bytes += int(lengths.sum())
        if self._pending_words > self._group_words or self._pending_bytes > GROUP_BYTES:
            self._write_groups(is_end=False)

    def _write_groups(self, *, is_end: bool) -> None:
        pending = concatenated(self._parts)
        first, n = 0, pending.n_words
        while first < n:
            limit = pending.offsets[first] + GROUP_BYTES
            last = min(first + self._group_words, int(np.searchsorted(pending.offsets, limit, side="right")) - 1)
            last = max(last, first + 1)
            if last >= n and not is_end:
                break
            self._write_group(pending.part(first, last))
            first = last
        self._parts = [pending.part(first, n)] if first < n else []
        self._pending_words = n - first
        self._pending_bytes = int(pending.offsets[n] - pending.offsets[first])

    def _write_group(self, part: WordCounts) -> None:
        words = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), part.n_words, [None, pa.py_buffer(part.offsets), pa.py_buffer(part.data)]
        )
        counts = part.counts.T if self._slices else [part.counts]
        columns = [words, *(pa.array(np.ascontiguousarray(column)) for column in counts)]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema), row_group_size=part.n_words)

    def finish(self) -> None:
        """Write what is left; the end of the ``with`` statement does it too, unless there was an error."""
        if self._parts:
            self._write_groups(is_end=True)

    def __enter__(self) -> WordCountsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self._parts = []
            self._writer.close()


class WordCountsFile:
    """A file of word counts, open for reading row group by row group.

    ArtifactError (code ``bad-word-counts``): not Parquet, other columns, nulls, a broken order.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = pq.ParquetFile(path)
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise self._wrong(f"not a Parquet file ({error})") from error
        description = (self._file.schema_arrow.metadata or {}).get(_METADATA_KEY)
        if description is None:
            raise self._wrong(f"columns {self._file.schema_arrow.names}, and nothing says that they are word counts")
        try:
            self.slices = tuple(json.loads(description)["slices"])
            is_known = json.loads(description)["version"] == 1
        except (ValueError, KeyError, TypeError) as error:
            raise self._wrong("its description is not readable") from error
        if not is_known or not self._file.schema_arrow.equals(_schema(self.slices)):
            raise self._wrong("its columns are not those of this version of tokctl")
        self.n_words = self._file.metadata.num_rows

    def _wrong(self, what: str) -> ArtifactError:
        return ArtifactError(
            f"{self.path} is not a file of word counts: {what}",
            hint="give a file that tokctl count wrote, or count the corpus again",
            code="bad-word-counts",
            file=str(self.path),
        )

    def groups(self) -> Iterator[WordCounts]:
        """The row groups, in order, each checked."""
        last: bytes | None = None
        row = 0
        for group in range(self._file.metadata.num_row_groups):
            try:
                table = self._file.read_row_group(group)
            except (pa.ArrowException, OSError) as error:
                raise self._wrong(f"row group {group} can't be read ({error})") from error
            part = self._from_table(table)
            if not part.n_words:
                continue
            part.check(str(self.path))
            if last is not None and last >= part.word(0):
                raise self._wrong(f"row {row} does not come after the one before")
            last = part.word(part.n_words - 1)
            row += part.n_words
            yield part

    def _from_table(self, table: pa.Table) -> WordCounts:
        words, *counts = (_one_chunk(column) for column in table.columns)
        if any(column.null_count for column in (words, *counts)):
            raise self._wrong("it has nulls")
        _, offset_buffer, data_buffer = words.buffers()
        if words:
            offsets = np.frombuffer(offset_buffer, np.int64)[words.offset : words.offset + len(words) + 1]
        else:
            offsets = np.zeros(1, np.int64)
        data = np.frombuffer(data_buffer or b"", np.uint8)
        columns = [column.to_numpy(zero_copy_only=True) for column in counts]
        return WordCounts(data, offsets, np.stack(columns, axis=1) if self.slices else columns[0], self.slices)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    chunk = column.combine_chunks()
    if isinstance(chunk, pa.ChunkedArray):
        chunk = chunk.chunk(0) if chunk.num_chunks else pa.array([], column.type)
    return chunk


def read_word_counts(path: Path) -> WordCounts:
    """The whole table of a file, every word checked; the arrays are views of Arrow's buffers where that is one piece."""
    file = WordCountsFile(path)
    groups = list(file.groups())
    if not groups:
        shape = (0, len(file.slices)) if file.slices else (0,)
        return WordCounts(NO_WORDS.data, NO_WORDS.offsets, np.empty(shape, np.int64), file.slices)
    return concatenated(groups)
