from __future__ import annotations

import gzip
import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus.reading import gzip_members, read, warc_record

from tokctl.corpus import extract_tasks
from tokctl.corpus.documents import REJECT_SCHEMA
from tokctl.corpus.extract_tasks import assemble, plan_tasks, read_task
from tokctl.corpus.ingest import document_schema
from tokctl.corpus.inputs import InputFile, expand_inputs
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.shards import read_shards
from tokctl.errors import DataError


@pytest.fixture
def corpus(tmp_path):
    root = tmp_path / "corpus"
    root.mkdir()
    rng = random.Random(7)
    for i in range(12):
        lines = [f'{{"text": "word {rng.randrange(5)}"}}' for _ in range(20)] + ["[]"]
        (root / f"{i:02}.jsonl").write_text("\n".join(lines))
        (root / f"{i:02}.html").write_text(f"<p>page {rng.randrange(5)}")
    (root / "a.warc.gz").write_bytes(gzip_members(warc_record(i, b"<p>x\xff" if i == 2 else b"<p>w") for i in range(4)))
    (root / "b.txt").write_bytes(b"\xff")
    (root / "c.txt.gz").write_bytes(gzip.compress(b"cut")[:-3])
    (root / "d.md").write_bytes(b"")
    return root


def extract(root, out, options, *, split: int, workers: int = 1):
    files = expand_inputs([str(root)])
    groups = [extract_tasks.ReadTask(tuple(files[i : i + split]), options) for i in range(0, len(files), split)]
    directories = [out / "work" / str(i) for i in range(len(groups))]
    for directory in directories:
        directory.mkdir(parents=True)
    if workers == 1:
        results = [read_task(task, directory) for task, directory in zip(groups, directories, strict=True)]
    else:
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            results = list(pool.map(read_task, groups, directories))
    (out / "shards").mkdir()
    steps: list[int] = []
    made = assemble(directories, results, out / "shards", options, target_bytes=600, on_step=steps.append)
    assert steps == list(range(1, len(groups) + 1))
    return made, {p.name: p.read_bytes() for p in (out / "shards").iterdir()}


def test_the_same_bytes_however_the_work_is_divided(corpus, tmp_path):
    options = ReadOptions(errors="skip")
    made, files = extract(corpus, tmp_path / "a", options, split=1)
    assert extract(corpus, tmp_path / "b", options, split=100) == (made, files)
    assert extract(corpus, tmp_path / "c", options, split=3, workers=2) == (made, files)
    assert len(made.parts) > 3
    assert sorted(files) == [*(part.name for part in made.parts), "rejects.parquet"]


def test_it_is_what_reading_gives(corpus, tmp_path):
    options = ReadOptions(errors="skip")
    made, _ = extract(corpus, tmp_path / "a", options, split=2)
    rows, rejects = read(corpus, errors="skip")
    found = pa.Table.from_batches(read_shards(tmp_path / "a/shards"))
    assert found.schema == document_schema("skip")
    assert found.to_pylist() == rows
    assert len({row["doc_id"] for row in rows}) == len(rows) == made.n_documents
    table = pq.read_table(tmp_path / "a/shards/rejects.parquet")
    assert table.schema == REJECT_SCHEMA
    assert [(r["uri"], r["reason"], r["row"]) for r in table.to_pylist()] == [(r.uri, r.reason, r.row) for r in rejects]
    assert made.rejects_by_reason == {
        "empty-document": 1,
        "invalid-utf8": 2,
        "not-an-object": 12,
        "truncated-gzip": 1,
    }
    assert made.n_rejects == sum(made.rejects_by_reason.values()) == len(rejects)


def test_binary_text(corpus, tmp_path):
    made, _ = extract(corpus, tmp_path / "a", ReadOptions(errors="bytes"), split=5)
    found = pa.Table.from_batches(read_shards(tmp_path / "a/shards"))
    assert found.schema == document_schema("bytes")
    assert b"\xff" in found.column("text").to_pylist()
    assert made.report.n_ill_formed == 2


def test_an_empty_corpus(tmp_path):
    (tmp_path / "out").mkdir()
    made = assemble([], [], tmp_path / "out", ReadOptions())
    assert (made.n_documents, made.n_rejects, [p.rows for p in made.parts]) == (0, 0, [0])


def test_errors_come_out_of_a_task(corpus, tmp_path):
    with pytest.raises(DataError) as error:
        extract(corpus, tmp_path / "a", ReadOptions(), split=100)
    assert error.value.code == "invalid-utf8"


def test_tasks_are_consecutive_files_of_bounded_size(monkeypatch):
    monkeypatch.setattr(extract_tasks, "_TASK_BYTES", 10)
    monkeypatch.setattr(extract_tasks, "_TASK_FILES", 3)
    files = [InputFile("s", str(i), str(i)) for i in range(8)]
    tasks = plan_tasks(files, [1, 1, 1, 4, 9, 20, 1, 1], ReadOptions())
    assert [[int(f.uri) for f in task.files] for task in tasks] == [[0, 1, 2], [3, 4], [5], [6, 7]]
    assert plan_tasks([], [], ReadOptions()) == []
