"""A stage's command, made from its declaration: inputs, ``-o``, one option a parameter, and the shared options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from tokctl.cli import envelope
from tokctl.cli.display import make_progress
from tokctl.errors import UsageError
from tokctl.runtime.execute import Outcome, execute
from tokctl.runtime.options import ExecutionOptions
from tokctl.runtime.parameters import StageParameters, is_repeatable, parse_quantity, validate, without_none
from tokctl.runtime.stage import Input, Stage

_Parameter = inspect.Parameter

Runner = Callable[[Stage, Mapping[str, Any], Sequence[str], Sequence[str]], int]


def stage_function(stage: Stage, run: Runner | None = None) -> Callable[..., Any]:
    """The function that typer turns into the stage's command.

    A ``run`` of its own makes ``-o`` optional; it gets the stage, all values, and the names of inputs and of parameters.
    """
    names = {slot.name: _input_parameter(slot) for slot in stage.inputs}
    fields = stage.parameters.model_fields
    lineage = [vars(model).get("__annotations__", {}) for model in stage.parameters.__mro__]
    # a stage's own parameters come first, then what it has in common with ever more other stages
    ordered = sorted(fields, key=lambda name: next(i for i, own in enumerate(lineage) if name in own))
    options = {name: _option_parameter(name, fields[name]) for name in ordered}

    def command(**values: Any) -> int:
        return (run or _run)(stage, values, list(names), list(options))

    signature = [*names.values(), _output_parameter(required=run is None), *options.values(), *shared_parameters()]
    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in signature}
    # \b keeps the lines of an example as they are
    examples = "".join(f"\n\n\b\n  {line}" for line in stage.examples)
    command.__doc__ = stage.description + (f"\n\nExamples:{examples}" if examples else "")
    return command


def spell_out_bare(stage: Stage, arguments: Sequence[str]) -> list[str]:
    """A command line in which each option that may stand alone has its value."""
    bare = {}
    for name, field in stage.parameters.model_fields.items():
        extra: Any = field.json_schema_extra or {}
        if "bare" in extra:
            bare[extra.get("option") or "--" + name.replace("_", "-")] = (extra["bare"], re.compile(extra["values"]))
    spelled: list[str] = []
    for i, argument in enumerate(arguments):
        spelled.append(argument)
        if argument == "--":
            return [*spelled, *arguments[i + 1 :]]
        if argument in bare:
            value, values = bare[argument]
            if i + 1 == len(arguments) or not values.fullmatch(arguments[i + 1]):
                spelled.append(value)
    return spelled


def shared_parameters() -> list[inspect.Parameter]:
    """Options that every stage takes."""

    def option(name: str, annotation: Any, default: Any, *flags: str, text: str, **more: Any) -> inspect.Parameter:
        info = typer.Option(*flags, help=text, **more)
        return _Parameter(name, _Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info])

    return [
        option(
            "workers_",
            int | None,
            None,
            "--workers",
            text="Worker threads or processes (default: the cores).",
            metavar="N",
            min=1,
            max=1024,
        ),
        option(
            "memory_limit_",
            str | None,
            None,
            "--memory-limit",
            text="Working memory, such as 512MB or 2GiB.",
            metavar="SIZE",
        ),
        option("force_", bool, False, "--force", text="Run even if the output is up to date."),
        option("dry_run_", bool, False, "--dry-run", text="Say what would be done, and why, without doing it."),
        option("quiet_", bool, False, "--quiet", "-q", text="Only warnings and errors on stderr."),
        option("log_format_", Literal["text", "json"], "text", "--log-format", text="How stderr is written."),
        option("json_", bool, False, "--json", text="Print one JSON document on stdout."),
    ]


def execution_options(values: Mapping[str, Any]) -> ExecutionOptions:
    """ExecutionOptions from the values of :func:`shared_parameters`."""
    limit = values.get("memory_limit_")
    try:
        memory_limit = None if limit is None else parse_quantity(limit)
    except ValueError as error:
        raise UsageError(f"--memory-limit: {error}", hint="--memory-limit 2GB", code="bad-parameter") from None
    more = {} if values.get("workers_") is None else {"workers": values["workers_"]}
    return ExecutionOptions(
        memory_limit=memory_limit,
        force=bool(values.get("force_")),
        dry_run=bool(values.get("dry_run_")),
        progress=make_progress(quiet=values["quiet_"], log_format=values["log_format_"]),
        **more,
    )


def run_stage(
    stage: Stage, values: Mapping[str, Any], inputs: Sequence[str], options: Sequence[str], out: Path
) -> Outcome:
    """Execute a stage with a command's values."""
    parameters = parameters_of(stage, values, options)
    return execute(stage, parameters, arguments_of(values, inputs), out, execution_options(values))


def parameters_of(stage: Stage, values: Mapping[str, Any], options: Sequence[str]) -> StageParameters:
    """The stage's checked parameters from a command's values."""
    given = {name: values[name] for name in options if values[name] is not None and values[name] != ()}
    return validate(stage.parameters, given, origin=f"tokctl {stage.name}")


def arguments_of(values: Mapping[str, Any], inputs: Sequence[str]) -> dict[str, list[str]]:
    """What the user named for each input slot."""
    return {name: _as_list(values[name]) for name in inputs}


def _run(stage: Stage, values: Mapping[str, Any], inputs: Sequence[str], options: Sequence[str]) -> int:
    outcome = run_stage(stage, values, inputs, options, Path(values["output_"]))
    if values["json_"]:
        envelope.emit(stage.name, outcome.to_json())
    elif not values["quiet_"]:
        for line in describe(outcome, dry_run=values["dry_run_"]):
            envelope.say(line)
    return 0


def describe(outcome: Outcome, *, dry_run: bool) -> list[str]:
    """An outcome for a person."""
    if outcome.waits_for:
        action = "is made again if that changes it" if outcome.state_before == "stale" else "is made"
        return [f"{outcome.stage}: {outcome.out} waits for {', '.join(outcome.waits_for)}, then {action}"]
    if dry_run:
        assert outcome.fingerprint is not None
        action = {
            "current": "is up to date: nothing to do",
            "stale": "would be made again",
            "partial": "would be resumed",
            "absent": "would be made",
        }["stale" if outcome.changes else outcome.state_before]
        line = f"{outcome.stage}: {outcome.out} {action} (fingerprint {outcome.fingerprint[:16]})"
        return [line, *(f"  {change}" for change in outcome.changes)]
    if not outcome.ran:
        return [f"{outcome.stage}: {outcome.out} is up to date"]
    lines = [f"{outcome.stage}: wrote {outcome.out}"]
    if outcome.manifest is not None:
        counts = outcome.manifest.counts
        lines.append(
            f"  rows in {counts['rows_in']:,} = out {counts['rows_out']:,} + rejected {counts['rows_rejected']:,}"
        )
        lines += [f"  {line}" for line in outcome.headline]
    return lines


def _as_list(value: Any) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def _input_parameter(slot: Input) -> inspect.Parameter:
    annotation: Any = list[str] if slot.many else str
    if slot.option is None:
        info: Any = typer.Argument(help=slot.help, metavar=slot.metavar or "INPUT", show_default=False)
    else:
        info = typer.Option(slot.option, help=slot.help, metavar=slot.metavar or "PATH", show_default=False)
    if not slot.required:
        annotation |= None
    default = _Parameter.empty if slot.required else None
    return _Parameter(slot.name, _Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, info])


def _output_parameter(*, required: bool) -> inspect.Parameter:
    if required:
        info = typer.Option("-o", "--output", help="Output directory.", metavar="DIR")
        return _Parameter("output_", _Parameter.KEYWORD_ONLY, annotation=Annotated[str, info])
    info = typer.Option("-o", "--output", help="Keep the result in this directory, with a manifest.", metavar="DIR")
    return _Parameter("output_", _Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, info])


def _option_parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    extra: Any = field.json_schema_extra or {}
    flag = extra.get("option") or "--" + name.replace("_", "-")
    inner = without_none(field.annotation)
    repeatable = is_repeatable(field.annotation)
    # Everything but flags and choices reaches pydantic as text: one place checks bounds and forms, for TOML as well.
    if inner is bool:
        annotation: Any = bool
        flags = (f"{flag}/--no-{flag.removeprefix('--')}",) if field.default is True else (flag,)
    else:
        annotation = inner if get_origin(inner) is Literal else str
        if get_origin(inner) is Literal and not all(isinstance(choice, str) for choice in get_args(inner)):
            annotation = str
        flags = (flag,)
    if repeatable:
        item = without_none(get_args(inner)[0])
        annotation = list[item if get_origin(item) is Literal else str]  # type: ignore[misc]
    has_default = not (field.is_required() or field.default is None or field.default is False or field.default == ())
    info = typer.Option(
        *flags,
        help=(field.description or "") + (f" [default: {_shown(field.default)}]" if has_default else ""),
        metavar=extra.get("metavar") or ("N" if inner in (int, Decimal) else None),
        show_default=False,
    )
    if field.is_required():
        return _Parameter(name, _Parameter.KEYWORD_ONLY, annotation=Annotated[annotation, info])
    return _Parameter(name, _Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation | None, info])


def _shown(default: Any) -> str:
    if default is True:
        return "yes"
    if isinstance(default, int) and default >= 1 << 20:
        for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("MB", 10**6)):
            if default % size == 0:
                return f"{default // size}{unit}"
    return ", ".join(str(item) for item in default) if isinstance(default, (tuple, list)) else str(default)
