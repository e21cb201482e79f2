"""A pipeline file: stages as named nodes, in one process, in dependency order.

[pipeline]
output = "out"                      # each node writes output/<node>; relative paths are relative to the file

[node.pages]
stage = "extract"
input = ["corpus/pages"]            # input slots by name; a path, or ${node} / ${node}/sub for another node's output

[node.words]
stage = "count"
input = ["${split}/train"]
pattern = "cl100k"                  # parameters by name
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokctl.artifacts.digests import DigestCache
from tokctl.errors import UsageError
from tokctl.runtime.execute import Outcome, State, execute, plan_stage
from tokctl.runtime.options import ExecutionOptions
from tokctl.runtime.parameters import validate
from tokctl.runtime.stage import Stage

_REFERENCE = re.compile(r"\$\{([A-Za-z0-9_-]+)\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
StageLoader = Callable[[str], Stage]


@dataclass(frozen=True)
class Node:
    """One stage of a pipeline: input arguments and parameters as written, references still in them."""

    name: str
    stage: str
    inputs: dict[str, tuple[str, ...]]
    parameters: dict[str, Any]

    def references(self) -> list[str]:
        """The nodes this one reads, in order of mention."""
        found: dict[str, None] = {}
        for arguments in self.inputs.values():
            for argument in arguments:
                found.update(dict.fromkeys(_REFERENCE.findall(argument)))
        return list(found)


@dataclass(frozen=True)
class Pipeline:
    """A parsed pipeline file; ``nodes`` are in dependency order, ties in file order."""

    file: Path
    output: Path
    nodes: tuple[Node, ...]

    def out(self, node: str) -> Path:
        return self.output / node

    def arguments(self, node: Node) -> dict[str, list[str]]:
        """The node's input arguments with references replaced by output directories and paths made relative to the file."""
        return {slot: [self._argument(text) for text in given] for slot, given in node.inputs.items()}

    def _argument(self, text: str) -> str:
        label, equals, path = text.partition("=") if re.match(r"[A-Za-z0-9_.-]+=", text) else ("", "", text)
        if _REFERENCE.search(path):
            path = _REFERENCE.sub(lambda match: str(self.out(match[1])), path)
        elif path != "-" and not Path(path.removeprefix("@")).is_absolute():
            at = "@" if path.startswith("@") else ""
            path = at + str(self.file.parent / path.removeprefix("@"))
        return f"{label}{equals}{path}"


def read_pipeline(file: Path, load_stage: StageLoader, *, output: Path | None = None) -> Pipeline:
    """Parse and check a pipeline file; ``output`` overrides the one it names.

    Raises UsageError for TOML that doesn't parse, unknown stages, parameters, inputs or references, and cycles.
    """
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"can't read the pipeline {file}: {error.strerror}",
            hint="name a pipeline file; see configs/ for examples",
            code="no-pipeline",
            file=str(file),
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} is not TOML: {error}",
            hint="see configs/ for pipelines that work",
            code="bad-pipeline",
            file=str(file),
        ) from None
    unknown = set(document) - {"pipeline", "node"}
    head, tables = document.get("pipeline", {}), document.get("node", {})
    if unknown or not isinstance(tables, dict) or not tables or not isinstance(head, dict):
        raise UsageError(
            f"{file}: expected [pipeline] and at least one [node.NAME]"
            + (f", found {', '.join(sorted(unknown))}" if unknown else ""),
            hint="see configs/ for pipelines that work",
            code="bad-pipeline",
            file=str(file),
        )
    _known_keys(head, ("output",), f"{file} [pipeline]")
    if not isinstance(head.get("output", ""), str) or head.get("output") == "":
        raise UsageError(
            f"{file} [pipeline]: output is {head['output']!r}, not the name of a directory",
            hint='output = "out"',
            code="bad-pipeline",
            file=str(file),
        )
    root = output if output is not None else file.parent / str(head.get("output", f"{file.stem}-out"))
    nodes = [_node(file, name, table, load_stage) for name, table in tables.items()]
    return Pipeline(file, root, _ordered(file, nodes))


def run_pipeline(
    pipeline: Pipeline,
    load_stage: StageLoader,
    options: ExecutionOptions,
    *,
    only: tuple[str, ...] = (),
    on_outcome: Callable[[Node, Outcome], None] = lambda node, outcome: None,
) -> list[tuple[Node, Outcome]]:
    """Bring every node (or ``only`` those named and what they need) up to date, in order; the first error stops the rest.

    In a dry run nothing is made, and a node that reads one that would be made is only said to wait for it.
    """
    digests = DigestCache()
    outcomes = []
    pending: set[str] = set()
    try:
        for node in select_nodes(pipeline, only):
            stage = load_stage(node.stage)
            parameters = validate(stage.parameters, node.parameters, origin=_origin(pipeline.file, node))
            out = pipeline.out(node.name)
            blockers = tuple(name for name in node.references() if name in pending)
            if blockers:
                state: State = "stale" if out.exists() else "absent"
                outcome = Outcome(stage.name, out, None, False, state, None, waits_for=blockers)
            else:
                outcome = execute(stage, parameters, pipeline.arguments(node), out, options, digests)
            if options.dry_run and (options.force or outcome.state_before != "current"):
                pending.add(node.name)
            outcomes.append((node, outcome))
            on_outcome(node, outcome)
    finally:
        digests.save()
    return outcomes


def pipeline_status(pipeline: Pipeline, load_stage: StageLoader) -> list[dict[str, Any]]:
    """Where each node stands, without running anything: current, stale, partial, absent, or waiting for another node."""
    digests = DigestCache()
    rows: list[dict[str, Any]] = []
    pending: set[str] = set()
    for node in pipeline.nodes:
        out = pipeline.out(node.name)
        row: dict[str, Any] = {"node": node.name, "stage": node.stage, "out": str(out)}
        blockers = [name for name in node.references() if name in pending]
        if blockers:
            row |= {"state": "stale" if out.exists() else "absent", "waits_for": blockers}
            pending.add(node.name)
        else:
            stage = load_stage(node.stage)
            parameters = validate(stage.parameters, node.parameters, origin=_origin(pipeline.file, node))
            plan = plan_stage(stage, parameters, pipeline.arguments(node), out, digests)
            state, _ = plan.standing()
            row |= {"state": state, "fingerprint": plan.fingerprint}
            if state == "stale":
                row["changes"] = plan.changes()
            if state != "current":
                pending.add(node.name)
        rows.append(row)
    digests.save()
    return rows


def select_nodes(pipeline: Pipeline, only: tuple[str, ...]) -> list[Node]:
    """``only`` and everything they read, in dependency order; all nodes when ``only`` is empty."""
    by_name = {node.name: node for node in pipeline.nodes}
    wanted: set[str] = set()
    stack = list(only) if only else list(by_name)
    while stack:
        name = stack.pop()
        if name not in by_name:
            raise UsageError(f"{pipeline.file} has no node {name!r}", hint=_nearest(name, by_name), code="unknown-node")
        if name not in wanted:
            wanted.add(name)
            stack.extend(by_name[name].references())
    return [node for node in pipeline.nodes if node.name in wanted]


def _node(file: Path, name: str, table: Any, load_stage: StageLoader) -> Node:
    where = f"{file} [node.{name}]"
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{where}: a node's name is letters, digits, '-' and '_'",
            hint="[node.words]",
            code="bad-pipeline",
            file=str(file),
        )
    if not isinstance(table, dict) or not isinstance(table.get("stage"), str):
        raise UsageError(f"{where}: 'stage' is missing", hint="tokctl stages", code="bad-pipeline", file=str(file))
    stage = load_stage(table["stage"])
    slots = {slot.name.replace("_", "-"): slot.name for slot in stage.inputs}
    inputs: dict[str, tuple[str, ...]] = {}
    parameters: dict[str, Any] = {}
    for key, value in table.items():
        plain = key.replace("_", "-")
        if key == "stage":
            continue
        if plain in slots:
            values = [value] if isinstance(value, str) else value
            if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
                raise UsageError(
                    f"{where}: {key} is a path or a list of paths",
                    hint=f'{key} = ["corpus/pages", "${{node}}"]',
                    code="bad-pipeline",
                    file=str(file),
                )
            inputs[slots[plain]] = tuple(values)
        elif key.replace("-", "_") in stage.parameters.model_fields:
            parameters[key] = value
        else:
            names = {*slots, *(f.replace("_", "-") for f in stage.parameters.model_fields)}
            raise UsageError(
                f"{where}: there is no input or parameter {key!r} in stage {stage.name!r}",
                hint=_nearest(plain, dict.fromkeys(sorted(names))),
                code="unknown-parameter",
                file=str(file),
            )
    validate(stage.parameters, parameters, origin=where)
    return Node(name, table["stage"], inputs, parameters)


def _ordered(file: Path, nodes: list[Node]) -> tuple[Node, ...]:
    by_name = {node.name: node for node in nodes}
    ordered: dict[str, Node] = {}
    path: list[str] = []

    def visit(node: Node) -> None:
        if node.name in ordered:
            return
        if node.name in path:
            cycle = " -> ".join([*path[path.index(node.name) :], node.name])
            raise UsageError(
                f"{file}: the nodes wait for each other: {cycle}",
                hint="a node's ${...} may only lead to nodes that don't need it",
                code="cycle",
                file=str(file),
            )
        path.append(node.name)
        for name in node.references():
            if name not in by_name:
                raise UsageError(
                    f"{file} [node.{node.name}]: ${{{name}}} names no node",
                    hint=_nearest(name, by_name),
                    code="unknown-node",
                    file=str(file),
                )
            visit(by_name[name])
        path.pop()
        ordered[node.name] = node

    for node in nodes:
        visit(node)
    return tuple(ordered.values())


def _known_keys(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise UsageError(
                f"{where}: unknown key {key!r}", hint=_nearest(key, dict.fromkeys(known)), code="bad-pipeline"
            )


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def _origin(file: Path, node: Node) -> str:
    return f"{file} [node.{node.name}]"
