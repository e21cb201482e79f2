from __future__ import annotations

import pytest
from corpus.reading import read, reasons, texts

from tokctl.errors import DataError


def test_each_line_is_a_document(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbfa\r\n\n\xef\xbb\xbfb\n c")
    rows, rejects = read(path, format="lines")
    assert texts(rows) == ["a\r", "", "\ufeffb", " c"]
    assert rejects == []
    assert [row["doc_id"] for row in rows] == [f"{row['sha256_text']}-0" for row in rows]


def test_bad_lines(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"a\nb\xff\n" + b"c" * 20)
    with pytest.raises(DataError) as error:
        read(path, format="lines")
    assert (error.value.code, error.value.where.row, error.value.where.offset) == ("invalid-utf8", 1, 1)
    rows, rejects = read(path, format="lines", errors="skip", max_document_bytes=10)
    assert (texts(rows), [(r.reason, r.row) for r in rejects]) == (["a"], [("invalid-utf8", 1), ("too-large", 2)])
    path.write_bytes(b"")
    assert reasons(read(path, format="lines")[1]) == ["empty-document"]
    path.write_bytes("\ufeffa\n".encode("utf-16-le"))
    with pytest.raises(DataError, match="utf-16-le"):
        read(path, format="lines")
