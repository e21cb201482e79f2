"""What goes to stdout for machines and to stderr for people."""

from __future__ import annotations

import json
import sys
from typing import Any

from tokctl.errors import TokctlError

SCHEMA_VERSION = 1
_log_format = "text"


def set_log_format(log_format: str) -> None:
    """``text`` or ``json``: how errors and log lines are written to stderr."""
    global _log_format
    _log_format = log_format


def emit(command: str, result: Any) -> None:
    """The one JSON document of a successful ``--json`` run."""
    _write({"schema_version": SCHEMA_VERSION, "command": command, "ok": True, "result": result})


def emit_failed(command: str, result: Any, error: TokctlError) -> None:
    """The one JSON document of a check that ran and failed: the error, and the result that shows why."""
    _write(
        {
            "schema_version": SCHEMA_VERSION,
            "command": command,
            "ok": False,
            "error": _error(error),
            "result": result,
        }
    )


def emit_error(command: str, error: TokctlError) -> None:
    """The one JSON document of a failed ``--json`` run."""
    _write({"schema_version": SCHEMA_VERSION, "command": command, "ok": False, "error": _error(error)})


def print_error(error: TokctlError) -> None:
    """What, where, and a hint, on stderr."""
    if _log_format == "json":
        print(visible(json.dumps({"level": "error", **_error(error)}, ensure_ascii=False)), file=sys.stderr)
        return
    print(f"error: {visible(error.message)}", file=sys.stderr)
    where = str(error.where)
    if where and where not in error.message:
        print(f"  at: {visible(where)}", file=sys.stderr)
    if error.hint:
        print(f"hint: {visible(error.hint)}", file=sys.stderr)


def say(text: str) -> None:
    """A line of data for a person, on stdout."""
    print(visible(text))


def _error(error: TokctlError) -> dict[str, Any]:
    where = error.where
    return {
        "code": error.code,
        "kind": error.kind,
        "message": visible(error.message),
        "hint": visible(error.hint) if error.hint else None,
        "where": {"file": where.file, "row": where.row, "offset": where.offset},
    }


def visible(text: str) -> str:
    """Lone surrogates (undecodable parts of a file name) as escapes, which are their spelling in JSON too."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _write(document: dict[str, Any]) -> None:
    sys.stdout.write(visible(json.dumps(document, ensure_ascii=False, allow_nan=False)) + "\n")
    sys.stdout.flush()
