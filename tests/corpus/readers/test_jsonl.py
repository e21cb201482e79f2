from __future__ import annotations

import bz2
import gzip
import json
import lzma

import pytest
import zstandard
from corpus.reading import read, reasons, texts
from hypothesis import given, settings
from hypothesis import strategies as st

from tokctl.corpus.byte_stream import open_bytes
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.readers import lines as line_reader
from tokctl.errors import DataError


@pytest.fixture
def lines(tmp_path):
    def write(*lines: bytes | str, name: str = "x.jsonl"):
        path = tmp_path / name
        path.write_bytes(b"\n".join(line.encode() if isinstance(line, str) else line for line in lines))
        return path

    return write


def test_rows_and_bad_rows(lines):
    path = lines(
        '{"text": "cat"}',
        '{"text": null}',
        "[1]",
        "",
        '  {"text": "a\\u0000b\\r\\n"} \r',
        '{"text": 5}',
        '{"text": ["a"]}',
        '{"other": 1}',
        '{"text": "a", "text": "b"}',
        '{"text": ""}',
        "3",
        '{"text": "cut',
    )
    rows, rejects = read(path)
    assert texts(rows) == ["cat", "a\0b\r\n", ""]
    assert [(r.row, r.reason) for r in rejects] == [
        (1, "null-text"),
        (2, "not-an-object"),
        (5, "text-not-string"),
        (6, "text-not-string"),
        (7, "missing-text"),
        (8, "duplicate-key"),
        (10, "not-an-object"),
        (11, "invalid-json"),
    ]
    assert all(f"row {r.row}: " in (r.evidence or "") and r.uri == "x.jsonl" and r.source == "x" for r in rejects)
    assert "field 'text' is null" in (rejects[0].evidence or "")
    assert "cut off" in (rejects[-1].evidence or "")


def test_fields(lines):
    record = {
        "body": {"text": "T"},
        "a.b": 7,
        "lang": "de",
        "lic": "MIT",
        "grp": "g",
        "n": [1.5, 2**60, True, None, {"k": "v"}],
    }
    options = {
        "text_field": "body.text",
        "id_field": "a.b",
        "language_field": "lang",
        "license_field": "lic",
        "group_field": "grp",
        "meta_fields": ("n", "absent"),
    }
    (row,), rejects = read(lines(json.dumps(record), name="wiki.jsonl"), **options)
    assert rejects == []
    assert row == row | {
        "doc_id": "wiki/wiki.jsonl#7",
        "text": "T",
        "language": "de",
        "license": "MIT",
        "group_id": "g",
    }
    assert json.loads(row["meta"]) == {
        "format": "jsonl",
        "language_origin": "column",
        "n": ["1.5", str(2**60), True, None, {"k": "v"}],
    }


def test_bad_fields(lines):
    path = lines(
        '{"text": "a", "id": null}',
        '{"text": "a"}',
        '{"text": "a", "id": true}',
        '{"text": "a", "id": "\\ud800"}',
        '{"text": "a", "id": "x"}',
        '{"text": "b", "id": "x"}',
    )
    rows, rejects = read(path, id_field="id")
    assert reasons(rejects) == ["missing-id", "missing-id", "bad-field", "lone-surrogate"]
    assert [row["doc_id"] for row in rows] == ["x/x.jsonl#x", "x/x.jsonl#x~1"]


def test_ids_without_a_field_are_those_of_the_text(lines):
    rows, _ = read(lines('{"text": "cat"}', '{"text": "dog"}', '{"text": "cat"}'))
    shas = [row["sha256_text"] for row in rows]
    assert [row["doc_id"] for row in rows] == [f"{shas[0]}-0", f"{shas[1]}-0", f"{shas[0]}-1"]


def test_a_wrong_text_field_is_an_error(lines):
    with pytest.raises(DataError) as error:
        read(lines('{"body": "a", "id": 1}', "[]", '{"title": "b"}'))
    assert error.value.code == "no-text-field"
    assert "body, id, title" in (error.value.hint or "")


def test_a_mark_and_other_encodings(lines):
    assert texts(read(lines(b'\xef\xbb\xbf{"text": "a"}'))[0]) == ["a"]
    with pytest.raises(DataError) as error:
        read(lines('\ufeff{"text": "a"}'.encode("utf-16-le")))
    assert error.value.code == "not-utf8"


def test_invalid_utf8(lines):
    path = lines('{"text": "a"}', b'{"text": "b\xffc"}', '{"text": "d"}')
    with pytest.raises(DataError) as error:
        read(path)
    assert (error.value.code, error.value.where.row, error.value.where.offset) == ("invalid-utf8", 1, 11)
    rows, rejects = read(path, errors="skip")
    assert texts(rows) == ["a", "d"] and [(r.reason, r.row, r.offset) for r in rejects] == [("invalid-utf8", 1, 11)]
    rows, _ = read(path, errors="replace")
    assert texts(rows) == ["a", "b\ufffdc", "d"]
    assert json.loads(rows[1]["meta"])["n_invalid"] == 1
    rows, _ = read(path, errors="bytes")
    assert texts(rows) == [b"a", b"b\xffc", b"d"]


def test_lone_surrogates(lines):
    path = lines('{"text": "a\\ud800b\\ude00\\ud83d\\ude00"}', '{"text": "x"}')
    with pytest.raises(DataError) as error:
        read(path)
    assert (error.value.code, error.value.where.row) == ("lone-surrogate", 0)
    rows, rejects = read(path, errors="skip")
    assert (texts(rows), reasons(rejects)) == (["x"], ["lone-surrogate"])
    rows, _ = read(path, errors="replace")
    assert texts(rows) == ["a\ufffdb\ufffd😀", "x"]
    assert json.loads(rows[0]["meta"])["n_invalid"] == 2
    rows, _ = read(path, errors="bytes")
    assert texts(rows) == [b"a\xed\xa0\x80b\xed\xb8\x80" + "😀".encode(), b"x"]
    both = lines(b'{"text": "a\\udcffb\xff"}', '{"text": "x"}')
    rows, rejects = read(both, errors="bytes")
    assert (texts(rows), reasons(rejects)) == ([b"x"], ["lone-surrogate"])


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", zstandard.compress)],
)
def test_compressed_and_cut(tmp_path, suffix, compress):
    data = b"".join(b'{"text": "line %d"}\n' % i for i in range(2000))
    path = tmp_path / f"x.jsonl.{suffix}"
    path.write_bytes(compress(data))
    rows, rejects = read(path)
    assert len(rows) == 2000 and rejects == []
    path.write_bytes(compress(data)[:-15])
    rows, rejects = read(path)
    assert texts(rows) == [f"line {i}" for i in range(len(rows))]  # whole lines only
    assert reasons(rejects) == [
        f"truncated-{'zstd' if suffix == 'zst' else {'gz': 'gzip', 'bz2': 'bzip2'}.get(suffix, suffix)}"
    ]


def test_long_lines(lines):
    path = lines('{"text": "%s"}' % ("x" * 50), '{"text": "y"}', '{"text": "%s"}' % ("z" * 50))
    rows, rejects = read(path, max_document_bytes=40)
    assert texts(rows) == ["y"]
    assert [(r.row, r.reason) for r in rejects] == [(0, "too-large"), (2, "too-large")]


def test_json_that_python_stumbles_over(lines):
    path = lines(
        '{"text": "a", "n": %s}' % ("9" * 5000), '{"text": "b", "n": %s}' % ("[" * 100_000), '{"text": "c", "n": NaN}'
    )
    rows, rejects = read(path)
    assert (texts(rows), reasons(rejects)) == (["c"], ["invalid-json", "invalid-json"])


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), max_size=12),
    st.integers(1, 9),
    st.integers(0, 14),
    st.booleans(),
)
def test_lines_are_those_of_split_whatever_the_blocks(pieces, block, limit, newline_at_end):
    data = b"\n".join(pieces) + (b"\n" if newline_at_end and pieces else b"")
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    stream = open_bytes(data, "x", "", ReadOptions())
    original = line_reader._BLOCK
    line_reader._BLOCK = block
    try:
        found = list(line_reader.split_lines(stream, limit))
    finally:
        line_reader._BLOCK = original
    assert found == [(i, line if len(line) <= limit else None) for i, line in enumerate(expected)]


def test_an_empty_file_and_one_of_blank_lines(lines):
    assert reasons(read(lines(b""))[1]) == ["empty-document"]
    assert read(lines("", "  ", "\r")) == ([], [])
