"""``tokctl compare``: candidate tokenizers measured on the same validation documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tokctl.errors import CheckFailed, UsageError
from tokctl.runtime.parameters import param
from tokctl.runtime.stage import Input, ResolvedInput, Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.count import pattern_tables
from tokctl.stages.documents import (
    OnReject,
    ReadingParameters,
    document_tables,
    documents_input,
    expand_file,
    rejects_of,
    role_of,
    total_bytes,
)
from tokctl.stages.tokenizer_files import load_tokenizer, tokenizer_input

if TYPE_CHECKING:
    import pyarrow as pa

    from tokctl.metrics.compare import Comparison
    from tokctl.metrics.gates import Gate


class CompareParameters(ReadingParameters):
    """Parameters of ``compare``."""

    baseline: str | None = param(
        None, help="The candidate that others are measured against; it isn't gated.", metavar="NAME"
    )
    slice_by: tuple[str, ...] = param(
        ("language", "source"), help="Columns to report apart (repeatable).", metavar="COLUMN"
    )
    allow_not_checked: tuple[str, ...] = param(
        (), help="A gate (by id) that may go unchecked (repeatable).", metavar="GATE"
    )


def check(parameters: Any, inputs: Mapping[str, tuple[ResolvedInput, ...]]) -> None:
    """Only validation documents are compared on."""
    names = [item.label for item in inputs["candidate"]]
    if parameters.baseline is not None and parameters.baseline not in names:
        raise UsageError(
            f"the baseline {parameters.baseline!r} is not a candidate",
            hint=f"candidates: {', '.join(names)}",
            code="unknown-candidate",
        )
    for item in inputs["validation"]:
        role = role_of(item)
        if role not in ("validation", "undeclared"):
            raise UsageError(
                f"{item.argument} is the {role} part of a split; candidates are compared on validation documents",
                hint="name the split's validation directory",
                code="not-validation",
            )


def compare_inputs(parameters: CompareParameters, stage_run: StageRun, on_reject: OnReject | None = None) -> Comparison:
    """Load the candidates and measure them on the run's validation documents; rejects as in ``document_tables``."""
    from tokctl.metrics.compare import compare
    from tokctl.metrics.gates import read_gates

    gates: tuple[Gate, ...] = ()
    for item in stage_run.inputs["gates"]:
        (file,) = item.files
        gates = read_gates(file.path.read_bytes(), file=str(file.path))
    candidates = {item.label: load_tokenizer(item) for item in stage_run.inputs["candidate"]}
    with stage_run.phase("compare", total_bytes(stage_run, "validation"), "bytes") as update:

        def tables() -> Iterator[pa.Table]:
            done = 0
            for table, input_bytes in document_tables(stage_run, "validation", on_reject=on_reject):
                yield table
                done += input_bytes
                update(done)

        return compare(
            candidates,
            tables(),
            baseline=parameters.baseline,
            gates=gates,
            allow_not_checked=parameters.allow_not_checked,
            slices=parameters.slice_by,
        )


def run(stage_run: StageRun) -> None:
    """Write comparison.json, comparison.md and the per-document evaluation."""
    import pyarrow.parquet as pq

    from tokctl.report.markdown import markdown

    with rejects_of(stage_run) as rejects:
        comparison = compare_inputs(stage_run.parameters, stage_run, rejects.add)
    document = comparison.to_json()
    if rejects.n_rejects:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(rejects.reasons.items()))
        document["notices"].append(f"{rejects.n_rejects:,} validation records were rejected, not measured: {reasons}")
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    (stage_run.directory / "comparison.json").write_text(text, encoding="utf-8")
    (stage_run.directory / "comparison.md").write_text(markdown(document), encoding="utf-8")
    stage_run.add_output("comparison.json")
    stage_run.add_output("comparison.md")
    evaluation = comparison.evaluation.to_table()
    pq.write_table(evaluation, stage_run.directory / "evaluation.parquet", compression="zstd")
    stage_run.add_output("evaluation.parquet", rows=evaluation.num_rows)
    stage_run.rows_out = comparison.n_documents
    stage_run.facts |= {
        "candidates": [
            {"name": name, "semantic_hash": about["semantic"], "vocab_size": about["vocab_size"]}
            for name, about in comparison.candidates.items()
        ],
        "n_gates": len(comparison.gates),
        "passed": comparison.passed,
    }


def failure(document: Mapping[str, Any]) -> CheckFailed:
    """The one-line reason of a comparison whose gates did not all pass."""
    bad = [g for g in document["gates"] if g["status"] != "passed" and g["severity"] == "error"]
    first = bad[0]
    value = first["reason"] if first["value"] is None else f"{first['value']:.6g}"
    more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
    return CheckFailed(
        f"gate {first['id']!r} {first['status']} for {first['candidate']}: {value}{more}",
        hint="the gate rows say what was measured",
        code="gate-failed",
    )


def headline(facts: Mapping[str, Any]) -> list[str]:
    """What a person wants to know of the result."""
    lines = [f"{entry['name']}: {entry['vocab_size']:,} tokens" for entry in facts["candidates"]]
    verdict = "all passed" if facts["passed"] else "not all passed"
    return [*lines, f"{facts['n_gates']:,} gates: {verdict}"] if facts["n_gates"] else lines


STAGE = Stage(
    name="compare",
    version=1,
    summary="Compare candidate tokenizers on validation text.",
    description=(
        "Measure candidates on validation documents, per slice: tokens, bytes and code points per token, single-byte "
        "share, document lengths, byte-exact round trip, amplification against a baseline; judge gates. Exit code 1 when "
        "a gate fails."
    ),
    parameters=CompareParameters,
    inputs=(
        documents_input(
            "Validation documents: a split's validation directory, or raw files.",
            name="validation",
            option="--validation",
        ),
        tokenizer_input("A tokenizer and its name (repeatable).", name="candidate", many=True, labelled=True),
        Input(
            "gates",
            "Limits that the metrics have to keep (TOML; see tokctl schema gates).",
            option="--gates",
            required=False,
            expand=expand_file,
            metavar="FILE",
        ),
    ),
    run=run,
    headline=headline,
    check=check,
    libraries=("pyarrow", "numpy"),
    data_tables=pattern_tables,
    examples=(
        "tokctl compare --validation split/validation --candidate a=tokenizers/8000 --candidate b=other/tokenizer.json",
    ),
)
