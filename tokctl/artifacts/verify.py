"""Check a finished directory against its manifest: every byte is hashed again, nothing is taken from the digest cache."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tokctl.artifacts.digests import sha256_file
from tokctl.artifacts.manifest import FILE_NAME, Manifest, read_manifest
from tokctl.errors import ArtifactError, DataError

_BESIDE = {FILE_NAME, "run.json"}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: a stable code, where, what was expected and found, and what to do."""

    code: str
    severity: str
    where: str
    expected: str | None
    found: str | None
    evidence: str | None
    fix: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def verify_directory(directory: Path) -> tuple[Manifest | None, list[Finding]]:
    """``(manifest, findings)``: manifest digest, presence and digest of each output, the row equation, undeclared files.

    The manifest is None when it can't be read (then that is the finding).
    """
    try:
        manifest = read_manifest(directory)
    except ArtifactError as error:
        finding = Finding(
            error.code, "error", str(directory / FILE_NAME), None, None, error.message, error.hint or "make it again"
        )
        return None, [finding]
    findings: list[Finding] = []
    again = f"run the stage {manifest.stage!r} again with --force"
    for output in manifest.outputs:
        path = directory / output.path
        if path.is_symlink() or not path.resolve().is_relative_to(directory.resolve()):
            findings.append(Finding("symlink", "error", str(path), "a regular file", "a symbolic link", None, again))
            continue
        try:
            digest = sha256_file(path)
        except DataError as error:
            findings.append(Finding("missing-output", "error", str(path), output.sha256, None, error.message, again))
        else:
            if digest != output.sha256:
                findings.append(Finding("changed-output", "error", str(path), output.sha256, digest, None, again))
    counts = manifest.counts
    if counts.get("rows_in") != counts.get("rows_out", 0) + counts.get("rows_rejected", 0):
        findings.append(
            Finding(
                "rows-lost", "error", str(directory), "rows_in = rows_out + rows_rejected", str(counts), None, again
            )
        )
    declared = {output.path for output in manifest.outputs}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_file() and name not in declared and name not in _BESIDE:
            findings.append(
                Finding("undeclared-file", "warning", str(path), None, name, None, "remove it if it isn't yours")
            )
    return manifest, findings
