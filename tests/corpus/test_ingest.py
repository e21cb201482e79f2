from __future__ import annotations

import pyarrow as pa
import pytest
from corpus.reading import read, texts

from tokctl.corpus import ingest
from tokctl.corpus.ingest import iter_batches
from tokctl.corpus.inputs import InputFile, expand_inputs
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.readers import READERS
from tokctl.errors import DataError, UsageError


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{"text": null}\n{"text": "two"}')
    (tmp_path / "b.txt").write_text("three")
    return expand_inputs([str(tmp_path)])


def test_columns_as_asked(files):
    (batch,) = iter_batches(files, ReadOptions(), ["uri", "text"], on_reject=lambda r: None)
    assert batch.schema == pa.schema(
        [pa.field("uri", pa.large_string(), False), pa.field("text", pa.large_string(), False)]
    )
    assert batch.to_pydict() == {"uri": ["a.jsonl", "a.jsonl", "b.txt"], "text": ["one", "two", "three"]}
    with pytest.raises(UsageError, match="no column 'words'"):
        list(iter_batches(files, ReadOptions(), ["words"]))


def test_without_a_place_for_rejects_the_first_is_an_error(files):
    with pytest.raises(DataError) as error:
        list(iter_batches(files, ReadOptions()))
    assert (error.value.code, error.value.where.row) == ("null-text", 1)
    assert "field 'text' is null" in str(error.value)


def test_bytes_give_a_binary_column(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"\xff")
    (batch,) = iter_batches(expand_inputs([str(tmp_path)]), ReadOptions(errors="bytes"))
    assert batch.column("text").type == pa.large_binary()


def test_batches_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "_BATCH_BYTES", 10)
    (tmp_path / "x.txt").write_text("\n".join(["12345"] * 7))
    batches = list(iter_batches(expand_inputs([str(tmp_path)]), ReadOptions(format="lines"), ["text", "doc_id"]))
    assert [b.num_rows for b in batches] == [2, 2, 2, 1]
    assert [d[-2:] for b in batches for d in b.column("doc_id").to_pylist()] == [f"-{i}" for i in range(7)]


def test_every_reader_resolves():
    from importlib import import_module

    for reference in READERS.values():
        module, _, name = reference.partition(":")
        assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"text": "a"}\n{"text": "b"}', ["a", "b"]),
        (b"plain \0 words", ["plain \0 words"]),
        (b"  <!DOCTYPE html><p>page", ["page"]),
        (b"<html><p>page", ["page"]),
        (b"<p> no page", ["<p> no page"]),
        (b"{not json", ["{not json"]),
    ],
)
def test_standard_input_is_told_by_its_bytes(tmp_path, data, expected):
    (tmp_path / "spool").write_bytes(data)
    file = InputFile.from_name("stdin", tmp_path / "spool")
    (batch,) = iter_batches([file], ReadOptions(), ["text", "source", "uri"])
    assert batch.column("text").to_pylist() == expected
    assert set(batch.column("source").to_pylist()) == {"stdin"}


def test_crlf_is_the_same_from_every_format(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x\r\ny\r")
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "x\\r\\ny\\r"}\r\n')
    rows, _ = read(tmp_path)
    assert texts(rows) == ["x\r\ny\r"] * 2
    assert len({row["sha256_text"] for row in rows}) == 1


@pytest.mark.slow
def test_one_giant_line_takes_a_small_multiple_of_its_size(tmp_path):
    import subprocess
    import sys

    with (tmp_path / "x.jsonl").open("wb") as file:
        file.write(b'{"text": "')
        for _ in range(64):
            file.write(b"words and more " * 69_905)  # 1 MiB
        file.write(b'"}\n')
    script = (
        "import resource, sys\n"
        "from tokctl.corpus.ingest import iter_batches\n"
        "from tokctl.corpus.inputs import expand_inputs\n"
        "from tokctl.corpus.read_options import ReadOptions\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "(batch,) = iter_batches(expand_inputs([sys.argv[1]]), ReadOptions())\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(batch.column('text').nbytes, (after - before) * 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "x.jsonl")], capture_output=True, text=True, check=True
    )
    size, memory = map(int, done.stdout.split())
    assert size > 64 * 15 * 69_905
    assert memory < 5 * size
