"""Split documents into train, validation and test by a hash of their group key.

A group stands at a position on the line from 0 to 2**64 (``group_keys.positions``). By fractions, the line is laid out

    [0, test * 2**64)  test    ...  train  ...    [2**64 - validation * 2**64, 2**64)  validation

so that a larger validation (or test) fraction takes groups from train only, and adding documents moves none. Counts
(``--count``) and strata need all groups first: within each stratum, groups are taken for test from the low end and
for validation from the high end of the line. That is deterministic and nested in the same way, but documents added
later can move others. So can a cluster that joins two groups; how many documents a join moved is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokctl.corpus.group_keys import GroupBy, group_keys, positions, stratum_values
from tokctl.errors import DataError, UsageError

ROLES = ("train", "validation", "test")
TRAIN, VALIDATION, TEST = range(3)
LINE = 2**64


@dataclass(frozen=True)
class Shares:
    """How much validation and test get: fractions of the line (exact), or numbers of groups or documents."""

    validation: Fraction | int
    test: Fraction | int
    unit: str = "fraction"  # or "groups", "documents"

    @classmethod
    def fractions(cls, validation: str, test: str) -> Shares:
        """From decimal text such as ``0.05``, taken exactly. Raises UsageError outside 0..1 or for a sum above 1."""
        shares = cls(_fraction("validation", validation), _fraction("test", test))
        if shares.validation + shares.test > 1:
            raise UsageError(
                f"validation {validation} and test {test} together exceed 1", code="bad-fraction",
                hint="what they leave is train",
            )  # fmt: skip
        return shares

    @classmethod
    def counts(cls, validation: int, test: int, unit: str = "groups") -> Shares:
        """Whole groups until there are at least this many ``groups`` or ``documents`` in a role."""
        if unit not in ("groups", "documents"):
            raise UsageError(f"a count is of groups or documents, not {unit!r}", code="bad-count")
        if validation < 0 or test < 0:
            raise UsageError(f"a count is not negative: validation {validation}, test {test}", code="bad-count")
        return cls(validation, test, unit)

    @property
    def is_fraction(self) -> bool:
        return self.unit == "fraction"

    def roles(self, line: np.ndarray) -> np.ndarray:
        """Role codes ``uint8[n]`` of positions ``uint64[n]`` by the layout of the line. Fractions only."""
        # Bounds are rounded down, so both roles are exact to one part in 2**64; as integers they may equal 2**64.
        test_end = int(self.test * LINE)
        validation_start = LINE - int(self.validation * LINE)
        roles = np.full(len(line), TRAIN, np.uint8)
        if validation_start < LINE:
            roles[line >= np.uint64(validation_start)] = VALIDATION
        if test_end > 0:
            roles[line <= np.uint64(test_end - 1)] = TEST
        return roles


def _fraction(role: str, text: str) -> Fraction:
    try:
        value = Fraction(Decimal(text))
    except (InvalidOperation, ValueError, OverflowError):
        raise UsageError(f"the {role} fraction {text!r} is not a decimal number", code="bad-fraction") from None
    if not 0 <= value <= 1:
        raise UsageError(f"the {role} fraction {text} is not in 0..1", code="bad-fraction")
    return value


@dataclass(frozen=True)
class SplitPlan:
    """Decides the role of any document: by the line, except for the groups in ``table_positions``.

    ``table_positions`` (uint64[m], ascending) are the groups with a decision of their own: all of them for counts and
    strata, the joined ones for clusters; ``table_roles`` (uint8[m]) and ``table_groups`` (uint64[m]: the position of
    the group it was joined to, or its own). ``report`` says what a manifest should: see ``SplitPlanner.finish``.
    """

    group_by: GroupBy
    seed: int
    shares: Shares
    table_positions: np.ndarray
    table_roles: np.ndarray
    table_groups: np.ndarray
    is_closed: bool = False
    report: Mapping[str, Any] = field(default_factory=dict)

    def assign(self, batch: pa.RecordBatch | pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Role codes ``uint8[n]`` (indices into ROLES) and groups ``uint64[n]`` of the documents in ``batch``.

        Raises DataError for a group that the plan, made from counts or strata, has never seen.
        """
        keys, _ = group_keys(batch, self.group_by)
        line = positions(keys, self.seed)
        groups = line.copy()
        known = np.zeros(len(line), bool)
        if len(self.table_positions):
            place = np.minimum(np.searchsorted(self.table_positions, line), len(self.table_positions) - 1)
            known = self.table_positions[place] == line
        if not self.is_closed:
            roles = self.shares.roles(line)
        elif known.all():
            roles = np.empty(len(line), np.uint8)
        else:
            row = int(np.argmin(known))
            raise DataError(
                f"the document {batch.column('doc_id')[row].as_py()!r} was not there when the split was planned",
                hint="an input changed while it was being split; run split again",
                code="input-changed",
            )
        if known.any():
            roles[known] = self.table_roles[place[known]]
            groups[known] = self.table_groups[place[known]]
        return roles, groups


class SplitPlanner:
    """Makes a ``SplitPlan``, after one pass over the key columns when counts, strata or clusters ask for it.

    ``clusters`` is a table like CLUSTER_SCHEMA: documents of one cluster bring their groups together, transitively; the
    joined group stands where its lowest key (bytewise, ``doc:`` before ``key:``) stands. ``stratify_by`` is a column as
    in ``GroupBy.parse``; a group whose documents lie in several strata counts in the one that has most of them (the
    bytewise smallest among equals). Memory: about 20 bytes a group, plus the ids and keys of clustered documents.
    """

    def __init__(
        self,
        group_by: GroupBy,
        shares: Shares,
        seed: int,
        *,
        stratify_by: str | None = None,
        clusters: pa.Table | None = None,
    ) -> None:
        self._group_by = group_by
        self._shares = shares
        self._seed = seed
        self._stratify_by = stratify_by
        self._clusters: dict[str, str] = {}
        if clusters is not None:
            shared = clusters.filter(pc.greater(clusters["cluster_size"], 1))
            self._clusters = dict(zip(shared["doc_id"].to_pylist(), shared["cluster_id"].to_pylist(), strict=True))
        self._has_clusters = clusters is not None
        self._line: list[np.ndarray] = []
        self._strata: list[np.ndarray] = []
        self._stratum_codes: dict[str, int] = {}
        self._cluster_keys: dict[str, set[str]] = {}
        self._n_documents = 0
        self._n_without_key = 0
        positions(pa.array([], pa.string()), seed)  # refuse a bad seed before the first batch

    @property
    def needs_scan(self) -> bool:
        """Whether every batch must be shown to ``scan`` before ``finish``."""
        return not self._shares.is_fraction or self._stratify_by is not None or self._has_clusters

    @property
    def columns(self) -> list[str]:
        """The document columns that ``scan`` and ``SplitPlan.assign`` read."""
        extra = [GroupBy.parse(self._stratify_by).column] if self._stratify_by else []
        return sorted({*self._group_by.columns, *extra})

    def scan(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take note of the groups, strata and clusters of a batch."""
        keys, has_key = group_keys(batch, self._group_by)
        self._n_documents += len(keys)
        self._n_without_key += int(len(keys) - has_key.sum())
        self._line.append(positions(keys, self._seed))
        if self._stratify_by is not None:
            values = stratum_values(batch, self._stratify_by).to_pylist()
            codes = (self._stratum_codes.setdefault(value, len(self._stratum_codes)) for value in values)
            self._strata.append(np.fromiter(codes, np.int32, len(values)))
        if self._clusters:
            for doc_id, key in zip(batch.column("doc_id").to_pylist(), keys.to_pylist(), strict=True):
                cluster = self._clusters.get(doc_id)
                if cluster is not None:
                    self._cluster_keys.setdefault(cluster, set()).add(key)

    def finish(self) -> SplitPlan:
        """The plan. Its ``report``: ``addition_stable``; ``strata`` (stratum -> role -> groups) and
        ``groups_in_several_strata``; ``joined_groups``, ``documents_moved_by_joins`` (None for counts and strata, where
        no other side is defined). Raises DataError when counts ask for more groups or documents than there are."""
        line = np.concatenate(self._line) if self._line else np.empty(0, np.uint64)
        joined_from, joined_to = self._joins()
        groups = line.copy()
        if len(joined_from):
            place = np.minimum(np.searchsorted(joined_from, line), len(joined_from) - 1)
            joined = joined_from[place] == line
            groups[joined] = joined_to[place[joined]]
        report: dict[str, Any] = {
            "addition_stable": not self.needs_scan,
            "documents_without_key": self._n_without_key if self.needs_scan else None,
            "joined_groups": int(len(joined_from) - len(np.unique(joined_to))),
            "documents_moved_by_joins": None,
            "groups_in_several_strata": 0,
            "strata": {},
        }
        if self._shares.is_fraction and self._stratify_by is None:
            roles = self._shares.roles(joined_to)
            if self._has_clusters:
                report["documents_moved_by_joins"] = int((self._shares.roles(line) != self._shares.roles(groups)).sum())
            return SplitPlan(
                self._group_by, self._seed, self._shares, joined_from, roles, joined_to, is_closed=False, report=report
            )
        unique, group_roles = self._allocate(groups, report)
        table, first = np.unique(line, return_index=True)
        table_groups = groups[first]
        roles = group_roles[np.searchsorted(unique, table_groups)]
        return SplitPlan(
            self._group_by, self._seed, self._shares, table, roles, table_groups, is_closed=True, report=report
        )

    def _joins(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the groups that clusters join, ascending, and the position of each one's lowest key."""
        parent: dict[str, str] = {}

        def root(key: str) -> str:
            while parent.setdefault(key, key) != key:
                parent[key] = parent[parent[key]]
                key = parent[key]
            return key

        for cluster in sorted(self._cluster_keys):
            first, *others = sorted(self._cluster_keys[cluster])
            for other in others:
                a, b = sorted((root(first), root(other)))
                parent[b] = a
        keys = sorted(parent)
        source = positions(pa.array(keys, pa.string()), self._seed)
        target = positions(pa.array([root(key) for key in keys], pa.string()), self._seed)
        order = np.argsort(source)
        return source[order], target[order]

    def _allocate(self, groups: np.ndarray, report: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Unique groups (ascending) and their roles, stratum by stratum; fills in the report's strata."""
        unique, group_of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        home = np.zeros(len(unique), np.int64)
        names = [""]
        if self._stratify_by is not None:
            names = sorted(self._stratum_codes)
            rank = np.empty(len(names), np.int64)
            for i, name in enumerate(names):
                rank[self._stratum_codes[name]] = i
            strata = rank[np.concatenate(self._strata)] if self._strata else np.empty(0, np.int64)
            # (group, stratum) pairs with their document counts; the first of a group by (most documents, stratum) wins.
            pairs, counts = np.unique(group_of * np.int64(len(names)) + strata, return_counts=True)
            pair_group, pair_stratum = np.divmod(pairs, max(1, len(names)))
            order = np.lexsort((pair_stratum, -counts, pair_group))
            of_group, first, n_strata = np.unique(pair_group[order], return_index=True, return_counts=True)
            home[of_group] = pair_stratum[order][first]
            report["groups_in_several_strata"] = int((n_strata > 1).sum())
        roles = np.full(len(unique), TRAIN, np.uint8)
        for i, name in enumerate(names):
            members = np.flatnonzero(home == i)  # ascending by position, as ``unique`` is
            n_test, n_validation = _quotas(self._shares, sizes[members], name)
            roles[members[:n_test]] = TEST
            roles[members[len(members) - n_validation :]] = VALIDATION
            if self._stratify_by is not None:
                report["strata"][name] = {
                    role: int((roles[members] == code).sum()) for code, role in enumerate(ROLES)
                }  # fmt: skip
        return unique, roles


def _quotas(shares: Shares, sizes: np.ndarray, stratum: str) -> tuple[int, int]:
    """How many groups test takes from the low end and validation from the high end; ``sizes`` in that order."""
    n = len(sizes)
    if shares.unit == "fraction":
        n_test = _round_half_up(Fraction(shares.test) * n)
        return n_test, min(n - n_test, _round_half_up(Fraction(shares.validation) * n))
    weights = sizes if shares.unit == "documents" else np.ones(n, np.int64)
    n_test = _groups_for(weights, shares.test)
    n_validation = _groups_for(weights[::-1], shares.validation)
    if n_test + n_validation > n:
        where = f" in the stratum {stratum!r}" if stratum else ""
        raise DataError(
            f"validation {shares.validation} + test {shares.test} {shares.unit} need more than the {n} groups"
            f" ({int(sizes.sum())} documents) there are{where}",
            hint="ask for fewer, or group by a finer key",
            code="too-few-groups",
        )
    return n_test, n_validation


def _groups_for(weights: np.ndarray, wanted: Fraction | int) -> int:
    """How many groups from the start reach ``wanted``; one more than there are when they don't."""
    return int(np.searchsorted(np.cumsum(weights), int(wanted))) + 1 if wanted else 0


def _round_half_up(value: Fraction) -> int:
    return int(value + Fraction(1, 2))


def plan_split(
    group_by: GroupBy,
    shares: Shares,
    seed: int,
    batches: Iterable[pa.RecordBatch | pa.Table] = (),
    *,
    stratify_by: str | None = None,
    clusters: pa.Table | None = None,
) -> SplitPlan:
    """A plan in one call: ``batches`` are read when the planner needs them."""
    planner = SplitPlanner(group_by, shares, seed, stratify_by=stratify_by, clusters=clusters)
    if planner.needs_scan:
        for batch in batches:
            planner.scan(batch)
    return planner.finish()
