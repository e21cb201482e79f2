"""Running tokctl in this process with ``--json``, and what must hold of every answer, good or bad."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq

from tokctl.artifacts.schemas import RESULT
from tokctl.cli import entry, envelope

EXIT_CODES = {"check": 1, "usage": 2, "data": 3, "artifact": 4, "missing-extra": 5}
STAGES = ("extract", "count", "fit bpe", "dedup exact", "dedup minhash", "split", "encode", "compare")
"""The stages that read documents."""


@dataclass(frozen=True)
class Answer:
    """What a command said: its exit code, the JSON document, and stderr."""

    code: int
    document: dict[str, Any]
    stderr: str

    @property
    def error(self) -> dict[str, Any]:
        return self.document["error"]

    @property
    def result(self) -> Any:
        return self.document["result"]

    @property
    def where(self) -> tuple[Any, Any, Any]:
        return tuple(self.error["where"][name] for name in ("file", "row", "offset"))  # type: ignore[return-value]


def tokctl(*arguments: Any, stdin: bytes = b"") -> Answer:
    """Run one command with ``--json`` and check what holds of all: a documented exit code, one valid document, no traceback."""
    words = [str(argument) for argument in arguments]
    code, out, err = raw(*words, "--json", stdin=stdin)
    lines = out.split("\n")
    assert len(lines) == 2 and not lines[1], (words, out, err)
    document = json.loads(lines[0])
    _validator().validate(document)
    assert "Traceback" not in err and "Traceback" not in out
    if code:
        error = document["error"]
        assert not document["ok"] and EXIT_CODES.get(error["kind"]) == code, (words, document)
        assert error["message"] and error["code"] and error["hint"], (words, error)
        assert error["message"].splitlines() == [error["message"]], error
        assert f"error: {error['message']}" in err
    else:
        assert document["ok"] and "error" not in document, (words, document)
    return Answer(code, document, err)


def raw(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = [io.TextIOWrapper(buffer, "utf-8", write_through=True) for buffer in (out, err)]
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            code = entry.run(list(arguments))
    finally:
        sys.stdin = before
        envelope.set_log_format("text")
    return code, out.getvalue().decode("utf-8"), err.getvalue().decode("utf-8")


def reading(stage: str, tokenizer: Path, *inputs: Any) -> list[str]:
    """The command of a stage that reads ``inputs``, without ``-o``."""
    files = [str(name) for name in inputs]
    if stage == "compare":
        named = [word for name in files for word in ("--validation", name)]
        return ["compare", *named, "--candidate", f"a={tokenizer}"]
    more = {"fit bpe": ["--vocab-size", "256"], "encode": ["--tokenizer", str(tokenizer)]}.get(stage, [])
    return [*stage.split(), *files, *more]


def check_rows(out: Path) -> dict[str, Any]:
    """The manifest of a finished output, after the row equation; rejects are listed, each with stage, reason and evidence."""
    manifest = json.loads((out / "manifest.json").read_bytes())
    counts = manifest["counts"]
    assert counts["rows_in"] == counts["rows_out"] + counts["rows_rejected"]
    if "rejects" in manifest["facts"]:
        rejects = pq.read_table(out / "rejects.parquet").to_pylist()
        assert len(rejects) == sum(manifest["facts"]["rejects"].values()) == counts["rows_rejected"]
        assert all(reject["stage"] and reject["reason"] for reject in rejects)
    return manifest


def nothing_made(out: Path) -> bool:
    """Neither an output nor anything that could be taken for one."""
    return not out.exists() and not list(out.parent.glob(f"{out.name}.partial-*/manifest.json"))


@functools.cache
def _validator() -> Any:
    return jsonschema.Draft202012Validator(RESULT)
