"""What the tests of reading share: read files through the front door, and make small archives."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokctl.corpus.documents import Reject
from tokctl.corpus.ingest import document_schema, iter_batches
from tokctl.corpus.inputs import expand_inputs
from tokctl.corpus.read_options import ReadOptions


def read(*paths: Path | str, **options: Any) -> tuple[list[dict[str, Any]], list[Reject]]:
    """All rows (every column) and all rejects of ``paths``."""
    chosen = ReadOptions(**options)
    rejects: list[Reject] = []
    rows = []
    files = expand_inputs([str(path) for path in paths])
    for batch in iter_batches(files, chosen, document_schema(chosen.errors).names, on_reject=rejects.append):
        batch.validate(full=True)
        rows += batch.to_pylist()
    return rows, rejects


def texts(rows: Iterable[dict[str, Any]]) -> list[Any]:
    return [row["text"] for row in rows]


def reasons(rejects: Iterable[Reject]) -> list[str]:
    return [reject.reason for reject in rejects]


def warc_record(
    number: int,
    body: bytes,
    *,
    content_type: str | None = "text/html; charset=utf-8",
    headers: str = "",
    kind: str = "response",
    status: int = 200,
) -> bytes:
    """One WARC record; a response carries an HTTP message."""
    block = body
    record_type = "application/http; msgtype=response"
    if kind == "response":
        typed = f"Content-Type: {content_type}\r\n" if content_type else ""
        block = f"HTTP/1.1 {status} OK\r\n{typed}{headers}\r\n".encode() + body
    elif content_type:
        record_type = content_type
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number:08d}>\r\n"
        f"WARC-Target-URI: http://example.org/{number}\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
        f"Content-Type: {record_type}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def gzip_members(records: Iterable[bytes]) -> bytes:
    """Records as WARC.gz stores them: a member each."""
    return b"".join(gzip.compress(record, mtime=0) for record in records)
