"""What a metric is computed from (a ``Sample``) and what it becomes (a ``Row``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow.compute as pc

from tokctl.metrics.evaluate import Evaluation
from tokctl.metrics.resample import interval, quantile_rank, resample
from tokctl.metrics.table import METRICS

QUANTILES = {"p50": Fraction(1, 2), "p95": Fraction(19, 20), "max": Fraction(1)}
MAX_SLICES = 200
NO_INTERVAL = "one document has no interval"


@dataclass(frozen=True)
class Row:
    """One value of one metric. ``value`` is None only together with a ``reason``; so is ``ci95``.

    ``numerator`` and ``denominator`` are None where the value is not a ratio of counts (quantiles) or a count alone.
    ``slice`` is ``column=value`` or None for all documents.
    """

    candidate: str
    id: str
    slice: str | None
    n_documents: int
    value: float | int | None
    numerator: int | None
    denominator: int | None
    ci95: tuple[float, float] | None
    reason: str | None

    def to_json(self) -> dict[str, Any]:
        return {
            "candidate": self.candidate,
            "id": self.id,
            "value": self.value,
            "unit": METRICS[self.id].unit,
            "numerator": self.numerator,
            "denominator": self.denominator,
            "n_documents": self.n_documents,
            "ci95": list(self.ci95) if self.ci95 is not None else None,
            "slice": self.slice,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Sample:
    """One candidate on the documents of one slice.

    ``totals``: name -> exact total: ``documents``, ``bytes``, ``code_points``, ``tokens``, ``single_byte_tokens``,
    ``round_trips``, ``tokens.p50``, ``tokens.p95``, ``tokens.max`` (nearest rank) and, with a baseline,
    ``baseline_tokens``. ``resampled``: the same names -> ``int64[N_RESAMPLES]``, empty for a single document.
    ``n_failed`` and ``n_baseline_failed``: documents that the candidate (the baseline) could not encode.
    """

    candidate: str
    slice: str | None
    totals: Mapping[str, int]
    resampled: Mapping[str, np.ndarray]
    n_failed: int = 0
    n_baseline_failed: int = 0

    def ratio(self, metric: str, numerator: str, denominator: str, nothing: str) -> Row:
        """The row of numerator over denominator; ``nothing`` says why there is no value when the denominator is 0."""
        if reason := self._failed():
            return self.missing(metric, reason)
        return self._ratio(metric, numerator, denominator, nothing)

    def returned(self, metric: str) -> Row:
        """The row of round trips over documents, in which a failed document counts as one that did not come back."""
        return self._ratio(metric, "round_trips", "documents", "there are no documents")

    def _ratio(self, metric: str, numerator: str, denominator: str, nothing: str) -> Row:
        above, below = self.totals[numerator], self.totals[denominator]
        if not below:
            return self._row(metric, None, above, below, None, nothing)
        if not self.resampled:
            return self._row(metric, above / below, above, below, None, NO_INTERVAL)
        drawn = self.resampled[denominator]
        if not drawn.all():
            return self._row(metric, above / below, above, below, None, f"{nothing} in some resamples")
        return self._row(metric, above / below, above, below, interval(self.resampled[numerator] / drawn), None)

    def count(self, metric: str, name: str, *, is_total: bool) -> Row:
        """The row of a count: a total (its own numerator) or a length picked from the documents."""
        if reason := self._failed():
            return self.missing(metric, reason)
        value = self.totals[name]
        numerator = value if is_total else None
        if not self.resampled:
            return self._row(metric, value, numerator, None, None, NO_INTERVAL)
        return self._row(metric, value, numerator, None, interval(self.resampled[name]), None)

    def missing(self, metric: str, reason: str) -> Row:
        """The row of a metric that can't be computed."""
        return self._row(metric, None, None, None, None, reason)

    def _failed(self) -> str | None:
        return f"the candidate failed on {self.n_failed} documents" if self.n_failed else None

    def _row(
        self,
        metric: str,
        value: float | int | None,
        numerator: int | None,
        denominator: int | None,
        ci95: tuple[float, float] | None,
        reason: str | None,
    ) -> Row:
        documents = self.totals["documents"]
        return Row(self.candidate, metric, self.slice, documents, value, numerator, denominator, ci95, reason)


def samples(evaluation: Evaluation, baseline: str | None = None) -> Iterator[Sample]:
    """A sample per slice and candidate: all documents first, then each column's values ascending; candidates by name.

    A column of more than MAX_SLICES values is left out (``unsliced`` names it).
    """
    yield from _slice_samples(evaluation, None, np.arange(len(evaluation)), baseline)
    left_out = unsliced(evaluation)
    for column in evaluation.slice_columns:
        if column in left_out:
            continue
        values = np.array(evaluation.documents[column].to_pylist(), object)
        for value in sorted(set(values)):
            yield from _slice_samples(evaluation, f"{column}={value}", np.flatnonzero(values == value), baseline)


def unsliced(evaluation: Evaluation) -> dict[str, int]:
    """Slice columns with too many values for a row each: column -> number of values."""
    counts = {column: pc.count_distinct(evaluation.documents[column]).as_py() for column in evaluation.slice_columns}
    return {column: count for column, count in counts.items() if count > MAX_SLICES}


def _slice_samples(
    evaluation: Evaluation, label: str | None, rows: np.ndarray, baseline: str | None
) -> Iterator[Sample]:
    names = sorted(evaluation.candidates)
    columns: dict[str, np.ndarray] = {
        "bytes": evaluation.documents["n_bytes"].to_numpy()[rows],
        "code_points": evaluation.documents["n_code_points"].to_numpy()[rows],
    }
    failed = {}
    for name in names:
        table = evaluation.candidates[name]
        columns[f"tokens/{name}"] = table["n_tokens"].to_numpy()[rows]
        columns[f"single_byte_tokens/{name}"] = table["n_single_byte_tokens"].to_numpy()[rows]
        columns[f"round_trips/{name}"] = table["round_trip"].to_numpy(zero_copy_only=False)[rows].astype(np.int64)
        failed[name] = int(pc.is_valid(table["error"]).to_numpy(zero_copy_only=False)[rows].sum())
    matrix = np.stack(list(columns.values()), axis=1)
    lengths = np.stack([columns[f"tokens/{name}"] for name in names], axis=1)
    sums = matrix.sum(axis=0)
    many = len(rows) > 1
    if many:
        drawn, picked = resample(label or "all", matrix, lengths, list(QUANTILES.values()))
    place = {column: j for j, column in enumerate(columns)}
    ordered = np.sort(lengths, axis=0)
    for i, name in enumerate(names):
        of = {"bytes": "bytes", "code_points": "code_points"}
        of |= {field: f"{field}/{name}" for field in ("tokens", "single_byte_tokens", "round_trips")}
        if baseline is not None:
            of["baseline_tokens"] = f"tokens/{baseline}"
        totals = {"documents": len(rows)} | {field: int(sums[place[column]]) for field, column in of.items()}
        resampled: dict[str, np.ndarray] = {}
        if many:
            resampled = {field: drawn[:, place[column]] for field, column in of.items()}
            resampled["documents"] = np.full(len(drawn), len(rows), np.int64)
        for q, (label_q, quantile) in enumerate(QUANTILES.items()):
            totals[f"tokens.{label_q}"] = int(ordered[quantile_rank(quantile, len(rows)) - 1, i])
            if many:
                resampled[f"tokens.{label_q}"] = picked[:, i, q]
        yield Sample(name, label, totals, resampled, failed[name], failed[baseline] if baseline is not None else 0)
