"""A comparison as plain tables: strings in rows and columns, which every rendering shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Columns of the overview, in this order: metric id -> heading.
HEADINGS = {
    "tokens.total": "tokens",
    "bytes_per_token.micro": "bytes/token",
    "code_points_per_token.micro": "code points/token",
    "single_byte_share.micro": "single bytes",
    "tokens_per_document.p50": "p50 tokens",
    "tokens_per_document.p95": "p95 tokens",
    "tokens_per_document.max": "max tokens",
    "round_trip.documents": "round trip",
    "amplification.micro": "vs baseline",
}
_AMPLIFICATION = "amplification.micro"
_SLICE_TITLES = {
    "bytes_per_token.micro": "Bytes per token by slice",
    _AMPLIFICATION: "Tokens over the baseline's by slice",
}


@dataclass(frozen=True)
class Table:
    """A titled table of strings; ``rows`` are as long as ``columns``; ``numeric[i]``: column i is right-aligned."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]


def overview(comparison: Mapping[str, Any]) -> Table:
    """One row a candidate, over all documents. ``comparison`` is the JSON of a Comparison (or its CLI result)."""
    rows = [row for row in comparison["metrics"] if row["slice"] is None]
    about = {entry["name"]: entry for entry in comparison["candidates"]}
    return _table("Candidates", rows, list(HEADINGS), lambda name: (name, f"{about[name]['vocab_size']:,}"))


def by_slice(comparison: Mapping[str, Any], metric: str) -> Table:
    """One row a slice, one column a candidate: ``metric`` in every slice; the baseline isn't measured against itself."""
    names = [entry["name"] for entry in comparison["candidates"]]
    if metric == _AMPLIFICATION:
        names = [name for name in names if name != comparison["baseline"]]
    cells: dict[str, dict[str, str]] = {}
    documents: dict[str, int] = {}
    for row in comparison["metrics"]:
        if row["id"] == metric and row["slice"] is not None:
            cells.setdefault(row["slice"], {})[row["candidate"]] = number(row["value"])
            documents[row["slice"]] = row["n_documents"]
    rows = tuple((s, f"{documents[s]:,}", *(cells[s][name] for name in names)) for s in cells)
    title = _SLICE_TITLES.get(metric, f"{metric} by slice")
    return Table(title, ("slice", "documents", *names), rows, (False, *[True] * (len(names) + 1)))


def gate_table(comparison: Mapping[str, Any]) -> Table:
    """One row a gate and candidate, failures first and otherwise in the gates' order."""
    order = {"failed": 0, "not-checked": 1, "passed": 2}
    gates = sorted(comparison["gates"], key=lambda gate: order[gate["status"]])
    rows = tuple(
        (
            gate["status"] + (" (warn)" if gate["severity"] == "warn" else ""),
            gate["candidate"],
            gate["id"],
            number(gate["value"]),
            _limit(gate),
            gate["reason"] or "",
        )
        for gate in gates
    )
    columns = ("status", "candidate", "gate", "value", "limit", "reason")
    return Table("Gates", columns, rows, (False, False, False, True, True, False))


def _limit(gate: Mapping[str, Any]) -> str:
    sign = {"<=": "≤", ">=": "≥", "==": "="}.get(gate["op"], gate["op"])
    limit = f"{sign} {gate['limit']:,}"
    return f"{limit} of {gate['relative_to']}" if gate["relative_to"] else limit


def _table(title: str, rows: Sequence[Mapping[str, Any]], metrics: Sequence[str], lead: Any) -> Table:
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        cells.setdefault(row["candidate"], {})[row["id"]] = number(row["value"])
    present = [metric for metric in metrics if any(row["id"] == metric and row["value"] is not None for row in rows)]
    body = tuple((*lead(name), *(values[metric] for metric in present)) for name, values in cells.items())
    columns = ("candidate", "vocabulary", *(HEADINGS[metric] for metric in present))
    return Table(title, columns, body, (False, *[True] * (len(columns) - 1)))


def number(value: float | int | None) -> str:
    """A number for reading: counts with separators, others with four significant decimals, a dash for none."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
