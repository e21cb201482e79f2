"""The errors a user can cause, each with its exit code and a hint that says what to type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Where:
    """The place an error is about.

    ``row`` is a zero-based record number inside ``file`` (line number minus one for text and JSONL);
    ``offset`` is a zero-based byte offset inside ``file`` or, with ``row``, inside that record.
    """

    file: str | None = None
    row: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.file is not None:
            parts.append(self.file)
        if self.row is not None:
            parts.append(f"row {self.row}")
        if self.offset is not None:
            parts.append(f"byte {self.offset}")
        return ", ".join(parts)


class TokctlError(Exception):
    """Base of every error that is shown to a user without a traceback.

    ``code`` is a stable slug for machines (``invalid-utf8``); ``kind`` names the class of failure and fixes the exit code.
    """

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        file: str | None = None,
        row: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.kind
        self.where = Where(file, row, offset)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.code, self.where)


class CheckFailed(TokctlError):
    """A check or a gate was run and did not pass (exit code 1)."""

    kind = "check"
    exit_code = 1


class UsageError(TokctlError):
    """An option, argument or configuration file is wrong (exit code 2)."""

    kind = "usage"
    exit_code = 2


class DataError(TokctlError):
    """The input data can't be processed as asked (exit code 3)."""

    kind = "data"
    exit_code = 3


class ArtifactError(TokctlError):
    """A tokctl artifact, manifest or tokenizer file is missing, broken, foreign or in use (exit code 4)."""

    kind = "artifact"
    exit_code = 4


class MissingExtra(TokctlError):
    """An optional dependency is needed and not installed (exit code 5)."""

    kind = "missing-extra"
    exit_code = 5

    def __init__(self, package: str, extra: str, *, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed",
            hint=f"pip install 'tokctl[{extra}]'",
            code="missing-extra",
        )


def _rebuild(kind: type[TokctlError], message: str, hint: str | None, code: str, where: Where) -> TokctlError:
    """Unpickle an error that crossed from a worker process."""
    error = kind.__new__(kind)
    TokctlError.__init__(error, message, hint=hint, code=code, file=where.file, row=where.row, offset=where.offset)
    return error
