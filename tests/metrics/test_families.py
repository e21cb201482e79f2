"""Every metric against the oracle, on hand-made evaluations."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest
from metrics.candidates import Chunks, Fragile, Lossy
from oracles import metrics as oracle

from tokctl.metrics import compression, coverage, fairness, length
from tokctl.metrics.evaluate import evaluate
from tokctl.metrics.sample import samples, unsliced
from tokctl.metrics.table import METRICS

TEXTS = ["aé", "日本語テキスト", "plain ascii text, a little longer than the rest", "", "ß", "tail"]
LANGUAGES = ["fr", "ja", "en", "en", "de", "en"]
BATCH = pa.table({"doc_id": [f"d{i}" for i in range(6)], "text": TEXTS, "language": LANGUAGES})
BYTES = [len(t.encode()) for t in TEXTS]
TOKENS = {"two": [-(-n // 2) for n in BYTES], "five": [-(-n // 5) for n in BYTES]}


@pytest.fixture(scope="module")
def found():
    evaluation = evaluate({"two": Chunks(2), "five": Chunks(5)}, [BATCH], slice_columns=["language"])
    return {(s.candidate, s.slice): s for s in samples(evaluation, "two")}


def rows_of(sample):
    rows = [row for family in (length, compression, coverage, fairness) for row in family.rows(sample)]
    return {row.id: row.to_json() for row in rows}


def test_every_metric_of_the_table_has_its_row(found):
    assert set(rows_of(found["two", None])) == set(METRICS)


def test_samples_come_in_order(found):
    slices = [None, "language=de", "language=en", "language=fr", "language=ja"]
    assert list(found) == [(name, label) for label in slices for name in ("five", "two")]


@pytest.mark.parametrize("name", ["two", "five"])
def test_all_documents_equal_the_oracle(found, name):
    rows = rows_of(found[name, None])
    tokens = TOKENS[name]
    singles = [n % {"two": 2, "five": 5}[name] == 1 for n in BYTES]
    points = [len(t) for t in TEXTS]
    ratios = {
        "bytes_per_token.micro": (BYTES, tokens),
        "code_points_per_token.micro": (points, tokens),
        "single_byte_share.micro": (singles, tokens),
        "round_trip.documents": ([1] * 6, [1] * 6),
        "amplification.micro": (tokens, TOKENS["two"]),
    }
    for metric, (above, below) in ratios.items():
        value, ci95 = oracle.ratio("all", above, below)
        row = rows[metric]
        assert (row["value"], row["ci95"]) == (value, ci95), metric
        assert (row["numerator"], row["denominator"], row["n_documents"]) == (sum(above), sum(below), 6)
        assert row["reason"] is None
    total = rows["tokens.total"]
    sums = [sum(tokens[i] for i in picked) for picked in oracle.drawn("all", 6)]
    assert (total["value"], total["numerator"], total["denominator"]) == (sum(tokens), sum(tokens), None)
    assert total["ci95"] == oracle.interval(sums)
    for label, quantile in (("p50", Fraction(1, 2)), ("p95", Fraction(19, 20)), ("max", Fraction(1))):
        row = rows[f"tokens_per_document.{label}"]
        assert (row["value"], row["ci95"]) == oracle.quantile("all", tokens, quantile)


def test_a_slice_is_computed_on_its_documents_alone(found):
    rows = rows_of(found["five", "language=en"])
    english = [i for i, language in enumerate(LANGUAGES) if language == "en"]
    row = rows["tokens.total"]
    assert (row["value"], row["n_documents"], row["slice"]) == (
        sum(TOKENS["five"][i] for i in english),
        3,
        "language=en",
    )
    assert row["ci95"] == oracle.interval(
        [sum(TOKENS["five"][english[i]] for i in picked) for picked in oracle.drawn("language=en", 3)]
    )


def test_one_document_has_a_value_and_says_why_there_is_no_interval(found):
    for row in rows_of(found["five", "language=ja"]).values():
        assert row["value"] is not None
        assert row["ci95"] is None
        assert row["reason"] == "one document has no interval"


def test_the_baseline_against_itself_is_one(found):
    row = rows_of(found["two", None])["amplification.micro"]
    assert (row["value"], row["ci95"]) == (1.0, [1.0, 1.0])


def test_without_a_baseline_there_is_no_amplification():
    (sample,) = samples(evaluate({"two": Chunks(2)}, [BATCH]))
    row = rows_of(sample)["amplification.micro"]
    assert (row["value"], row["reason"]) == (None, "no baseline was named")


def test_zero_tokens_is_a_reason_not_a_number():
    empty = pa.table({"doc_id": ["a", "b"], "text": ["", ""]})
    rows = rows_of(next(samples(evaluate({"x": Chunks(2)}, [empty]), "x")))
    assert rows["bytes_per_token.micro"]["value"] is None
    assert rows["bytes_per_token.micro"]["reason"] == "there are no tokens"
    assert rows["bytes_per_token.micro"]["denominator"] == 0
    assert rows["amplification.micro"]["reason"] == "the baseline has no tokens"
    assert rows["round_trip.documents"]["value"] == 1.0
    assert (rows["tokens.total"]["value"], rows["tokens.total"]["ci95"]) == (0, [0, 0])


def test_a_resample_without_tokens_leaves_the_interval_out():
    mostly_empty = pa.table({"doc_id": ["a", "b", "c"], "text": ["", "", "ab"]})
    row = rows_of(next(samples(evaluate({"x": Chunks(2)}, [mostly_empty]))))["bytes_per_token.micro"]
    assert (row["value"], row["ci95"], row["reason"]) == (2.0, None, "there are no tokens in some resamples")


def test_failed_documents_take_the_value_away_but_not_the_round_trip():
    table = pa.table({"doc_id": ["a", "b"], "text": ["fine", "boom"]})
    evaluation = evaluate({"fragile": Fragile(2), "fine": Chunks(1)}, [table])
    of = {s.candidate: rows_of(s) for s in samples(evaluation, "fragile")}
    for metric, row in of["fragile"].items():
        if metric == "round_trip.documents":
            assert (row["value"], row["numerator"], row["denominator"]) == (0.5, 1, 2)
        elif metric == "amplification.micro":
            assert (row["value"], row["reason"]) == (None, "the baseline failed on 1 documents")
        else:
            assert (row["value"], row["reason"]) == (None, "the candidate failed on 1 documents")
    assert of["fine"]["amplification.micro"]["value"] is None
    assert of["fine"]["tokens.total"]["value"] == 8


def test_lossy_round_trip():
    row = rows_of(next(samples(evaluate({"lossy": Lossy(2)}, [BATCH]))))["round_trip.documents"]
    assert (row["numerator"], row["denominator"]) == (3, 6)  # the empty one, and two without ASCII letters


def test_a_column_of_too_many_values_is_left_out_and_named():
    table = pa.table({"doc_id": [f"{i:03}" for i in range(201)], "text": ["x"] * 201})
    evaluation = evaluate({"x": Chunks(1)}, [table], slice_columns=["doc_id"])
    assert [s.slice for s in samples(evaluation)] == [None]
    assert unsliced(evaluation) == {"doc_id": 201}
