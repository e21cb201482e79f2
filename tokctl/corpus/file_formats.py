"""Which reader a file is for: by ``--format``, by its name without a compression suffix, else by its first bytes."""

from __future__ import annotations

import json

from tokctl.corpus import source_code
from tokctl.corpus.byte_stream import SUFFIXES, ByteStream
from tokctl.corpus.inputs import STDIN, InputFile
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.readers.fields import ABSENT, look_up

BY_SUFFIX: dict[str, str] = {
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".markdown": "text",
    ".rst": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".warc": "warc",
}
SNIFFED = 16 << 10


def bare_name(uri: str) -> str:
    """A file's name without its compression suffix."""
    base = uri.rsplit("/", 1)[-1]
    stem, _, _ = base.rpartition(".")
    return stem if any(base.lower().endswith(suffix) for suffix in SUFFIXES) and stem else base


def file_format(file: InputFile, stream: ByteStream, options: ReadOptions) -> str:
    """The name of the reader for ``file``: a key of ``readers.READERS``, or ``binary`` for what no reader takes.

    Among unknown names, text is taken as text and everything else is binary. ``.json`` is JSONL when its first line is a
    whole object with the text field, else a document of code.
    """
    if options.format != "auto":
        return options.format
    name = bare_name(file.uri)
    if source_code.code_language(name) is not None and not name.lower().endswith(".json"):
        return "code"
    _, dot, extension = name.rpartition(".")
    known = BY_SUFFIX.get(dot + extension.lower()) if dot else None
    if known is not None:
        return known
    head = stream.peek(SNIFFED)
    if head.startswith(b"WARC/"):
        return "warc"
    if head.startswith(b"PAR1"):
        return "parquet"
    if name.lower().endswith(".json"):
        return "jsonl" if begins_with_object(head, options.text_field) else "code"
    if file.uri == STDIN and begins_with_object(head):
        return "jsonl"
    if file.uri == STDIN:
        # Bytes that were piped in on purpose are text, whatever they hold; a page says what it is.
        return "html" if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")) else "text"
    return "binary" if source_code.looks_binary(head) else "text"


def begins_with_object(head: bytes, field: str | None = None) -> bool:
    """Whether the first line is a JSON object (that has ``field``), as far as ``head`` shows it."""
    first, newline, _ = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if not first.startswith(b"{"):
        return False
    if not newline and len(head) >= SNIFFED:
        return field is None or json.dumps(field.rsplit(".", 1)[-1]).encode() in head
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and (field is None or look_up(value, field) is not ABSENT)
