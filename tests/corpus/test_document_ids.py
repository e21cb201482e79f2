from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tokctl.corpus import document_ids
from tokctl.corpus.document_ids import IdRegister


def assign(register: IdRegister, own_ids, digests=None, source="s", uri="f.jsonl"):
    n = len(own_ids)
    return register.assign([source] * n, [uri] * n, own_ids, digests or ["d"] * n)


def test_the_three_kinds():
    register = IdRegister()
    assert register.assign(
        ["s"] * 4, ["a.txt", "b.jsonl", "b.jsonl", "c.jsonl"], ["", "7", None, None], list("wxyy")
    ) == [
        "s/a.txt",
        "s/b.jsonl#7",
        "y-0",
        "y-1",
    ]


def test_repeated_ids_stay_unique():
    register = IdRegister()
    assert assign(register, ["x", "x", "x~1", "x", "x~1"]) == [
        "s/f.jsonl#x",
        "s/f.jsonl#x~1",
        "s/f.jsonl#x~1~1",
        "s/f.jsonl#x~2",
        "s/f.jsonl#x~1~2",
    ]


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "a~1", "a~2", "b"])), max_size=40),
    st.lists(st.integers(1, 5), max_size=20),
)
def test_batches_do_not_matter_and_ids_are_unique(own_ids, cuts):
    rng = random.Random(0)
    digests = [rng.choice("xyz") for _ in own_ids]
    whole = assign(IdRegister(), own_ids, digests)
    assert len(set(whole)) == len(whole)
    register, parts, at = IdRegister(), [], 0
    for cut in [*cuts, len(own_ids)]:
        parts += assign(register, own_ids[at : at + cut], digests[at : at + cut])
        at += cut
    assert parts == whole


def test_many_ids_over_compacted_runs(monkeypatch):
    monkeypatch.setattr(document_ids, "_RUN", 64)
    rng = random.Random(1)
    keys = [str(rng.randrange(900)) for _ in range(3000)]
    register, found = IdRegister(), []
    for i in range(0, 3000, 50):
        found += assign(register, [None] * 50, keys[i : i + 50])
    seen: dict[str, int] = {}
    expected = []
    for key in keys:
        expected.append(f"{key}-{seen.get(key, 0)}")
        seen[key] = seen.get(key, 0) + 1
    assert found == expected
    assert len(register._runs) < 8
