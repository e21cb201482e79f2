from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma

import pytest
import zstandard
from corpus.reading import read, reasons, texts

from tokctl.errors import DataError


def write(tmp_path, name: str, data: bytes):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_a_file_is_a_document_byte_for_byte(tmp_path):
    data = " a\r\nb\n\n\0c\ttab  \u2028é\r".encode()
    rows, rejects = read(write(tmp_path, "x.txt", data))
    (row,) = rows
    digest = hashlib.sha256(data).hexdigest()
    assert row["text"].encode() == data
    assert row == row | {
        "doc_id": "x/x.txt",
        "source": "x",
        "uri": "x.txt",
        "language": "und",
        "license": None,
        "group_id": None,
        "sha256_raw": digest,
        "sha256_text": digest,
    }
    assert json.loads(row["meta"]) == {
        "encoding": "utf-8",
        "encoding_origin": "default",
        "format": "text",
        "language_origin": "none",
    }
    assert rejects == []


def test_a_utf8_mark_is_not_text(tmp_path):
    (row,), _ = read(write(tmp_path, "x.md", b"\xef\xbb\xbf\xef\xbb\xbfa"))
    assert row["text"] == "\ufeffa"  # only the first one is a mark
    assert json.loads(row["meta"])["encoding_origin"] == "bom"
    assert row["sha256_raw"] != row["sha256_text"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_other_marks_declare_the_encoding(tmp_path, encoding):
    (row,), _ = read(write(tmp_path, "x.txt", "\ufeffGrüße😀\n".encode(encoding)))
    assert row["text"] == "Grüße😀\n"
    assert json.loads(row["meta"])["encoding"] == encoding


def test_a_forced_encoding(tmp_path):
    path = write(tmp_path, "x.txt", "Grüße".encode("latin-1"))
    (row,), _ = read(path, encoding="latin-1")
    assert row["text"] == "Grüße"
    assert json.loads(row["meta"])["encoding_origin"] == "option"


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", zstandard.compress)],
)
def test_compressed_text(tmp_path, suffix, compress):
    (row,), _ = read(write(tmp_path, f"x.txt.{suffix}", compress("süß".encode())))
    assert (row["text"], row["source"], row["uri"]) == ("süß", "x", f"x.txt.{suffix}")
    (row,), _ = read(write(tmp_path, "plain.txt", compress("süß".encode())))
    assert row["text"] == "süß"


def test_invalid_utf8(tmp_path):
    write(tmp_path, "a.txt", b"fine")
    write(tmp_path, "b.txt", b"\xef\xbb\xbfab\xffcd")
    write(tmp_path, "c.txt", b"\xfe")
    with pytest.raises(DataError) as error:
        read(tmp_path)
    assert error.value.code == "invalid-utf8"
    assert error.value.exit_code == 3
    assert error.value.where.file == str(tmp_path / "b.txt")
    assert error.value.where.offset == 5
    assert "--errors" in (error.value.hint or "")

    rows, rejects = read(tmp_path, errors="replace")
    assert texts(rows) == ["fine", "ab\ufffdcd", "\ufffd"]
    assert [json.loads(row["meta"]).get("n_invalid") for row in rows] == [None, 1, 1]
    assert rejects == []

    rows, rejects = read(tmp_path, errors="skip")
    assert texts(rows) == ["fine"]
    assert [(r.uri, r.reason, r.offset) for r in rejects] == [
        ("b.txt", "invalid-utf8", 5),
        ("c.txt", "invalid-utf8", 0),
    ]
    assert rejects[0].doc_id == f"{tmp_path.name}/b.txt"

    rows, rejects = read(tmp_path, errors="bytes")
    assert texts(rows) == [b"fine", b"ab\xffcd", b"\xfe"]
    assert rows[1]["sha256_text"] == hashlib.sha256(b"ab\xffcd").hexdigest()


def test_empty_and_too_large(tmp_path):
    write(tmp_path, "a.txt", b"")
    write(tmp_path, "b.txt", b"123456")
    write(tmp_path, "c.txt.gz", gzip.compress(b""))
    rows, rejects = read(tmp_path, max_document_bytes=5)
    assert rows == []
    assert [(r.uri, r.reason) for r in rejects] == [
        ("a.txt", "empty-document"),
        ("b.txt", "too-large"),
        ("c.txt.gz", "empty-document"),
    ]
    rows, _ = read(tmp_path, max_document_bytes=6)
    assert texts(rows) == ["123456"]


def test_cut_and_exploding_files(tmp_path):
    write(tmp_path, "bomb.txt.gz", gzip.compress(bytes(40 << 20)))
    whole = gzip.compress(b"some words that do not repeat: 8471623")
    write(tmp_path, "cut.txt.gz", whole[:-6])
    write(tmp_path, "fine.txt", b"fine")
    rows, rejects = read(tmp_path)
    assert texts(rows) == ["fine"]
    assert reasons(rejects) == ["decompression-bomb", "truncated-gzip"]
    assert rejects[1].offset == len(whole) - 6


def test_a_file_that_goes_away(tmp_path):
    from tokctl.corpus.ingest import iter_batches
    from tokctl.corpus.inputs import expand_inputs
    from tokctl.corpus.read_options import ReadOptions

    write(tmp_path, "a.txt", b"a")
    write(tmp_path, "b.txt", b"b")
    files = expand_inputs([str(tmp_path)])
    (tmp_path / "b.txt").unlink()
    with pytest.raises(DataError) as error:
        list(iter_batches(files, ReadOptions()))
    assert (error.value.code, error.value.where.file) == ("unreadable", str(tmp_path / "b.txt"))


def test_code_trees(tmp_path):
    write(tmp_path, "a.py", b"\tif x:\r\n")
    write(tmp_path, "b.c", b"int a;\0")
    write(tmp_path, "Makefile", b"all:\n")
    write(tmp_path, "image.png", b"\x89PNG\r\n\x1a\n\0")
    write(tmp_path, "LICENSE", b"words")
    write(tmp_path, "conf.json", b'{\n  "a": 1\n}\n')
    write(tmp_path, "one.json", b'{"a": 1}')
    write(tmp_path, "u.cs", "\ufeffclass A {}".encode("utf-16-le"))
    rows, rejects = read(tmp_path)
    assert [(row["uri"], row["text"], json.loads(row["meta"]).get("code_language")) for row in rows] == [
        ("LICENSE", "words", None),
        ("Makefile", "all:\n", "makefile"),
        ("a.py", "\tif x:\r\n", "python"),
        ("conf.json", '{\n  "a": 1\n}\n', "json"),
        ("one.json", '{"a": 1}', "json"),
        ("u.cs", "class A {}", "csharp"),
    ]
    assert [(r.uri, r.reason) for r in rejects] == [("b.c", "binary-file"), ("image.png", "binary-file")]


def test_a_forced_format(tmp_path):
    path = write(tmp_path, "x.html", b"<p>a\0")
    assert texts(read(path, format="text")[0]) == ["<p>a\0"]
    assert reasons(read(path, format="code")[1]) == ["binary-file"]


def test_languages(tmp_path):
    (tmp_path / "de").mkdir()
    write(tmp_path / "de", "a.txt", b"a")
    write(tmp_path, "b.txt", b"b")
    rows, _ = read(tmp_path, language_from_path="/(..)/", language="fr", license="MIT")
    assert [(r["uri"], r["language"], json.loads(r["meta"])["language_origin"], r["license"]) for r in rows] == [
        ("b.txt", "fr", "default", "MIT"),
        ("de/a.txt", "de", "path", "MIT"),
    ]
