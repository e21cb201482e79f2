"""``tokctl hash``: what an artifact is, independent of where and how it is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokctl.artifacts.digests import sha256_file
from tokctl.artifacts.framed_hash import framed_sha256
from tokctl.artifacts.manifest import OutputFile, locate_manifest, read_manifest
from tokctl.errors import ArtifactError, DataError

_RECORDS = {"manifest.json", "run.json"}
_EXPORTS = {"export huggingface", "export tiktoken"}


def identity(path: Path) -> dict[str, Any]:
    """``semantic`` and ``release`` of a tokenizer, an exported one too, else ``content`` and ``fingerprint`` of a stage's output.

    The release hash covers the semantic hash and the tokenizer's files (name and SHA-256), without tokctl's records.
    """
    if not path.exists():
        raise ArtifactError(
            f"{path} doesn't exist",
            hint="name a tokenizer or the output directory of a stage",
            code="no-artifact",
            file=str(path),
        )
    located = locate_manifest(path) if path.is_dir() else None
    if located is not None and not (path / "tokctl.json").is_file():
        manifest = read_manifest(located[0])
        if manifest.stage in _EXPORTS and not located[1]:
            for output in manifest.outputs:
                _check_output(path, output)
            return _of_tokenizer(path)
        for output in manifest.outputs_under(located[1]):
            _check_output(located[0], output)
        return {
            "stage": manifest.stage,
            "content": manifest.content_digest(located[1]),
            "fingerprint": manifest.fingerprint,
        }
    return _of_tokenizer(path)


def _of_tokenizer(path: Path) -> dict[str, Any]:
    from tokctl.stages.tokenizer_files import read_tokenizer

    semantic = read_tokenizer(path).semantic_hash
    files = [path] if path.is_file() else [p for p in sorted(path.rglob("*")) if p.is_file() and p.name not in _RECORDS]
    declared = [
        {"path": path.name if p == path else p.relative_to(path).as_posix(), "sha256": sha256_file(p)} for p in files
    ]
    declared.sort(key=lambda entry: entry["path"].encode())
    return {
        "semantic": semantic,
        "release": framed_sha256("tokenizer-release-v1", {"semantic": semantic, "files": declared}),
    }


def _check_output(directory: Path, output: OutputFile) -> None:
    """The identity of an output that was changed would be that of another one."""
    path = directory / output.path
    try:
        is_same = sha256_file(path) == output.sha256
    except DataError as error:
        raise ArtifactError(
            error.message, hint=f"run 'tokctl verify {directory}'", code="missing-output", file=str(path)
        ) from None
    if not is_same:
        raise ArtifactError(
            f"{path} doesn't match the digest in its manifest",
            hint=f"it was changed after it was written; run 'tokctl verify {directory}', then make it again",
            code="changed-output",
            file=str(path),
        )
