"""Run one stage: skip what is up to date, resume what was cut off, commit atomically."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tokctl.artifacts.digests import DigestCache
from tokctl.artifacts.durable import disk_errors, fault_point, fsync_path, replace_directory
from tokctl.artifacts.manifest import FILE_NAME, Manifest, read_manifest, write_manifest
from tokctl.errors import ArtifactError, DataError, UsageError
from tokctl.runtime import run_record
from tokctl.runtime.fingerprint import fingerprint, fingerprint_parts
from tokctl.runtime.inputs import resolve_inputs
from tokctl.runtime.options import ExecutionOptions
from tokctl.runtime.output_lock import lock_path, output_lock
from tokctl.runtime.parameters import StageParameters, canonical_parameters
from tokctl.runtime.stage import UNFINISHED, ResolvedInput, Stage
from tokctl.runtime.stage_run import WORK_DIRECTORY, StageRun
from tokctl.runtime.tasks import can_be_resumed

State = Literal["absent", "partial", "stale", "current"]


@dataclass(frozen=True)
class Outcome:
    """What happened: ``ran`` is False when the output was already current or with ``dry_run``.

    ``waits_for``: in a dry run, the nodes of a pipeline that would be made first; there is no fingerprint before that.
    """

    stage: str
    out: Path
    fingerprint: str | None
    ran: bool
    state_before: State
    manifest: Manifest | None
    measurements: dict[str, Any] = field(default_factory=dict)
    headline: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "stage": self.stage,
            "out": str(self.out),
            "fingerprint": self.fingerprint,
            "ran": self.ran,
            "state_before": self.state_before,
        }
        if self.manifest is not None:
            value |= {"counts": self.manifest.counts, "facts": self.manifest.facts}
        if self.changes:
            value["changes"] = list(self.changes)
        if self.waits_for:
            value["waits_for"] = list(self.waits_for)
        if self.measurements:
            value["measurements"] = self.measurements
        return value


@dataclass(frozen=True)
class Plan:
    """A stage with everything that decides its output, before anything is written."""

    stage: Stage
    parameters: StageParameters
    inputs: dict[str, tuple[ResolvedInput, ...]]
    parts: dict[str, Any]
    fingerprint: str
    out: Path

    @property
    def partial(self) -> Path:
        return self.out.with_name(f"{self.out.name}.partial-{self.fingerprint[:16]}")

    def changes(self) -> list[str]:
        """What differs from the output that is there: why it is stale. Empty when there is none or nothing differs."""
        if not (self.out / FILE_NAME).exists():
            return []
        old = read_manifest(self.out)
        changes = []
        if old.version != self.stage.version:
            changes.append(f"stage version {old.version} -> {self.stage.version}")
        for name, value in self.parts["parameters"].items():
            before = old.parameters.get(name)
            if before != value:
                changes.append(f"{name.replace('_', '-')}: {before} -> {value}")
        contents: dict[str, list[list[str]]] = {slot: [] for slot in self.parts["inputs"]}
        for record in old.inputs:
            contents.setdefault(record["slot"], []).append([record.get("label", ""), record["content"]])
        changes += [f"other {slot}" for slot, items in self.parts["inputs"].items() if contents[slot] != items]
        for kind in ("libraries", "data_tables"):
            for name, found in self.parts[kind].items():
                before = getattr(old, kind).get(name)
                if before != found:
                    changes.append(f"{name} {before} -> {found}")
        if not changes and old.fingerprint != self.fingerprint:
            changes.append("a plugin's source")
        if not changes and not _outputs_present(self.out, old):
            changes.append("an output file is missing or has another size")
        return changes

    def standing(self) -> tuple[State, Manifest | None]:
        """Where the output stands, with its manifest if it has one; ArtifactError when ``out`` belongs to something else."""
        with disk_errors(self.out):
            manifest = _own_manifest(self.out, self.stage) if self.out.exists() else None
        if manifest is None:
            return ("partial" if self.partial.exists() else "absent"), None
        if manifest.fingerprint == self.fingerprint and _outputs_present(self.out, manifest):
            return "current", manifest
        return "stale", manifest


def plan_stage(
    stage: Stage,
    parameters: StageParameters,
    arguments: Mapping[str, Sequence[str]],
    out: Path,
    digests: DigestCache,
) -> Plan:
    """Resolve and hash the inputs and compute the fingerprint."""
    _check_name(out)
    inputs = resolve_inputs(stage, stage.route(parameters, arguments), parameters.model_dump(), digests)
    if stage.check is not None:
        stage.check(parameters, inputs)
    _refuse_out_in_inputs(out, inputs)
    parts = fingerprint_parts(stage, parameters, inputs)
    return Plan(stage, parameters, inputs, parts, fingerprint(parts), out)


def _check_name(out: Path) -> None:
    """UsageError for an output that can't be a directory of its own; ArtifactError when it lies inside another output."""
    if not out.name or "\0" in str(out):
        raise UsageError(
            f"{str(out)!r} can't be an output directory", hint="name a directory of its own: -o DIR", code="bad-output"
        )
    if (out.parent / FILE_NAME).is_file():
        try:
            stage = read_manifest(out.parent).stage
        except ArtifactError:
            return  # another program's manifest, or what is left of one
        raise ArtifactError(
            f"{out} lies inside {out.parent}, which is the output of {stage!r}",
            hint="choose another -o: one output doesn't hold another",
            code="output-foreign",
            file=str(out),
        )


def execute(
    stage: Stage,
    parameters: StageParameters,
    arguments: Mapping[str, Sequence[str]],
    out: Path,
    options: ExecutionOptions,
    digests: DigestCache | None = None,
) -> Outcome:
    """Bring ``out`` up to date.

    ``arguments`` maps input slots to what the user named. Raises any TokctlError; after an error or an interrupt the
    finished tasks or the checkpoint, if any, are kept in ``<out>.partial-<fingerprint>``, and the next run of the same
    command goes on from them.
    """
    own_digests = digests is None
    digests = DigestCache() if digests is None else digests
    try:
        plan = plan_stage(stage, parameters, arguments, out, digests)
        state, found = plan.standing()
        if state == "current" and not options.dry_run:
            _remove_leftovers(plan)
        if options.dry_run or (state == "current" and not options.force):
            manifest = found if state == "current" else None
            changes = tuple(plan.changes()) if state == "stale" else ("--force",) if options.force and found else ()
            return Outcome(stage.name, out, plan.fingerprint, False, state, manifest, changes=changes)
        with output_lock(out):
            state, found = plan.standing()  # another run may have finished between our look and our lock
            if state == "current" and not options.force:
                return Outcome(stage.name, out, plan.fingerprint, False, state, found)
            manifest, measurements = _perform(plan, options, digests)
        lines = tuple(stage.headline(manifest.facts))
        return Outcome(stage.name, out, plan.fingerprint, True, state, manifest, measurements, lines)
    finally:
        if own_digests:
            digests.save()


def _perform(plan: Plan, options: ExecutionOptions, digests: DigestCache) -> tuple[Manifest, dict[str, Any]]:
    clock = run_record.RunClock()
    partial = plan.partial
    with disk_errors(partial):
        for stale in (*_partials(plan.out), *_retired(plan.out)):
            if stale != partial or options.force:
                shutil.rmtree(stale)
        _reset(partial)
    run = StageRun(plan.parameters, plan.inputs, partial, options)
    with disk_errors(partial):
        try:
            plan.stage.run(run)
        except BaseException:
            _keep_finished_tasks(partial)
            raise
        if not run.rows_in:
            run.warn(f"{plan.stage.name}: there was nothing to read, the output is empty")
        if run.rows_in != run.rows_out + run.rows_rejected:
            raise DataError(
                f"{plan.stage.name}: {run.rows_in} rows in, but {run.rows_out} out and {run.rows_rejected} rejected: "
                f"{run.rows_in - run.rows_out - run.rows_rejected} are unaccounted for",
                hint="this is a defect of tokctl; the partial output was not committed",
                code="rows-lost",
            )
        _recheck_raw_inputs(plan)
        manifest = Manifest(
            stage=plan.stage.name,
            version=plan.stage.version,
            parameters=canonical_parameters(plan.parameters),
            inputs=tuple(
                {"slot": slot.name, **item.record()} for slot in plan.stage.inputs for item in plan.inputs[slot.name]
            ),
            outputs=run.outputs(),
            counts={"rows_in": run.rows_in, "rows_out": run.rows_out, "rows_rejected": run.rows_rejected},
            fingerprint=plan.fingerprint,
            facts=run.facts,
            libraries=plan.parts["libraries"],
            data_tables=plan.parts["data_tables"],
        )
        shutil.rmtree(partial / WORK_DIRECTORY, ignore_errors=True)
        _remove_undeclared(partial, {output.path for output in manifest.outputs})
        written = [partial / output.path for output in manifest.outputs]
        for path in (*written, *sorted({path.parent for path in written})):
            fsync_path(path)
        clock.write(partial, options, run.measurements)
        fault_point("manifest-write")
        write_manifest(partial, manifest)
        fault_point("rename")
        replace_directory(partial, plan.out)
    for output in manifest.outputs:
        digests.remember(plan.out / output.path, output.sha256)
    return manifest, run.measurements


def _remove_leftovers(plan: Plan) -> None:
    """Remove what a run that died right after its commit left: the directory that its output has replaced, its lock."""
    leftovers = [path for path in (plan.partial, *_retired(plan.out)) if path.exists()]
    if not leftovers and not lock_path(plan.out).exists():
        return
    with contextlib.suppress(ArtifactError), output_lock(plan.out):  # in use: that run isn't dead
        for path in leftovers:
            shutil.rmtree(path, ignore_errors=True)


def _partials(out: Path) -> list[Path]:
    """The unfinished outputs beside ``out``; what a user has called something alike is none."""
    beside = out.parent.glob(f"{_glob_escape(out.name)}.partial-*")
    return [path for path in beside if UNFINISHED.fullmatch(path.name.removeprefix(out.name))]


def _retired(out: Path) -> list[Path]:
    return list(out.parent.glob(f".{_glob_escape(out.name)}.retired-*"))


def _reset(partial: Path) -> None:
    """Keep the finished tasks and the checkpoint of an earlier run, drop everything that would be written again."""
    partial.mkdir(exist_ok=True)
    for entry in partial.iterdir():
        if entry.name == WORK_DIRECTORY:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _keep_finished_tasks(partial: Path) -> None:
    """After an error or an interrupt only what the next run goes on from stays: nothing, when no task was finished."""
    with contextlib.suppress(OSError):
        _reset(partial)
        if not can_be_resumed(partial / WORK_DIRECTORY):
            shutil.rmtree(partial)


def _remove_undeclared(partial: Path, declared: set[str]) -> None:
    for path in sorted(partial.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(partial).as_posix() not in declared:
            path.unlink()


def _recheck_raw_inputs(plan: Plan) -> None:
    """A raw file that changed while the stage ran would make the manifest's record of it a lie."""
    for items in plan.inputs.values():
        for item in items:
            if item.is_stage_output:
                continue
            for file in item.files:
                try:
                    status = file.path.stat()
                    is_same = (status.st_size, status.st_mtime_ns) == (file.bytes, file.mtime_ns)
                except OSError:
                    is_same = False
                if not is_same:
                    raise DataError(
                        f"{file.path} changed or was removed while it was being read",
                        hint="wait until it is complete, then run again",
                        code="changed-while-read",
                        file=str(file.path),
                    )


def _own_manifest(out: Path, stage: Stage) -> Manifest | None:
    """The manifest of ``out``, None for an empty directory; ArtifactError for what isn't an output of ``stage``."""
    if not out.is_dir():
        raise ArtifactError(
            f"{out} exists and is not a directory", hint="choose another -o", code="output-foreign", file=str(out)
        )
    if not (out / FILE_NAME).exists():
        if any(out.iterdir()):
            raise ArtifactError(
                f"{out} exists, is not empty and was not written by tokctl",
                hint="choose another -o, or empty the directory yourself",
                code="output-foreign",
                file=str(out),
            )
        return None
    manifest = read_manifest(out)
    if manifest.stage != stage.name:
        raise ArtifactError(
            f"{out} is the output of {manifest.stage!r}, not of {stage.name!r}",
            hint="choose another -o",
            code="output-foreign",
            file=str(out),
        )
    return manifest


def _outputs_present(out: Path, manifest: Manifest) -> bool:
    """Every output is there with its size; ``verify`` re-hashes."""
    for output in manifest.outputs:
        try:
            if (out / output.path).stat().st_size != output.bytes:
                return False
        except OSError:
            return False
    return True


def _refuse_out_in_inputs(out: Path, inputs: Mapping[str, tuple[ResolvedInput, ...]]) -> None:
    for items in inputs.values():
        for item in items:
            if item.is_stage_output and item.root.absolute() == out.absolute():
                raise ArtifactError(
                    f"{out} is both an input and the output",
                    hint="choose another -o",
                    code="output-is-input",
                    file=str(out),
                )


def _glob_escape(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
