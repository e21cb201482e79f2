"""How raw input is read: one frozen record of plain values that travels to worker processes."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from tokctl.errors import UsageError

ERRORS = ("error", "replace", "skip", "bytes")
FORMATS = ("auto", "text", "lines", "code", "jsonl", "parquet", "html", "warc")


@dataclass(frozen=True)
class ReadOptions:
    """Every option of reading that can change a document; sizes are bytes.

    ``errors`` is what happens to bytes that aren't valid in their encoding (UTF-8 unless something says otherwise) and to
    lone surrogates in JSON: ``error`` stops, ``replace`` puts U+FFFD and counts, ``skip`` rejects the document, ``bytes``
    keeps the raw bytes (the text column is then binary; a page is text by then, so HTML replaces).
    Fields of JSON records and Parquet columns may be dotted paths. ``format`` and ``encoding`` are ``auto`` or forced.
    ``is_verbatim``: text keeps its UTF-8 byte-order mark and an empty file is an empty document, so that encoding is exact.
    """

    format: str = "auto"
    errors: str = "error"
    encoding: str = "auto"
    text_field: str = "text"
    text_column: str = "text"
    id_field: str | None = None
    language_field: str | None = None
    license_field: str | None = None
    group_field: str | None = None
    meta_fields: tuple[str, ...] = ()
    language: str | None = None  # of every document that has none by column, path or HTML
    language_from_path: str | None = None  # a regular expression; its group "language", or the first group
    license: str | None = None
    extractor: str = "resiliparse"
    main_content: bool = True
    time_limit: int = 10  # processor seconds a page may take
    max_document_bytes: int = 1 << 30
    max_ratio: int = 200
    max_decompressed_bytes: int = 64 << 30
    is_verbatim: bool = False

    def __post_init__(self) -> None:
        if self.errors not in ERRORS:
            raise UsageError(
                f"--errors {self.errors!r} is unknown", hint=f"choose one of {', '.join(ERRORS)}", code="bad-errors"
            )
        if self.format not in FORMATS:
            raise UsageError(
                f"--format {self.format!r} is unknown", hint=f"choose one of {', '.join(FORMATS)}", code="bad-format"
            )
        for name in ("time_limit", "max_document_bytes", "max_ratio", "max_decompressed_bytes"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is at least 1, not {getattr(self, name)}", code="bad-limit")
        if self.language_from_path is not None:
            self._check_path_rule(self.language_from_path)
        if self.encoding != "auto":
            self._check_encoding(self.encoding)

    @staticmethod
    def _check_path_rule(rule: str) -> None:
        try:
            compiled = re.compile(rule)
        except re.error as error:
            raise UsageError(
                f"the path rule {rule!r} is not a regular expression: {error}",
                hint="write for example '/(?P<language>[a-z]{2})/'",
                code="bad-path-rule",
            ) from None
        if compiled.groups == 0:
            raise UsageError(
                f"the path rule {rule!r} has no group to take the language from",
                hint="write for example '/(?P<language>[a-z]{2})/'",
                code="bad-path-rule",
            )

    @staticmethod
    def _check_encoding(encoding: str) -> None:
        try:
            is_text = isinstance(b"a".decode(encoding, "replace"), str)
        except (LookupError, ValueError):
            is_text = False
        if not is_text:
            raise UsageError(
                f"the encoding {encoding!r} is unknown", hint="a name such as utf-8 or cp1252", code="bad-encoding"
            )

    @classmethod
    def from_parameters(cls, parameters: Any) -> ReadOptions:
        """The options among the attributes of ``parameters``; what it doesn't have keeps its default."""
        given = {f.name: getattr(parameters, f.name) for f in fields(cls) if hasattr(parameters, f.name)}
        if "meta_fields" in given:
            given["meta_fields"] = tuple(given["meta_fields"])
        return cls(**given)
