from __future__ import annotations

import pyarrow as pa
import pytest
from metrics.candidates import Chunks, Fragile, Lossy, OutOfRange

from tokctl.errors import DataError, UsageError
from tokctl.metrics.evaluate import evaluate

DOCUMENTS = pa.table(
    {
        "doc_id": ["b", "a", "c", "d"],
        "text": ["naïve", "abcdef", "", "boom!"],
        "language": ["fr", "en", None, "en"],
    }
)


def test_measures_by_hand():
    evaluation = evaluate({"two": Chunks(2)}, DOCUMENTS.to_batches(max_chunksize=3), slice_columns=["language"])
    assert evaluation.documents.to_pydict() == {
        "doc_id": ["a", "b", "c", "d"],
        "n_bytes": [6, 6, 0, 5],
        "n_code_points": [6, 5, 0, 5],
        "language": ["en", "fr", "", "en"],
    }
    assert evaluation.candidates["two"].to_pydict() == {
        "n_tokens": [3, 3, 0, 3],
        "n_single_byte_tokens": [0, 0, 0, 1],
        "round_trip": [True, True, True, True],
        "error": [None, None, None, None],
    }


def test_binary_texts_and_strings_measure_alike():
    binary = DOCUMENTS.set_column(1, "text", pa.array([t.encode() for t in DOCUMENTS["text"].to_pylist()]))
    of_strings, of_bytes = (evaluate({"x": Chunks(3)}, [table]) for table in (DOCUMENTS, binary))
    assert of_strings.to_table().equals(of_bytes.to_table())


def test_round_trip_is_byte_exact():
    evaluation = evaluate({"lossy": Lossy(1)}, [DOCUMENTS])
    assert evaluation.candidates["lossy"]["round_trip"].to_pylist() == [False, False, True, False]


def test_a_failing_document_is_marked_and_the_others_go_on():
    evaluation = evaluate({"fragile": Fragile(2), "fine": Chunks(2)}, [DOCUMENTS])
    fragile = evaluation.candidates["fragile"].to_pydict()
    assert fragile["error"] == [None, None, None, "RuntimeError: boom"]
    assert fragile["n_tokens"] == [3, 3, 0, 0]
    assert fragile["round_trip"] == [True, True, True, False]
    assert evaluation.candidates["fine"]["n_tokens"].to_pylist() == [3, 3, 0, 3]


def test_an_id_outside_the_vocabulary_is_an_error_of_the_document():
    errors = evaluate({"wild": OutOfRange(1)}, [DOCUMENTS]).candidates["wild"]["error"].to_pylist()
    assert errors[2] is None
    assert all("outside the vocabulary of 4096" in error for error in (errors[0], errors[1], errors[3]))


def test_long_form_has_a_row_for_each_candidate_and_document():
    table = evaluate({"b": Chunks(2), "a": Chunks(1)}, [DOCUMENTS]).to_table()
    assert table["candidate"].to_pylist() == ["a"] * 4 + ["b"] * 4
    assert table["n_tokens"].to_pylist() == [6, 6, 0, 5, 3, 3, 0, 3]


def test_progress_reaches_the_total():
    steps = []
    evaluate(
        {"x": Chunks(1)},
        DOCUMENTS.to_batches(max_chunksize=3),
        on_step=lambda *step: steps.append(step),
        n_documents=4,
    )
    assert steps == [(3, 4), (4, 4)]


def test_refusals():
    with pytest.raises(UsageError, match="no candidate"):
        evaluate({}, [DOCUMENTS])
    with pytest.raises(DataError, match="no document"):
        evaluate({"x": Chunks(1)}, [])
    with pytest.raises(UsageError, match="'script'"):
        evaluate({"x": Chunks(1)}, [DOCUMENTS], slice_columns=["script"])
    null = pa.table({"doc_id": ["a", "b"], "text": pa.array(["x", None])})
    with pytest.raises(DataError) as caught:
        evaluate({"x": Chunks(1)}, [null])
    assert caught.value.where.row == 1
