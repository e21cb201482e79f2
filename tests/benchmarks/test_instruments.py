"""The instruments themselves: what they measure on is what they say, and a disagreement is seen."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import bench_fit_bpe, bench_scaling, fitters, harness, synthetic, text_input
from benchmarks.encoders import halves

SOURCE_TEXT = (
    "The cat sat on the mat while a small dog watched the yellow door. "
    "Every kitchen window opened slowly, and the garden answered with silence.\n"
    "東京の駅で友人を待つ。Nobody counted the 1,024 letters again.\n\n"
) * 40


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> synthetic.Source:
    path = tmp_path_factory.mktemp("source") / "text.txt"
    path.write_text(SOURCE_TEXT, "utf-8")
    return synthetic.Source.of([path])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "SHARD_BYTES", 300_000)
    monkeypatch.setattr(synthetic, "DOCUMENTS", 64)


def test_a_shard_depends_on_its_number_alone(source: synthetic.Source, small: None, tmp_path: Path) -> None:
    first, second = synthetic.shard(source, 0), synthetic.shard(source, 1)
    assert synthetic.shard(source, 0) == first
    texts = [*first["text"].to_pylist(), *second["text"].to_pylist()]
    assert len(set(texts)) == len(texts)
    assert len({*first["id"].to_pylist(), *second["id"].to_pylist()}) == len(texts)
    fewer = synthetic.shards(300_000, tmp_path / "one", source)
    more = synthetic.shards(900_000, tmp_path / "three", source)
    assert [path.read_bytes() for path in more[:1]] == [path.read_bytes() for path in fewer]
    assert sum(map(synthetic.text_bytes, more)) >= 900_000


def test_neighbours_are_neighbours_of_the_source(
    source: synthetic.Source, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic, "RARE_SHARE", 0.0)
    units = synthetic._UNIT.findall("\n\n" + SOURCE_TEXT)
    known = set(itertools.pairwise(units)) | {(units[-1], units[0])}
    for text in synthetic.shard(source, 3)["text"].to_pylist():
        found = synthetic._UNIT.findall(text)
        assert set(itertools.pairwise(found)) <= known


def test_new_words_keep_coming(source: synthetic.Source, small: None) -> None:
    known = set(SOURCE_TEXT.split())
    new: set[str] = set()
    growth = []
    for number in range(4):
        text = " ".join(synthetic.shard(source, number)["text"].to_pylist())
        before = len(new)
        new |= {word for word in text.split() if word not in known}
        growth.append(len(new) - before)
    assert min(growth) > 20 and growth[-1] <= growth[0]


def test_the_three_forms_of_a_text_are_one(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("one\ntwo\n\nthree\n\n\nfour", "utf-8")
    assert text_input.arrow(path).to_pylist() == text_input.strings(path) == ["one\ntwo", "three", "\nfour"]
    assert text_input.beginning(path, 15) == b"one\ntwo\n\nthree"[:7]


def test_halves_of_a_token_are_its_last_merge() -> None:
    ranks = {b"a": 0, b"b": 1, b"c": 2, b"ab": 3, b"bc": 4, b"abc": 5}
    assert halves(b"ab", ranks) == (b"a", b"b")
    assert halves(b"abc", ranks) == (b"ab", b"c")
    with pytest.raises(ValueError, match="not reached"):
        halves(b"cab", ranks | {b"cab": 1})


def test_memory_kept_for_later_is_no_part_of_the_baseline() -> None:
    def work() -> int:
        return int(np.ones(8_000_000).sum())

    work()
    _, usage = harness.measure(work)
    assert 60 < usage["peak_above_baseline_mb"] < 100


def test_other_merges_are_seen() -> None:
    found = {"tokctl": [{"merged_sha256": "a"}], "ffbpe": [{"merged_sha256": "a"}, {"merged_sha256": "b"}]}
    assert bench_fit_bpe.same_merges("ffbpe", found) is False
    assert bench_fit_bpe.same_merges("tokctl", found) is True
    assert bench_fit_bpe.same_merges("rustbpe", found | {"rustbpe": [{"merged_sha256": "a"}]}) is None


def test_growth_beyond_linear_is_seen() -> None:
    lines = [
        {"megabytes": 10, "memory_limit_bytes": None},
        {"megabytes": 100, "memory_limit_bytes": None, "growth": 2.0},  # too small to be measured
        {"megabytes": 1000, "memory_limit_bytes": None, "growth": 1.2},
        {"megabytes": 5000, "memory_limit_bytes": 10**9, "growth": 1.0, "above_start_mb": 900.0},
    ]
    assert bench_scaling.is_linear(lines) and bench_scaling.keeps_limit(lines)
    lines[2]["growth"] = 1.4
    lines[3]["above_start_mb"] = 1001.0
    assert not bench_scaling.is_linear(lines) and not bench_scaling.keeps_limit(lines)


@pytest.mark.slow
def test_a_quick_comparison_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKCTL_TEST_DATA", str(tmp_path))
    tools = [word for name in ("tokctl", "tokenizers") for word in ("--fitter", name)]
    done = subprocess.run(
        [sys.executable, bench_fit_bpe.__file__, "--quick", *tools], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = {line["tool"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(lines) <= set(fitters.FITTERS)
    for name in ("tokctl", "tokenizers"):
        if "skipped" not in lines[name]:
            assert lines[name]["same_merges"] is True and lines[name]["n_merges"] == 8_000 - 256
