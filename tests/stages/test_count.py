"""``tokctl count``: what it says of patterns and of its time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from oracles import pattern as oracle
from pipeline.cli_answers import raw, tokctl

from tokctl.corpus.word_counts import WordCounts
from tokctl.corpus.word_counts.phases import PHASES

TEXT = "foo  bar 12 1212 aabb naïve Mississippi\n\nnoon, 中中文 foofoo-bar" * 50
NOTICE = "the pattern is run by a backtracking engine, which is much slower"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(\p{L})\1|\p{L}|\s+", "back-reference"),
        (r"(?P<start>fo)o(?P=start)o|\w+", "back-reference"),
        (r"(?<=\s)\d+|\p{L}+", "look-behind"),
        (r"(?<!a)b|[^b]", "look-behind"),
        (r"(?>foo|foofoo)-?|\s*\S", "atomic"),
        (r"(?:12)++|.", "possessive"),
    ],
)
def test_an_exotic_pattern_is_noticed_and_counted_alike(pattern: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    code, _, stderr = raw("count", str(tmp_path / "text.txt"), "--pattern", pattern, "-o", str(tmp_path / "out"))
    assert code == 0
    assert NOTICE in stderr and why in stderr
    expected = Counter(word.encode() for word in oracle.split((pattern,), TEXT))
    assert dict(WordCounts.read_parquet(tmp_path / "out/words.parquet").items()) == expected


def test_an_automaton_needs_no_notice(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    code, _, stderr = raw("count", str(tmp_path / "text.txt"), "-o", str(tmp_path / "out"))
    assert code == 0 and "backtracking" not in stderr


def test_times_are_told_and_kept_out_of_what_is_hashed(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    answer = tokctl("count", tmp_path / "text.txt", "-o", tmp_path / "out")
    record = json.loads((tmp_path / "out/run.json").read_text())["measurements"]["count_phases"]
    assert answer.code == 0
    assert "MB a second and core; of the time: " in answer.stderr
    assert tuple(record["seconds"]) == tuple(record["shares"]) == PHASES
    assert sum(record["shares"].values()) == pytest.approx(1, abs=0.01)
    assert record["seconds"]["split and count"] > 0 and record["seconds"]["spill"] == 0
    assert record["bytes_per_second_per_core"] > 0
    manifest = (tmp_path / "out/manifest.json").read_text()
    assert "count_phases" not in manifest and "seconds" not in manifest
