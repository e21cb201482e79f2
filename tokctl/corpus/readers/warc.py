"""WARC archives through fastwarc: responses, resources and conversions whose payload is HTML or plain text.

Requests, metadata, revisits and warcinfo records are no documents and are passed over; every other record gives one page,
document or reject. What was whole before an archive is cut or broken is kept; the rest is one reject with its offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from tokctl.corpus import source_code
from tokctl.corpus.byte_stream import BrokenStream, ByteStream
from tokctl.corpus.documents import Reject
from tokctl.corpus.inputs import InputFile
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.readers.html import page
from tokctl.corpus.readers.http_message import BadMessage, Response, charset, parse_response
from tokctl.corpus.readers.text import text_document, too_large
from tokctl.corpus.records import Record, reject
from tokctl.corpus.text_encoding import first_invalid, split_bom
from tokctl.errors import DataError

_PASSED_OVER = (
    WarcRecordType.request,
    WarcRecordType.metadata,
    WarcRecordType.revisit,
    WarcRecordType.warcinfo,
    WarcRecordType.continuation,
)
_HTML = ("text/html", "application/xhtml+xml")


def read(file: InputFile, stream: ByteStream, options: ReadOptions) -> Iterator[Record]:
    """The archive's documents in order; ``offset`` in rejects is where the record (or its gzip member) begins in the file."""
    if not stream.peek(1):
        yield reject(file, "empty-document", "the file is empty")
        return
    where = 0
    is_cut = False
    try:
        # the iterator needs no more of a stream than read and tell
        for record in ArchiveIterator(cast(Any, stream), parse_http=False, stream_detect=False):
            where = record.stream_pos
            if record.record_type in _PASSED_OVER:
                continue
            item = _record(file, record, stream, options)
            is_cut = isinstance(item, Reject) and item.reason == "truncated-record"
            yield item
    except (BrokenStream, DataError):
        if is_cut:
            return  # the record that was cut has been counted
        raise
    except OSError as error:
        offset = stream.stored_offset(where)
        yield reject(file, "malformed-warc", f"no record can be read after byte {offset}: {error}", offset=offset)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # how a defect inside fastwarc shows itself
            raise
        offset = stream.stored_offset(where)
        yield reject(file, "malformed-warc", f"fastwarc fails after byte {offset}: {error}", offset=offset)


def _record(file: InputFile, record: WarcRecord, stream: ByteStream, options: ReadOptions) -> Record:
    offset = stream.stored_offset(record.stream_pos)
    length = record.headers.get("Content-Length")
    if length is None:
        return reject(file, "truncated-record", "the record's header has no Content-Length", offset=offset)
    if record.content_length > options.max_document_bytes:
        return too_large(file, options, offset=offset)
    block = record.reader.read(record.content_length) if record.content_length else b""
    if len(block) < record.content_length:
        return reject(
            file, "truncated-record", f"{len(block)} of {record.content_length} bytes are there", offset=offset
        )
    return _payload(file, record, block, offset, options)


def _payload(file: InputFile, record: WarcRecord, block: bytes, offset: int, options: ReadOptions) -> Record:
    content_type = record.headers.get("Content-Type") or ""
    try:
        if content_type.lower().startswith("application/http"):
            response = parse_response(block, options)
        else:
            response = Response(None, {"content-type": content_type}, block)
    except BadMessage as error:
        return reject(file, error.reason, error.evidence, offset=offset)
    own_id = (record.record_id or "").strip("<> ") or None
    if response.status is not None and not 200 <= response.status < 300:
        return reject(file, "http-status", f"the status is {response.status}", own_id=own_id, offset=offset)
    if not response.body:
        return reject(file, "empty-document", "the payload is empty", own_id=own_id, offset=offset)
    kind = response.media_type or _sniff(response.body)
    meta = _meta(record, kind)
    if kind in _HTML:
        return page(file, response.body, options, meta, own_id=own_id, charset=response.charset)
    if kind == "text/plain":
        declared = _declared(response.charset or charset(content_type), response.body)
        return text_document(file, response.body, options, meta, own_id=own_id, declared=declared)
    return reject(file, "not-text", f"the media type is {kind}", own_id=own_id, offset=offset)


def _sniff(body: bytes) -> str:
    head = body[: source_code.HEAD]
    if head.lstrip()[:1] == b"<":
        return "text/html"
    return "application/octet-stream" if source_code.looks_binary(head) else "text/plain"


def _declared(name: str | None, body: bytes) -> tuple[str, str] | None:
    """(codec, origin) of a plain text: what the header says, else, when it isn't UTF-8, what it looks like."""
    from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

    codec = map_encoding_to_html5(name, fallback_utf8=False) if name else None
    if codec:
        return codec, "http"
    if first_invalid(body) is not None and split_bom(body)[0] is None:
        return detect_encoding(body) or "utf-8", "detected"
    return None


def _meta(record: WarcRecord, kind: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"format": "warc", "media_type": kind}
    for key, header in (
        ("url", "WARC-Target-URI"),
        ("warc_date", "WARC-Date"),
        ("warc_record_id", "WARC-Record-ID"),
        ("warc_truncated", "WARC-Truncated"),
    ):
        value = record.headers.get(header)
        if value:
            meta[key] = value.strip("<>")
    return meta
