"""``tokctl encode``: documents to token ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tokctl.artifacts.digests import DigestCache
from tokctl.errors import DataError, UsageError
from tokctl.runtime.inputs import resolve_argument
from tokctl.runtime.parameters import Quantity, param
from tokctl.runtime.stage import Input, Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.count import pattern_tables
from tokctl.stages.documents import (
    OnReject,
    ReadingParameters,
    document_tables,
    documents_input,
    read_options,
    rejects_of,
    role_of,
    total_bytes,
)
from tokctl.stages.tokenizer_files import load_tokenizer, tokenizer_input

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from tokctl.tokenizer.encoding import FlatEncoding
    from tokctl.tokenizer.tokenizer import Tokenizer

_COLUMNS = ("doc_id", "source", "license", "text")


class EncodeParameters(ReadingParameters):
    """Parameters of ``encode``."""

    input_format: Literal["auto", "document", "lines", "jsonl", "parquet"] = param(
        "auto",
        help="What a raw file is: one document, a document a line, JSONL rows, Parquet rows; auto: by its name.",
        option="--input",
    )
    bos: bool = param(False, help="Begin each document with the tokenizer's BOS token.")
    eos: bool = param(False, help="End each document with the tokenizer's EOS token.")
    add_special_tokens: bool = param(False, help="Put the tokenizer's template around each document.")
    allow_special: tuple[str, ...] = param(
        (), help="A special token whose spelling in the text becomes the token (repeatable).", metavar="NAME"
    )
    special_in_text: Literal["ordinary", "error"] = param(
        "ordinary", help="A special's spelling that isn't allowed: ordinary text, or an error."
    )
    max_tokens: Quantity | None = param(
        None, help="Longer documents are cut at the end and marked; with --eos the last token is still EOS.", ge=1
    )
    offsets: Literal["raw_utf8_bytes", "raw_codepoints", "normalized_codepoints"] | None = param(
        None, help="Also write where each token comes from, in this unit."
    )
    shard_bytes: Quantity = param(256_000_000, help="Ids in one output shard.", ge=1, metavar="SIZE")


class EncodedBatch(NamedTuple):
    """Encoded documents: the rows they came from, ``ids uint32[n]`` with ``bounds int64[m + 1]``, and what goes with them."""

    documents: pa.Table
    ids: np.ndarray
    bounds: np.ndarray
    truncated: np.ndarray
    detail: FlatEncoding | None
    input_bytes: int


def encoded_batches(stage_run: StageRun, tokenizer: Tokenizer, on_reject: OnReject | None) -> Iterator[EncodedBatch]:
    """Encode the documents of the ``input`` slot, a batch at a time, in order."""
    import numpy as np

    parameters = stage_run.parameters
    options: dict[str, Any] = {
        "bos": parameters.bos,
        "eos": parameters.eos,
        "add_special_tokens": parameters.add_special_tokens,
        "allowed_special": parameters.allow_special,
        "special_in_text": parameters.special_in_text,
        "workers": stage_run.workers,
    }
    for table, input_bytes in _tables(stage_run, on_reject):
        texts = table.column("text").combine_chunks()
        detail = None
        try:
            if parameters.offsets is not None:
                detail = tokenizer.encode_flat_with_offsets(texts, unit=parameters.offsets, **options)
                ids, bounds = detail.ids, detail.offsets
            else:
                ids, bounds = tokenizer.encode_flat(texts, **options)
        except DataError as error:
            raise _of_document(error, table) from None
        truncated = np.zeros(table.num_rows, bool)
        if parameters.max_tokens is not None:
            ids, bounds, truncated = _truncate(tokenizer, parameters, ids, bounds)
        yield EncodedBatch(table, ids, bounds, truncated, detail, input_bytes)


def _of_document(error: DataError, table: pa.Table) -> DataError:
    """An error about a text of a batch, as one about the document that it is."""
    if error.code != "special-in-text" or error.where.row is None:
        return error
    doc_id = table.column("doc_id")[error.where.row].as_py()
    return DataError(
        f"the document {doc_id}: {error.message} at byte {error.where.offset}",
        hint="--allow-special NAME makes it the token, --special-in-text ordinary keeps it text",
        code=error.code,
        offset=error.where.offset,
    )


def _truncate(tokenizer: Tokenizer, parameters: Any, ids: Any, bounds: Any) -> tuple[Any, Any, Any]:
    import numpy as np

    if parameters.offsets is not None:
        raise UsageError("--offsets and --max-tokens don't go together", hint="leave one out", code="offsets-truncated")
    lengths = np.diff(bounds)
    kept = np.minimum(lengths, parameters.max_tokens)
    truncated = lengths > parameters.max_tokens
    position = np.arange(len(ids)) - np.repeat(bounds[:-1], lengths)
    ids = ids[position < np.repeat(kept, lengths)].copy()
    bounds = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    if parameters.eos and truncated.any():
        assert tokenizer.eos_token is not None
        ids[bounds[1:][truncated] - 1] = tokenizer.token_id(tokenizer.eos_token)
    return ids, bounds, truncated


def _tables(stage_run: StageRun, on_reject: OnReject | None) -> Iterator[tuple[pa.Table, int]]:
    kind: str | None = stage_run.parameters.input_format
    kind = {"auto": None, "document": "text"}.get(kind or "auto", kind)
    if kind is None and all(item.argument == "-" for item in stage_run.inputs["input"]):
        kind = "text"  # what is piped in is one document, even if it looks like something else
    options = replace(read_options(stage_run), is_verbatim=True)
    if kind is not None:
        options = replace(options, format=kind)
    yield from document_tables(stage_run, "input", _COLUMNS, on_reject=on_reject, options=options)


def run(stage_run: StageRun) -> None:
    """Write encoded shards: doc_id, source, license, split, ids, n_tokens, truncated (and offsets)."""
    import numpy as np
    import pyarrow as pa

    from tokctl.corpus.shards import ShardWriter

    parameters = stage_run.parameters
    (item,) = stage_run.inputs["tokenizer"]
    tokenizer = load_tokenizer(item)
    roles = {role_of(source) for source in stage_run.inputs["input"]}
    role = roles.pop() if len(roles) == 1 else "undeclared"
    schema = _schema(parameters.offsets is not None)
    writer = ShardWriter(stage_run.directory, schema, parameters.shard_bytes)
    n_tokens = n_truncated = 0
    largest = -1
    with (
        rejects_of(stage_run) as rejects,
        stage_run.phase("encode", total_bytes(stage_run, "input"), "bytes") as update,
    ):
        done = 0
        for batch in encoded_batches(stage_run, tokenizer, rejects.add):
            n = batch.documents.num_rows
            columns: dict[str, Any] = {name: batch.documents.column(name).combine_chunks() for name in _COLUMNS[:3]}
            columns["split"] = pa.array([None if role == "undeclared" else role] * n, pa.large_string())
            columns["ids"] = pa.LargeListArray.from_arrays(batch.bounds, pa.array(batch.ids, pa.uint32()))
            columns["n_tokens"] = pa.array(np.diff(batch.bounds), pa.int64())
            columns["truncated"] = pa.array(batch.truncated)
            if batch.detail is not None:
                for name, values in (("starts", batch.detail.starts), ("stops", batch.detail.stops)):
                    columns[name] = pa.LargeListArray.from_arrays(batch.bounds, pa.array(values, pa.int64()))
            writer.write(pa.record_batch(columns, schema=schema))
            n_tokens += len(batch.ids)
            n_truncated += int(batch.truncated.sum())
            largest = max(largest, int(batch.ids.max(initial=0))) if len(batch.ids) else largest
            done += batch.input_bytes
            update(done)
    for part in writer.close():
        stage_run.add_output(part.name, rows=part.rows, sha256=part.sha256)
        stage_run.rows_out += part.rows
    stage_run.facts |= {
        "tokenizer": tokenizer.semantic_hash,
        "vocab_size": tokenizer.vocab_size,
        "n_tokens": str(n_tokens),
        "n_truncated": n_truncated,
        "largest_id": largest,
        "split": role,
        "boundary_policy": {
            "bos": tokenizer.bos_token if parameters.bos else None,
            "eos": tokenizer.eos_token if parameters.eos else None,
            "add_special_tokens": parameters.add_special_tokens,
            "allowed_special": sorted(parameters.allow_special),
            "special_in_text": parameters.special_in_text,
            "max_tokens": parameters.max_tokens,
        },
    }


def encoded_rows(argument: str) -> Iterator[tuple[int, str | None, list[int]]]:
    """(row, doc_id, ids) of encoded shards: an output of ``encode``, checked against its manifest, or one Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(argument)
    if path.is_dir():
        slot = Input("rows", "the output of encode, or a file of rows", accepts=("encode",))
        resolved = resolve_argument(slot, argument, {}, DigestCache())
        files = [file.path for file in resolved.files if file.name != "rejects.parquet"]
    else:
        files = [path]
    row = 0
    for file in files:
        try:
            parquet = pq.ParquetFile(file)
            names = [name for name in ("doc_id", "ids") if name in parquet.schema_arrow.names]
            kind = parquet.schema_arrow.field("ids").type if "ids" in names else None
            if kind is None or not _is_list_of_integers(kind):
                raise DataError(
                    f"{file} has no column 'ids' of integer lists",
                    hint=f"columns found: {', '.join(parquet.schema_arrow.names)}",
                    code="no-ids",
                    file=str(file),
                )
            for batch in parquet.iter_batches(columns=names):
                for value in batch.to_pylist():
                    yield row, value.get("doc_id"), value["ids"]
                    row += 1
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                f"can't read {file}: {error}", hint="encode again with -o", code="unreadable", file=str(file)
            ) from None


def _is_list_of_integers(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_integer(kind.value_type)


def headline(facts: Mapping[str, Any]) -> list[str]:
    """What a person wants to know of the result."""
    cut = f"; {facts['n_truncated']:,} documents truncated" if facts["n_truncated"] else ""
    return [f"{int(facts['n_tokens']):,} tokens{cut}; tokenizer {facts['tokenizer'][:16]}"]


def _schema(with_offsets: bool) -> pa.Schema:
    import pyarrow as pa

    fields = [
        pa.field("doc_id", pa.large_string(), nullable=False),
        pa.field("source", pa.large_string(), nullable=False),
        pa.field("license", pa.large_string()),
        pa.field("split", pa.large_string()),
        pa.field("ids", pa.large_list(pa.uint32()), nullable=False),
        pa.field("n_tokens", pa.int64(), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
    ]
    if with_offsets:
        fields += [pa.field(name, pa.large_list(pa.int64()), nullable=False) for name in ("starts", "stops")]
    return pa.schema(fields)


STAGE = Stage(
    name="encode",
    version=1,
    summary="Text to token ids.",
    description=(
        "Encode documents. Without -o, rows {doc_id, ids} go to stdout as JSON lines; with -o, shards with a manifest that "
        "records the tokenizer's hash and the boundary policy. Text never yields a special token unless --allow-special "
        "names it."
    ),
    parameters=EncodeParameters,
    inputs=(
        documents_input("Shard directories, raw files, or - for standard input.", is_set=False, required=False),
        tokenizer_input("The tokenizer: a tokctl directory, tokenizer.json or .tiktoken file."),
    ),
    run=run,
    headline=headline,
    libraries=("pyarrow",),
    data_tables=pattern_tables,
    examples=(
        "echo 'Hello world' | tokctl encode --tokenizer tokenizers/8000 -",
        "tokctl encode --tokenizer tokenizers/8000 split/train -o encoded --eos",
    ),
)
