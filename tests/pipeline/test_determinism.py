"""The same bytes: for any number of workers, any hash seed, any order of a set of inputs, any memory limit."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from pipeline.small_pipeline import NODES, differences, result_of, tokctl, tree, write_pipeline

SENTENCES = [f"the {a} of {b} and {c}" for a, b, c in itertools.product(("cat", "Käse", "東京", "хлеб"), repeat=3)]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("determinism")
    write_pipeline(directory)
    tokctl("run", directory / "pipeline.toml", "-o", directory / "first", "--workers", 1, PYTHONHASHSEED="0")
    return directory


def write_rows(path: Path, texts: Iterable[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("2", "1", None), id="2 workers"),
        pytest.param(("4", "20260101", "64MB"), id="4 workers within 64 MB"),
    ],
)
def test_whole_pipeline(place, tmp_path, options):
    workers, seed, limit = options
    more = ["--memory-limit", limit] if limit else []
    arguments = ["run", place / "pipeline.toml", "-o", tmp_path / "again", "--workers", workers, *more]
    tokctl(*arguments, PYTHONHASHSEED=seed)
    again = tree(tmp_path / "again")
    assert {name.partition("/")[0] for name in again} == set(NODES)
    assert differences(again, tree(place / "first")) == []


@pytest.mark.slow
def test_reading_tasks_on_any_number_of_processes(tmp_path, capsys):
    pages = tmp_path / "pages"
    pages.mkdir()
    for index in range(2100):  # three tasks; equal texts, whose ids need an ordinal, in different ones
        (pages / f"{index:04d}.txt").write_text(f"text {index % 1000}\n")
    trees = []
    for workers in (1, 2, 4):
        out = tmp_path / f"out-{workers}"
        result = result_of(["extract", pages, "-o", out, "--workers", workers], capsys)
        assert result["counts"] == {"rows_in": 2100, "rows_out": 2100, "rows_rejected": 0}
        trees.append(tree(out))
    assert differences(trees[0], trees[1]) == differences(trees[0], trees[2]) == []


@pytest.mark.parametrize("stage", [("count",), ("dedup", "exact"), ("dedup", "minhash"), ("split",)])
def test_a_set_of_inputs_in_any_order(tmp_path, capsys, stage):
    for name, texts in (("one", SENTENCES[:30]), ("two", SENTENCES[20:50]), ("three", SENTENCES[40:])):
        rows = write_rows(tmp_path / f"{name}.jsonl", texts)
        result_of(["extract", rows, "-o", tmp_path / name], capsys)
    raw = write_rows(tmp_path / "raw.jsonl", ["one more text that no other is like", SENTENCES[0]])
    inputs = [tmp_path / "one", tmp_path / "two", tmp_path / "three", raw]
    trees, fingerprints = [], set()
    for order in (inputs, inputs[::-1], [inputs[2], inputs[0], inputs[3], inputs[1]]):
        out = tmp_path / f"out-{len(trees)}"
        fingerprints.add(result_of([*stage, *order, "-o", out], capsys)["fingerprint"])
        trees.append(tree(out))
    assert len(fingerprints) == 1
    assert differences(trees[0], trees[1]) == differences(trees[0], trees[2]) == []


def test_rows_and_shards_in_any_order_count_and_fit_the_same(tmp_path, capsys):
    texts = SENTENCES * 3
    order = random.Random(5)
    words, tokenizers = [], []
    for attempt in range(4):
        cuts = sorted(order.sample(range(len(texts)), 3)) if attempt else []
        files = [
            write_rows(tmp_path / f"{attempt}-{number}.jsonl", texts[start:stop])
            for number, (start, stop) in enumerate(itertools.pairwise([0, *cuts, len(texts)]))
        ]
        shards, counts, out = (tmp_path / f"{kind}-{attempt}" for kind in ("shards", "counts", "tokenizer"))
        result_of(["extract", *files, "-o", shards, "--shard-bytes", 500], capsys)
        result_of(["count", shards, "-o", counts, "--workers", 1 + attempt], capsys)
        result_of(["fit", "bpe", "--counts", counts, "-o", out, "--vocab-size", 275], capsys)
        direct = tmp_path / f"direct-{attempt}"
        result_of(["fit", "bpe", shards, "-o", direct, "--vocab-size", 275], capsys)
        words.append((counts / "words.parquet").read_bytes())
        tokenizers += [(directory / "tokctl.json").read_bytes() for directory in (out, direct)]
        order.shuffle(texts)
    assert len(set(words)) == len(set(tokenizers)) == 1


def test_weighted_files_and_merged_counts_in_any_order(tmp_path, capsys):
    files = [write_rows(tmp_path / f"{name}.jsonl", texts) for name, texts in (("a", ["x y"] * 3), ("b", ["y z", "x"]))]
    weighted = tmp_path / "weighted.jsonl"
    weighted.write_text('{"text": "y", "count": 7}\n')
    for index, file in enumerate(files):
        result_of(["count", file, "-o", tmp_path / f"part-{index}"], capsys)
    result_of(["count", "--weighted", weighted, "-o", tmp_path / "part-2"], capsys)
    parts = [tmp_path / f"part-{index}" for index in range(3)]
    made = []
    for number, order in enumerate((parts, parts[::-1])):
        options = [argument for part in order for argument in ("--counts", part)]
        result_of(["count", "--merge", *options, "-o", tmp_path / f"merged-{number}"], capsys)
        made.append(tree(tmp_path / f"merged-{number}"))
    assert differences(*made) == []
    result_of(["count", *files, "--weighted", weighted, "-o", tmp_path / "at-once"], capsys)
    assert (tmp_path / "at-once/words.parquet").read_bytes() == made[0]["words.parquet"]
