"""``tokctl compare``: the stage, with its table on stdout and exit code 1 when a gate fails."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokctl.cli import envelope
from tokctl.cli.stage_command import describe, run_stage, stage_function
from tokctl.runtime.stage import Stage
from tokctl.stages.compare import STAGE, failure


def _compare(stage: Stage, values: Mapping[str, Any], inputs: Sequence[str], options: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="tokctl-compare-") as scratch:
        out = Path(scratch) / "comparison" if values["output_"] is None else Path(values["output_"])
        outcome = run_stage(stage, values, inputs, options, out)
        if values["dry_run_"]:
            if values["json_"]:
                envelope.emit("compare", outcome.to_json())
            else:
                for line in describe(outcome, dry_run=True):
                    envelope.say(line)
            return 0
        document = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    error = None if document["passed"] else failure(document)
    if values["json_"] and error is not None:
        envelope.emit_failed("compare", document, error)
    elif values["json_"]:
        envelope.emit("compare", document)
    else:
        _show(document, quiet=values["quiet_"])
        if values["output_"] and not values["quiet_"]:
            envelope.say(f"the report is in {values['output_']}/comparison.md and comparison.json")
    if error is not None:
        envelope.print_error(error)
        return error.exit_code
    return 0


def _show(document: Mapping[str, Any], *, quiet: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from tokctl.report.table import by_slice, gate_table, overview

    tables = [overview(document)]
    if not quiet:
        tables += [by_slice(document, "bytes_per_token.micro")]
    if document["gates"]:
        tables.append(gate_table(document))
    # a pipe has no width: nothing is folded there
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    for table in tables:
        if not table.rows:
            continue
        shown = Table(title=table.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for column, is_numeric in zip(table.columns, table.numeric, strict=True):
            heading = column.replace(" ", "\n").replace("/", "/\n") if is_numeric else column
            shown.add_column(heading, justify="right" if is_numeric else "left", no_wrap=is_numeric, overflow="fold")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown, markup=False)
    for notice in document["notices"]:
        console.print(f"note: {notice}", markup=False)


command = stage_function(STAGE, _compare)
