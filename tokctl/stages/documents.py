"""Documents as the input of a stage: shard directories or raw files, read exactly as ``extract`` would."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tokctl.errors import UsageError
from tokctl.runtime.parameters import ErrorPolicy, Quantity, StageParameters, param
from tokctl.runtime.stage import Input, ResolvedInput
from tokctl.runtime.stage_run import StageRun

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from tokctl.corpus.documents import Reject
    from tokctl.corpus.inputs import InputFile
    from tokctl.corpus.read_options import ReadOptions
    from tokctl.corpus.reading_report import ReadingReport
    from tokctl.corpus.rejects import RejectWriter

READING_LIBRARIES = ("pyarrow", "resiliparse", "fastwarc")
DOCUMENT_STAGES = ("extract", "dedup exact", "dedup minhash", "split")
_BATCH_ROWS = 256
OnReject = Callable[["Reject"], None]


class ReadingParameters(StageParameters):
    """How raw files are read; shards are read as they are."""

    errors: ErrorPolicy = param(
        "error",
        help="Text that isn't valid in its encoding: stop, replace with U+FFFD, skip the document, or keep the raw bytes.",
    )
    format: Literal["auto", "text", "lines", "code", "jsonl", "parquet", "html", "warc"] = param(
        "auto", help="Format of raw files, instead of by their names."
    )
    encoding: str = param(
        "auto", help="Encoding of raw text, instead of UTF-8 or what a page declares.", metavar="NAME"
    )
    text_field: str = param(
        "text", help="JSONL: where the text is; a dotted path reaches into objects.", metavar="PATH"
    )
    text_column: str = param("text", help="Parquet: the column of the text.", metavar="COLUMN")
    id_field: str | None = param(None, help="JSONL and Parquet: the field that identifies a record.", metavar="PATH")
    max_document_bytes: Quantity = param(1 << 30, help="A larger document is rejected.", ge=1, metavar="SIZE")
    max_ratio: Quantity = param(200, help="Compressed input that grows more than this is refused.", ge=1, metavar="N")
    max_decompressed_bytes: Quantity = param(
        64 << 30, help="... and so is more than this from one file.", ge=1, metavar="SIZE"
    )


class DocumentBatch(NamedTuple):
    """Documents of one batch: their texts, and for counting their slice names and weights; ``input_bytes`` read for it."""

    texts: pa.Array
    slices: pa.Array | None
    weights: np.ndarray | None
    input_bytes: int


def documents_input(
    help: str,  # noqa: A002
    *,
    name: str = "input",
    option: str | None = None,
    required: bool = True,
    is_set: bool = True,
) -> Input:
    """An input slot for documents. ``is_set``: the order of the arguments doesn't matter and is sorted away."""
    return Input(
        name,
        help,
        option=option,
        required=required,
        many=True,
        accepts=DOCUMENT_STAGES,
        expand=expand_files,
        is_set=is_set,
        libraries=READING_LIBRARIES,
        metavar=None if option is None else "INPUT",
    )


def expand_files(argument: str, parameters: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """The raw files that an argument names, in their order, as (source/uri, path)."""
    from tokctl.corpus.inputs import expand_input

    return [(file.name, Path(file.path)) for file in expand_input(argument, parameters.get("source"))]


def expand_file(argument: str, parameters: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """The one file that an argument names."""
    path = Path(argument)
    if not os.path.isfile(argument):  # noqa: PTH113 (false, not an error, for a name that is too long)
        what = "is a directory" if path.is_dir() else "doesn't exist"
        raise UsageError(f"the file {argument} {what}", hint="name one file", code="missing-input", file=argument)
    return [(path.name, path)]


def role_of(item: ResolvedInput) -> str:
    """``train``, ``validation`` or ``test`` for documents from a split, ``whole`` for a split as such, else ``undeclared``."""
    manifest = item.manifest
    if manifest is None:
        return "undeclared"
    if manifest.stage == "split":
        return item.under or "whole"
    if "fit_split" in manifest.facts:
        return str(manifest.facts["fit_split"])
    roles = {record.get("under") or "whole" for record in manifest.inputs if record.get("stage") == "split"}
    return roles.pop() if len(roles) == 1 else "undeclared"


def fit_role(items: Sequence[ResolvedInput]) -> str:
    """The role of all the documents something was counted or fitted on."""
    roles = sorted({role_of(item) for item in items})
    return roles[0] if len(roles) == 1 else "mixed: " + ", ".join(roles) if roles else "undeclared"


def check_fit_role(item: ResolvedInput) -> None:
    """Refuse to fit on documents that are held out."""
    role = role_of(item)
    if role in ("train", "undeclared"):
        return
    what = "the whole split" if role == "whole" else f"the {role} part of a split"
    raise UsageError(
        f"{item.argument} is {what}; a tokenizer is fitted on train only",
        hint="name the split's train directory, or counts made from it",
        code="not-train",
    )


def total_bytes(stage_run: StageRun, slot: str) -> int:
    """Bytes on disk of everything in a slot, for progress."""
    return sum(file.bytes for item in stage_run.inputs[slot] for file in _document_files(item))


def document_tables(
    stage_run: StageRun,
    slot: str,
    columns: Sequence[str] | None = None,
    *,
    on_reject: OnReject | None = None,
    options: ReadOptions | None = None,
) -> Iterator[tuple[pa.Table, int]]:
    """``(documents, input bytes)`` in batches; all columns of the document schema unless named.

    Raw files are read with ``options``, the run's unless given. Counts ``rows_in`` of the run; rejects of raw files go to
    ``on_reject`` and are counted, without one the first is raised.
    """
    import pyarrow as pa

    from tokctl.corpus.documents import DOCUMENT_SCHEMA

    names = list(columns) if columns is not None else DOCUMENT_SCHEMA.names
    for item in stage_run.inputs[slot]:
        if item.is_stage_output:
            for file in _document_files(item):
                yield from _part_batches(stage_run, file.path, names, file.bytes)
    raw = raw_files(stage_run, slot)
    if not raw:
        return
    from tokctl.corpus.ingest import iter_batches

    def rejected(reject: Reject) -> None:
        stage_run.rows_in += 1
        stage_run.rows_rejected += 1
        if on_reject is not None:
            on_reject(reject)

    with _reading_report(stage_run) as report:
        for batch in iter_batches(
            raw,
            options or read_options(stage_run),
            names,
            on_reject=rejected if on_reject is not None else None,
            report=report,
        ):
            stage_run.rows_in += batch.num_rows
            yield pa.Table.from_batches([batch]), batch.nbytes


def document_batches(
    stage_run: StageRun,
    slot: str,
    *,
    batch_bytes: int = 8 << 20,
    slice_by: str | None = None,
    weight_field: str | None = None,
    on_reject: OnReject | None = None,
) -> Iterator[DocumentBatch]:
    """Texts in batches of at most ``batch_bytes`` (or one document), with slices and weights where asked for."""
    columns = ["text"]
    if slice_by is not None:
        columns.append(slice_by)
    if weight_field is not None and "meta" not in columns:
        columns.append("meta")
    for table, input_bytes in document_tables(stage_run, slot, columns, on_reject=on_reject):
        for piece, share in _by_bytes(table, batch_bytes, input_bytes):
            texts = piece.column("text").combine_chunks()
            slices = None if slice_by is None else piece.column(slice_by).combine_chunks().fill_null("")
            weights = None if weight_field is None else _weights(piece, weight_field)
            yield DocumentBatch(texts, slices, weights, share)


def document_parts(
    stage_run: StageRun, slot: str, rejects: OnReject, *, options: ReadOptions | None = None
) -> list[Path]:
    """Parquet parts that hold all documents of a slot; raw files are first read into the work directory.

    Raw files are read with ``options``, the run's unless given.
    """
    parts = [file.path for item in stage_run.inputs[slot] if item.is_stage_output for file in _document_files(item)]
    raw = raw_files(stage_run, slot)
    if raw:
        import pyarrow as pa

        from tokctl.corpus.ingest import document_schema, iter_batches
        from tokctl.corpus.shards import ShardWriter

        options = options or read_options(stage_run)
        directory = stage_run.work_directory / f"raw-{slot}"
        shutil.rmtree(directory, ignore_errors=True)  # of a run that was cut off
        directory.mkdir()

        def rejected(reject: Reject) -> None:
            stage_run.rows_in += 1
            stage_run.rows_rejected += 1
            rejects(reject)

        writer = ShardWriter(directory, document_schema(options.errors))
        names = document_schema(options.errors).names
        with _reading_report(stage_run) as report:
            for batch in iter_batches(raw, options, names, on_reject=rejected, report=report):
                writer.write(batch)
        parts += [directory / part.name for part in writer.close()]
        pa.default_memory_pool().release_unused()  # it would keep what the largest document took
    return parts


@contextmanager
def _reading_report(stage_run: StageRun) -> Iterator[ReadingReport]:
    """What reading raw files has met: told to the user and in the facts when it is over."""
    from tokctl.corpus.reading_report import ReadingReport

    report = ReadingReport()
    yield report
    stage_run.facts["ill_formed"] = report.facts()
    for notice in report.notices(stage_run.parameters.errors):
        stage_run.warn(notice)


@contextmanager
def rejects_of(stage_run: StageRun) -> Iterator[RejectWriter]:
    """The run's ``rejects.parquet``: open while the stage works, then an output, its reasons counted in the facts."""
    from tokctl.corpus.rejects import FILE_NAME, RejectWriter

    with RejectWriter(stage_run.directory / FILE_NAME) as writer:
        yield writer
    stage_run.add_output(FILE_NAME, rows=writer.n_rejects)
    stage_run.facts["rejects"] = {reason: writer.reasons[reason] for reason in sorted(writer.reasons)}


def write_documents(
    stage_run: StageRun, batches: Iterable[pa.RecordBatch], schema: pa.Schema, shard_bytes: int, under: str = ""
) -> int:
    """Write documents as ``under``part-00000.parquet ... and declare them outputs; returns their number."""
    from tokctl.corpus.shards import ShardWriter

    directory = stage_run.directory / under
    directory.mkdir(parents=True, exist_ok=True)
    writer = ShardWriter(directory, schema, shard_bytes)
    for batch in batches:
        writer.write(batch)
    n_rows = 0
    for part in writer.close():
        stage_run.add_output(f"{under}/{part.name}" if under else part.name, rows=part.rows, sha256=part.sha256)
        n_rows += part.rows
    return n_rows


def text_schema(parts: Sequence[Path]) -> pa.Schema:
    """The document schema of parts; DataError when some hold text and some raw bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tokctl.corpus.documents import DOCUMENT_SCHEMA
    from tokctl.corpus.shards import part_errors
    from tokctl.errors import DataError

    schemas = []
    for part in parts:
        with part_errors(part):
            schemas.append(pq.read_schema(part))
    schemas = schemas or [DOCUMENT_SCHEMA]
    for part, schema in zip(parts, schemas, strict=False):
        missing = [name for name in DOCUMENT_SCHEMA.names if name not in schema.names]
        if missing:
            raise DataError(
                f"{part} has no column {missing[0]!r}: it isn't a shard of documents",
                hint="make document shards with 'tokctl extract'",
                code="bad-schema",
                file=str(part),
            )
        if schema.field("text").type != schemas[0].field("text").type:
            raise DataError(
                f"{part} holds {schema.field('text').type} where {parts[0]} holds {schemas[0].field('text').type}",
                hint="extract all inputs with the same --errors policy",
                code="mixed-text",
                file=str(part),
            )
    return pa.schema([schemas[0].field(name).with_metadata({}) for name in DOCUMENT_SCHEMA.names])


def read_options(stage_run: StageRun) -> ReadOptions:
    """The run's ReadOptions."""
    from tokctl.corpus.read_options import ReadOptions

    return ReadOptions.from_parameters(stage_run.parameters)


def _document_files(item: ResolvedInput) -> list[Any]:
    if not item.is_stage_output:
        return list(item.files)
    return [file for file in item.files if Path(file.name).name.startswith("part-")]


def raw_files(stage_run: StageRun, slot: str) -> list[InputFile]:
    """The raw files of a slot in order, each once."""
    from tokctl.corpus.inputs import InputFile, distinct

    return distinct(
        InputFile.from_name(file.name, file.path, getattr(stage_run.parameters, "source", None))
        for item in stage_run.inputs[slot]
        if not item.is_stage_output
        for file in item.files
    )


def _part_batches(stage_run: StageRun, path: Path, columns: list[str], size: int) -> Iterator[tuple[pa.Table, int]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tokctl.corpus.shards import part_errors

    with part_errors(path), pq.ParquetFile(path) as file:
        missing = [name for name in columns if name not in file.schema_arrow.names]
        if missing:
            raise UsageError(
                f"the documents have no column {missing[0]!r}",
                hint=f"columns: {', '.join(file.schema_arrow.names)}",
                code="unknown-column",
                file=str(path),
            )
        n_rows = max(1, file.metadata.num_rows)
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            stage_run.rows_in += batch.num_rows
            yield pa.Table.from_batches([batch]), size * batch.num_rows // n_rows


def _by_bytes(table: pa.Table, limit: int, input_bytes: int) -> Iterator[tuple[pa.Table, int]]:
    """The table in slices whose text is at most ``limit`` bytes, or one row."""
    if table.column("text").nbytes <= limit or table.num_rows <= 1:
        yield table, input_bytes
        return
    middle = table.num_rows // 2
    for piece in (table.slice(0, middle), table.slice(middle)):
        yield from _by_bytes(piece, limit, input_bytes * piece.num_rows // table.num_rows)


def _weights(table: pa.Table, field: str) -> np.ndarray:
    import json

    import numpy as np

    from tokctl.errors import DataError

    weights = np.empty(table.num_rows, np.int64)
    for row, meta in enumerate(table.column("meta").to_pylist()):
        value = json.loads(meta).get(field)
        if type(value) is not int or not 0 <= value < 1 << 63:
            raise DataError(
                f"the weight {field!r} in a document's meta is {value!r}, expected an integer from 0 to 2**63 - 1",
                hint="give every document an integer weight (extract --meta-field)",
                code="bad-weight",
                row=row,
            )
        weights[row] = value
    return weights
