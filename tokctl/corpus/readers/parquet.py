"""Parquet files: a row is a document, the text in one column (``--text-column``, dotted for a field of a struct).

Parquet doesn't check that its strings are UTF-8, so each text is checked here. Null texts are rejects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tokctl.corpus import language_tags
from tokctl.corpus.byte_stream import ByteStream, unreadable
from tokctl.corpus.documents import Reject
from tokctl.corpus.inputs import InputFile
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.readers.fields import BadField, record_fields
from tokctl.corpus.readers.text import too_large, undecodable
from tokctl.corpus.records import Document, Record, reject
from tokctl.corpus.text_encoding import Undecodable, check_utf8
from tokctl.errors import DataError

_BATCH_BYTES = 8 << 20
_ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, OverflowError)


def read(file: InputFile, stream: ByteStream, options: ReadOptions) -> Iterator[Record]:
    """The file's rows in order. A file that is broken is one reject (``corrupt-parquet``), from where it breaks.

    Raises DataError for a text column that is missing or holds no text, naming the columns there are.
    """
    if not stream.peek(1):
        yield reject(file, "empty-document", "the file is empty")
        return
    stream.close()  # Parquet is read from its end
    row = 0
    try:
        for texts, records in _batches(file, options):
            for value, record in zip(texts, records, strict=True):
                yield _document(file, row, value, record, options)
                row += 1
    except pa.ArrowCancelled:
        raise KeyboardInterrupt from None
    except FileNotFoundError as error:
        raise unreadable(file.path, error) from None
    except _ARROW_ERRORS as error:
        yield reject(file, "corrupt-parquet", f"the file can't be read beyond row {row}: {_first_line(error)}", row=row)


def _batches(file: InputFile, options: ReadOptions) -> Iterator[tuple[list[bytes | None], Sequence[dict[str, Any]]]]:
    with pq.ParquetFile(file.path, pre_buffer=False) as parquet:
        leaf = _text_leaf(file.name, file.path, parquet, options.text_column)
        others = _other_columns(file, parquet, options)
        for batch in _row_groups(parquet, [leaf, *others]):
            texts = _column(batch, leaf).cast(pa.large_binary()).to_pylist()
            tops = sorted({name if name in batch.schema.names else name.split(".")[0] for name in others})
            yield texts, batch.select(tops).to_pylist() if tops else [{}] * len(texts)


def _row_groups(parquet: pq.ParquetFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows in batches of about _BATCH_BYTES, by what the file says a row takes."""
    wanted = list(dict.fromkeys(columns))
    for group in range(parquet.num_row_groups):
        stated = parquet.metadata.row_group(group)
        rows = max(1, min(8192, _BATCH_BYTES * stated.num_rows // max(stated.total_byte_size, 1)))
        yield from parquet.iter_batches(rows, row_groups=[group], columns=wanted, use_threads=False)


def _column(batch: pa.RecordBatch, path: str) -> pa.Array:
    """The column at ``path`` with 64-bit offsets; a null struct on the way makes its fields null."""
    if path in batch.schema.names:
        array = batch.column(path)
    else:
        top, *rest = path.split(".")
        array = batch.column(top)
        for name in rest:
            array = array.flatten()[array.type.get_field_index(name)]
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    is_binary = pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type) or array.type == pa.binary_view()
    return array.cast(pa.large_binary() if is_binary else pa.large_string())


def _text_leaf(name: str, path: str, parquet: pq.ParquetFile, column: str) -> str:
    schema = parquet.schema_arrow
    kind = _type_at(schema, column)
    found = ", ".join(f"{field.name} ({field.type})" for field in schema)
    if kind is None:
        raise DataError(
            f"{name} has no column {column!r}",
            hint=f"columns found: {found}; choose one with --text-column", code="no-text-column", file=path,
        )  # fmt: skip
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    if not any(test(value) for test in tests) and value not in (pa.string_view(), pa.binary_view()):
        raise DataError(
            f"the column {column!r} of {name} holds {kind}, not text",
            hint=f"columns found: {found}; choose one with --text-column", code="not-text-column", file=path,
        )  # fmt: skip
    return column


def _other_columns(file: InputFile, parquet: pq.ParquetFile, options: ReadOptions) -> list[str]:
    columns = []
    for path in (
        options.id_field,
        options.language_field,
        options.license_field,
        options.group_field,
        *options.meta_fields,
    ):
        if path is None:
            continue
        if _type_at(parquet.schema_arrow, path) is None:
            raise DataError(
                f"{file.name} has no column {path!r}",
                hint=f"columns found: {', '.join(parquet.schema_arrow.names)}", code="no-column", file=file.path,
            )  # fmt: skip
        columns.append(path)
    return columns


def _type_at(schema: pa.Schema, path: str) -> pa.DataType | None:
    if path in schema.names:
        return schema.field(path).type
    top, *rest = path.split(".")
    if top not in schema.names:
        return None
    kind = schema.field(top).type
    for name in rest:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return kind


def _document(
    file: InputFile, row: int, value: bytes | None, record: dict[str, Any], options: ReadOptions
) -> Document | Reject:
    if value is None:
        return reject(file, "null-text", f"row {row}: the column {options.text_column!r} is null", row=row)
    if len(value) > options.max_document_bytes:
        return too_large(file, options, row=row)
    try:
        decoded = check_utf8(value, options.errors)
        fields = record_fields(record, options)
    except Undecodable as error:
        return undecodable(file, error, options, row=row)
    except BadField as error:
        return reject(file, error.reason, f"row {row}: {error.evidence}", row=row)
    language = language_tags.decide(file.name, options.language_from_path, fields.language)
    return Document(
        file=file,
        text=decoded.text,
        raw=value,
        own_id=fields.own_id,
        row=row,
        language=language or language_tags.fallback(options.language),
        license=fields.license,
        group_id=fields.group_id,
        meta={"format": "parquet"} | fields.meta,
        n_invalid=decoded.n_invalid,
        first_invalid=decoded.first_invalid,
    )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
