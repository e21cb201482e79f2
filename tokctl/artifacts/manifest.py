"""``manifest.json``: what made a directory, from what, and what is in it. Deterministic, self-digested.

Host, times, workers and memory are in ``run.json`` beside it, outside every hash.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokctl.artifacts.durable import write_bytes
from tokctl.artifacts.framed_hash import framed_sha256
from tokctl.errors import ArtifactError

FILE_NAME = "manifest.json"
SCHEMA_VERSION = 1
_DOMAIN = "stage-manifest-v1"
_KEYS = {
    "schema_version": int,
    "stage": str,
    "version": int,
    "parameters": dict,
    "inputs": list,
    "outputs": list,
    "counts": dict,
    "facts": dict,
    "libraries": dict,
    "data_tables": dict,
    "fingerprint": str,
    "digest": str,
}


@dataclass(frozen=True)
class OutputFile:
    """One file of a stage's output: ``path`` relative to the manifest, POSIX style; ``rows`` is None for a file without rows."""

    path: str
    sha256: str
    bytes: int
    rows: int | None = None


@dataclass(frozen=True)
class Manifest:
    """The record of one finished stage; every value is canonical JSON (integers, strings, booleans, null)."""

    stage: str
    version: int
    parameters: dict[str, Any]
    inputs: tuple[dict[str, Any], ...]
    outputs: tuple[OutputFile, ...]
    counts: dict[str, int]
    fingerprint: str
    facts: dict[str, Any] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)
    data_tables: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The manifest as written, with its own digest."""
        value: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "stage": self.stage,
            "version": self.version,
            "parameters": self.parameters,
            "inputs": list(self.inputs),
            "outputs": [
                {"path": o.path, "sha256": o.sha256, "bytes": o.bytes, "rows": o.rows}
                for o in sorted(self.outputs, key=lambda o: o.path.encode())
            ],
            "counts": self.counts,
            "facts": self.facts,
            "libraries": self.libraries,
            "data_tables": self.data_tables,
            "fingerprint": self.fingerprint,
        }
        value["digest"] = framed_sha256(_DOMAIN, value)
        return value

    def content_digest(self, under: str = "") -> str:
        """Digest of what a consumer can see: the stage, its facts, and the outputs below ``under`` (a path prefix).

        Two runs with other parameters and the same result have the same content.
        """
        outputs = [[o.path, o.sha256] for o in self.outputs_under(under)]
        return framed_sha256("stage-content-v1", {"stage": self.stage, "facts": self.facts, "outputs": outputs})

    def outputs_under(self, under: str) -> list[OutputFile]:
        """The outputs whose path begins with the directory ``under`` ("" for all), by path."""
        prefix = under.rstrip("/") + "/" if under else ""
        return sorted((o for o in self.outputs if o.path.startswith(prefix)), key=lambda o: o.path.encode())


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write ``manifest.json`` atomically: indented, keys sorted, one trailing newline."""
    text = json.dumps(manifest.to_json(), ensure_ascii=False, indent=2, sort_keys=True)
    write_bytes(directory / FILE_NAME, text.encode("utf-8") + b"\n")


def read_manifest(directory: Path) -> Manifest:
    """Read and check ``directory/manifest.json``.

    Raises ArtifactError when it is missing, not JSON, of a newer schema, incomplete, or doesn't match its own digest
    (edited by hand).
    """
    path = directory / FILE_NAME
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise ArtifactError(
            f"{directory} has no {FILE_NAME}: it is not a finished tokctl output",
            hint="run the stage that makes it, or name raw files instead",
            code="no-manifest",
            file=str(path),
        ) from None
    except OSError as error:
        raise ArtifactError(
            f"can't read {path}: {error.strerror}",
            hint="check its rights, or make the output again",
            code="unreadable",
            file=str(path),
        ) from None
    return _parse(raw, str(path))


@lru_cache(maxsize=2)  # of two nodes of a pipeline, one after the other, the second reads what the first has checked
def _parse(raw: bytes, file: str) -> Manifest:
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(
            f"{file} is not a JSON document: {error}",
            hint="restore the file, or run the stage again with --force",
            code="broken-manifest",
            file=file,
        ) from None
    return manifest_from_json(value, file)


def manifest_from_json(value: Any, file: str) -> Manifest:
    """A Manifest from parsed JSON; ``file`` is named in errors."""

    def broken(what: str, code: str = "broken-manifest", hint: str | None = None) -> ArtifactError:
        return ArtifactError(
            f"{file}: {what}", hint=hint or "run the stage that made it again, with --force", code=code, file=file
        )

    if not isinstance(value, dict):
        raise broken("a manifest is a JSON object")
    version = value.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise broken(
            f"its schema_version is {version}; this tokctl reads up to {SCHEMA_VERSION}",
            "newer-manifest",
            "upgrade tokctl, or make the artifact again with this version",
        )
    for key, kind in _KEYS.items():
        if not isinstance(value.get(key), kind):
            raise broken(f"{key!r} should be of type {kind.__name__}, found {type(value.get(key)).__name__}")
    unknown = sorted(set(value) - set(_KEYS))
    if unknown:
        raise broken(f"unknown keys {', '.join(unknown)}")
    body = {key: value[key] for key in _KEYS if key != "digest"}
    if framed_sha256(_DOMAIN, body) != value["digest"]:
        raise broken("its content doesn't match its own digest: it was edited after it was written", "edited-manifest")
    try:
        outputs = tuple(OutputFile(o["path"], o["sha256"], o["bytes"], o["rows"]) for o in value["outputs"])
    except (KeyError, TypeError):
        raise broken("an entry of 'outputs' lacks path, sha256, bytes or rows") from None
    for output in outputs:
        if output.path.startswith("/") or ".." in output.path.split("/"):
            raise broken(f"the output path {output.path!r} leaves the directory", "unsafe-path")
    return Manifest(
        stage=value["stage"],
        version=value["version"],
        parameters=value["parameters"],
        inputs=tuple(value["inputs"]),
        outputs=outputs,
        counts=value["counts"],
        fingerprint=value["fingerprint"],
        facts=value["facts"],
        libraries=value["libraries"],
        data_tables=value["data_tables"],
    )


def locate_manifest(path: Path) -> tuple[Path, str] | None:
    """The stage directory that ``path`` is or lies directly in, with ``path``'s place below it ("" for the directory itself).

    ``OUT/train`` of a split belongs to ``OUT/manifest.json``. None when neither has a manifest; a ``manifest.json`` of
    another program, which browser extensions and web sites have too, is none.
    """
    if _is_ours(path / FILE_NAME):
        return path, ""
    resolved = path.absolute()
    if path.is_dir() and _is_ours(resolved.parent / FILE_NAME):
        return resolved.parent, resolved.name
    return None


def _is_ours(file: Path) -> bool:
    """Whether a file is there and not another program's: readable JSON without what every manifest of tokctl has."""
    if not file.is_file():
        return False
    try:
        raw = file.read_bytes()
        return b'"stage"' in raw or b'"fingerprint"' in raw or not isinstance(json.loads(raw), dict)
    except (OSError, ValueError, RecursionError):
        return True  # reading it as a manifest says what is wrong


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return value
