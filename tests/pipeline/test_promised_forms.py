"""Forms of the promised commands that a script may use, each by what it answers."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pipeline.cli_answers import raw, tokctl

import tokctl as api

TEXT = "the cat sat on the mat. the dog sat.\n" * 20


@pytest.mark.parametrize(
    "form",
    [
        ["--merge", "A", "B"],
        ["A", "B", "--merge"],
        ["--merge", "--counts", "A", "--counts", "B"],
        ["--merge", "A", "--counts", "B"],
    ],
    ids=" ".join,
)
def test_merge_takes_counts_as_arguments(tmp_path, form):
    for name, text in (("A", "x y y"), ("B", "y z")):
        (tmp_path / f"{name}.txt").write_text(text)
        assert tokctl("count", tmp_path / f"{name}.txt", "-o", tmp_path / name).code == 0
    words = [str(tmp_path / word) if word in "AB" else word for word in form]
    assert tokctl("count", *words, "-o", tmp_path / "sum").code == 0
    reference = tokctl(
        "count", "--merge", "--counts", tmp_path / "B", "--counts", tmp_path / "A", "-o", tmp_path / "reference"
    )
    assert reference.code == 0
    manifests = [(tmp_path / name / "manifest.json").read_bytes() for name in ("sum", "reference")]
    assert manifests[0] == manifests[1]
    found = dict(api.WordCounts.read_parquet(tmp_path / "sum/words.parquet").items())
    assert found == {b"x": 1, b" y": 2, b"y": 1, b" z": 1}


def test_merge_refuses_raw_files(artifacts, tmp_path):
    answer = tokctl("count", "--merge", artifacts / "words", artifacts / "a.txt", "-o", tmp_path / "sum")
    assert answer.code == 4


@pytest.mark.parametrize("export", ["hf", "tiktoken"])
def test_an_export_loads_by_its_directory_and_has_a_tokenizers_identity(artifacts, export):
    original = api.load(artifacts / "tok")
    loaded = api.load(artifacts / export)
    assert loaded.encode(TEXT) == original.encode(TEXT)
    identity = tokctl("hash", artifacts / export).result
    assert set(identity) == {"semantic", "release"}
    assert identity["semantic"] == loaded.semantic_hash


def test_the_json_of_ranks_is_no_tokenizer_and_says_whose_it_is(artifacts):
    with pytest.raises(api.ArtifactError) as caught:
        api.load(artifacts / "tiktoken/tokenizer.json")
    assert "tokenizer.tiktoken" in str(caught.value.hint)


def test_a_saved_tokenizer_verifies_by_its_self_test(artifacts, tmp_path):
    saved = tmp_path / "saved"
    api.load(artifacts / "tok").save(saved)
    answer = tokctl("verify", saved)
    assert answer.code == 0
    assert [finding["severity"] for finding in answer.result["findings"]] == ["note"]
    test = json.loads((saved / "self-test.json").read_bytes())
    changed = json.dumps(test).replace("[0", "[1", 1)
    (saved / "self-test.json").write_text(changed if changed != json.dumps(test) else "{}")
    assert tokctl("verify", saved).code == 1


def test_decode_reads_what_encode_wrote(artifacts, tmp_path, capfdbinary):
    tokenizer = artifacts / "tok"
    part = next(path for path in (artifacts / "encoded").glob("part-*.parquet"))
    for source in (artifacts / "encoded", part):
        code, out, _ = raw("decode", "--tokenizer", str(tokenizer), str(source))
        assert code == 0
        assert out == TEXT
    rows = tokctl("decode", "--tokenizer", tokenizer, artifacts / "encoded").result["rows"]
    assert [row["text"] for row in rows] == [TEXT]


def test_decode_refuses_other_shards(artifacts, tmp_path):
    assert tokctl("decode", "--tokenizer", artifacts / "tok", artifacts / "documents").code == 4
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"ids": ["a"]}), other)
    answer = tokctl("decode", "--tokenizer", artifacts / "tok", other)
    assert (answer.code, answer.error["code"]) == (3, "no-ids")
    other.write_bytes(b"PAR1")
    assert tokctl("decode", "--tokenizer", artifacts / "tok", other).code == 3
    assert tokctl("decode", "--tokenizer", artifacts / "tok", tmp_path / "absent.parquet").code == 3


def test_a_special_in_the_text_is_refused_by_the_documents_name(artifacts, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"id": "one", "text": "fine"}\n{"id": "two", "text": "an <|end|>"}\n')
    answer = tokctl(
        *("encode", "--tokenizer", artifacts / "tok", tmp_path / "rows.jsonl"),
        *("--id-field", "id", "--special-in-text", "error"),
    )
    assert (answer.code, answer.error["code"]) == (3, "special-in-text")
    assert "rows.jsonl#two" in answer.error["message"]
    assert "--allow-special" in answer.error["hint"]


def test_fit_in_python_says_what_is_no_number():
    for size in ("32k", 300.0, True, ["300"], None):
        with pytest.raises(api.UsageError, match="not a whole number"):
            api.fit("bpe", {b"ab": 5}, vocab_size=size)  # type: ignore[arg-type]
    for count in (1.5, "2", True, -1, 1 << 63):
        with pytest.raises(api.DataError, match="not an integer"):
            api.fit("bpe", {b"ab": count}, vocab_size=257)  # type: ignore[dict-item]
    import numpy as np

    assert api.fit("bpe", {b"ab": np.int64(5)}, vocab_size=np.int64(257)).vocab_size == 257  # type: ignore[union-attr]


def test_a_tokenizers_repr_is_one_short_line(artifacts):
    shown = repr(api.load(artifacts / "tok"))
    assert shown.startswith("Tokenizer(bpe, vocab_size=265, pattern='gpt2'")
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize("kind", ["Unigram", "WordPiece", "WordLevel"])
def test_another_model_is_refused_by_its_name(tmp_path: Path, kind):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"type": kind, "vocab": {}}}))
    with pytest.raises(api.ArtifactError, match=kind):
        api.load(path)
