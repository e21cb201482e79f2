"""``tokctl run`` and ``tokctl status``."""

from __future__ import annotations

import inspect
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tokctl.artifacts.manifest import locate_manifest, read_manifest
from tokctl.cli import envelope
from tokctl.cli.stage_command import describe, execution_options, shared_parameters
from tokctl.errors import ArtifactError, UsageError
from tokctl.runtime.execute import Outcome
from tokctl.runtime.pipeline import Node, Pipeline, pipeline_status, read_pipeline, run_pipeline
from tokctl.stages import load_stage

_File = Annotated[str, typer.Argument(help="A pipeline file.", metavar="PIPELINE.toml")]
_Output = Annotated[
    str | None, typer.Option("-o", "--output", help="Where nodes are written (default: the file's).", metavar="DIR")
]
_Only = Annotated[list[str] | None, typer.Option("--only", help="Only this node and what it needs.", metavar="NODE")]


def run_command(pipeline: str, output: str | None, only: list[str] | None, **shared: Any) -> int:
    """Run a pipeline file in one process; what is up to date is skipped, what was cut off is resumed."""
    options = execution_options(shared)
    parsed = _read(pipeline, output)
    started = time.perf_counter()

    def report(node: Node, outcome: Outcome) -> None:
        if not shared["json_"] and not shared["quiet_"]:
            for line in describe(outcome, dry_run=options.dry_run):
                envelope.say(line)

    outcomes = run_pipeline(parsed, load_stage, options, only=tuple(only or ()), on_outcome=report)
    ran = sum(outcome.ran for _, outcome in outcomes)
    if shared["json_"]:
        envelope.emit(
            "run",
            {
                "pipeline": str(parsed.file),
                "output": str(parsed.output),
                "n_run": ran,
                "nodes": [{"node": node.name, **outcome.to_json()} for node, outcome in outcomes],
            },
        )
    elif not shared["quiet_"]:
        seconds = time.perf_counter() - started
        if options.dry_run:
            envelope.say(f"dry run: {len(outcomes)} stages, nothing was written")
        elif ran:
            envelope.say(f"ran {ran} of {len(outcomes)} stages in {seconds:.1f} s; outputs are in {parsed.output}")
        else:
            envelope.say(f"nothing to do: all {len(outcomes)} stages are up to date ({seconds:.1f} s)")
    return 0


def status_command(
    target: Annotated[str, typer.Argument(help="A pipeline file or an output directory.", metavar="PIPELINE.toml|DIR")],
    output: _Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> int:
    """Show where outputs stand: current, stale, partial or absent. Runs nothing."""
    path = Path(target)
    rows = _directory_status(path) if path.is_dir() else pipeline_status(_read(target, output), load_stage)
    if as_json:
        envelope.emit("status", {"rows": rows})
    else:
        width = max(len(row["node"]) for row in rows)
        for row in rows:
            waits = f" (waits for {', '.join(row['waits_for'])})" if row.get("waits_for") else ""
            envelope.say(f"{row['node']:<{width}}  {row['state']:<8}  {row['stage']}  {row['out']}{waits}")
            for change in row.get("changes", ()):
                envelope.say(f"{'':<{width}}  {change}")
    return 0


def _directory_status(path: Path) -> list[dict[str, Any]]:
    directories = [path] if locate_manifest(path) else sorted(p for p in path.iterdir() if p.is_dir())
    rows = []
    for directory in directories:
        name = directory.name
        if ".partial-" in name:
            rows.append(
                {"node": name.partition(".partial-")[0], "state": "partial", "stage": "?", "out": str(directory)}
            )
        elif locate_manifest(directory):
            owner = locate_manifest(directory)
            assert owner is not None
            manifest = read_manifest(owner[0])
            rows.append({"node": name, "state": "finished", "stage": manifest.stage, "out": str(directory)})
    if not rows:
        raise ArtifactError(f"{path} holds no tokctl output", code="no-manifest", file=str(path))
    return rows


def _read(pipeline: str, output: str | None) -> Pipeline:
    path = Path(pipeline)
    if not path.exists():
        raise UsageError(f"there is no pipeline file {path}", hint="see configs/ for examples", code="no-pipeline")
    return read_pipeline(path, load_stage, output=None if output is None else Path(output))


_PARAMETERS = [
    inspect.Parameter("pipeline", inspect.Parameter.KEYWORD_ONLY, annotation=_File),
    inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_Output),
    inspect.Parameter("only", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_Only),
    *shared_parameters(),
]
run_command.__signature__ = inspect.Signature(_PARAMETERS)  # type: ignore[attr-defined]
run_command.__annotations__ = {p.name: p.annotation for p in _PARAMETERS}
