from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest

from tokctl.corpus.group_keys import GroupBy
from tokctl.corpus.release import RoleStatistics, release_hash
from tokctl.corpus.split import ROLES, Shares, plan_split
from tokctl.corpus.verify_split import verify_split


@pytest.fixture
def corpus():
    texts = [f"text {i}" for i in range(60)]
    table = pa.table(
        {
            "doc_id": [f"d{i}" for i in range(60)],
            "group_id": [f"g{i % 20}" for i in range(60)],
            "text": texts,
            "sha256_text": [hashlib.sha256(t.encode()).hexdigest() for t in texts],
        }
    )
    plan = plan_split(GroupBy.parse("group_id"), Shares.fractions("0.3", "0.3"), 1)
    codes, groups = plan.assign(table)
    parts, declared = {}, {}
    for code, name in enumerate(ROLES):
        rows = codes == code
        parts[name] = table.filter(pa.array(rows))
        statistics = RoleStatistics()
        statistics.add(parts[name], groups[rows])
        declared[name] = statistics.record()
    assert all(len(part) >= 3 for part in parts.values())
    return plan, parts, declared


def codes_of(plan, parts, declared):
    batches = {name: part.to_batches(max_chunksize=4) for name, part in parts.items()}
    return {f.to_json()["code"] for f in verify_split(plan, batches, declared, release_hash(declared))}


def test_a_split_as_declared_has_no_findings(corpus):
    assert codes_of(*corpus) == set()


def test_one_document_moved(corpus):
    plan, parts, declared = corpus
    moved = parts["test"].slice(0, 1)
    parts = parts | {"test": parts["test"].slice(1), "train": pa.concat_tables([parts["train"], moved])}
    assert codes_of(plan, parts, declared) == {
        "misplaced-document",
        "straddling-group",
        "role-mismatch",
        "release-mismatch",
    }


def test_one_text_edited(corpus):
    plan, parts, declared = corpus
    texts = parts["validation"]["text"].to_pylist()
    texts[0] = texts[0].upper()  # of the same length, so that no count gives it away
    parts = parts | {"validation": parts["validation"].set_column(2, "text", pa.array(texts))}
    assert codes_of(plan, parts, declared) == {"text-mismatch"}


def test_one_document_lost(corpus):
    plan, parts, declared = corpus
    assert codes_of(plan, parts | {"train": parts["train"].slice(1)}, declared) == {
        "role-mismatch",
        "release-mismatch",
    }


def test_a_role_missing(corpus):
    plan, parts, declared = corpus
    del parts["test"]
    assert codes_of(plan, parts, declared) == {"role-mismatch", "release-mismatch"}
