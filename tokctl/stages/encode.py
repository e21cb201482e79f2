"""``tokctl encode``: documents to token ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tokctl.artifacts.canonical import MAX_SAFE_INTEGER
from tokctl.errors import UsageError
from tokctl.runtime.parameters import ExactDecimal, Quantity, param
from tokctl.runtime.stage import ResolvedInput, Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.count import pattern_tables
from tokctl.stages.documents import (
    OnReject,
    ReadingParameters,
    document_parts,
    document_tables,
    documents_input,
    read_options,
    rejects_of,
    role_of,
)
from tokctl.stages.tokenizer_files import load_tokenizer, tokenizer_input

if TYPE_CHECKING:
    from tokctl.corpus.encode_tasks import EncodedTable, EncodeSettings, EncodeTask, OutputForm
    from tokctl.corpus.read_options import ReadOptions
    from tokctl.runtime.tasks import FinishedTask
    from tokctl.tokenizer.dropout import Dropout
    from tokctl.tokenizer.tokenizer import Tokenizer


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
    split_policy: Literal["none", "llama3"] = param(
        "none", help="Cut long texts before all else, as Llama 3's own tokenizer does; none: no length changes an id."
    )
    schedules: Literal["follow", "refuse"] = param(
        "follow", help="A tokenizer whose ids depend on the order of merging: merge as its library does, or refuse it."
    )
    dropout: ExactDecimal | None = param(
        None,
        help="BPE-dropout: the probability with which each merge is left out at each step.",
        ge=0,
        le=1,
        metavar="P",
    )
    seed: int = param(0, help="Seed of the dropout.", ge=0, le=MAX_SAFE_INTEGER)
    epoch: int = param(0, help="Another epoch has other draws.", ge=0, le=MAX_SAFE_INTEGER)
    view: int = param(0, help="Another view of the same epoch has other draws.", ge=0, le=MAX_SAFE_INTEGER)
    max_tokens: Quantity | None = param(
        None, help="Longer documents are cut at the end and marked; with --eos the last token is still EOS.", ge=1
    )
    offsets: Literal["raw_utf8_bytes", "raw_codepoints", "normalized_codepoints"] | None = param(
        None, help="Also write where each token comes from, in this unit."
    )
    output_format: Literal["parquet", "flat"] = param(
        "parquet", help="Parquet shards, or files that can be mapped into memory: ids.bin, offsets.bin, documents/."
    )
    ids_type: Literal["auto", "uint16", "uint32"] = param(
        "auto", help="Type of the ids on disk; auto: the smallest that holds the vocabulary."
    )
    shard_bytes: Quantity = param(64_000_000, help="Text of one output shard, about.", ge=1, metavar="SIZE")


def encoded_batches(stage_run: StageRun, tokenizer: Tokenizer, on_reject: OnReject | None) -> Iterator[EncodedTable]:
    """Encode the documents of the ``input`` slot, a batch at a time, in order."""
    from tokctl.corpus.encode_tasks import COLUMNS, encode_table

    settings = _settings(stage_run.parameters)
    for table, _ in document_tables(
        stage_run, "input", COLUMNS, on_reject=on_reject, options=_reading_options(stage_run)
    ):
        yield encode_table(tokenizer, table, settings, stage_run.workers)


def run(stage_run: StageRun) -> None:
    """Encode row groups of documents in tasks, and put their results together in order."""
    from tokctl.corpus.encode_tasks import OutputForm, plan_tasks, write_task
    from tokctl.corpus.encoded_ids import ids_type

    parameters = stage_run.parameters
    (item,) = stage_run.inputs["tokenizer"]
    tokenizer = load_tokenizer(item, parameters.schedules)
    kind = ids_type(tokenizer.vocab_size, parameters.ids_type)
    roles = {role_of(source) for source in stage_run.inputs["input"]}
    role = roles.pop() if len(roles) == 1 else "undeclared"
    settings = _settings(parameters)
    output = OutputForm(parameters.output_format, kind, None if role == "undeclared" else role)

    def encode(task: EncodeTask, directory: Path) -> dict[str, Any]:
        return write_task(task, directory, tokenizer, settings, output)

    with rejects_of(stage_run) as rejects:
        parts = document_parts(stage_run, "input", rejects.add, options=_reading_options(stage_run))
        tasks = plan_tasks(parts, parameters.shard_bytes)
        finished = stage_run.tasks(
            "encode", tasks, encode, executor="threads", unit="shards", workers=_workers(stage_run)
        )
    results = [task.result for task in finished]
    _write_output(stage_run, finished, settings, output, tokenizer)
    stage_run.rows_out = sum(result["rows"] for result in results)
    stage_run.rows_in += stage_run.rows_out
    for notice in tokenizer.notices:
        stage_run.warn(notice)
    stage_run.facts |= {
        "tokenizer": tokenizer.semantic_hash,
        "vocab_size": tokenizer.vocab_size,
        "n_tokens": str(sum(result["n_tokens"] for result in results)),
        "n_truncated": sum(result["n_truncated"] for result in results),
        "largest_id": max((result["largest_id"] for result in results), default=-1),
        "output_format": output.form,
        "ids_type": kind,
        "byte_order": "little",
        "split": role,
        "merge_schedule": _merge_schedule(tokenizer),
        "dropout": None if settings.options["dropout"] is None else _dropout_facts(settings.options["dropout"]),
        "boundary_policy": {
            "bos": tokenizer.bos_token if parameters.bos else None,
            "eos": tokenizer.eos_token if parameters.eos else None,
            "add_special_tokens": parameters.add_special_tokens,
            "allowed_special": sorted(parameters.allow_special),
            "special_in_text": parameters.special_in_text,
            "split_policy": parameters.split_policy,
            "max_tokens": parameters.max_tokens,
        },
    }


def _workers(stage_run: StageRun) -> int:
    """Threads: no more than the memory limit has room for."""
    limit = stage_run.memory_limit
    return stage_run.workers if limit is None else max(1, min(stage_run.workers, limit // _THREAD_BYTES))


_THREAD_BYTES = 160 << 20  # a row group of text, its ids, the cache of words, and Parquet's buffers


def _settings(parameters: Any) -> EncodeSettings:
    from tokctl.corpus.encode_tasks import EncodeSettings

    options: dict[str, Any] = {
        "bos": parameters.bos,
        "eos": parameters.eos,
        "add_special_tokens": parameters.add_special_tokens,
        "allowed_special": parameters.allow_special,
        "special_in_text": parameters.special_in_text,
        "split_policy": parameters.split_policy,
        "dropout": _dropout(parameters),
    }
    return EncodeSettings(options, parameters.offsets, parameters.max_tokens)


def _dropout(parameters: Any) -> Dropout | None:
    from tokctl.tokenizer.dropout import Dropout

    if parameters.dropout is None:
        return None
    return Dropout(float(parameters.dropout), parameters.seed, parameters.epoch, parameters.view)


def _dropout_facts(dropout: Dropout) -> dict[str, Any]:
    return {**dropout.describe(), "sample": "doc_id in UTF-8"}


def _merge_schedule(tokenizer: Tokenizer) -> dict[str, Any]:
    from tokctl.tokenizer.formats.schedules import SCHEDULE

    return {"name": SCHEDULE, "n_dependent_tokens": len(tokenizer.model.schedule_dependent)}


def _reading_options(stage_run: StageRun) -> ReadOptions:
    """Text as it is; what is piped in is one document, even if it looks like something else."""
    kind: str | None = stage_run.parameters.input_format
    kind = {"auto": None, "document": "text"}.get(kind or "auto", kind)
    if kind is None and all(item.argument == "-" for item in stage_run.inputs["input"]):
        kind = "text"
    options = replace(read_options(stage_run), is_verbatim=True)
    return options if kind is None else replace(options, format=kind)


def _write_output(
    stage_run: StageRun,
    finished: list[FinishedTask],
    settings: EncodeSettings,
    output: OutputForm,
    tokenizer: Tokenizer,
) -> None:
    from tokctl.corpus.encode_tasks import EncodeTask, read_lengths, write_task
    from tokctl.corpus.encoded_ids import DOCUMENTS_NAME, IDS_NAME, write_flat
    from tokctl.runtime.tasks import FinishedTask

    if not finished:  # an output of no rows has one empty part
        empty = stage_run.work_directory / "empty"
        empty.mkdir(exist_ok=True)
        finished = [FinishedTask(empty, write_task(EncodeTask(()), empty, tokenizer, settings, output))]
    under = f"{DOCUMENTS_NAME}/" if output.form == "flat" else ""
    for number, task in enumerate(finished):
        name = f"{under}part-{number:05d}.parquet"
        stage_run.adopt(
            task.directory / task.result["part"], name, rows=task.result["rows"], sha256=task.result["sha256"]
        )
    if output.form != "flat":
        return
    files = [path for task in finished if (path := task.directory / IDS_NAME).exists()]
    with stage_run.phase("join", None, "files"):
        lengths = [read_lengths(task.directory) for task in finished]
        written = write_flat(
            stage_run.directory, files, lengths, output.ids_type,
            vocab_size=tokenizer.vocab_size, tokenizer=tokenizer.semantic_hash,
        )  # fmt: skip
    for file in written:
        stage_run.add_output(file.name, rows=file.rows, sha256=file.sha256)


def check(parameters: Any, inputs: Mapping[str, tuple[ResolvedInput, ...]]) -> None:
    """Options that go together."""
    if parameters.dropout is None and (parameters.seed or parameters.epoch or parameters.view):
        raise UsageError(
            "--seed, --epoch and --view number the draws of --dropout", hint="add --dropout 0.1", code="no-dropout"
        )
    if parameters.output_format == "flat" and parameters.offsets is not None:
        raise UsageError(
            "flat files hold no offsets of tokens", hint="--output-format parquet, or no --offsets", code="flat-offsets"
        )


def headline(facts: Mapping[str, Any]) -> list[str]:
    """What a person wants to know of the result."""
    cut = f"; {facts['n_truncated']:,} documents truncated" if facts["n_truncated"] else ""
    return [f"{int(facts['n_tokens']):,} tokens as {facts['ids_type']}{cut}; tokenizer {facts['tokenizer'][:16]}"]


STAGE = Stage(
    name="encode",
    version=2,
    summary="Text to token ids.",
    description=(
        "Encode documents. Without -o, rows {doc_id, ids} go to stdout as JSON lines; with -o, Parquet shards or flat files "
        "with a manifest that records the tokenizer's hash and the boundary policy. Text never yields a special token "
        "unless --allow-special names it."
    ),
    parameters=EncodeParameters,
    inputs=(
        documents_input("Shard directories, raw files, or - for standard input.", is_set=False, required=False),
        tokenizer_input("The tokenizer: a tokctl directory, tokenizer.json or .tiktoken file."),
    ),
    run=run,
    check=check,
    headline=headline,
    libraries=("pyarrow",),
    data_tables=pattern_tables,
    examples=(
        "echo 'Hello world' | tokctl encode --tokenizer tokenizers/8000 -",
        "tokctl encode --tokenizer tokenizers/8000 split/train -o encoded --eos",
        "tokctl encode --tokenizer tokenizers/8000 split/train -o ids --eos --output-format flat",
        "tokctl encode --tokenizer tokenizers/8000 split/train -o epoch-3 --dropout 0.1 --seed 7 --epoch 3",
    ),
)
