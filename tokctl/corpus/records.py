"""What a reader yields: a document, a page that still has to be extracted, or a reject."""

from __future__ import annotations

from typing import Any, NamedTuple

from tokctl.corpus.documents import Reject
from tokctl.corpus.inputs import InputFile

STAGE = "extract"


class Document(NamedTuple):
    """A document as read.

    ``text`` is UTF-8 (any bytes under ``errors="bytes"``); ``raw`` is what it was made from, the same object when nothing
    changed. ``n_invalid`` counts the ill-formed sequences that were replaced or kept; the first one is at ``first_invalid``
    in ``raw``. ``own_id`` is the id the record brings along, "" for a file that is one document, None when only the text
    can identify it. ``row`` is the record's number in its file. ``language`` is (tag, origin).
    """

    file: InputFile
    text: bytes
    raw: bytes
    own_id: str | None
    row: int | None
    language: tuple[str, str]
    license: str | None
    group_id: str | None
    meta: dict[str, Any]
    n_invalid: int = 0
    first_invalid: int | None = None


class Page(NamedTuple):
    """HTML not yet extracted: ``document.text`` is empty, ``document.raw`` is the page.

    ``charset`` is what the HTTP header says. ``takes_html_language`` is False when a rule already decided the language.
    """

    document: Document
    charset: str | None
    takes_html_language: bool


Record = Document | Page | Reject


def reject(
    file: InputFile,
    reason: str,
    evidence: str,
    *,
    own_id: str | None = None,
    row: int | None = None,
    offset: int | None = None,
) -> Reject:
    """A reject of the reading stage. ``own_id`` is as in Document: it gives the reject the document's id where that is known."""
    doc_id = None if own_id is None else f"{file.name}#{own_id}" if own_id else file.name
    return Reject(STAGE, reason, doc_id, file.source, file.uri, row, offset, evidence)
