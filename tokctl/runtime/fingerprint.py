"""The fingerprint: a digest of everything that can change a stage's output, and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tokctl.artifacts.framed_hash import framed_sha256
from tokctl.runtime.parameters import StageParameters, canonical_parameters
from tokctl.runtime.stage import ResolvedInput, Stage

_DOMAIN = "stage-fingerprint-v1"


def library_versions(stage: Stage, inputs: Mapping[str, tuple[ResolvedInput, ...]]) -> dict[str, str]:
    """Installed versions of the libraries that the stage and its raw inputs declare, ``absent`` for one that isn't installed."""
    names = set(stage.libraries)
    for slot in stage.inputs:
        if not all(item.is_stage_output for item in inputs.get(slot.name, ())):
            names.update(slot.libraries)
    found = {}
    for name in sorted(names):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def fingerprint_parts(
    stage: Stage, parameters: StageParameters, inputs: Mapping[str, tuple[ResolvedInput, ...]]
) -> dict[str, Any]:
    """What the fingerprint covers, as canonical JSON: for ``--dry-run`` and for telling what changed."""
    return {
        "stage": stage.name,
        "version": stage.version,
        "parameters": canonical_parameters(parameters),
        "inputs": {
            slot.name: [[item.label, item.content] for item in inputs.get(slot.name, ())] for slot in stage.inputs
        },
        "libraries": library_versions(stage, inputs),
        "data_tables": stage.data_tables(parameters) if stage.data_tables else {},
        "plugins": stage.plugin_sources(parameters) if stage.plugin_sources else {},
    }


def fingerprint(parts: Mapping[str, Any]) -> str:
    """Digest of :func:`fingerprint_parts`."""
    return framed_sha256(_DOMAIN, dict(parts))
