from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import split as oracle

from tokctl.corpus.group_keys import GroupBy
from tokctl.corpus.split import ROLES, Shares, SplitPlanner, plan_split
from tokctl.errors import DataError, UsageError

BY_GROUP = GroupBy.parse("group_id")


def documents(rows: list[tuple[str, str | None, str]]) -> pa.Table:
    """(doc_id, group_id, language) rows as documents."""
    texts = [f"text of {doc_id}" for doc_id, _, _ in rows]
    return pa.table(
        {
            "doc_id": pa.array([row[0] for row in rows], pa.large_string()),
            "group_id": pa.array([row[1] for row in rows], pa.large_string()),
            "language": pa.array([row[2] for row in rows], pa.large_string()),
            "text": pa.array(texts, pa.large_string()),
            "sha256_text": pa.array([hashlib.sha256(t.encode()).hexdigest() for t in texts], pa.large_string()),
        }
    )


def clusters(members: dict[str, str]) -> pa.Table:
    sizes = {c: list(members.values()).count(c) for c in members.values()}
    return pa.table(
        {
            "doc_id": pa.array(list(members), pa.large_string()),
            "cluster_id": pa.array(list(members.values()), pa.large_string()),
            "cluster_size": pa.array([sizes[c] for c in members.values()], pa.int64()),
        }
    )


def assigned(plan, table: pa.Table) -> dict[str, str]:
    codes, _ = plan.assign(table)
    return {d: ROLES[c] for d, c in zip(table["doc_id"].to_pylist(), codes.tolist(), strict=True)}


def group_of(table: pa.Table) -> dict[str, str]:
    pairs = zip(table["doc_id"].to_pylist(), table["group_id"].to_pylist(), strict=True)
    return {d: f"key:{g}" if g else f"doc:{d}" for d, g in pairs}


ROWS = st.lists(
    st.tuples(st.sampled_from([None, *"abcdefghij"]), st.sampled_from(["", "de", "en", "zh"])), min_size=0, max_size=40
).map(lambda rows: [(f"d{i}", group, language) for i, (group, language) in enumerate(rows)])
TENTHS = st.integers(0, 5).map(lambda n: f"0.{n}")


@settings(max_examples=150, derandomize=True, deadline=None)
@given(ROWS, TENTHS, TENTHS, st.integers(0, 2**64 - 1))
def test_fractions_equal_the_oracle(rows, validation, test, seed):
    table = documents(rows)
    plan = plan_split(BY_GROUP, Shares.fractions(validation, test), seed)
    assert assigned(plan, table) == oracle.split_by_fraction(
        group_of(table), seed, Fraction(validation), Fraction(test)
    )


@settings(max_examples=150, derandomize=True, deadline=None)
@given(ROWS, TENTHS, TENTHS, st.integers(0, 3), st.data())
def test_joined_clusters_equal_the_oracle(rows, validation, test, seed, data):
    table = documents(rows)
    members = {d: f"c{c}" for d, _, _ in rows if (c := data.draw(st.integers(0, 6))) < 4}
    shares = Shares.fractions(validation, test)
    plan = plan_split(BY_GROUP, shares, seed, table.to_batches(max_chunksize=7), clusters=clusters(members))
    joined = oracle.join(group_of(table), members)
    expected = oracle.split_by_fraction(joined, seed, Fraction(validation), Fraction(test))
    assert assigned(plan, table) == expected
    alone = oracle.split_by_fraction(group_of(table), seed, Fraction(validation), Fraction(test))
    assert plan.report["documents_moved_by_joins"] == sum(alone[d] != expected[d] for d in expected)
    assert plan.report["joined_groups"] == len(set(group_of(table).values())) - len(set(joined.values()))
    _, groups = plan.assign(table)
    assert groups.tolist() == [oracle.position(joined[d], seed) for d, _, _ in rows]


@settings(max_examples=150, derandomize=True, deadline=None)
@given(ROWS, TENTHS, TENTHS, st.integers(0, 3))
def test_strata_equal_the_oracle(rows, validation, test, seed):
    table = documents(rows)
    shares = Shares.fractions(validation, test)
    plan = plan_split(BY_GROUP, shares, seed, table.to_batches(max_chunksize=5), stratify_by="language")

    def quota(n: int) -> tuple[int, int]:
        n_test = int(Fraction(test) * n + Fraction(1, 2))
        return min(n - n_test, int(Fraction(validation) * n + Fraction(1, 2))), n_test

    strata = {d: language for d, _, language in rows}
    assert assigned(plan, table) == oracle.split_by_quota(group_of(table), seed, strata, quota)
    groups = group_of(table)
    languages = {g: {strata[d] for d in groups if groups[d] == g} for g in groups.values()}
    assert plan.report["groups_in_several_strata"] == sum(len(found) > 1 for found in languages.values())
    assert sum(sum(roles.values()) for roles in plan.report["strata"].values()) == len(languages)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(ROWS, st.integers(0, 4), st.integers(0, 4), st.integers(0, 3))
def test_group_counts_equal_the_oracle(rows, validation, test, seed):
    table = documents(rows)
    n_groups = len(set(group_of(table).values()))
    shares = Shares.counts(validation, test)
    if validation + test > n_groups:
        with pytest.raises(DataError, match=f"more than the {n_groups} groups"):
            plan_split(BY_GROUP, shares, seed, [table])
        return
    plan = plan_split(BY_GROUP, shares, seed, [table])
    one_stratum = {d: "" for d, _, _ in rows}
    assert assigned(plan, table) == oracle.split_by_quota(
        group_of(table), seed, one_stratum, lambda n: (validation, test)
    )


def test_document_counts_take_whole_groups_until_reached():
    rows = [(f"d{i}", f"g{i // 4}", "en") for i in range(80)]
    plan = plan_split(BY_GROUP, Shares.counts(5, 8, "documents"), 0, [documents(rows)])
    roles = list(assigned(plan, documents(rows)).values())
    assert (roles.count("validation"), roles.count("test"), roles.count("train")) == (8, 8, 64)


def test_adding_documents_moves_none_and_growing_validation_takes_from_train_only():
    many = documents([(f"d{i}", f"g{i % 500}", "en") for i in range(2000)])
    few = many.slice(0, 700)
    small = assigned(plan_split(BY_GROUP, Shares.fractions("0.05", "0.1"), 7), many)
    large = assigned(plan_split(BY_GROUP, Shares.fractions("0.2", "0.1"), 7), many)
    assert assigned(plan_split(BY_GROUP, Shares.fractions("0.05", "0.1"), 7), few).items() <= small.items()
    changes = {(small[d], large[d]) for d in small if small[d] != large[d]}
    assert changes == {("train", "validation")}
    assert 0.02 < list(small.values()).count("validation") / 2000 < 0.09


def test_whole_line_belongs_to_one_role():
    ends = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    for shares, role in ((("0", "0"), "train"), (("1", "0"), "validation"), (("0", "1"), "test")):
        assert {ROLES[code] for code in Shares.fractions(*shares).roles(ends)} == {role}
    half = Shares.fractions("0.5", "0.5").roles(np.array([2**63 - 1, 2**63], np.uint64))
    assert [ROLES[code] for code in half] == ["test", "validation"]


def test_input_order_and_batches_do_not_matter():
    rows = [(f"d{i}", f"g{i % 37}", "de" if i % 3 else "en") for i in range(300)]
    members = {f"d{i}": f"c{i % 11}" for i in range(0, 300, 29)}
    settled = []
    for order, size in ((rows, 300), (rows[::-1], 13), (rows[150:] + rows[:150], 1)):
        table = documents(order)
        batches = table.to_batches(max_chunksize=size)
        plan = plan_split(
            BY_GROUP, Shares.fractions("0.2", "0.2"), 3, batches, stratify_by="language", clusters=clusters(members)
        )
        settled.append((dict(sorted(assigned(plan, table).items())), plan.report))
    assert settled[0] == settled[1] == settled[2]


def test_translations_of_one_article_never_straddle():
    rows = [(f"{language}/{n}", f"article-{n}", language) for language in ("de", "en", "ja") for n in range(31)]
    for seed in range(20):
        roles = assigned(plan_split(BY_GROUP, Shares.fractions("0.2", "0.2"), seed), documents(rows))
        for n in range(31):
            assert len({roles[f"{language}/{n}"] for language in ("de", "en", "ja")}) == 1


def test_documents_without_a_key_are_counted_when_scanned():
    table = documents([("a", None, "en"), ("b", "", "en"), ("c", "g", "en")])
    planner = SplitPlanner(BY_GROUP, Shares.counts(1, 1), 0)
    assert planner.needs_scan
    planner.scan(table)
    report = planner.finish().report
    assert report["documents_without_key"] == 2
    assert report["addition_stable"] is False
    assert plan_split(BY_GROUP, Shares.fractions("0.1", "0.1"), 0).report["addition_stable"] is True


def test_a_document_that_appeared_after_planning_is_an_error():
    plan = plan_split(BY_GROUP, Shares.counts(1, 1), 0, [documents([("a", "x", "en"), ("b", "y", "en")])])
    with pytest.raises(DataError, match="'late'"):
        plan.assign(documents([("a", "x", "en"), ("late", "z", "en")]))


@pytest.mark.parametrize(
    ("validation", "test"), [("0.6", "0.5"), ("-0.1", "0"), ("x", "0"), ("0", "nan"), ("inf", "0"), ("1.01", "0")]
)
def test_bad_fractions(validation, test):
    with pytest.raises(UsageError):
        Shares.fractions(validation, test)


def test_bad_counts():
    with pytest.raises(UsageError):
        Shares.counts(-1, 0)
    with pytest.raises(UsageError):
        Shares.counts(1, 0, "bytes")


def test_empty_corpus():
    table = documents([])
    for plan in (
        plan_split(BY_GROUP, Shares.fractions("0.5", "0.1"), 0),
        plan_split(BY_GROUP, Shares.fractions("0.5", "0.1"), 0, [table], stratify_by="language"),
        plan_split(BY_GROUP, Shares.counts(0, 0), 0, [table]),
    ):
        assert assigned(plan, table) == {}
