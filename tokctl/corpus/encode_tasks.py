"""Encoding documents: a table at a time, and in tasks over the row groups of Parquet parts.

A task reads some consecutive row groups and writes one finished part of the output, so that its result depends on nothing but
these, the tokenizer and the settings; tasks share no state, and a run that was cut off goes on from those that are done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from tokctl.artifacts.durable import disk_errors
from tokctl.corpus.encoded_ids import IDS_NAME, document_fields, encoded_schema
from tokctl.corpus.shards import ShardWriter, read_row_groups, row_group_bytes
from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.encoding import FlatEncoding
from tokctl.tokenizer.tokenizer import Tokenizer

COLUMNS = ("doc_id", "source", "license", "text")
LENGTHS_NAME = "lengths.bin"
_WHOLE = 1 << 62


@dataclass(frozen=True)
class EncodeSettings:
    """How documents are encoded: ``options`` of ``Tokenizer.encode_flat``; ``offsets``, a unit, to have them too;
    ``max_tokens``, at which longer documents are cut (their last token is still EOS where EOS is asked for).
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    offsets: str | None = None
    max_tokens: int | None = None


@dataclass(frozen=True)
class OutputForm:
    """What a task writes: ``form``, the type of the ids, and what the column ``split`` says."""

    form: Literal["parquet", "flat"]
    ids_type: str
    split: str | None


class EncodedTable(NamedTuple):
    """Encoded documents: the rows they came from, ``ids uint32[n]`` with ``bounds int64[m + 1]``, and what goes with them."""

    documents: pa.Table
    ids: np.ndarray
    bounds: np.ndarray
    truncated: np.ndarray
    detail: FlatEncoding | None


@dataclass(frozen=True)
class EncodeTask:
    """Consecutive row groups: ``(part, numbers of its row groups)`` in order."""

    groups: tuple[tuple[Path, tuple[int, ...]], ...]


def plan_tasks(parts: Sequence[Path], target_bytes: int) -> list[EncodeTask]:
    """The row groups of ``parts`` in tasks of about ``target_bytes`` of uncompressed input each."""
    tasks: list[EncodeTask] = []
    some: list[tuple[Path, tuple[int, ...]]] = []
    size = 0
    for part in parts:
        first = 0
        sizes = row_group_bytes(part)
        for group, group_size in enumerate(sizes):
            size += group_size
            if size >= target_bytes or group == len(sizes) - 1:
                some.append((part, tuple(range(first, group + 1))))
                first = group + 1
            if size >= target_bytes:
                tasks.append(EncodeTask(tuple(some)))
                some, size = [], 0
    if some:
        tasks.append(EncodeTask(tuple(some)))
    return tasks


def encode_table(tokenizer: Tokenizer, table: pa.Table, settings: EncodeSettings, workers: int = 1) -> EncodedTable:
    """Encode the documents of a table with the columns ``doc_id`` and ``text``.

    The sample of dropout is the ``doc_id``. Raises DataError about a text with the document's id in place of its row.
    """
    options: dict[str, Any] = {**settings.options, "workers": workers}
    if options.get("dropout") is not None:
        options["samples"] = table.column("doc_id").combine_chunks()
    texts = table.column("text").combine_chunks()
    detail = None
    try:
        if settings.offsets is not None:
            detail = tokenizer.encode_flat_with_offsets(texts, unit=settings.offsets, **options)
            ids, bounds = detail.ids, detail.offsets
        else:
            ids, bounds = tokenizer.encode_flat(texts, **options)
    except DataError as error:
        raise _of_document(error, table) from None
    truncated = np.zeros(table.num_rows, bool)
    if settings.max_tokens is not None:
        ids, bounds, truncated = _truncate(tokenizer, settings, ids, bounds)
    return EncodedTable(table, ids, bounds, truncated, detail)


def write_task(
    task: EncodeTask, directory: Path, tokenizer: Tokenizer, settings: EncodeSettings, output: OutputForm
) -> dict[str, Any]:
    """Encode a task's documents into ``directory``: one Parquet part, and for the flat form the ids and their numbers.

    Returns ``rows``, ``n_tokens``, ``n_truncated``, ``largest_id`` (-1 for none) and the part's ``sha256``.
    """
    is_flat = output.form == "flat"
    with_offsets = settings.offsets is not None
    schema = pa.schema(document_fields()) if is_flat else encoded_schema(output.ids_type, with_offsets)
    n_tokens = n_truncated = 0
    largest = -1
    with disk_errors(directory), ShardWriter(directory, schema, _WHOLE) as writer:
        for path, groups in task.groups:
            for batch in read_row_groups(path, groups, COLUMNS):
                encoded = _narrow(encode_table(tokenizer, pa.Table.from_batches([batch]), settings), output.ids_type)
                del batch  # with the text, which may be one huge document
                ids = encoded.ids
                if is_flat:
                    _append(directory / IDS_NAME, ids.astype(ids.dtype.newbyteorder("<"), copy=False))
                    _append(directory / LENGTHS_NAME, np.diff(encoded.bounds).astype("<i8", copy=False))
                n_tokens += len(ids)
                n_truncated += int(encoded.truncated.sum())
                largest = max(largest, int(ids.max(initial=0))) if len(ids) else largest
                rows = _rows(encoded, output, schema)
                del encoded, ids
                writer.write(rows)
                del rows
        (part,) = writer.close()
    return {
        "rows": part.rows,
        "sha256": part.sha256,
        "part": part.name,
        "n_tokens": n_tokens,
        "n_truncated": n_truncated,
        "largest_id": largest,
    }


def read_lengths(directory: Path) -> np.ndarray:
    """``int64[n]``: how many ids each document of a finished flat task has."""
    path = directory / LENGTHS_NAME
    return np.fromfile(path, "<i8").astype(np.int64, copy=False) if path.exists() else np.empty(0, np.int64)


def _narrow(encoded: EncodedTable, kind: str) -> EncodedTable:
    """Without the text, and with ids of their final type: what is written, and no more."""
    return encoded._replace(documents=encoded.documents.select(COLUMNS[:3]), ids=encoded.ids.astype(kind, copy=False))


def _rows(encoded: EncodedTable, output: OutputForm, schema: pa.Schema) -> pa.RecordBatch:
    n = encoded.documents.num_rows
    columns: dict[str, Any] = {name: encoded.documents.column(name).combine_chunks() for name in COLUMNS[:3]}
    columns["split"] = pa.array([output.split] * n, pa.large_string())
    columns["n_tokens"] = pa.array(np.diff(encoded.bounds), pa.int64())
    columns["truncated"] = pa.array(encoded.truncated)
    if "ids" in schema.names:
        columns["ids"] = pa.LargeListArray.from_arrays(encoded.bounds, pa.array(encoded.ids))
    if encoded.detail is not None and "starts" in schema.names:
        for name, values in (("starts", encoded.detail.starts), ("stops", encoded.detail.stops)):
            columns[name] = pa.LargeListArray.from_arrays(encoded.bounds, pa.array(values, pa.int64()))
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)


def _append(path: Path, values: np.ndarray) -> None:
    with path.open("ab") as file:
        values.tofile(file)


def _of_document(error: DataError, table: pa.Table) -> DataError:
    """An error about a text of a batch, as one about the document that it is."""
    row = error.where.row
    if row is None:
        return error
    doc_id = table.column("doc_id")[row].as_py()
    hint = error.hint
    if error.code == "special-in-text":
        hint = "--allow-special NAME makes it the token, --special-in-text ordinary keeps it text"
    return DataError(
        f"the document {doc_id}: {error.message} at byte {error.where.offset}",
        hint=hint,
        code=error.code,
        offset=error.where.offset,
    )


def _truncate(
    tokenizer: Tokenizer, settings: EncodeSettings, ids: np.ndarray, bounds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if settings.offsets is not None:
        raise UsageError("--offsets and --max-tokens don't go together", hint="leave one out", code="offsets-truncated")
    assert settings.max_tokens is not None
    lengths = np.diff(bounds)
    truncated = lengths > settings.max_tokens
    if not truncated.any():
        return ids, bounds, truncated
    kept = np.minimum(lengths, settings.max_tokens)
    starts = bounds[:-1].tolist()
    ids = np.concatenate([ids[start : start + n] for start, n in zip(starts, kept.tolist(), strict=True)])
    bounds = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    if settings.options.get("eos"):
        assert tokenizer.eos_token is not None
        ids[bounds[1:][truncated] - 1] = tokenizer.token_id(tokenizer.eos_token)
    return ids, bounds, truncated
