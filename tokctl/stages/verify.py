"""What ``tokctl verify`` checks beyond bytes: a tokenizer's self-test, the order and totals of word counts."""

from __future__ import annotations

from pathlib import Path

from tokctl.artifacts.manifest import Manifest
from tokctl.artifacts.verify import Finding
from tokctl.errors import TokctlError


def stage_findings(directory: Path, manifest: Manifest) -> list[Finding]:
    """Findings that need to know what kind of artifact it is."""
    findings = []
    for output in manifest.outputs:
        path = directory / output.path
        try:
            if path.name == "tokctl.json":
                from tokctl.tokenizer.formats.native import check_self_test, load

                check_self_test(load(path.parent), path.parent)
            elif path.name == "words.parquet":
                from tokctl.corpus.word_counts import WordCounts

                WordCounts.read_parquet(path).check(str(path))
        except TokctlError as error:
            fix = error.hint or f"run the stage {manifest.stage!r} again with --force"
            findings.append(Finding(error.code, "error", str(path), None, None, error.message, fix))
    return findings
