"""What reading raw files has met on the way: ill-formed text that was mended or kept, and records that became no document.

Everything is counted, and the first place of each is named, so that nobody has to look through all the files for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tokctl.corpus.documents import Reject
from tokctl.corpus.records import Document
from tokctl.errors import Where

_DONE = {"replace": "replaced by U+FFFD", "bytes": "kept as they are"}


@dataclass
class ReadingReport:
    """Counts and first places. A place is ``{"file": source/uri, "row", "offset"}``; offsets are bytes in the record."""

    n_ill_formed: int = 0
    n_ill_formed_documents: int = 0
    first_ill_formed: dict[str, Any] | None = None
    n_rejects: int = 0
    first_reject: dict[str, Any] | None = None

    def add_mended(self, document: Document) -> None:
        """A document with ill-formed sequences that were replaced or kept."""
        self.n_ill_formed += document.n_invalid
        self.n_ill_formed_documents += 1
        if self.first_ill_formed is None:
            self.first_ill_formed = _place(document.file.name, document.row, document.first_invalid)

    def add_reject(self, reject: Reject) -> None:
        """A record that became no document."""
        self.n_rejects += 1
        if self.first_reject is None:
            place = _place(f"{reject.source}/{reject.uri}", reject.row, reject.offset)
            self.first_reject = {**place, "reason": reject.reason, "evidence": reject.evidence}

    def add(self, later: Mapping[str, Any]) -> None:
        """The ``to_json`` of a report about files that come after those of this one."""
        for name, value in later.items():
            mine = getattr(self, name)
            setattr(self, name, mine + value if name.startswith("n_") else value if mine is None else mine)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for results of tasks."""
        return asdict(self)

    def facts(self) -> dict[str, Any]:
        """What a manifest tells of ill-formed text."""
        return {
            "sequences": self.n_ill_formed,
            "documents": self.n_ill_formed_documents,
            "first": self.first_ill_formed,
        }

    def notices(self, errors: str) -> list[str]:
        """Sentences for the user; none when there was nothing."""
        notices = []
        if self.first_ill_formed is not None:
            notices.append(
                f"{_number(self.n_ill_formed, 'ill-formed sequence')} in {_number(self.n_ill_formed_documents, 'document')} "
                f"{'was' if self.n_ill_formed == 1 else 'were'} {_DONE.get(errors, 'mended')}; "
                f"the first: {Where(**self.first_ill_formed)}"
            )
        if self.first_reject is not None:
            where = Where(*(self.first_reject[name] for name in ("file", "row", "offset")))
            notices.append(
                f"{_number(self.n_rejects, 'record')} {'was' if self.n_rejects == 1 else 'were'} rejected; "
                f"the first: {where}: {self.first_reject['reason']}: {self.first_reject['evidence']}"
            )
        return notices


def _place(file: str, row: int | None, offset: int | None) -> dict[str, Any]:
    return {"file": file, "row": row, "offset": offset}


def _number(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
