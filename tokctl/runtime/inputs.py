"""From what a user names to what a stage reads: stage outputs checked against their manifest, raw files hashed."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokctl.artifacts.digests import DigestCache
from tokctl.artifacts.durable import disk_errors
from tokctl.artifacts.framed_hash import framed_sha256
from tokctl.artifacts.manifest import locate_manifest, read_manifest
from tokctl.errors import ArtifactError, DataError, UsageError
from tokctl.runtime.stage import UNFINISHED, Input, ResolvedInput, SourceFile, Stage


def resolve_inputs(
    stage: Stage, arguments: Mapping[str, Sequence[str]], parameters: Mapping[str, Any], digests: DigestCache
) -> dict[str, tuple[ResolvedInput, ...]]:
    """Every input slot's arguments, resolved and hashed.

    Raises UsageError for a missing or surplus argument, DataError for raw files that can't be read, ArtifactError for a
    stage output that is of the wrong stage or doesn't match its manifest.
    """
    resolved: dict[str, tuple[ResolvedInput, ...]] = {}
    for slot in stage.inputs:
        given = list(arguments.get(slot.name, ()))
        if not given and slot.required:
            raise UsageError(
                f"{stage.name}: {slot.option or 'INPUT'} is missing: {slot.help}",
                hint=f"tokctl {stage.name} --help",
                code="missing-input",
            )
        if len(given) > 1 and not slot.many:
            raise UsageError(
                f"{stage.name}: {slot.option or 'INPUT'} is given {len(given)} times",
                hint="give it once",
                code="input-choice",
            )
        items = [resolve_argument(slot, argument, parameters, digests) for argument in given]
        if slot.labelled:
            _check_labels(slot, items)
        if slot.is_set:
            items.sort(key=_set_order)
        resolved[slot.name] = tuple(items)
    return resolved


def resolve_argument(slot: Input, argument: str, parameters: Mapping[str, Any], digests: DigestCache) -> ResolvedInput:
    """One argument of a slot, resolved and hashed; errors as for ``resolve_inputs``."""
    label, text = "", argument
    if slot.labelled:
        label, equals, text = argument.partition("=")
        if not equals or not label or not text:
            raise UsageError(
                f"{slot.option or slot.name} {argument!r} has no name",
                hint=f"write {slot.option or ''} NAME=PATH",
                code="missing-name",
            )
    if text == "-" and slot.expand is not None:
        spooled = _spool_stdin()
        file = _raw_file("stdin", spooled, digests)
        content = framed_sha256("raw-files-v1", [[file.name, file.sha256]])
        return ResolvedInput(argument, spooled, (file,), content, label=label)
    path = Path(text)
    is_directory = os.path.isdir(text)  # noqa: PTH112 (false, not an error, for a name that is too long)
    if is_directory and UNFINISHED.search(path.resolve().name):
        raise ArtifactError(
            f"{path} is an unfinished output: the run that writes it has not ended, or was cut off",
            hint="run the command that makes it again; it goes on from what is there",
            code="unfinished-input",
            file=text,
        )
    located = locate_manifest(path) if is_directory else None
    if located is not None:
        return _stage_output(slot, argument, label, *located, digests)
    if slot.expand is None:
        if not path.exists():
            raise ArtifactError(
                f"{path} doesn't exist", hint=f"expected: {slot.help}", code="missing-input", file=str(path)
            )
        read_manifest(path)  # raises, saying what is wrong with it
        raise ArtifactError(
            f"{path} is not a stage output", hint=f"expected: {slot.help}", code="no-manifest", file=str(path)
        )
    files = tuple(_raw_file(name, file, digests) for name, file in slot.expand(text, parameters))
    content = framed_sha256("raw-files-v1", [[file.name, file.sha256] for file in files])
    return ResolvedInput(argument, path, files, content, label=label)


def _set_order(item: ResolvedInput) -> tuple[str, str, str]:
    """Raw files by name, so that the first one with an error is the one a user expects; all else by content."""
    name = item.files[0].name if item.files and not item.is_stage_output else ""
    return item.label, name, item.content


def _raw_file(name: str, path: Path, digests: DigestCache) -> SourceFile:
    try:
        mtime_ns = os.stat(path).st_mtime_ns  # noqa: PTH116 (run once for each of a corpus's files)
    except OSError:
        mtime_ns = 0  # hashing it says what is wrong
    return SourceFile(name, path, *digests.sha256(path), mtime_ns)


def _spool_stdin() -> Path:
    """Standard input as a file that lives as long as the process: it has to be hashed before it is read."""
    descriptor, name = tempfile.mkstemp(prefix="tokctl-stdin-")
    path = Path(name)
    atexit.register(path.unlink, missing_ok=True)
    with disk_errors(path), os.fdopen(descriptor, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return path


def _stage_output(
    slot: Input, argument: str, label: str, directory: Path, under: str, digests: DigestCache
) -> ResolvedInput:
    manifest = read_manifest(directory)
    if manifest.stage not in slot.accepts and (slot.accepts or slot.expand is not None):
        expected = f"the output of {' or '.join(slot.accepts)}" if slot.accepts else "raw files"
        raise ArtifactError(
            f"{directory} is the output of {manifest.stage!r}; {slot.option or 'INPUT'} takes {expected}",
            hint=f"expected: {slot.help}",
            code="wrong-stage",
            file=str(directory),
        )
    outputs = manifest.outputs_under(under)
    if under and not outputs:
        raise ArtifactError(
            f"{directory}'s manifest lists nothing under {under!r}", code="not-in-manifest", file=str(directory / under)
        )
    files = []
    for output in outputs:
        path = directory / output.path
        try:
            digest, size = digests.sha256(path)
        except DataError:
            raise ArtifactError(
                f"{path} is missing or unreadable, though the manifest lists it",
                hint=f"run 'tokctl verify {directory}', then make it again",
                code="missing-output",
                file=str(path),
            ) from None
        if digest != output.sha256:
            raise ArtifactError(
                f"{path} doesn't match the digest in its manifest",
                hint=f"it was changed after it was written; run 'tokctl verify {directory}', then make it again",
                code="changed-output",
                file=str(path),
            )
        files.append(SourceFile(output.path, path, digest, size))
    return ResolvedInput(
        argument, directory, tuple(files), manifest.content_digest(under), manifest=manifest, under=under, label=label
    )


def _check_labels(slot: Input, items: list[ResolvedInput]) -> None:
    seen = set()
    for item in items:
        if item.label in seen:
            raise UsageError(
                f"{slot.option}: the name {item.label!r} is given twice",
                hint="give each its own name",
                code="name-twice",
            )
        seen.add(item.label)
