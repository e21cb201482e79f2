"""HTTP responses as archives store them: status, headers, and the body without its transfer and content codings.

fastwarc can decode bodies too, but stops reading the archive at the first broken one and takes a cut one for whole.
"""

from __future__ import annotations

import io
import re
from typing import NamedTuple

from tokctl.corpus.byte_stream import BrokenStream, compression_of, open_bytes, read_all
from tokctl.corpus.read_options import ReadOptions

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_MAX_HEAD = 1 << 20
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]+)", re.IGNORECASE)


class BadMessage(Exception):
    """A message that can't be read: ``reason`` is a slug."""

    def __init__(self, reason: str, evidence: str) -> None:
        super().__init__(evidence)
        self.reason = reason
        self.evidence = evidence


class Response(NamedTuple):
    """``status`` is None when there is no status line; header names are in lower case, the last of equal ones counts."""

    status: int | None
    headers: dict[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        """The media type in lower case, "" when there is none."""
        return media_type(self.headers.get("content-type", ""))

    @property
    def charset(self) -> str | None:
        return charset(self.headers.get("content-type", ""))


def media_type(content_type: str) -> str:
    """``text/html`` of ``Text/HTML; charset=x``."""
    return content_type.split(";")[0].strip().lower()


def charset(content_type: str) -> str | None:
    """The ``charset`` parameter of a Content-Type, or None."""
    match = _CHARSET.search(content_type)
    return match[1] if match else None


def parse_response(block: bytes, options: ReadOptions) -> Response:
    """The response in ``block``, its body decoded. Raises BadMessage."""
    end = _HEAD_END.search(block, 0, _MAX_HEAD)
    if end is None or not block.startswith(b"HTTP/"):
        raise BadMessage("bad-http", "no HTTP status line and headers at the start of the record")
    first, *lines = block[: end.start()].decode("latin-1").splitlines()
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    words = first.split()
    status = int(words[1]) if len(words) > 1 and re.fullmatch(r"[0-9]{3}", words[1]) else None
    body = block[end.end() :]
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = _dechunk(body)
    for coding in reversed(headers.get("content-encoding", "").lower().split(",")):
        body = _decode_coding(body, coding.strip(), options)
    return Response(status, headers, body)


_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[^\r\n]*)?\r?\n")


def _dechunk(body: bytes) -> bytes:
    """The body without its chunks; as it is when the first line is no chunk size (crawlers often store it decoded)."""
    if _CHUNK_SIZE.match(body) is None:
        return body
    pieces: list[bytes] = []
    at = 0
    while True:
        match = _CHUNK_SIZE.match(body, at)
        if match is None:
            raise BadMessage("bad-transfer-encoding", f"no chunk size at byte {at} of the body")
        size = int(match[1], 16)
        if size == 0:
            return b"".join(pieces)
        if match.end() + size > len(body):
            raise BadMessage("truncated-payload", "the last chunk is cut off")
        pieces.append(body[match.end() : match.end() + size])
        at = match.end() + size
        at += 2 if body[at : at + 2] == b"\r\n" else 1


def _decode_coding(body: bytes, coding: str, options: ReadOptions) -> bytes:
    if coding in ("", "identity", "none", "utf-8") or not body:
        return body
    if coding in ("gzip", "x-gzip"):
        # crawlers often store the body decoded and leave the header as it was
        return _inflate(body, "gzip", options) if compression_of(body[:8]) == "gzip" else body
    if coding == "deflate":
        is_zlib = len(body) > 1 and body[0] & 15 == 8 and (body[0] * 256 + body[1]) % 31 == 0
        return _inflate(body, "zlib" if is_zlib else "deflate", options)
    if coding == "zstd":
        return _inflate(body, "zstd", options) if compression_of(body[:8]) == "zstd" else body
    if coding == "br":
        return _unbrotli(body, options)
    raise BadMessage("unknown-content-encoding", f"the content encoding {coding!r} is unknown")


def _inflate(body: bytes, compression: str, options: ReadOptions) -> bytes:
    try:
        data = read_all(open_bytes(body, "the body", compression, options), options.max_document_bytes)
    except BrokenStream as error:
        reason = error.reason if error.reason == "decompression-bomb" else f"{error.reason.split('-')[0]}-payload"
        raise BadMessage(reason, error.evidence) from None
    return _bounded(data, options)


def _unbrotli(body: bytes, options: ReadOptions) -> bytes:
    from fastwarc.stream_io import BrotliReader

    limit = min(options.max_document_bytes, max(options.max_ratio * len(body), 16 << 20))
    reader = BrotliReader(io.BytesIO(body))
    pieces = []
    size = 0
    try:
        while size <= limit and (piece := reader.read(1 << 20)):
            pieces.append(piece)
            size += len(piece)
    except (OSError, ValueError) as error:
        raise BadMessage("corrupt-payload", f"broken brotli data: {error}") from None
    return _bounded(b"".join(pieces) if size <= limit else None, options)


def _bounded(data: bytes | None, options: ReadOptions) -> bytes:
    if data is None:
        raise BadMessage(
            "too-large", f"the decoded body is too large; see max_document_bytes ({options.max_document_bytes})"
        )
    return data
