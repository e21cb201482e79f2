from __future__ import annotations

import gzip
import json
import zlib

import pytest
from corpus.reading import gzip_members, read, reasons, texts, warc_record

from tokctl.errors import DataError

RECORDS = [warc_record(i, b"<html lang=en><p>page %d" % i) for i in range(4)]


def archive(tmp_path, data: bytes, name: str = "x.warc"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz"])
def test_an_archive(tmp_path, name):
    join = gzip_members if name.endswith("gz") else b"".join
    rows, rejects = read(archive(tmp_path, join(RECORDS), name))
    assert rejects == []
    assert texts(rows) == [f"page {i}" for i in range(4)]
    assert [row["doc_id"] for row in rows] == [f"x/{name}#urn:uuid:{i:08d}" for i in range(4)]
    assert rows[0]["language"] == "en" and rows[0]["uri"] == name
    assert json.loads(rows[1]["meta"]) == {
        "encoding": "utf-8",
        "encoding_origin": "http",
        "extractor": "resiliparse",
        "format": "warc",
        "language_origin": "html-lang",
        "media_type": "text/html",
        "url": "http://example.org/1",
        "warc_date": "2024-01-01T00:00:00Z",
        "warc_record_id": "urn:uuid:00000001",
    }


def test_kinds_of_records(tmp_path):
    data = b"".join(
        [
            warc_record(0, b"software: x", kind="warcinfo", content_type="application/warc-fields"),
            warc_record(1, b"GET / HTTP/1.1\r\n\r\n", kind="request", content_type="application/http"),
            warc_record(2, b"Hello  world\n", kind="conversion", content_type="text/plain"),
            warc_record(3, b"GIF89a", content_type="image/gif"),
            warc_record(4, b"gone", status=404),
            warc_record(5, b"", content_type="text/html"),
            warc_record(6, b"<p>no type", content_type=None),
            warc_record(7, "süß".encode("latin-1"), content_type="text/plain; charset=ISO-8859-1"),
            warc_record(8, b"no http", kind="resource", content_type="application/http"),
        ]
    )
    rows, rejects = read(archive(tmp_path, data))
    assert texts(rows) == ["Hello  world\n", "no type", "süß"]
    assert reasons(rejects) == ["not-text", "http-status", "empty-document", "bad-http"]
    assert all(reject.offset is not None and data[reject.offset :].startswith(b"WARC/1.0") for reject in rejects)
    assert rejects[1].doc_id == "x/x.warc#urn:uuid:00000004"


def test_http_charset_goes_before_the_meta_tag(tmp_path):
    body = "<meta charset=utf-8><p>süß".encode("latin-1")
    (row,), _ = read(archive(tmp_path, warc_record(1, body, content_type='text/html; charset="latin1"')))
    assert (row["text"], json.loads(row["meta"])["encoding_origin"]) == ("süß", "http")


def test_plain_text_without_a_charset_is_detected(tmp_path):
    body = "Привет, как дела сегодня вечером у вас дома".encode("cp1251")
    (row,), _ = read(archive(tmp_path, warc_record(1, body, content_type="text/plain")))
    assert row["text"] == body.decode("cp1251")
    assert json.loads(row["meta"])["encoding_origin"] == "detected"


@pytest.mark.parametrize("cut", [3, 5, 20, 60, 120, 200, 270])
def test_a_cut_archive_keeps_what_was_whole(tmp_path, cut):
    data = b"".join(RECORDS)
    rows, rejects = read(archive(tmp_path, data[:-cut]))
    kept = 4 if cut <= 4 else 3
    assert texts(rows) == [f"page {i}" for i in range(kept)]
    assert len(rejects) == 4 - kept
    for reject in rejects:
        assert reject.reason in ("truncated-record", "malformed-warc")
        assert reject.offset is not None and reject.offset <= sum(map(len, RECORDS[:3]))


def test_every_cut_of_a_compressed_archive_is_noticed(tmp_path):
    data = gzip_members(RECORDS)
    ends = [len(gzip_members(RECORDS[:i])) for i in range(5)]
    for cut in range(ends[2] + 1, ends[4], 7):
        rows, rejects = read(archive(tmp_path, data[:cut], "x.warc.gz"))
        whole = sum(end <= cut for end in ends) - 1
        assert texts(rows)[:whole] == [f"page {i}" for i in range(whole)]
        # the last record's text may be whole though its checksum is cut off
        assert whole <= len(rows) <= whole + 1
        if cut not in ends:
            assert len(rejects) == 1
            assert reasons(rejects)[0] in ("truncated-gzip", "truncated-record")


def test_broken_archives(tmp_path):
    data = RECORDS[0] + b"garbage, no record\r\n" * 9 + RECORDS[1]
    rows, rejects = read(archive(tmp_path, data))
    assert (texts(rows), reasons(rejects)) == (["page 0"], ["malformed-warc"])
    members = [bytearray(gzip.compress(record)) for record in RECORDS]
    members[1][40] ^= 0xFF
    rows, rejects = read(archive(tmp_path, b"".join(members), "x.warc.gz"))
    assert texts(rows) == ["page 0"] and len(rejects) == 1
    assert rejects[0].offset is not None and rejects[0].offset <= len(members[0])
    assert reasons(read(archive(tmp_path, b"no archive at all\n" * 9))[1]) == ["malformed-warc"]
    assert reasons(read(archive(tmp_path, b""))[1]) == ["empty-document"]


def test_a_wrong_length_is_not_trusted(tmp_path):
    long = RECORDS[0].replace(b"Content-Length: ", b"Content-Length: 9999999999")
    rows, rejects = read(archive(tmp_path, long + RECORDS[1]))
    assert (rows, reasons(rejects)[0]) == ([], "too-large")
    rows, rejects = read(archive(tmp_path, RECORDS[0].replace(b"Content-Length: ", b"Content-Length: 9") + RECORDS[1]))
    assert (rows, reasons(rejects)) == ([], ["truncated-record"])


def test_content_codings(tmp_path):
    text = b"<p>" + b"coded words " * 20
    raw = zlib.compressobj(wbits=-15)
    bare = raw.compress(text) + raw.flush()
    chunked = b"5;x=y\r\n" + text[:5] + b"\r\n" + b"%x\r\n" % len(text[5:]) + text[5:] + b"\r\n0\r\n\r\n"
    data = b"".join(
        [
            warc_record(0, gzip.compress(text), headers="Content-Encoding: gzip\r\n"),
            warc_record(1, zlib.compress(text), headers="Content-Encoding: deflate\r\n"),
            warc_record(2, bare, headers="Content-Encoding: deflate\r\n"),
            warc_record(3, chunked, headers="Transfer-Encoding: chunked\r\n"),
            warc_record(4, text, headers="Content-Encoding: gzip\r\n"),  # stored decoded
            warc_record(5, text, headers="Transfer-Encoding: chunked\r\n"),  # stored decoded
            warc_record(6, gzip.compress(text)[:-12], headers="Content-Encoding: gzip\r\n"),
            warc_record(7, chunked[:-30], headers="Transfer-Encoding: chunked\r\n"),
            warc_record(8, b"\0" * 9, headers="Content-Encoding: br\r\n"),
            warc_record(9, text, headers="Content-Encoding: compress\r\n"),
            warc_record(10, gzip.compress(bytes(40 << 20)), headers="Content-Encoding: gzip\r\n"),
            warc_record(11, b"<p>last"),
        ]
    )
    rows, rejects = read(archive(tmp_path, data))
    assert texts(rows) == [text[3:].decode().strip()] * 6 + ["last"]
    assert reasons(rejects) == [
        "truncated-payload",
        "truncated-payload",
        "corrupt-payload",
        "unknown-content-encoding",
        "decompression-bomb",
    ]


def test_invalid_text_stops_or_is_counted(tmp_path):
    data = warc_record(1, b"<p>a\xff") + warc_record(2, b"<p>b")
    path = archive(tmp_path, data)
    with pytest.raises(DataError) as error:
        read(path)
    assert error.value.code == "invalid-utf8"
    rows, rejects = read(path, errors="skip")
    assert (texts(rows), [r.doc_id for r in rejects]) == (["b"], ["x/x.warc#urn:uuid:00000001"])


def test_an_archive_is_told_by_its_first_bytes(tmp_path):
    assert texts(read(archive(tmp_path, gzip_members(RECORDS[:2]), "crawl"))[0]) == ["page 0", "page 1"]
