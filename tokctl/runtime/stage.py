"""What a stage is: one declaration from which its command, TOML, schema, fingerprint, manifest and progress come."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokctl.artifacts.manifest import Manifest
from tokctl.runtime.parameters import StageParameters

if TYPE_CHECKING:
    from tokctl.runtime.stage_run import StageRun

Arguments = Mapping[str, Sequence[str]]
"""Input slot -> what the user named for it."""

UNFINISHED = re.compile(r"\.partial-[0-9a-f]{16}$")
"""How the name of a directory ends in which an output is being made."""


@dataclass(frozen=True)
class SourceFile:
    """A file of an input: ``name`` is its place below the named root (POSIX, what goes into records), ``path`` where it is."""

    name: str
    path: Path
    sha256: str
    bytes: int
    mtime_ns: int = 0  # of a raw file, before it was hashed


@dataclass(frozen=True)
class ResolvedInput:
    """One input argument after resolution: the output of a stage (``manifest`` set, ``under`` its sub-directory) or raw files.

    ``content`` is the digest that enters fingerprints; ``argument`` is what the user wrote (never hashed).
    """

    argument: str
    root: Path
    files: tuple[SourceFile, ...]
    content: str
    manifest: Manifest | None = None
    under: str = ""
    label: str = ""

    @property
    def is_stage_output(self) -> bool:
        return self.manifest is not None

    def record(self) -> dict[str, Any]:
        """The input as the consumer's manifest records it."""
        value: dict[str, Any] = {"content": self.content}
        if self.label:
            value["label"] = self.label
        if self.manifest is not None:
            value |= {"stage": self.manifest.stage, "fingerprint": self.manifest.fingerprint, "under": self.under}
        else:
            value["files"] = [{"path": f.name, "sha256": f.sha256, "bytes": f.bytes} for f in self.files]
        return value


@dataclass(frozen=True)
class Input:
    """One input slot of a stage.

    ``option`` is None for the positional ``INPUT...``, else its spelling. ``accepts`` lists the stages whose output fits
    and ``expand`` turns a raw argument into files (see runtime.inputs). Without ``expand`` only stage outputs fit, any of
    them when ``accepts`` is empty; with it and without ``accepts`` only raw files do.
    ``is_set`` says that the order of the arguments doesn't matter and is sorted away; ``labelled`` takes ``NAME=PATH``.
    ``libraries`` are the distributions that read raw files: they are in the fingerprint when the slot is given some.
    """

    name: str
    help: str
    option: str | None = None
    required: bool = True
    many: bool = False
    accepts: tuple[str, ...] = ()
    expand: Callable[[str, Mapping[str, Any]], list[tuple[str, Path]]] | None = None
    is_set: bool = False
    labelled: bool = False
    libraries: tuple[str, ...] = ()
    metavar: str | None = None


@dataclass(frozen=True)
class Stage:
    """A stage, declared once.

    ``version`` is bumped by hand whenever the same inputs and parameters give other bytes; a golden test notices a change
    without a bump. ``libraries`` are distributions and ``data_tables`` names -> versions whose change may change the output.
    ``headline`` says in a few lines what a person wants to know of the manifest's facts.
    ``route`` may move arguments from one input slot to another, by what the parameters say, before they are resolved.
    """

    name: str
    version: int
    summary: str
    description: str
    parameters: type[StageParameters]
    inputs: tuple[Input, ...]
    run: Callable[[StageRun], None]
    libraries: tuple[str, ...] = ()
    data_tables: Callable[[StageParameters], dict[str, str]] | None = None
    check: Callable[[StageParameters, Mapping[str, tuple[ResolvedInput, ...]]], None] | None = None
    plugin_sources: Callable[[StageParameters], dict[str, str]] | None = None
    headline: Callable[[Mapping[str, Any]], list[str]] = lambda facts: []
    route: Callable[[StageParameters, Arguments], Arguments] = lambda parameters, arguments: arguments
    examples: tuple[str, ...] = field(default=())
