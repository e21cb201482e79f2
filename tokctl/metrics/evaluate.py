"""One encode pass per candidate over the validation documents; every metric is computed from what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokctl.corpus.release import text_bytes, text_code_points
from tokctl.errors import DataError, TokctlError, UsageError

Step = Callable[[int, int | None], None]


class Candidate(Protocol):
    """Anything that tokenizes. Optional: ``token_bytes(id)``, ``semantic_hash``."""

    @property
    def vocab_size(self) -> int: ...

    def encode_flat(self, texts: Sequence[str | bytes]) -> tuple[np.ndarray, np.ndarray]:
        """``ids uint32[n], offsets int64[m+1]`` of ``m`` texts."""
        ...

    def decode_bytes(self, ids: Sequence[int]) -> bytes: ...


@dataclass(frozen=True)
class Evaluation:
    """What the encode passes measured; documents ascending by doc_id.

    ``documents``: doc_id, n_bytes, n_code_points (int64) and the slice columns (large_string, null as ``""``).
    ``candidates``: name -> table of the same rows: n_tokens, n_single_byte_tokens (int64, 0 where it failed),
    round_trip (bool: the ids decode to the document's exact bytes), error (large_string, null unless encoding or
    decoding the document raised).
    """

    documents: pa.Table
    candidates: Mapping[str, pa.Table]
    slice_columns: tuple[str, ...]

    def to_table(self) -> pa.Table:
        """Long form for Parquet: a ``candidate`` column, then the document's columns, then the measured ones."""
        parts = []
        for name in sorted(self.candidates):
            table = self.documents.add_column(0, "candidate", pa.repeat(pa.scalar(name, pa.large_string()), len(self)))
            for column in self.candidates[name].column_names:
                table = table.append_column(column, self.candidates[name][column])
            parts.append(table)
        return pa.concat_tables(parts)

    def __len__(self) -> int:
        return int(self.documents.num_rows)


def evaluate(
    candidates: Mapping[str, Candidate],
    batches: Iterable[pa.RecordBatch | pa.Table],
    *,
    slice_columns: Sequence[str] = (),
    on_step: Step | None = None,
    n_documents: int | None = None,
) -> Evaluation:
    """Encode every document with every candidate; documents are read once, a batch at a time.

    ``batches`` have doc_id, text (string or binary) and the slice columns. A candidate that raises on a document has
    that document marked with the error, the others go on. Raises UsageError without candidates or for a slice column
    that the documents lack, DataError without documents or for a null text.
    """
    if not candidates:
        raise UsageError("there is no candidate to compare", hint="--candidate NAME=PATH", code="no-candidates")
    single_byte = {name: _is_single_byte(candidate) for name, candidate in candidates.items()}
    documents: list[pa.Table] = []
    measured: dict[str, list[pa.Table]] = {name: [] for name in candidates}
    done = 0
    for batch in batches:
        missing = [column for column in slice_columns if column not in batch.schema.names]
        if missing:
            raise UsageError(
                f"the documents have no column {missing[0]!r} to slice by",
                hint=f"columns: {', '.join(batch.schema.names)}",
                code="unknown-column",
            )
        texts = batch.column("text")
        if texts.null_count:
            row = done + texts.is_null().to_pylist().index(True)
            raise DataError("a document's text is null", code="null-text", row=row)
        documents.append(_document_columns(batch, slice_columns))
        values = texts.to_pylist()
        for name, candidate in candidates.items():
            measured[name].append(_measure(candidate, values, single_byte[name]))
        done += len(values)
        if on_step is not None:
            on_step(done, n_documents)
    if not done:
        raise DataError(
            "there is no document to compare on",
            hint="name a validation directory that holds some; rejected records don't count",
            code="no-documents",
        )
    table = pa.concat_tables(documents)
    order = pc.sort_indices(table, sort_keys=[("doc_id", "ascending"), ("n_bytes", "ascending")])
    tables = {name: pa.concat_tables(parts).take(order) for name, parts in measured.items()}
    return Evaluation(table.take(order), tables, tuple(slice_columns))


def _document_columns(batch: pa.RecordBatch | pa.Table, slice_columns: Sequence[str]) -> pa.Table:
    texts = batch.column("text")
    columns: dict[str, Any] = {
        "doc_id": pc.cast(batch.column("doc_id"), pa.large_string()),
        "n_bytes": text_bytes(texts),
        "n_code_points": text_code_points(texts),
    }
    for column in slice_columns:
        columns[column] = pc.fill_null(pc.cast(batch.column(column), pa.large_string()), "")
    return pa.table(columns)


def _is_single_byte(candidate: Candidate) -> np.ndarray:
    """``bool[vocab_size]``: the token is one byte. Ids without bytes of their own (holes) are not."""
    token_bytes: Callable[[int], bytes] = getattr(candidate, "token_bytes", None) or (
        lambda token: candidate.decode_bytes([token])
    )

    def is_single(token: int) -> bool:
        try:
            return len(token_bytes(token)) == 1
        except (LookupError, ValueError, TokctlError):
            return False

    return np.fromiter((is_single(token) for token in range(candidate.vocab_size)), bool, candidate.vocab_size)


def _measure(candidate: Candidate, texts: Sequence[str | bytes], single_byte: np.ndarray) -> pa.Table:
    try:
        rows = list(_measure_batch(candidate, texts, single_byte))
    except Exception:  # a candidate is foreign code: find the document it fails on
        rows = []
        for text in texts:
            try:
                rows += _measure_batch(candidate, [text], single_byte)
            except Exception as error:
                rows.append((0, 0, False, f"{type(error).__name__}: {error}"))
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    return pa.table(
        {
            "n_tokens": pa.array(columns[0], pa.int64()),
            "n_single_byte_tokens": pa.array(columns[1], pa.int64()),
            "round_trip": pa.array(columns[2], pa.bool_()),
            "error": pa.array(columns[3], pa.large_string()),
        }
    )


def _measure_batch(
    candidate: Candidate, texts: Sequence[str | bytes], single_byte: np.ndarray
) -> Iterator[tuple[int, int, bool, str | None]]:
    ids, offsets = candidate.encode_flat(texts)
    if len(ids) and int(ids.max()) >= len(single_byte):
        raise ValueError(f"id {int(ids.max())} is outside the vocabulary of {len(single_byte)}")
    single_before = np.concatenate([[0], np.cumsum(single_byte[ids])])
    for i, text in enumerate(texts):
        start, stop = int(offsets[i]), int(offsets[i + 1])
        exact = candidate.decode_bytes(ids[start:stop].tolist()) == (text.encode() if isinstance(text, str) else text)
        yield stop - start, int(single_before[stop] - single_before[start]), exact, None
