from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from metrics.candidates import Chunks, Fragile

from tokctl.errors import DataError, UsageError
from tokctl.metrics.compare import compare
from tokctl.metrics.gates import read_gates
from tokctl.metrics.table import METRICS

DOCUMENTS = pa.table(
    {
        "doc_id": [f"d{i:02}" for i in range(40)],
        "text": ["word " * (i % 7) + "é" * (i % 3) for i in range(40)],
        "language": ["de" if i % 4 else "en" for i in range(40)],
        "source": ["web"] * 40,
    }
)
GATES = read_gates(
    """
    [[gate]]
    metric = "round_trip.documents"
    op = "=="
    limit = 1
    [[gate]]
    metric = "tokens.total"
    op = "<="
    limit = 0.5
    relative_to = "one"
    slice = "language=de"
    """
)


def test_rows_gates_and_verdict():
    found = compare({"three": Chunks(3), "one": Chunks(1)}, [DOCUMENTS], baseline="one", gates=GATES)
    assert found.passed
    assert found.n_documents == 40
    assert found.row("three", "amplification.micro").value < 0.5
    result = found.to_json()
    assert [c["name"] for c in result["candidates"]] == ["one", "three"]
    assert {row["slice"] for row in result["metrics"]} == {None, "language=de", "language=en", "source=web"}
    assert len(result["metrics"]) == len(METRICS) * 2 * 4
    assert [g["status"] for g in result["gates"]] == ["passed", "passed"]
    assert set(result["metrics"][0]) == {
        "candidate", "id", "value", "unit", "numerator", "denominator", "n_documents", "ci95", "slice", "reason",
    }  # fmt: skip
    json.dumps(result, allow_nan=False)


def test_batches_and_order_do_not_change_a_byte():
    results = set()
    rows = list(range(40))
    for size, seed in ((40, None), (7, 1), (1, 2)):
        if seed is not None:
            random.Random(seed).shuffle(rows)
        batches = DOCUMENTS.take(rows).to_batches(max_chunksize=size)
        found = compare({"three": Chunks(3), "one": Chunks(1)}, batches, baseline="one", gates=GATES)
        results.add(json.dumps(found.to_json()))
    assert len(results) == 1


def test_plain_texts():
    found = compare({"two": Chunks(2)}, iter(["abc", "abc", b"\xff"]))
    assert found.n_documents == 3
    assert found.row("two", "tokens.total").value == 5
    assert {row.slice for row in found.rows} == {None}


def test_a_failing_gate_fails_the_comparison():
    gates = read_gates('[[gate]]\nmetric = "tokens.total"\nop = "<"\nlimit = 5')
    assert not compare({"one": Chunks(1)}, [DOCUMENTS], gates=gates).passed


def test_a_missing_slice_fails_unless_allowed():
    gates = read_gates('[[gate]]\nid = "dutch"\nmetric = "tokens.total"\nop = ">"\nlimit = 5\nslice = "language=nl"')
    assert not compare({"one": Chunks(1)}, [DOCUMENTS], gates=gates).passed
    assert compare({"one": Chunks(1)}, [DOCUMENTS], gates=gates, allow_not_checked=["dutch"]).passed


def test_notices_name_twins_and_failures():
    twins = {"a": Chunks(1), "b": Chunks(1), "c": Fragile(2)}
    found = compare(twins, ["fine", "boom"])
    assert found.notices[0] == "a, b are the same tokenizer (chunks-1)"
    assert found.notices[1].startswith("c failed on 1 documents, first on ")
    assert found.notices[1].endswith("-0: RuntimeError: boom")


def test_refusals():
    with pytest.raises(UsageError) as caught:
        compare({"one": Chunks(1)}, ["x"], baseline="on")
    assert caught.value.hint == "did you mean 'one'?"
    with pytest.raises(UsageError, match="'two'"):
        gates = read_gates('[[gate]]\nmetric = "tokens.total"\nop = "<"\nlimit = 5\nrelative_to = "two"')
        compare({"one": Chunks(1)}, ["x"], gates=gates)
    with pytest.raises(UsageError, match="'dtch'"):
        compare({"one": Chunks(1)}, ["x"], gates=GATES[:1], allow_not_checked=["dtch"])
    with pytest.raises(UsageError, match="several texts"):
        compare({"one": Chunks(1)}, "x")
    with pytest.raises(DataError, match="no document"):
        compare({"one": Chunks(1)}, [])
    with pytest.raises(UsageError, match="no candidate"):
        compare({}, ["x"])
