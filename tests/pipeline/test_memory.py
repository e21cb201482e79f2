"""A memory limit is kept by spilling, and nobody can tell from the result."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from pipeline.small_pipeline import differences, result_of, tokctl, tree

LIMIT = 64_000_000


def distinct_words(n_words: int) -> bytes:
    """``n_words`` different words of 12 letters in a scrambled order, a space before each; at most 2,000,000."""
    numbers = np.arange(n_words, dtype=np.uint64) * np.uint64(6_700_417_000_003)  # coprime to 26: none comes twice
    letters = np.full((n_words, 13), ord(" "), np.uint8)
    for column in range(1, 13):
        letters[:, column] = ord("a") + numbers % np.uint64(26)
        numbers //= np.uint64(26)
    return letters.tobytes()


def test_200_000_distinct_words_under_64_mb(tmp_path, capsys):
    """They spill at least 3 times, and the bytes are those of the run without a limit."""
    corpus = tmp_path / "words.txt"
    corpus.write_bytes(distinct_words(200_000))
    results = {}
    for name, limit in (("bounded", ["--memory-limit", "64MB"]), ("unbounded", [])):
        results[name] = result_of(
            ["count", corpus, "--pattern", "gpt2", "-o", tmp_path / name, "--workers", 1, *limit], capsys
        )
        assert results[name]["facts"]["n_words"] == 200_000
        assert results[name]["facts"]["total_words"] == "200000"
    assert results["bounded"]["measurements"]["n_spills"] >= 3
    assert results["unbounded"]["measurements"]["n_spills"] == 0
    record = json.loads((tmp_path / "bounded/run.json").read_text())
    assert record["measurements"]["n_spills"] == results["bounded"]["measurements"]["n_spills"]
    assert record["memory_limit"] == LIMIT
    assert differences(tree(tmp_path / "bounded"), tree(tmp_path / "unbounded")) == []


def test_the_limit_is_kept(tmp_path):
    """1,000,000 distinct words need more than twice the limit without one; with it they stay below.

    What the process needs to do anything at all is measured in the same way, over a corpus of three words.
    """
    corpus = tmp_path / "words"
    corpus.mkdir()
    data = distinct_words(1_000_000)
    for index in range(20):
        (corpus / f"{index:02d}.txt").write_bytes(data[index * 650_000 :][:650_000])
    few = tmp_path / "few.txt"
    few.write_bytes(distinct_words(3))
    base = peak(tmp_path / "few", few, "--memory-limit", LIMIT)
    assert peak(tmp_path / "free", corpus) - base > 2 * LIMIT
    assert peak(tmp_path / "limited", corpus, "--memory-limit", LIMIT) - base < LIMIT
    assert differences(tree(tmp_path / "limited"), tree(tmp_path / "free")) == []


def peak(out: Path, *arguments: object) -> int:
    """Resident bytes of ``tokctl count`` at its largest."""
    tokctl("count", *arguments, "-o", out, "--workers", 1)
    return int(json.loads((out / "run.json").read_text())["process_peak_rss_bytes"])
