"""Readers: from files, archives and streams to records.

A reader is a function ``read(file: InputFile, stream: ByteStream, options: ReadOptions) -> Iterator[Record]``. Each record of
the file gives exactly one document, page or reject. Raises DataError where going on makes no sense; a stream that breaks
raises BrokenStream after what was whole, and the caller counts the rest as one reject.
"""

from __future__ import annotations

READERS: dict[str, str] = {
    "text": "tokctl.corpus.readers.text:read",
    "lines": "tokctl.corpus.readers.lines:read",
    "code": "tokctl.corpus.readers.code:read",
    "jsonl": "tokctl.corpus.readers.jsonl:read",
    "parquet": "tokctl.corpus.readers.parquet:read",
    "html": "tokctl.corpus.readers.html:read",
    "warc": "tokctl.corpus.readers.warc:read",
}
