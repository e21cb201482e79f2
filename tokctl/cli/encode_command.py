"""``tokctl encode``: rows of ids on stdout, or encoded shards with ``-o``."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokctl.artifacts.digests import DigestCache
from tokctl.cli import envelope
from tokctl.cli.stage_command import arguments_of, describe, execution_options, parameters_of, run_stage, stage_function
from tokctl.errors import UsageError
from tokctl.runtime.inputs import resolve_inputs
from tokctl.runtime.stage import Stage
from tokctl.runtime.stage_run import StageRun
from tokctl.stages.encode import STAGE, check, encoded_batches
from tokctl.stages.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from tokctl.corpus.documents import Reject


def _encode(stage: Stage, values: Mapping[str, Any], inputs: Sequence[str], options: Sequence[str]) -> int:
    if not values["input"]:
        values = {**values, "input": ["-"]}
    if values["output_"] is not None or values["dry_run_"]:
        out = Path("encoded" if values["output_"] is None else values["output_"])
        outcome = run_stage(stage, values, inputs, options, out)
        if values["json_"]:
            envelope.emit(stage.name, outcome.to_json())
        elif not values["quiet_"]:
            for line in describe(outcome, dry_run=values["dry_run_"]):
                envelope.say(line)
        return 0
    with tempfile.TemporaryDirectory(prefix="tokctl-encode-") as scratch:
        rejects: list[Reject] = []
        rows = _rows(stage, values, inputs, options, Path(scratch), rejects)
        if values["json_"]:
            envelope.emit(stage.name, {"rows": list(rows), "rejected": [asdict(reject) for reject in rejects]})
        else:
            for row in rows:
                envelope.say(json.dumps(row, ensure_ascii=False))
    return 0


def _rows(
    stage: Stage,
    values: Mapping[str, Any],
    inputs: Sequence[str],
    options: Sequence[str],
    scratch: Path,
    rejects: list[Reject],
) -> Iterator[dict[str, Any]]:
    """``{"doc_id", "ids", "offsets"?}`` of each document. A reject is an error here, unless ``--errors skip`` asks for it."""
    parameters = parameters_of(stage, values, options)
    if values["output_format"] == "flat" or values["ids_type"] not in (None, "auto"):
        raise UsageError(
            "rows on stdout have no form or type of ids", hint="name a directory: -o DIR", code="no-output"
        )
    resolved = resolve_inputs(stage, arguments_of(values, inputs), parameters.model_dump(), DigestCache())
    check(parameters, resolved)
    run = StageRun(parameters, resolved, scratch, execution_options({**values, "quiet_": True}))
    (item,) = resolved["tokenizer"]
    on_reject = rejects.append if parameters.errors == "skip" else None  # type: ignore[attr-defined]
    tokenizer = load_tokenizer(item, parameters.schedules)  # type: ignore[attr-defined]
    for batch in encoded_batches(run, tokenizer, on_reject):
        ids, bounds = batch.ids.tolist(), batch.bounds.tolist()
        starts = stops = None
        if batch.detail is not None:
            starts, stops = batch.detail.starts.tolist(), batch.detail.stops.tolist()
        for index, doc_id in enumerate(batch.documents.column("doc_id").to_pylist()):
            part = slice(bounds[index], bounds[index + 1])
            row: dict[str, Any] = {"doc_id": doc_id, "ids": ids[part]}
            if starts is not None and stops is not None:
                row["offsets"] = [list(pair) for pair in zip(starts[part], stops[part], strict=True)]
            yield row


command = stage_function(STAGE, _encode)
