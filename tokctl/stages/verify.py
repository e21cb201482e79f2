"""What ``tokctl verify`` checks beyond bytes: a tokenizer's self-test, the order of word counts, the groups of a split, ids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tokctl.artifacts.manifest import Manifest
from tokctl.artifacts.verify import Finding
from tokctl.errors import TokctlError


def stage_findings(directory: Path, manifest: Manifest) -> list[Finding]:
    """Findings that need to know what kind of artifact it is."""
    findings = []
    if manifest.stage == "split":
        findings = _split_findings(directory, manifest)
    elif manifest.stage == "encode":
        findings = _encode_findings(directory, manifest)
    for output in manifest.outputs:
        path = directory / output.path
        if not path.is_file():
            continue  # a finding already
        try:
            if path.name == "tokctl.json":
                findings += _check_tokenizer(path.parent)
            elif path.name == "words.parquet":
                from tokctl.corpus.word_counts import WordCounts

                WordCounts.read_parquet(path).check(str(path))
        except TokctlError as error:
            fix = error.hint or f"run the stage {manifest.stage!r} again with --force"
            findings.append(Finding(error.code, "error", str(path), None, None, error.message, fix))
    return findings


def saved_tokenizer_findings(directory: Path) -> list[Finding]:
    """Findings of a tokenizer that ``Tokenizer.save`` wrote: it has no manifest, and its self-test is what there is to check."""
    path = directory / "tokctl.json"
    try:
        findings = _check_tokenizer(directory)
    except TokctlError as error:
        return [Finding(error.code, "error", str(path), None, None, error.message, error.hint or "save it again")]
    evidence = "no stage wrote it, so no digests were recorded; its self-test passed"
    return [*findings, Finding("no-manifest", "note", str(path), None, None, evidence, "nothing to mend")]


def _check_tokenizer(directory: Path) -> list[Finding]:
    """The self-test, raising where it fails, and what is unsound; ``tokctl inspect --check`` has the notes too."""
    from tokctl.tokenizer.formats.native import check_self_test, load
    from tokctl.tokenizer.soundness import check_tokenizer

    tokenizer = load(directory)
    check_self_test(tokenizer, directory)
    found = [Finding(**finding) for finding in check_tokenizer(tokenizer)["findings"]]
    return [replace(one, where=str(directory / "tokctl.json")) for one in found if one.severity != "note"]


def _encode_findings(directory: Path, manifest: Manifest) -> list[Finding]:
    """The ids are below the vocabulary's size, and as many as the rows and the manifest say."""
    from tokctl.stages.encoded_rows import check_encoded

    try:
        check_encoded(directory, manifest)
    except TokctlError as error:
        fix = "run the stage 'encode' again with --force"
        return [Finding(error.code, "error", str(directory), None, None, error.message, fix)]
    return []


def _split_findings(directory: Path, manifest: Manifest) -> list[Finding]:
    """Read the split again: no group in two roles, every text with its digest, the release hash as declared."""
    from tokctl.corpus.group_keys import GroupBy
    from tokctl.corpus.release import RoleRecord
    from tokctl.corpus.shards import read_shards
    from tokctl.corpus.split import ROLES, plan_split
    from tokctl.corpus.verify_split import verify_split
    from tokctl.stages.split import STAGE, shares_of

    if any(record["slot"] == "clusters" for record in manifest.inputs):
        fix = "nothing to mend: the clusters that joined groups are not part of the output"
        return [Finding("not-checked", "note", str(directory), None, None, "groups joined by clusters", fix)]
    try:
        parameters = STAGE.parameters(**manifest.parameters)
        plan = plan_split(
            GroupBy.parse(manifest.parameters["group_by"]),
            shares_of(parameters),
            manifest.parameters["seed"],
            (batch for role in ROLES for batch in read_shards(directory / role)),
            stratify_by=manifest.parameters["stratify_by"],
        )
        declared = {role: RoleRecord(**record) for role, record in manifest.facts["roles"].items()}
        roles = {role: read_shards(directory / role) for role in ROLES}
        return verify_split(plan, roles, declared, manifest.facts["release"])
    except TokctlError as error:
        return [Finding(error.code, "error", str(directory), None, None, error.message, error.hint or "split again")]
