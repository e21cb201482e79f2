"""A comparison as Markdown, small enough for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokctl.report.table import Table, by_slice, gate_table, overview

MAX_BYTES = 64_000
SLICE_METRICS = ("bytes_per_token.micro", "amplification.micro")


def markdown(comparison: Mapping[str, Any], *, max_bytes: int = MAX_BYTES) -> str:
    """Verdict, gates, overview, slices and notices, under ``max_bytes`` of UTF-8.

    ``comparison`` is the JSON of a Comparison. A table that does not fit is cut after a row, with a line that says how
    many rows are left out; nothing else is ever cut.
    """
    sections = [_verdict(comparison)]
    tables = [overview(comparison)]
    if comparison["gates"]:
        tables.insert(0, gate_table(comparison))
    for metric in SLICE_METRICS:
        rows = [row for row in comparison["metrics"] if row["id"] == metric and row["slice"] is not None]
        if any(row["value"] is not None for row in rows):
            tables.append(by_slice(comparison, metric))
    notices = "".join(f"- {_escape(notice)}\n" for notice in comparison["notices"])
    if notices:
        sections.append(f"### Notices\n\n{notices}")
    # What is left is shared out in order: gates and the overview come first, slices take the rest.
    left = max_bytes - sum(len(section.encode()) + 1 for section in sections)
    rendered = []
    for i, table in enumerate(tables):
        reserve = sum(_frame_bytes(later) for later in tables[i + 1 :])
        text = _render(table, left - reserve)
        left -= len(text.encode()) + 1
        rendered.append(text)
    return "\n".join([sections[0], *rendered, *sections[1:]])


def _verdict(comparison: Mapping[str, Any]) -> str:
    documents = f"{comparison['n_documents']:,} validation documents"
    baseline = f", baseline {_escape(comparison['baseline'])}" if comparison["baseline"] else ""
    n_checks = len(comparison["gates"])
    n_bad = sum(gate["status"] != "passed" for gate in comparison["gates"])
    if not n_checks:
        verdict = "no gates"
    elif not n_bad:
        verdict = f"passed: all {n_checks} gate checks"
    else:
        verdict = "passed" if comparison["passed"] else "**FAILED**"
        verdict += f": {n_bad} of {n_checks} gate checks did not pass"
    return f"## Tokenizer comparison\n\n{documents}{baseline}; {verdict}\n"


def _head(table: Table) -> str:
    columns = " | ".join(_escape(column) for column in table.columns)
    rule = " | ".join("--:" if numeric else "---" for numeric in table.numeric)
    return f"### {_escape(table.title)}\n\n| {columns} |\n| {rule} |\n"


def _left_out(n_rows: int) -> str:
    return f"\n{n_rows:,} more rows are in the JSON.\n"


def _frame_bytes(table: Table) -> int:
    return len(_head(table).encode()) + len(_left_out(len(table.rows)).encode()) + 1


def _render(table: Table, limit: int) -> str:
    text = _head(table)
    lines = ["| " + " | ".join(_escape(cell) for cell in row) + " |\n" for row in table.rows]
    size = len(text.encode())
    if size + sum(len(line.encode()) for line in lines) <= limit:
        return text + "".join(lines)
    size += len(_left_out(len(lines)).encode())
    for kept, line in enumerate(lines):
        size += len(line.encode())
        if size > limit:
            return text + "".join(lines[:kept]) + _left_out(len(lines) - kept)
    return text + "".join(lines)


def _escape(text: str) -> str:
    """Text as it is, inside a Markdown table cell: one line, no markup, no HTML."""
    for character in "\\`*_[]<>|#":
        text = text.replace(character, f"\\{character}" if character != "<" else "&lt;")
    return " ".join(text.split())
