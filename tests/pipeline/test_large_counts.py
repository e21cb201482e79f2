"""Counts that 32 and 40 bits can't hold, and documents that are never joined, through the commands."""

from __future__ import annotations

import json

import pytest
from pipeline.small_pipeline import result_of

from tokctl.corpus.word_counts import WordCounts


@pytest.mark.parametrize("count", [2**31, 2**32, 2**40, 2**53 + 1, 2**61])
@pytest.mark.parametrize("pattern", ["gpt2", "none"])
def test_the_first_merge_is_of_the_commonest_pair(tmp_path, capsys, count, pattern):
    weighted = tmp_path / "weighted.jsonl"
    rows = [{"text": "xy", "count": 10}, {"hex": b"ss".hex(), "count": count}]
    weighted.write_text("".join(json.dumps(row) + "\n" for row in rows))
    counted = result_of(["count", "--weighted", weighted, "--pattern", pattern, "-o", tmp_path / "words"], capsys)
    assert counted["facts"]["total_words"] == str(count + 10)
    words = WordCounts.read_parquet(tmp_path / "words/words.parquet")
    assert [(words.word(i), int(words.counts[i])) for i in range(2)] == [(b"ss", count), (b"xy", 10)]
    fitted = result_of(
        ["fit", "bpe", "--counts", tmp_path / "words", "-o", tmp_path / "fit", "--vocab-size", 257], capsys
    )
    size = fitted["facts"]["sizes"]["257"]
    assert size["last_pair_count"] == str(count)
    assert size["tokens_in_corpus"] == str(count + 20)
    shown = result_of(["inspect", "--tokenizer", tmp_path / "fit", "ssxy"], capsys)
    assert [token["text"] for token in shown["tokens"]] == ["ss", "x", "y"]


def test_counts_that_add_up_to_more_than_64_bits_are_refused(tmp_path, capsys):
    weighted = tmp_path / "weighted.jsonl"
    weighted.write_text(f'{{"text": "ss", "count": {2**62}}}\n' * 2)
    error = result_of(["count", "--weighted", weighted, "-o", tmp_path / "words"], capsys, status=3)
    assert error["kind"] == "data"
    assert not (tmp_path / "words").exists()


@pytest.mark.parametrize("pattern", ["gpt2", "none"])
@pytest.mark.parametrize("workers", [1, 2])
def test_documents_are_never_joined(tmp_path, capsys, pattern, workers):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "rain"}\n{"text": "bow"}\n' * 50)
    result_of(["count", rows, "--pattern", pattern, "-o", tmp_path / "words", "--workers", workers], capsys)
    words = WordCounts.read_parquet(tmp_path / "words/words.parquet")
    assert [(words.word(i), int(words.counts[i])) for i in range(words.n_words)] == [(b"bow", 50), (b"rain", 50)]
    out = tmp_path / "fit"
    fit = ["fit", "bpe", rows, "--pattern", pattern, "--vocab-size", 261, "--on-short", "error"]
    assert result_of([*fit, "-o", out], capsys)["facts"]["sizes"]["261"]["merges"] == 5
    error = result_of([*fit[:-3], 262, "--on-short", "error", "-o", tmp_path / "more"], capsys, status=3)
    assert "262" in error["message"]
