"""``tokctl count``: the distinct words of a corpus and how often each occurs, counted once per pre-tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokctl.errors import ArtifactError, UsageError
from tokctl.runtime.parameters import StageParameters, param
from tokctl.runtime.stage import Arguments, Input, ResolvedInput, Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.documents import (
    ReadingParameters,
    document_batches,
    documents_input,
    expand_file,
    fit_role,
    rejects_of,
    total_bytes,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from tokctl.corpus.word_counts import Batch, CountReport
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

WORDS = "words.parquet"


class CountParameters(ReadingParameters):
    """Parameters of ``count``."""

    pattern: str = param(
        "gpt2", help="Split pattern: a name, a regex, or none (each document is one word).", metavar="P"
    )
    special: tuple[str, ...] = param(
        (), help="A spelling to carve out before splitting and to count apart (repeatable).", metavar="NAME"
    )
    slice_by: str | None = param(
        None, help="Count per value of this column: language, source, license.", metavar="COLUMN"
    )
    weight_field: str | None = param(
        None, help="An integer in each document's meta that multiplies its words.", metavar="FIELD"
    )
    merge: bool = param(False, help="Add up counts (as INPUT or --counts) instead of counting documents.")


@dataclass(frozen=True)
class Counted:
    """Words on disk and what was found on the way."""

    path: Path
    report: CountReport

    @property
    def specials(self) -> dict[str, int]:
        return {spelling.decode("utf-8", "backslashreplace"): count for spelling, count in self.report.specials}


def count_documents(
    stage_run: StageRun,
    pre_tokenizer: PreTokenizer,
    specials: tuple[str, ...],
    *,
    slice_by: str | None = None,
    weight_field: str | None = None,
    rewrite: Callable[[pa.Array], pa.Array] | None = None,
) -> Counted:
    """Count the documents of the ``input`` slot (and the ``weighted`` files) into the run's work directory.

    ``rows_in`` of the run is what was read, ``rows_out`` what the counter has seen. ``rewrite`` makes what is counted of
    the texts of a batch (any number of pieces); it goes without ``slice_by`` and ``weight_field``.
    """
    from tokctl.corpus.word_counts import WordCounter

    if pre_tokenizer.notice:
        stage_run.log(pre_tokenizer.notice)
    spill = stage_run.work_directory / "spill"
    spill.mkdir(exist_ok=True)
    counter = WordCounter(
        pre_tokenizer,
        specials,
        is_sliced=slice_by is not None,
        memory_limit=stage_run.memory_limit,
        spill_dir=spill,
        workers=stage_run.workers,
    )
    counter.start()
    with rejects_of(stage_run) as rejects, stage_run.phase("count", total_bytes(stage_run, "input"), "bytes") as update:

        def batches() -> Iterator[Batch]:
            from tokctl.corpus.word_counts import Batch

            done = 0
            for batch in document_batches(
                stage_run,
                "input",
                batch_bytes=counter.batch_bytes,
                slice_by=slice_by,
                weight_field=weight_field,
                on_reject=rejects.add,
            ):
                texts = batch.texts if rewrite is None else rewrite(batch.texts)
                yield Batch(texts, batch.slices, batch.weights)
                done += batch.input_bytes
                update(done)

        counter.add_batches(batches())
    for item in stage_run.inputs.get("weighted", ()):
        for file in item.files:
            stage_run.rows_in += counter.add_weighted(file.path)
    path = stage_run.work_directory / WORDS
    report = counter.finish(path)
    stage_run.rows_out = report.n_documents if rewrite is None else stage_run.rows_in - stage_run.rows_rejected
    stage_run.measurements["count_phases"] = counter.phases.to_json(report.n_bytes)
    stage_run.log(counter.phases.line(report.n_bytes))
    return Counted(path, report)


def route(parameters: Any, arguments: Arguments) -> Arguments:
    """With --merge, INPUT names counts too."""
    if not parameters.merge:
        return arguments
    counts = [*arguments.get("input", ()), *arguments.get("counts", ())]
    return {**arguments, "input": (), "counts": counts}


def check(parameters: Any, inputs: Mapping[str, tuple[ResolvedInput, ...]]) -> None:
    """A pattern and a column that are some, and exactly one kind of input."""
    from tokctl.corpus.documents import DOCUMENT_SCHEMA
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

    PreTokenizer.from_pattern(parameters.pattern)
    columns = [name for name in DOCUMENT_SCHEMA.names if name not in ("text", "meta")]
    if parameters.slice_by is not None and parameters.slice_by not in columns:
        raise UsageError(
            f"documents have no column {parameters.slice_by!r} to count by",
            hint=f"columns: {', '.join(columns)}",
            code="unknown-column",
        )
    if parameters.merge:
        if not inputs["counts"] or inputs["weighted"]:
            raise UsageError(
                "count --merge adds up the outputs of count and reads no documents",
                hint="tokctl count --merge A B -o DIR",
                code="input-choice",
            )
        check_alike(inputs["counts"])
    elif inputs["counts"]:
        raise UsageError("count reads --counts only with --merge", hint="add --merge", code="input-choice")
    elif not inputs["input"] and not inputs["weighted"]:
        raise UsageError(
            "count: INPUT is missing",
            hint="name shard directories, raw files, or --weighted FILE",
            code="missing-input",
        )
    for item in inputs["input"]:
        if item.manifest is not None and item.manifest.stage == "split" and not item.under:
            raise UsageError(
                f"{item.argument} is a whole split; counting it would mix train with validation and test",
                hint=f"name {item.argument.rstrip('/')}/train",
                code="whole-split",
            )


def check_alike(counts: tuple[ResolvedInput, ...]) -> None:
    """Refuse counts that can't be added up: of another pre-tokenizer, or sliced otherwise."""
    if not counts:
        return
    first = counts[0]
    assert first.manifest is not None
    for other in counts[1:]:
        assert other.manifest is not None
        for key in ("pre_tokenizer", "slice_by"):
            if other.manifest.facts.get(key) != first.manifest.facts.get(key):
                raise ArtifactError(
                    f"{first.argument} and {other.argument} were counted with another {key.replace('_', '-')}",
                    hint="only counts made in the same way can be added up",
                    code="counts-differ",
                )


def run(stage_run: StageRun) -> None:
    """Count, or add up what was counted elsewhere."""
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

    parameters = stage_run.parameters
    if parameters.merge:
        _merge(stage_run)
        return
    pre_tokenizer = PreTokenizer.from_pattern(parameters.pattern)
    counted = count_documents(
        stage_run,
        pre_tokenizer,
        parameters.special,
        slice_by=parameters.slice_by,
        weight_field=parameters.weight_field,
    )
    report = counted.report
    stage_run.adopt(counted.path, WORDS, rows=report.n_words)
    if report.n_spills:
        stage_run.log(f"{report.n_spills:,} sorted runs were spilled to disk", n_spills=report.n_spills)
    stage_run.facts |= {
        "n_words": report.n_words,
        "total_words": str(report.total),
        "pattern": pre_tokenizer.name,
        "pre_tokenizer": pre_tokenizer.to_json(),
        "specials": {name: str(count) for name, count in counted.specials.items()},
        "slice_by": parameters.slice_by,
        "slices": list(report.slices),
        "fit_split": fit_role(stage_run.inputs["input"]),
    }
    stage_run.measurements["n_spills"] = report.n_spills


def _merge(stage_run: StageRun) -> None:
    from tokctl.corpus.word_counts import merge_files
    from tokctl.corpus.word_counts.parquet import WordCountsFile

    sources = stage_run.inputs["counts"]
    manifests = [item.manifest for item in sources if item.manifest is not None]
    paths = [file.path for item in sources for file in item.files if file.name == WORDS]
    spill = stage_run.work_directory / "spill"
    spill.mkdir(exist_ok=True)
    n_words, total = merge_files(paths, stage_run.directory / WORDS, spill_dir=spill)
    stage_run.add_output(WORDS, rows=n_words)
    specials: dict[str, int] = {}
    for manifest in manifests:
        for name, count in manifest.facts["specials"].items():
            specials[name] = specials.get(name, 0) + int(count)
    stage_run.rows_in = stage_run.rows_out = sum(manifest.counts["rows_out"] for manifest in manifests)
    roles = sorted({str(manifest.facts["fit_split"]) for manifest in manifests})
    stage_run.facts |= {
        "n_words": n_words,
        "total_words": str(total),
        "pattern": manifests[0].facts["pattern"],
        "pre_tokenizer": manifests[0].facts["pre_tokenizer"],
        "specials": {name: str(specials[name]) for name in sorted(specials)},
        "slice_by": manifests[0].facts["slice_by"],
        "slices": list(WordCountsFile(stage_run.directory / WORDS).slices),
        "fit_split": roles[0] if len(roles) == 1 else "mixed: " + ", ".join(roles),
    }


def headline(facts: Mapping[str, Any]) -> list[str]:
    """What a person wants to know of the result."""
    lines = [f"{facts['n_words']:,} distinct words, {int(facts['total_words']):,} in all; pattern {facts['pattern']}"]
    lines += [f"special {name!r}: {int(count):,} carved out" for name, count in facts["specials"].items()]
    return lines


def pattern_tables(parameters: StageParameters) -> dict[str, str]:
    """The Unicode version that split patterns are read with, unless a tokenizer's file names its own."""
    from tokctl.tokenizer.unicode_tables import DEFAULT_VERSION

    return {"unicode": DEFAULT_VERSION}


STAGE = Stage(
    name="count",
    version=1,
    summary="Count the distinct words of a corpus once per pre-tokenizer.",
    description=(
        "Split documents into words (pre-tokens) and count each distinct one, in 64 bits. Documents are never joined. "
        "With --memory-limit, sorted runs are spilled and merged; the bytes are those of the unbounded run."
    ),
    parameters=CountParameters,
    inputs=(
        documents_input(
            "Shard directories (for example SPLIT/train) or raw files; with --merge, counts.", required=False
        ),
        Input(
            "weighted",
            'Texts that occur "count" times: JSONL rows {"text" or "hex", "count"}.',
            option="--weighted",
            required=False,
            many=True,
            expand=expand_file,
            is_set=True,
            metavar="FILE",
        ),
        Input(
            "counts",
            "Counts to add up with --merge (repeatable).",
            option="--counts",
            required=False,
            many=True,
            accepts=("count",),
            is_set=True,
            metavar="DIR",
        ),
    ),
    run=run,
    headline=headline,
    route=route,
    check=check,
    data_tables=pattern_tables,
    libraries=("pyarrow",),
    examples=(
        "tokctl count split/train -o words --pattern cl100k --special '<|endoftext|>'",
        "tokctl count --merge machine-a machine-b -o words",
    ),
)
