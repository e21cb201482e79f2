"""Survivors, cluster rows and rejects: declared, and the same for any order of the input."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from tokctl.corpus.dedup.document_rows import DocumentRows
from tokctl.corpus.dedup.exact import Duplicates
from tokctl.corpus.dedup.survivors import Clusters, SurvivorRule
from tokctl.corpus.documents import CLUSTER_SCHEMA, REJECT_SCHEMA
from tokctl.errors import UsageError

from .documents import rows


def _clusters(labels: list[int], lengths: list[int], documents: DocumentRows, rule: str) -> Clusters:
    found = Duplicates(np.array(labels), np.array(lengths), np.zeros(len(labels), np.bool_))
    return Clusters(documents, found, SurvivorRule.parse(rule))


def _kept_ids(clusters: Clusters) -> dict[str, str]:
    kept = {}
    for batch in clusters.cluster_batches(all_documents=True):
        assert batch.schema == CLUSTER_SCHEMA
        for row in batch.to_pylist():
            kept[row["doc_id"]] = row["kept_id"]
    return kept


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("longest", "c"), ("lowest-id", "a"), ("source-priority=web,book", "b"), ("source-priority=none", "a")],
)
def test_each_rule_in_every_order(rule: str, expected: str) -> None:
    members = [("a", 5, "book"), ("b", 5, "web"), ("c", 9, "book"), ("d", 9, "web"), ("é", 9, "web")]
    for seed in range(20):
        random.Random(seed).shuffle(members)
        ids, lengths, sources = (list(column) for column in zip(*members, strict=True))
        clusters = _clusters([0] * 5, lengths, rows(["x"] * 5, ids=ids, sources=sources), rule)
        assert _kept_ids(clusters) == dict.fromkeys(ids, expected)
        assert clusters.survives.sum() == 1 and ids[int(np.flatnonzero(clusters.survives)[0])] == expected
        assert next(clusters.cluster_batches()).column("cluster_id").unique().to_pylist() == ["a"]


def test_rules_survive_their_text() -> None:
    for text in ("longest", "lowest-id", "source-priority=a,b c"):
        assert str(SurvivorRule.parse(text)) == text
    for text in ("shortest", "source-priority", "source-priority=", "source-priority=a,,b", "source-priority=a,a"):
        with pytest.raises(UsageError) as caught:
            SurvivorRule.parse(text)
        assert caught.value.hint


def test_rows_of_clusters_and_rejects() -> None:
    documents = rows(list("abcdef"), ids=list("fedcba"), sources=["s", "s", "t", "t", "t", "u"])
    found = Duplicates(np.array([0, 1, 0, 1, 0, 5]), np.array([1, 2, 3, 4, 5, 0]), np.arange(6) == 5)
    clusters = Clusters(documents, found, SurvivorRule.parse("lowest-id"), drop_empty=True)
    table = pa.Table.from_batches(clusters.cluster_batches())
    assert table.column("doc_id").to_pylist() == list("fedcb")
    assert table.column("cluster_id").to_pylist() == list("bcbcb")
    assert table.column("kept_id").to_pylist() == list("bcbcb")
    assert table.column("cluster_size").to_pylist() == [3, 2, 3, 2, 3]
    assert table.column("similarity").to_pylist() == [1.0] * 5
    assert pa.Table.from_batches(clusters.cluster_batches(all_documents=True)) == table  # the dropped one is no cluster
    rejects = pa.Table.from_batches(clusters.reject_batches("dedup", "exact-duplicate"))
    assert rejects.schema == REJECT_SCHEMA
    assert [(r["doc_id"], r["reason"], r["evidence"]) for r in rejects.to_pylist()] == [
        ("f", "exact-duplicate", "b"),
        ("e", "exact-duplicate", "c"),
        ("d", "exact-duplicate", "b"),
        ("a", "empty", None),
    ]
    assert clusters.survives.sum() + rejects.num_rows == documents.n_rows
    assert clusters.removed_by_source() == {"s": (2, 2), "t": (3, 1), "u": (1, 1)}
    assert clusters.statistics["duplicates"] == 3 and clusters.statistics["clusters"] == 2


def test_no_clusters_at_all() -> None:
    clusters = _clusters([0, 1], [1, 1], rows(["a", "b"]), "longest")
    assert list(clusters.cluster_batches()) == [] and list(clusters.reject_batches("dedup", "x")) == []
    assert _kept_ids(clusters) == {"d0": "d0", "d1": "d1"}
