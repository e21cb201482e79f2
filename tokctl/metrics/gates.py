"""Gates: limits on metric values that a comparison passes or fails."""

from __future__ import annotations

import difflib
import math
import operator
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokctl.errors import UsageError
from tokctl.metrics.sample import Row
from tokctl.metrics.table import METRICS

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}
SEVERITIES = ("error", "warn")
_EXAMPLE = '[[gate]] metric = "bytes_per_token.micro", op = ">=", limit = 3.5'
_KEYS = ("id", "metric", "slice", "op", "limit", "relative_to", "severity")


@dataclass(frozen=True)
class Gate:
    """``metric op limit`` for every candidate but the baseline, in one slice or over all documents.

    With ``relative_to`` the value judged is the candidate's value over that candidate's, and ``limit`` a ratio. A gate of
    severity ``warn`` is reported and never fails a comparison.
    """

    id: str
    metric: str
    op: str
    limit: float | int
    slice: str | None = None
    relative_to: str | None = None
    severity: str = "error"


@dataclass(frozen=True)
class GateRow:
    """The verdict of one gate on one candidate; ``reason`` is set when the gate could not be checked."""

    gate: Gate
    candidate: str
    value: float | int | None
    status: str  # passed, failed, not-checked
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.gate.id,
            "candidate": self.candidate,
            "metric": self.gate.metric,
            "slice": self.gate.slice,
            "op": self.gate.op,
            "value": self.value,
            "limit": self.gate.limit,
            "relative_to": self.gate.relative_to,
            "severity": self.gate.severity,
            "status": self.status,
            "reason": self.reason,
        }


def read_gates(text: str | bytes, *, file: str | None = None) -> tuple[Gate, ...]:
    """The gates of a TOML gate file, in its order.

    An ``id`` is by default the gate in words (``bytes_per_token.micro[language=de] >= 3.5``). Raises UsageError for TOML
    that does not parse, an unknown key, metric or operator (naming the nearest known one), a limit that is not a finite
    number, two gates of one id, or a file without gates.
    """
    try:
        content = tomllib.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the gate file is not TOML: {error}", hint="see examples/gates.toml", code="bad-gate", file=file
        ) from None
    entries = content.get("gate")
    unknown = sorted(set(content) - {"gate"})
    if unknown or not entries or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        what = f"it has {unknown[0]!r}" if unknown else "there is none"
        raise UsageError(
            f"a gate file consists of [[gate]] tables; {what}",
            hint=_EXAMPLE,
            code="bad-gate",
            file=file,
        )
    gates = tuple(_gate(entry, number, file) for number, entry in enumerate(entries, 1))
    ids = [gate.id for gate in gates]
    for gate_id in ids:
        if ids.count(gate_id) > 1:
            raise UsageError(f"two gates are called {gate_id!r}", hint="give each an id", code="bad-gate", file=file)
    return gates


def _gate(entry: Mapping[str, Any], number: int, file: str | None) -> Gate:
    def refuse(what: str, hint: str | None = None) -> UsageError:
        return UsageError(f"gate {number}: {what}", hint=hint or _EXAMPLE, code="bad-gate", file=file)

    for key in entry:
        if key not in _KEYS:
            raise refuse(f"unknown key {key!r}", nearest(key, _KEYS))
    for key in ("metric", "op", "limit"):
        if key not in entry:
            raise refuse(f"it has no {key}")
    for key in ("id", "metric", "slice", "op", "relative_to", "severity"):
        if key in entry and not isinstance(entry[key], str):
            raise refuse(f"{key} is not a string: {entry[key]!r}")
    limit = entry["limit"]
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not math.isfinite(limit):
        raise refuse(f"limit is not a finite number: {limit!r}")
    for key, known in (("metric", METRICS), ("op", OPERATORS), ("severity", SEVERITIES)):
        value = entry.get(key, "error")
        if value not in known:
            raise refuse(f"unknown {key} {value!r}", nearest(value, known))
    where = entry.get("slice")
    if where is not None and "=" not in where:
        raise refuse(f"the slice {where!r} is not column=value", 'slice = "language=de"')
    relative = entry.get("relative_to")
    words = entry["metric"] + (f"[{where}]" if where else "") + f" {entry['op']} {limit}"
    gate_id = entry.get("id") or words + (f" x {relative}" if relative else "")
    return Gate(gate_id, entry["metric"], entry["op"], limit, where, relative, entry.get("severity", "error"))


def nearest(word: str, known: Collection[str]) -> str:
    """A hint: the known word nearest to ``word``, or all of them when none is near."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def check_relative(gates: Sequence[Gate], candidates: Collection[str]) -> None:
    """Raise UsageError when a gate is relative to something that is not a candidate."""
    for gate in gates:
        if gate.relative_to is not None and gate.relative_to not in candidates:
            raise UsageError(
                f"the gate {gate.id!r} is relative to {gate.relative_to!r}, which is not a candidate",
                hint=nearest(gate.relative_to, candidates),
                code="unknown-candidate",
            )


def judge(gates: Sequence[Gate], rows: Sequence[Row], *, baseline: str | None = None) -> list[GateRow]:
    """A verdict for each gate and candidate, in the order of the gates, candidates by name; the baseline is not judged.

    ``not-checked`` when the slice does not exist (the reason names the nearest one that does), the metric has no value,
    or the value of ``relative_to`` is missing or zero. Raises UsageError when ``relative_to`` is not a candidate.
    """
    values = {(row.candidate, row.id, row.slice): row for row in rows}
    candidates = sorted({row.candidate for row in rows})
    slices = sorted({row.slice for row in rows if row.slice is not None})
    verdicts = []
    check_relative(gates, candidates)
    for gate in gates:
        for candidate in candidates:
            if candidate == baseline:
                continue
            if gate.slice is not None and gate.slice not in slices:
                reason = f"there is no slice {gate.slice!r}; {nearest(gate.slice, slices)}"
                verdicts.append(GateRow(gate, candidate, None, "not-checked", reason))
                continue
            row = values[candidate, gate.metric, gate.slice]
            against = values[gate.relative_to, gate.metric, gate.slice] if gate.relative_to is not None else None
            verdicts.append(_verdict(gate, row, against))
    return verdicts


def _verdict(gate: Gate, row: Row, against: Row | None) -> GateRow:
    value = row.value
    if value is None:
        return GateRow(gate, row.candidate, None, "not-checked", row.reason)
    if against is not None:
        if not against.value:
            reason = against.reason or f"{against.candidate} has the value 0"
            return GateRow(gate, row.candidate, None, "not-checked", f"relative to {against.candidate}: {reason}")
        value = value / against.value
    status = "passed" if OPERATORS[gate.op](value, gate.limit) else "failed"
    return GateRow(gate, row.candidate, value, status)


def passed(verdicts: Sequence[GateRow], allow_not_checked: Collection[str] = ()) -> bool:
    """Whether no gate of severity ``error`` failed or went unchecked, but for the ids in ``allow_not_checked``."""
    return all(
        row.status == "passed"
        or row.gate.severity == "warn"
        or (row.status == "not-checked" and row.gate.id in allow_not_checked)
        for row in verdicts
    )
