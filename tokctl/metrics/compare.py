"""Compare candidates on validation documents: evaluate once, compute every metric per slice, judge the gates."""

from __future__ import annotations

import hashlib
import importlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tokctl.errors import UsageError
from tokctl.metrics.evaluate import Candidate, Evaluation, Step, evaluate
from tokctl.metrics.gates import Gate, GateRow, check_relative, judge, nearest, passed
from tokctl.metrics.sample import Row, samples, unsliced
from tokctl.metrics.table import FAMILIES
from tokctl.tokenizer.texts import utf8

_BATCH_BYTES = 1 << 22


@dataclass(frozen=True)
class Comparison:
    """Metric rows (all documents first, then slices; candidates by name) and gate rows (in the gates' order).

    ``candidates``: name -> ``vocab_size`` and ``semantic`` hash (None for a foreign object); ``notices`` are sentences
    for the reader; ``evaluation`` holds the per-document measurements.
    """

    candidates: Mapping[str, Mapping[str, Any]]
    baseline: str | None
    n_documents: int
    rows: tuple[Row, ...]
    gates: tuple[GateRow, ...]
    notices: tuple[str, ...]
    evaluation: Evaluation
    allow_not_checked: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every gate of severity ``error`` passed (or was allowed to go unchecked)."""
        return passed(self.gates, self.allow_not_checked)

    def row(self, candidate: str, metric: str, slice: str | None = None) -> Row:  # noqa: A002
        """The row of one candidate, metric and slice; KeyError when there is none."""
        for row in self.rows:
            if (row.candidate, row.id, row.slice) == (candidate, metric, slice):
                return row
        raise KeyError((candidate, metric, slice))

    def to_json(self) -> dict[str, Any]:
        """Plain data, in a total order; numbers that are not counts are floats."""
        return {
            "candidates": [{"name": name, **about} for name, about in self.candidates.items()],
            "baseline": self.baseline,
            "n_documents": self.n_documents,
            "metrics": [row.to_json() for row in self.rows],
            "gates": [row.to_json() for row in self.gates],
            "passed": self.passed,
            "notices": list(self.notices),
        }


def compare(
    candidates: Mapping[str, Candidate | str | Path],
    texts: Iterable[str | bytes] | Iterable[pa.RecordBatch | pa.Table],
    *,
    baseline: str | None = None,
    gates: Sequence[Gate] = (),
    allow_not_checked: Collection[str] = (),
    slices: Sequence[str] | None = None,
    on_step: Step | None = None,
    n_documents: int | None = None,
) -> Comparison:
    """Measure every candidate on the same documents.

    ``candidates``: name -> a tokenizer, or the path of one. ``texts``: plain texts, or Arrow batches of documents, which
    are then sliced by ``slices`` (default: language and source). Raises UsageError for a baseline, an allowed gate or a
    ``relative_to`` that does not exist, naming the nearest, and DataError when there is no document.
    """
    loaded = {name: _load(candidates[name]) for name in sorted(candidates)}
    if baseline is not None and baseline not in loaded:
        raise UsageError(
            f"the baseline {baseline!r} is not a candidate", hint=nearest(baseline, loaded), code="unknown-candidate"
        )
    for gate_id in sorted(set(allow_not_checked) - {gate.id for gate in gates}):
        known = [gate.id for gate in gates]
        raise UsageError(f"there is no gate {gate_id!r} to allow", hint=nearest(gate_id, known), code="unknown-gate")
    check_relative(gates, loaded)  # refuse before the long work
    batches, has_columns = _batches(texts)
    if slices is None:
        slices = ("language", "source") if has_columns else ()
    evaluation = evaluate(loaded, batches, slice_columns=slices, on_step=on_step, n_documents=n_documents)
    families = [_family(place) for place in FAMILIES.values()]
    rows = tuple(row for sample in samples(evaluation, baseline) for family in families for row in family(sample))
    about = {
        name: {"vocab_size": int(candidate.vocab_size), "semantic": getattr(candidate, "semantic_hash", None)}
        for name, candidate in loaded.items()
    }
    return Comparison(
        candidates=about,
        baseline=baseline,
        n_documents=len(evaluation),
        rows=rows,
        gates=tuple(judge(gates, rows, baseline=baseline)),
        notices=tuple(_notices(about, evaluation)),
        evaluation=evaluation,
        allow_not_checked=tuple(sorted(allow_not_checked)),
    )


def _load(candidate: Candidate | str | Path) -> Candidate:
    if isinstance(candidate, (str, Path)):
        from tokctl.tokenizer.formats import load

        loaded: Candidate = load(candidate)
        return loaded
    return candidate


def _family(place: str) -> Any:
    module, _, function = place.partition(":")
    return getattr(importlib.import_module(module), function)


def _batches(
    texts: Iterable[str | bytes] | Iterable[pa.RecordBatch | pa.Table],
) -> tuple[Iterator[pa.RecordBatch | pa.Table], bool]:
    """The documents as batches, and whether they came as such (plain texts have no columns to slice by)."""
    if isinstance(texts, (str, bytes)):
        raise UsageError("compare takes several texts, not one", hint="[text]", code="not-texts")
    if isinstance(texts, (pa.Table, pa.RecordBatch)):
        texts = [texts]
    stream = iter(texts)
    first = next(stream, None)
    if first is None:
        return iter(()), False
    whole = _chain(first, stream)
    if isinstance(first, (str, bytes)):
        return _text_batches(whole), False
    return whole, True


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _text_batches(texts: Iterator[str | bytes]) -> Iterator[pa.Table]:
    """Texts as binary documents of about _BATCH_BYTES a batch; doc_id is the text's SHA-256 and an ordinal among equals."""
    seen: Counter[bytes] = Counter()
    ids: list[str] = []
    held: list[bytes] = []
    size = 0
    for row, text in enumerate(texts):
        data = utf8(text, row)
        digest = hashlib.sha256(data).digest()
        ids.append(f"{digest.hex()}-{seen[digest]}")
        seen[digest] += 1
        held.append(data)
        size += len(data)
        if size >= _BATCH_BYTES:
            yield _text_table(ids, held)
            ids, held, size = [], [], 0
    if held:
        yield _text_table(ids, held)


def _text_table(ids: list[str], texts: list[bytes]) -> pa.Table:
    return pa.table({"doc_id": pa.array(ids, pa.large_string()), "text": pa.array(texts, pa.large_binary())})


def _notices(about: Mapping[str, Mapping[str, Any]], evaluation: Evaluation) -> Iterator[str]:
    by_hash: dict[str, list[str]] = {}
    for name, facts in about.items():
        if facts["semantic"] is not None:
            by_hash.setdefault(facts["semantic"], []).append(name)
    for semantic, names in by_hash.items():
        if len(names) > 1:
            yield f"{', '.join(names)} are the same tokenizer ({semantic[:16]})"
    for column, count in unsliced(evaluation).items():
        yield f"{column} has {count} values: too many for a slice each, so there are none"
    for name in about:
        errors = evaluation.candidates[name]["error"].to_pylist()
        failed = [i for i, error in enumerate(errors) if error is not None]
        if failed:
            doc_id = evaluation.documents["doc_id"][failed[0]].as_py()
            yield f"{name} failed on {len(failed)} documents, first on {doc_id}: {errors[failed[0]]}"
