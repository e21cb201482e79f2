"""HTML files: a file is one page, extracted later in a process of its own (``extractors``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokctl.corpus import language_tags
from tokctl.corpus.byte_stream import ByteStream
from tokctl.corpus.documents import Reject
from tokctl.corpus.inputs import InputFile
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.readers.text import read_whole
from tokctl.corpus.records import Document, Page, Record


def read(file: InputFile, stream: ByteStream, options: ReadOptions) -> Iterator[Record]:
    """The file as one page, or a reject when it is empty or too large."""
    raw = read_whole(file, stream, options)
    yield raw if isinstance(raw, Reject) else page(file, raw, options, {"format": "html"}, own_id="", charset=None)


def page(
    file: InputFile, raw: bytes, options: ReadOptions, meta: dict[str, Any], *, own_id: str | None, charset: str | None
) -> Page:
    """A page to extract. ``charset`` is the HTTP header's, if any."""
    language = language_tags.decide(file.name, options.language_from_path, None)
    document = Document(
        file=file,
        text=b"",
        raw=raw,
        own_id=own_id,
        row=None,
        language=language or language_tags.fallback(options.language),
        license=options.license,
        group_id=None,
        meta=meta,
    )
    return Page(document, charset, takes_html_language=language is None)
