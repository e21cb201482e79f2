"""JSON lines: one object a line, the text in one of its fields.

A line that is no JSON object, a text that is missing, null or no string, and an object with a key twice are rejects. Lines
of white space are no records. A file in which no object has the text field is an error: the field was named wrongly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tokctl.corpus import language_tags
from tokctl.corpus.byte_stream import ByteStream
from tokctl.corpus.documents import Reject
from tokctl.corpus.inputs import InputFile
from tokctl.corpus.read_options import ReadOptions
from tokctl.corpus.readers.fields import ABSENT, BadField, kind, look_up, record_fields
from tokctl.corpus.readers.lines import skip_mark, split_lines
from tokctl.corpus.readers.text import too_large, undecodable
from tokctl.corpus.records import Document, Record, reject
from tokctl.corpus.text_encoding import Undecodable, check_utf8
from tokctl.errors import DataError

_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SPACE = b" \t\r\n"
_MAX_KEYS = 20  # named when the text field is wrong


def read(file: InputFile, stream: ByteStream, options: ReadOptions) -> Iterator[Record]:
    """The file's records in order; ``row`` is the line's number from 0, blank lines included.

    Raises DataError for a file in UTF-16 or UTF-32 and for a text field that no record has.
    """
    if not stream.peek(1):
        yield reject(file, "empty-document", "the file is empty")
        return
    skip_mark(file, stream)
    keys: set[str] = set()
    has_text = False
    for row, line in split_lines(stream, options.max_document_bytes):
        if line is None:
            yield too_large(file, options, row=row)
            continue
        if not line.strip(_SPACE):
            continue
        item = _record(file, row, line, options)
        if isinstance(item, dict):
            if len(keys) < _MAX_KEYS:
                keys.update(list(item)[:_MAX_KEYS])
            item = reject(file, "missing-text", f"row {row}: there is no field {options.text_field!r}", row=row)
        else:
            has_text = has_text or not isinstance(item, Reject) or item.reason not in _NO_OBJECT
        yield item
    if keys and not has_text:
        raise DataError(
            f"no record of {file.name} has the text field {options.text_field!r}",
            hint=f"fields found: {', '.join(sorted(keys)[:_MAX_KEYS])}; choose one with --text-field",
            code="no-text-field",
            file=file.path,
        )


_NO_OBJECT = ("invalid-json", "not-an-object", "invalid-utf8", "duplicate-key")


class _DuplicateKey(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKey(key)
            seen.add(key)
    return value


_decode = json.JSONDecoder(object_pairs_hook=_object).decode


def _record(file: InputFile, row: int, line: bytes, options: ReadOptions) -> Document | Reject | dict[str, Any]:
    """One line's document or reject; the object itself when it has no text field."""
    try:
        text = line.decode()
        n_invalid, first_invalid = 0, None
    except UnicodeDecodeError:
        if options.errors == "bytes":
            _, n_invalid, first_invalid = check_utf8(line, "bytes")
            text = line.decode("utf-8", "surrogateescape")
        else:
            try:
                checked = check_utf8(line, options.errors)
            except Undecodable as error:
                return undecodable(file, error, options, row=row)
            text, n_invalid, first_invalid = checked.text.decode(), checked.n_invalid, checked.first_invalid
    try:
        record = _decode(text)
    except _DuplicateKey as error:
        return reject(
            file, "duplicate-key", f"row {row}: the key {error.args[0]!a} stands twice in one object", row=row
        )
    except ValueError as error:
        evidence = f"row {row}: {error}" + ("; the line is cut off" if _is_cut(error, text) else "")
        return reject(file, "invalid-json", evidence, row=row)
    except RecursionError:
        return reject(file, "invalid-json", f"row {row}: nested too deeply", row=row)
    del text
    if not isinstance(record, dict):
        return reject(file, "not-an-object", f"row {row}: the line is {kind(record)}, not an object", row=row)
    value = look_up(record, options.text_field)
    if value is ABSENT:
        return record
    if not isinstance(value, str):
        reason = "null-text" if value is None else "text-not-string"
        return reject(file, reason, f"row {row}: the field {options.text_field!r} is {kind(value)}", row=row)
    try:
        data, n_lone = _encode(value, line, bool(n_invalid), file, row, options)
        fields = record_fields(record, options)
    except BadField as error:
        return reject(file, error.reason, f"row {row}: {error.evidence}", row=row)
    language = language_tags.decide(file.name, options.language_from_path, fields.language)
    return Document(
        file=file,
        text=data,
        raw=line,
        own_id=fields.own_id,
        row=row,
        language=language or language_tags.fallback(options.language),
        license=fields.license,
        group_id=fields.group_id,
        meta={"format": "jsonl"} | fields.meta,
        n_invalid=n_invalid + n_lone,
        first_invalid=first_invalid,
    )


def _is_cut(error: ValueError, text: str) -> bool:
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")


def _encode(
    value: str, line: bytes, was_escaped: bool, file: InputFile, row: int, options: ReadOptions
) -> tuple[bytes, int]:
    """The text in UTF-8 and how many lone surrogates were replaced or kept.

    Under ``bytes`` a lone surrogate is kept as its three-byte form, and the bytes that weren't UTF-8 come back as they
    were. Both in one line can't be told apart: a BadField.
    """
    try:
        return value.encode(), 0
    except UnicodeEncodeError as error:
        at = error.start
    escapes = _SURROGATE_ESCAPE.search(line) is not None
    if was_escaped and not escapes:
        return value.encode("utf-8", "surrogateescape"), 0
    name = f"the field {options.text_field!r} holds a lone surrogate at character {at}"
    if options.errors == "error":
        raise DataError(
            f"{file.name}, row {row}: {name}",
            hint="choose --errors replace, skip or bytes", code="lone-surrogate", file=file.path, row=row, offset=None,
        )  # fmt: skip
    if options.errors == "skip" or was_escaped:
        raise BadField("lone-surrogate", name)
    n_lone = len(_SURROGATE.findall(value))
    if options.errors == "replace":
        return _SURROGATE.sub("\ufffd", value).encode(), n_lone
    return value.encode("utf-8", "surrogatepass"), n_lone
