"""Check a split that lies on disk against what its manifest declares."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from tokctl.artifacts.verify import Finding
from tokctl.corpus.release import RoleRecord, RoleStatistics, release_hash
from tokctl.corpus.split import ROLES, SplitPlan


def verify_split(
    plan: SplitPlan,
    roles: Mapping[str, Iterable[pa.RecordBatch | pa.Table]],
    declared: Mapping[str, RoleRecord],
    declared_release: str,
) -> list[Finding]:
    """Read every document again and compare; an empty list says that the split is as declared.

    Codes: ``straddling-group`` (a group has documents in two roles), ``misplaced-document`` (the plan puts it
    elsewhere), ``text-mismatch`` (a text does not have its sha256_text), ``role-mismatch`` (a count or digest differs),
    ``release-mismatch``. Needs the document columns doc_id, text and sha256_text and those of the plan's group key.
    """
    findings: list[Finding] = []
    statistics = {name: RoleStatistics() for name in roles}
    for name, batches in roles.items():
        n_misplaced, example = 0, ""
        for batch in batches:
            codes, groups = plan.assign(batch)
            statistics[name].add(batch, groups)
            wrong = np.flatnonzero(codes != ROLES.index(name))
            if len(wrong) and not n_misplaced:
                row = int(wrong[0])
                example = f"{batch.column('doc_id')[row].as_py()} belongs to {ROLES[codes[row]]}"
            n_misplaced += len(wrong)
            findings += _changed_texts(name, batch)
        if n_misplaced:
            findings.append(
                _finding("misplaced-document", name, "0 documents of another role", str(n_misplaced), example)
            )
    for a, b in combinations(roles, 2):
        shared = np.intersect1d(statistics[a].groups, statistics[b].groups)
        if len(shared):
            evidence = f"group at position {int(shared[0])}"
            findings.append(
                _finding("straddling-group", f"{a}, {b}", "no group in two roles", str(len(shared)), evidence)
            )
    records = {name: part.record() for name, part in statistics.items()}
    for name in sorted(set(records) | set(declared)):
        findings += _compare_role(name, declared.get(name), records.get(name))
    if release_hash(records) != declared_release:
        findings.append(
            _finding("release-mismatch", "split", declared_release, release_hash(records), "corpus release hash")
        )
    return findings


def _finding(code: str, where: str, expected: str, found: str, evidence: str) -> Finding:
    return Finding(code, "error", where, expected, found, evidence, "run split again from its inputs")


def _changed_texts(role: str, batch: pa.RecordBatch | pa.Table) -> list[Finding]:
    columns = (batch.column(name).to_pylist() for name in ("doc_id", "text", "sha256_text"))
    findings = []
    for doc_id, text, expected in zip(*columns, strict=True):
        found = hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()
        if found != expected:
            findings.append(_finding("text-mismatch", role, expected, found, doc_id))
    return findings


def _compare_role(name: str, declared: RoleRecord | None, found: RoleRecord | None) -> list[Finding]:
    if declared is None or found is None:
        expected, got = ("declared", "absent") if found is None else ("absent", "present")
        return [_finding("role-mismatch", name, expected, got, "the role itself")]
    a: dict[str, Any] = declared.to_json()
    b: dict[str, Any] = found.to_json()
    return [_finding("role-mismatch", name, str(a[key]), str(b[key]), key) for key in a if a[key] != b[key]]
