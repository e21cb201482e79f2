"""Source-code files: text with its programming language in ``meta.code_language``; binary files are refused."""

from __future__ import annotations

from collections.abc import Iterator

from tokctl.corpus import source_code
from tokctl.corpus.byte_stream import ByteStream
from tokctl.corpus.file_formats import bare_name
from tokctl.corpus.inputs import InputFile
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.readers.text import read_document
from tokctl.corpus.records import Record, reject


def read(file: InputFile, stream: ByteStream, options: ReadOptions) -> Iterator[Record]:
    """The file as one document, or one reject."""
    if source_code.has_nul(stream.peek(source_code.HEAD)):
        evidence = f"a NUL within the first {source_code.HEAD} bytes: not source code"
        yield reject(file, "binary-file", evidence, own_id="")
        return
    meta = {"format": "code"}
    language = source_code.code_language(bare_name(file.uri))
    if language is not None:
        meta["code_language"] = language
    yield read_document(file, stream, options, meta)
