"""Lines: each line of a text file is a document, without its newline; a carriage return stays."""

from __future__ import annotations

from collections.abc import Iterator

from tokctl.corpus.byte_stream import BrokenStream, ByteStream
from tokctl.corpus.inputs import InputFile
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.readers.text import text_document, too_large
from tokctl.corpus.records import Record, reject
from tokctl.corpus.text_encoding import split_bom
from tokctl.errors import DataError

_BLOCK = 1 << 20


def read(file: InputFile, stream: ByteStream, options: ReadOptions) -> Iterator[Record]:
    """A document for each line, empty ones included; ``row`` is the line's number from 0.

    Raises DataError for a file in UTF-16 or UTF-32, whose lines don't end in the byte of a newline.
    """
    if not stream.peek(1):
        if not options.is_verbatim:
            yield reject(file, "empty-document", "the file is empty")
        return
    skip_mark(file, stream, is_kept=options.is_verbatim)
    for row, line in split_lines(stream, options.max_document_bytes):
        if line is None:
            yield too_large(file, options, row=row)
            continue
        yield text_document(file, line, options, {"format": "lines"}, own_id=None, row=row)


def skip_mark(file: InputFile, stream: ByteStream, *, is_kept: bool = False) -> None:
    """Pass over a UTF-8 byte-order mark at the start, unless it ``is_kept``.

    Raises DataError for the mark of an encoding whose lines don't end in the byte of a newline.
    """
    encoding, mark = split_bom(stream.peek(4))
    if encoding not in (None, "utf-8"):
        raise DataError(
            f"{file.name} is in {encoding}; lines are read in UTF-8",
            hint=f"convert it: iconv -f {encoding} -t utf-8", code="not-utf8", file=file.path,
        )  # fmt: skip
    if mark and not is_kept:
        stream.read(mark)


def split_lines(stream: ByteStream, limit: int) -> Iterator[tuple[int, bytes | None]]:
    """(line number, line without its newline), None for a line of more than ``limit`` bytes.

    When the stream breaks, the whole lines before the break are given first.
    """
    pieces: list[bytes] = []
    size = 0
    row = 0
    broken = None
    while True:
        try:
            block = stream.read(_BLOCK)
        except BrokenStream as error:
            broken = error
            break
        if not block:
            break
        first, newline, rest = block.partition(b"\n")
        size += len(first)
        if size <= limit:
            pieces.append(first)
        else:
            pieces.clear()
        if not newline:
            continue
        yield row, (b"".join(pieces) if size <= limit else None)
        row += 1
        lines = rest.split(b"\n")
        last = lines.pop()
        for line in lines:
            yield row, (line if len(line) <= limit else None)
            row += 1
        size = len(last)
        pieces = [last] if size <= limit else []
    if broken is not None:
        raise broken  # the line it breaks in is part of what is lost
    if size:
        yield row, (b"".join(pieces) if size <= limit else None)
