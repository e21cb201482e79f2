"""Plain text and Markdown: a file is one document, byte for byte, except for a byte-order mark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokctl.corpus import language_tags
from tokctl.corpus.byte_stream import ByteStream, read_all
from tokctl.corpus.documents import Reject
from tokctl.corpus.inputs import InputFile
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.records import Document, Record, reject
from tokctl.corpus.text_encoding import Undecodable, decode, split_bom
from tokctl.errors import DataError


def read(file: InputFile, stream: ByteStream, options: ReadOptions) -> Iterator[Record]:
    """The file as one document, or a reject when it is empty, too large or undecodable."""
    yield read_document(file, stream, options, {"format": "text"})


def read_document(file: InputFile, stream: ByteStream, options: ReadOptions, meta: dict[str, Any]) -> Record:
    """The whole stream as one document with ``meta``."""
    raw = read_whole(file, stream, options)
    if isinstance(raw, Reject):
        return raw
    return text_document(file, raw, options, meta, own_id="")


def read_whole(file: InputFile, stream: ByteStream, options: ReadOptions) -> bytes | Reject:
    """The whole stream, or a reject when there is nothing or too much."""
    raw = read_all(stream, options.max_document_bytes)
    if raw is None:
        return too_large(file, options, own_id="")
    if not raw and not options.is_verbatim:
        return reject(file, "empty-document", "the file is empty", own_id="")
    return raw


def too_large(
    file: InputFile,
    options: ReadOptions,
    *,
    own_id: str | None = None,
    row: int | None = None,
    offset: int | None = None,
) -> Reject:
    """The reject of a document above the limit."""
    evidence = f"more than {options.max_document_bytes} bytes; see max_document_bytes"
    return reject(file, "too-large", evidence, own_id=own_id, row=row, offset=offset)


def text_document(
    file: InputFile,
    raw: bytes,
    options: ReadOptions,
    meta: dict[str, Any],
    *,
    own_id: str | None,
    declared: tuple[str, str] | None = None,
    row: int | None = None,
) -> Record:
    """``raw`` as one document. ``declared`` is (encoding, origin) from outside; a byte-order mark goes before it.

    With ``row`` it is a record of a file, where no mark is looked for.
    """
    encoding, origin = declared or (
        ("utf-8", "default") if options.encoding == "auto" else (options.encoding, "option")
    )
    marked, skip = split_bom(raw) if row is None else (None, 0)
    if marked is not None:
        encoding, origin = marked, "bom"
        if options.is_verbatim and marked == "utf-8":
            skip = 0
    text = raw[skip:] if skip else raw
    try:
        decoded = decode(text, encoding, options.errors)
    except Undecodable as error:
        return undecodable(file, error, options, own_id=own_id, row=row, skip=skip)
    meta |= {"encoding": encoding, "encoding_origin": origin}
    language = language_tags.decide(file.name, options.language_from_path, None)
    return Document(
        file=file,
        text=raw if decoded.text is raw else decoded.text,
        raw=raw,
        own_id=own_id,
        row=row,
        language=language or language_tags.fallback(options.language),
        license=options.license,
        group_id=None,
        meta=meta,
        n_invalid=decoded.n_invalid,
        first_invalid=None if decoded.first_invalid is None else decoded.first_invalid + skip,
    )


def undecodable(
    file: InputFile,
    error: Undecodable,
    options: ReadOptions,
    *,
    own_id: str | None = None,
    row: int | None = None,
    skip: int = 0,
) -> Reject:
    """The reject of a document in no valid encoding. Raises DataError under ``errors="error"``."""
    offset = error.offset + skip
    if options.errors == "error":
        place = f", row {row}" if row is not None else ""
        raise DataError(
            f"{file.name}{place}: byte 0x{error.found.hex()} at offset {offset} is not valid {error.encoding}",
            hint="choose --errors replace, skip or bytes, or name the encoding",
            code=error.code,
            file=file.path,
            row=row,
            offset=offset,
        )
    return reject(file, error.code, str(error), own_id=own_id, row=row, offset=offset)
