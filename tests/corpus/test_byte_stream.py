from __future__ import annotations

import bz2
import gzip
import lzma
import random
import zlib

import pytest
import zstandard

from tokctl.corpus.byte_stream import BrokenStream, compression_of, open_bytes, open_stream, read_all
from tokctl.corpus.read_options import ReadOptions
from tokctl.errors import DataError

TEXT = "".join(random.Random(5).choices("abcdefghij \nüß€", k=200_000)).encode()
COMPRESS = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
KINDS = sorted(COMPRESS)


def drain(stream, n=1 << 16):
    pieces = []
    try:
        while piece := stream.read(n):
            pieces.append(piece)
    except BrokenStream as error:
        return b"".join(pieces), error
    return b"".join(pieces), None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1000, 1 << 20])
def test_members_one_after_the_other(tmp_path, kind, n):
    path = tmp_path / "x"
    path.write_bytes(COMPRESS[kind](TEXT) + COMPRESS[kind](b"") + COMPRESS[kind](b"tail"))
    with open_stream(str(path), ReadOptions()) as stream:
        assert stream.compression == kind
        assert drain(stream, n) == (TEXT + b"tail", None)
        assert stream.tell() == len(TEXT) + 4


def test_no_compression(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(TEXT)
    with open_stream(str(path), ReadOptions()) as stream:
        assert stream.peek(5) == TEXT[:5]
        assert read_all(stream, len(TEXT)) == TEXT
    with open_stream(str(path), ReadOptions()) as stream:
        assert read_all(stream, len(TEXT) - 1) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_stream_gives_what_was_there_and_says_so(kind):
    data = COMPRESS[kind](TEXT)
    for cut in (1, 4, 9, len(data) // 2, len(data) - 12):
        found, error = drain(open_bytes(data[:-cut], "x", kind, ReadOptions()))
        assert TEXT.startswith(found)
        assert error is not None and error.reason == f"truncated-{kind}"
        assert error.offset == len(data) - cut
    if kind == "gzip":
        assert len(drain(open_bytes(data[:-9], "x", kind, ReadOptions()))[0]) > len(TEXT) * 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_broken_data(kind):
    data = bytearray(COMPRESS[kind](TEXT))
    data[len(data) // 2] ^= 0x55
    found, error = drain(open_bytes(bytes(data), "x", kind, ReadOptions()))
    assert error is not None and error.reason in (f"corrupt-{kind}", f"truncated-{kind}")
    assert found != TEXT or kind in ("gzip", "xz")  # a wrong checksum is noticed at the end


@pytest.mark.parametrize("kind", KINDS)
def test_rubbish_behind_the_data(kind):
    data = COMPRESS[kind](b"hello")
    found, error = drain(open_bytes(data + b"rubbish!", "x", kind, ReadOptions()))
    assert found == b"hello"
    assert error is not None and error.reason == f"corrupt-{kind}"
    assert error.offset == len(data)


def test_gzip_may_be_padded_with_zeros():
    data = gzip.compress(b"a") + bytes(70_000) + gzip.compress(b"b") + bytes(3)
    assert drain(open_bytes(data, "x", "gzip", ReadOptions())) == (b"ab", None)


def test_a_file_whose_name_says_gzip_and_is_not(tmp_path):
    path = tmp_path / "x.txt.gz"
    path.write_bytes(b"plain text")
    with open_stream(str(path), ReadOptions()) as stream:
        found, error = drain(stream)
    assert found == b"" and error is not None and error.reason == "corrupt-gzip"


@pytest.mark.parametrize("kind", KINDS)
def test_bombs(kind):
    bomb = COMPRESS[kind](bytes(40 << 20))
    found, error = drain(open_bytes(bomb, "x", kind, ReadOptions()), 1 << 20)
    assert error is not None and error.reason == "decompression-bomb"
    assert len(found) < 36 << 20
    found, error = drain(open_bytes(bomb, "x", kind, ReadOptions(max_ratio=1 << 30)), 1 << 20)
    assert (len(found), error) == (40 << 20, None)
    limited = ReadOptions(max_ratio=1 << 30, max_decompressed_bytes=5_000_000)
    found, error = drain(open_bytes(bomb, "x", kind, limited), 1 << 20)
    assert error is not None and error.reason == "decompression-bomb"
    assert len(found) <= 5_000_000


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz"])
def test_no_more_than_asked_comes_out_at_once(kind):
    stream = open_bytes(COMPRESS[kind](bytes(8 << 20)), "x", kind, ReadOptions())
    assert max(len(stream.read(1000)) for _ in range(100)) <= 1000


def test_peek_does_not_move_and_hides_no_break():
    data = gzip.compress(TEXT)[:-4]
    stream = open_bytes(data, "x", "gzip", ReadOptions())
    assert stream.peek(len(TEXT) + 10) == TEXT
    assert stream.tell() == 0
    found, error = drain(stream)
    assert found == TEXT and error is not None


def test_where_a_member_begins():
    members = [gzip.compress(bytes([65 + i]) * 100) for i in range(5)]
    stream = open_bytes(b"".join(members), "x", "gzip", ReadOptions())
    drain(stream)
    assert [stream.stored_offset(i * 100) for i in range(5)] == [sum(map(len, members[:i])) for i in range(5)]


def test_deflate_with_and_without_a_header():
    raw = zlib.compressobj(wbits=-15)
    bare = raw.compress(TEXT) + raw.flush()
    assert read_all(open_bytes(bare, "x", "deflate", ReadOptions()), 1 << 30) == TEXT
    assert read_all(open_bytes(zlib.compress(TEXT), "x", "zlib", ReadOptions()), 1 << 30) == TEXT


def test_what_data_says_about_its_compression():
    assert [compression_of(COMPRESS[kind](TEXT)[:8]) for kind in KINDS] == KINDS
    assert compression_of(bz2.compress(b"")[:8]) == "bzip2"
    for plain in (b"", b"BZh", b"BZhello!", b"hello", b"\x1f"):
        assert compression_of(plain) == ""


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError) as error:
        open_stream(str(tmp_path / "gone"), ReadOptions())
    assert (error.value.code, error.value.where.file) == ("unreadable", str(tmp_path / "gone"))


def test_zstandard_frames_to_skip():
    skip = b"\x53\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"
    data = COMPRESS["zstd"](b"a") + skip + COMPRESS["zstd"](b"b")
    assert drain(open_bytes(data, "x", "zstd", ReadOptions())) == (b"ab", None)
