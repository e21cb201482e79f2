"""``tokctl verify``, ``hash``, ``schema`` and ``stages``: what is on disk and what may be asked for."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any

import typer

from tokctl.artifacts.manifest import locate_manifest
from tokctl.artifacts.schemas import SCHEMAS
from tokctl.artifacts.verify import Finding, verify_directory
from tokctl.cli import envelope
from tokctl.errors import ArtifactError, CheckFailed, UsageError
from tokctl.runtime.parameters import affects_output
from tokctl.stages import STAGES, load_stage

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


def verify_command(
    path: Annotated[list[str], typer.Argument(help="A stage's output directory.", metavar="DIR")],
    as_json: _Json = False,
) -> int:
    """Re-hash every file of an artifact and check its manifest, its row counts and, for tokenizers, its self-test."""
    findings: list[Finding] = []
    checked: list[dict[str, Any]] = []
    for name in path:
        directory = Path(name)
        if not directory.is_dir():
            raise ArtifactError(
                f"{directory} is not a directory", hint="name a stage's output directory", code="no-manifest", file=name
            )
        located = locate_manifest(directory)
        if located is None and (directory / "tokctl.json").is_file():
            from tokctl.stages.verify import saved_tokenizer_findings

            findings += saved_tokenizer_findings(directory)
            checked.append({"directory": name, "stage": None, "n_files": 2})
            continue
        manifest, found = verify_directory(located[0] if located else directory)
        if manifest is not None:
            from tokctl.stages.verify import stage_findings

            found += stage_findings(located[0] if located else directory, manifest)
            checked.append({"directory": name, "stage": manifest.stage, "n_files": len(manifest.outputs)})
        findings += found
    errors = sum(finding.severity == "error" for finding in findings)
    result = {"checked": checked, "findings": [finding.to_json() for finding in findings]}
    failure = CheckFailed(
        f"{errors} finding{'s' if errors != 1 else ''} in {', '.join(path)}",
        hint="the findings say what to do",
        code="verify-failed",
    )
    if as_json and errors:
        envelope.emit_failed("verify", result, failure)
    elif as_json:
        envelope.emit("verify", result)
    else:
        for finding in findings:
            expected = f" expected {finding.expected}" if finding.expected else ""
            seen = f" found {finding.found}" if finding.found else ""
            envelope.say(f"{finding.severity}: {finding.code}: {finding.where}{expected}{seen}")
            if finding.evidence:
                envelope.say(f"  {finding.evidence}")
            envelope.say(f"  fix: {finding.fix}")
        for row in checked:
            kind, done = (row["stage"], "hashed") if row["stage"] else ("a saved tokenizer", "read")
            envelope.say(f"{row['directory']}: {kind}, {row['n_files']} files {done}")
    if errors:
        envelope.print_error(failure)
    return failure.exit_code if errors else 0


def hash_command(
    path: Annotated[str, typer.Argument(help="A tokenizer (directory or file) or a stage's output.", metavar="PATH")],
    as_json: _Json = False,
) -> int:
    """Print an artifact's identity: a tokenizer's semantic and release hashes, any other output's content digest."""
    from tokctl.stages.identity import identity

    result = identity(Path(path))
    if as_json:
        envelope.emit("hash", result)
    else:
        for name, value in result.items():
            envelope.say(f"{name}  {value}")
    return 0


def schema_command(
    name: Annotated[str, typer.Argument(help="A stage (such as 'fit bpe'), or manifest, result, pipeline, gates.")],
    as_json: _Json = False,
) -> int:
    """Print a JSON Schema (Draft 2020-12) of a stage's parameters or of a file that tokctl writes."""
    if name in SCHEMAS:
        schema = SCHEMAS[name]
    elif name in STAGES:
        parameters = load_stage(name).parameters
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **parameters.model_json_schema()}
    else:
        known = [*SCHEMAS, *STAGES]
        close = difflib.get_close_matches(name, known, n=1)
        raise UsageError(
            f"there is no schema {name!r}",
            hint=f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}",
            code="unknown-schema",
        )
    if as_json:
        envelope.emit("schema", schema)
    else:
        import json

        envelope.say(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0


def stages_command(as_json: _Json = False) -> int:
    """List the stages; with --json, their inputs and parameters too."""
    if not as_json:
        width = max(map(len, STAGES))
        for name, (summary, _) in STAGES.items():
            envelope.say(f"{name:<{width}}  {summary}")
        return 0
    rows = []
    for name, (summary, _) in STAGES.items():
        stage = load_stage(name)
        properties = stage.parameters.model_json_schema().get("properties", {})
        rows.append(
            {
                "name": name,
                "version": stage.version,
                "summary": summary,
                "inputs": [
                    {"name": i.name, "option": i.option, "required": i.required, "many": i.many, "help": i.help}
                    for i in stage.inputs
                ],
                "parameters": [
                    {
                        "name": field.replace("_", "-"),
                        "affects_output": affects_output(info),
                        "help": info.description,
                        "schema": {
                            k: v
                            for k, v in properties[field].items()
                            if k not in ("affects_output", "option", "metavar")
                        },
                    }
                    for field, info in stage.parameters.model_fields.items()
                ],
            }
        )
    envelope.emit("stages", {"stages": rows})
    return 0
