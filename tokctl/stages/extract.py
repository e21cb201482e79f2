"""``tokctl extract``: raw pages, archives, code and text to document shards."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokctl.errors import MissingExtra, UsageError
from tokctl.runtime.parameters import Quantity, param
from tokctl.runtime.stage import Input, ResolvedInput, Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.documents import READING_LIBRARIES, ReadingParameters, expand_files, raw_files, read_options


class ExtractParameters(ReadingParameters):
    """Parameters of ``extract``."""

    source: str | None = param(None, help="Name of the source, instead of each input's own name.", metavar="NAME")
    extractor: str = param(
        "resiliparse",
        help="What turns a page into text: resiliparse, trafilatura, or your own package.module:function.",
        metavar="NAME",
    )
    main_content: bool = param(True, help="Only the main content of a page, without navigation and boilerplate.")
    time_limit: int = param(
        10, help="Processor seconds one page may take; then it is rejected.", ge=1, metavar="SECONDS"
    )
    language: str | None = param(
        None, help="Language of documents that have none by field, path or page.", metavar="TAG"
    )
    language_from_path: str | None = param(
        None, help="A regex on the path whose group 'language' (or first group) is the language.", metavar="REGEX"
    )
    language_field: str | None = param(None, help="JSONL and Parquet: the field of the language.", metavar="PATH")
    license: str | None = param(None, help="Licence of documents that have none by field.", metavar="NAME")
    license_field: str | None = param(None, help="JSONL and Parquet: the field of the licence.", metavar="PATH")
    group_field: str | None = param(
        None, help="JSONL and Parquet: the field of the group key for split.", metavar="PATH"
    )
    meta_field: tuple[str, ...] = param(
        (), help="JSONL and Parquet: a field to keep in meta (repeatable).", metavar="PATH"
    )
    shard_bytes: Quantity = param(256_000_000, help="Text in one output shard.", ge=1, metavar="SIZE")

    @property
    def meta_fields(self) -> tuple[str, ...]:
        """The reading option's name for ``meta_field``."""
        return self.meta_field


def run(stage_run: StageRun) -> None:
    """Read files in tasks on processes, then put their documents together in order."""
    from tokctl.corpus.extract_tasks import assemble, plan_tasks, read_task

    parameters = stage_run.parameters
    options = read_options(stage_run)
    files = raw_files(stage_run, "input")
    sizes = {file.name: file.bytes for item in stage_run.inputs["input"] for file in item.files}
    tasks = plan_tasks(files, [sizes.get(file.name, 0) for file in files], options)
    finished = stage_run.tasks("read", tasks, read_task, executor="processes", workers=_workers(stage_run))
    with stage_run.phase("write shards", len(finished), "tasks") as update:
        assembled = assemble(
            [task.directory for task in finished],
            [task.result for task in finished],
            stage_run.directory,
            options,
            target_bytes=parameters.shard_bytes,
            on_step=update,
        )
    for part in assembled.parts:
        stage_run.add_output(part.name, rows=part.rows, sha256=part.sha256)
    stage_run.add_output("rejects.parquet", rows=assembled.n_rejects)
    stage_run.rows_in = sum(task.result["n_documents"] + task.result["n_rejects"] for task in finished)
    stage_run.rows_out = assembled.n_documents
    stage_run.rows_rejected = assembled.n_rejects
    for notice in assembled.report.notices(parameters.errors):
        stage_run.warn(notice)
    stage_run.facts |= {
        "n_files": len(files),
        "ill_formed": assembled.report.facts(),
        "rejects": assembled.rejects_by_reason,
    }


def headline(facts: Mapping[str, Any]) -> list[str]:
    """What a person wants to know of the result."""
    rejects = ", ".join(f"{count:,} {reason}" for reason, count in facts["rejects"].items())
    return [f"{facts['n_files']:,} files" + (f"; rejected: {rejects}" if rejects else "")]


def _workers(stage_run: StageRun) -> int:
    """Reading processes: no more than the memory limit has room for."""
    limit = stage_run.memory_limit
    return stage_run.workers if limit is None else max(1, min(stage_run.workers, limit // _PROCESS_BYTES))


_PROCESS_BYTES = 192 << 20


def check(parameters: Any, inputs: Mapping[str, tuple[ResolvedInput, ...]]) -> None:
    """The source's name is one, and the extractor exists with what it needs."""
    from tokctl.corpus.extractors import EXTRACTORS, EXTRAS

    if parameters.source is not None and (not parameters.source or "/" in parameters.source):
        raise UsageError(
            f"{parameters.source!r} can't be the name of a source: it is one word of a document's id, without '/'",
            hint="--source wiki",
            code="bad-source",
        )
    name = parameters.extractor
    if name in EXTRAS and find_spec(name) is None:
        raise MissingExtra(name, EXTRAS[name], purpose=f"--extractor {name}")
    if name not in EXTRACTORS and ":" not in name:
        raise UsageError(
            f"there is no extractor {name!r}",
            hint=f"choose one of {', '.join(EXTRACTORS)}, or name your own as package.module:function",
            code="unknown-extractor",
        )


def data_tables(parameters: Any) -> dict[str, str]:
    """The version of an optional extractor, when it is the one that is used."""
    from importlib.metadata import version

    from tokctl.corpus.extractors import EXTRAS

    return {parameters.extractor: version(parameters.extractor)} if parameters.extractor in EXTRAS else {}


def plugin_sources(parameters: Any) -> dict[str, str]:
    """The digest of a user's extractor, so that an edit of it makes the output stale."""
    from tokctl.artifacts.digests import sha256_file

    module, colon, _ = parameters.extractor.partition(":")
    if not colon:
        return {}
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise UsageError(
            f"the module {module!r} of --extractor {parameters.extractor} can't be found",
            hint="is its directory on PYTHONPATH?",
            code="unknown-extractor",
        )
    return {parameters.extractor: sha256_file(Path(spec.origin))}


STAGE = Stage(
    name="extract",
    version=1,
    summary="Read pages, archives, code and text into document shards.",
    description=(
        "Read raw input into document shards: HTML files and trees, WARC, JSONL (.gz .zst .bz2 .xz), Parquet, plain text, "
        "Markdown, source code, standard input (-). INPUT is a file, a directory, a quoted glob, @list.txt or NAME=PATH. "
        "What can't become a document is listed in rejects.parquet with its place and reason."
    ),
    parameters=ExtractParameters,
    inputs=(
        Input(
            "input",
            "Files, directories, quoted globs, @list.txt, NAME=PATH, or - for standard input.",
            many=True,
            expand=expand_files,
        ),
    ),
    run=run,
    check=check,
    plugin_sources=plugin_sources,
    data_tables=data_tables,
    headline=headline,
    libraries=READING_LIBRARIES,
    examples=(
        "tokctl extract pages/ archive.warc.gz -o documents",
        "tokctl extract wiki.jsonl.zst -o documents --text-field body.text --id-field id --language-field lang",
    ),
)
