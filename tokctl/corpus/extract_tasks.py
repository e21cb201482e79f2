"""The two halves of ``extract``: tasks that read files in any number of processes, and putting their results together in order.

A task reads some consecutive files into its directory. Its result depends on nothing but these files and the options; ids that need
an ordinal among equal texts are given when the results are put together, so that the number of workers can't show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tokctl.artifacts.durable import disk_errors
from tokctl.corpus.document_ids import IdRegister
from tokctl.corpus.documents import REJECT_SCHEMA, Reject
from tokctl.corpus.ingest import document_groups, document_schema, read_records, to_arrow
from tokctl.corpus.inputs import InputFile
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.reading_report import ReadingReport
from tokctl.corpus.rejects import FILE_NAME as REJECTS_NAME
from tokctl.corpus.rejects import RejectWriter, reject_batch
from tokctl.corpus.shards import TARGET_BYTES, ShardPart, ShardWriter

_TASK_BYTES = 32 << 20
_TASK_FILES = 1024
_DOCUMENTS = "documents.arrow"
_REJECTS = "rejects.arrow"
_REJECT_BATCH = 4096


@dataclass(frozen=True)
class ReadTask:
    """Files to read with the same options; picklable."""

    files: tuple[InputFile, ...]
    options: ReadOptions


@dataclass(frozen=True)
class Assembled:
    """What ``assemble`` wrote: the shard parts, and what became of every record."""

    parts: tuple[ShardPart, ...]
    n_documents: int
    n_rejects: int
    report: ReadingReport
    rejects_by_reason: dict[str, int]


def plan_tasks(files: Sequence[InputFile], sizes: Sequence[int], options: ReadOptions) -> list[ReadTask]:
    """Consecutive files in tasks of about 32 MiB or 1,024 files. ``sizes`` are the files' bytes."""
    tasks: list[ReadTask] = []
    some: list[InputFile] = []
    size = 0
    for file, file_size in zip(files, sizes, strict=True):
        some.append(file)
        size += file_size
        if size >= _TASK_BYTES or len(some) >= _TASK_FILES:
            tasks.append(ReadTask(tuple(some), options))
            some, size = [], 0
    if some:
        tasks.append(ReadTask(tuple(some), options))
    return tasks


def read_task(task: ReadTask, directory: Path) -> dict[str, Any]:
    """Read the task's files into ``directory``; returns ``n_documents`` and the members of a ReadingReport.

    Raises DataError as the readers do.
    """
    schema = _spill_schema(task.options)
    n_documents = 0
    report = ReadingReport()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        disk_errors(directory),
        pa.OSFile(str(directory / _DOCUMENTS), "wb") as document_file,
        pa.ipc.new_stream(document_file, schema, options=options) as documents,
        pa.OSFile(str(directory / _REJECTS), "wb") as reject_file,
        pa.ipc.new_stream(reject_file, REJECT_SCHEMA, options=options) as rejects,
    ):
        dropped: list[Reject] = []

        def flush() -> None:
            if dropped:
                rejects.write_batch(reject_batch(dropped))
                dropped.clear()

        def drop(reject: Reject) -> None:
            dropped.append(reject)
            if len(dropped) >= _REJECT_BATCH:
                flush()

        for group in document_groups(read_records(task.files, task.options), drop, report):
            documents.write_batch(to_arrow(group, schema, None))
            n_documents += len(group)
        flush()
    return {"n_documents": n_documents, **report.to_json()}


def assemble(
    directories: Iterable[Path],
    results: Iterable[dict[str, Any]],
    out: Path,
    options: ReadOptions,
    *,
    target_bytes: int = TARGET_BYTES,
    on_step: Callable[[int], None] | None = None,
) -> Assembled:
    """Write the shards and ``rejects.parquet`` of finished tasks, given in order, into the directory ``out``.

    ``on_step`` is told how many tasks are done. Raises ArtifactError when the disk is full.
    """
    schema = document_schema(options.errors)
    register = IdRegister()
    report = ReadingReport()
    n_documents = 0
    with ShardWriter(out, schema, target_bytes) as shards, RejectWriter(out / REJECTS_NAME) as rejects:
        for done, (directory, result) in enumerate(zip(directories, results, strict=True), 1):
            with pa.memory_map(str(directory / _DOCUMENTS)) as source, pa.ipc.open_stream(source) as reader:
                for batch in reader:
                    shards.write(_with_ids(batch, schema, register))
                    n_documents += batch.num_rows
            with pa.memory_map(str(directory / _REJECTS)) as source, pa.ipc.open_stream(source) as reader:
                rejects.add_batches(reader)
            report.add({name: value for name, value in result.items() if name != "n_documents"})
            if on_step is not None:
                on_step(done)
        parts = tuple(shards.close())
    return Assembled(parts, n_documents, rejects.n_rejects, report, dict(sorted(rejects.reasons.items())))


def _spill_schema(options: ReadOptions) -> pa.Schema:
    """Documents before they have an id: ``own_id`` stands in its place."""
    return document_schema(options.errors).set(0, pa.field("own_id", pa.large_string()))


def _with_ids(batch: pa.RecordBatch, schema: pa.Schema, register: IdRegister) -> pa.RecordBatch:
    ids = register.assign(*(batch.column(name).to_pylist() for name in ("source", "uri", "own_id", "sha256_text")))
    columns = [pa.array(ids, pa.large_string()), *batch.columns[1:]]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
