"""A single line without an end: never cut, never lost, in memory a few times its size. (The full 200 MB: bench_long_line.)"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from benchmarks.bench_long_line import COMMANDS, line, measure
from pipeline.cli_answers import check_rows, tokctl

import tokctl as api
from tokctl.corpus.word_counts import WordCounts

SIZE = 10_000_000
LIMITS = {
    "count --pattern none": 8,
    "count --pattern gpt2": 5,
    "encode": 10,
    "extract": 6,
}  # times the line, beside ...
FIXED = 40_000_000  # ... what tables and buffers take whatever the size


@pytest.mark.slow
def test_one_line_of_many_megabytes(tmp_path: Path) -> None:
    rows = {row["command"]: row for row in measure(SIZE, tmp_path)}
    too_much = {
        name: row["peak_above_base"]
        for name, row in rows.items()
        if row["peak_above_base"] > LIMITS[name] * SIZE + FIXED
    }
    assert too_much == {}
    text = line(SIZE)
    assert len(text) == SIZE and b"\n" not in text
    out = dict(zip(COMMANDS, (tmp_path / str(number) for number in range(len(COMMANDS))), strict=True))
    for directory in out.values():
        assert check_rows(directory)["counts"] == {"rows_in": 1, "rows_out": 1, "rows_rejected": 0}

    whole = WordCounts.read_parquet(out["count --pattern none"] / "words.parquet")
    assert (whole.n_words, whole.word(0), whole.counts.tolist()) == (1, text, [1])
    split = WordCounts.read_parquet(out["count --pattern gpt2"] / "words.parquet")
    assert sum(len(split.word(i)) * int(n) for i, n in enumerate(split.counts)) == SIZE
    assert pq.read_table(out["extract"] / "part-00000.parquet").column("text")[0].as_buffer().to_pybytes() == text
    ids = pq.read_table(out["encode"] / "part-00000.parquet").column("ids")[0].values.to_numpy()
    assert api.load(tmp_path / "tokenizer").decode_bytes(ids) == text


def test_one_long_line_of_json_and_a_limit_for_it(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'{"text": "%s"}\n{"text": "next"}\n' % (b"word " * 200_000))
    tokctl("count", tmp_path / "x.jsonl", "-o", tmp_path / "out")
    assert check_rows(tmp_path / "out")["counts"]["rows_out"] == 2
    tokctl("count", tmp_path / "x.jsonl", "-o", tmp_path / "cut", "--max-document-bytes", "100kB")
    manifest = check_rows(tmp_path / "cut")
    assert manifest["counts"] == {"rows_in": 2, "rows_out": 1, "rows_rejected": 1}
    assert manifest["facts"]["rejects"] == {"too-large": 1}
