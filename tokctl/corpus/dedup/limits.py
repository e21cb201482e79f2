"""Alarms: what deduplication must not do unnoticed.

One header shared by everything, or one wrong option, can unite a whole source into one cluster. The two limits catch
that from its two sides: the size of a cluster, and the share of a source that would go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tokctl.errors import CheckFailed, UsageError


@dataclass(frozen=True, slots=True)
class Limits:
    """``max_cluster_size`` documents in one cluster; ``max_source_removal``: the share of a source that may be removed.

    The second looks only at sources of at least ``min_source_documents``. None means no limit.
    """

    max_cluster_size: int | None = None
    max_source_removal: float | None = None
    min_source_documents: int = 20

    def __post_init__(self) -> None:
        if self.max_cluster_size is not None and self.max_cluster_size < 1:
            raise UsageError(f"a cluster limit of {self.max_cluster_size}", hint="give at least 1", code="bad-limit")
        if self.max_source_removal is not None and not 0.0 <= self.max_source_removal <= 1.0:
            hint = "give a share from 0 to 1"
            raise UsageError(f"a removal limit of {self.max_source_removal}", hint=hint, code="bad-limit")


@dataclass(frozen=True, slots=True)
class Alarm:
    """One limit that is exceeded: ``code`` (``large-cluster``, ``source-removed``), what it is about, and the numbers."""

    code: str
    message: str


def alarms(limits: Limits, largest_cluster: int, by_source: Mapping[str, tuple[int, int]]) -> list[Alarm]:
    """The limits that are exceeded, clusters first, then sources by name.

    ``by_source`` is source -> (documents, documents removed).
    """
    found = []
    if limits.max_cluster_size is not None and largest_cluster > limits.max_cluster_size:
        message = f"the largest cluster has {largest_cluster} documents, more than {limits.max_cluster_size}"
        found.append(Alarm("large-cluster", message))
    if limits.max_source_removal is not None:
        for name in sorted(by_source):
            total, removed = by_source[name]
            if total >= limits.min_source_documents and removed > limits.max_source_removal * total:
                message = f"{removed} of {total} documents of source {name!r} ({removed / total:.1%}) would be removed"
                found.append(Alarm("source-removed", f"{message}, more than {limits.max_source_removal:.1%}"))
    return found


def refuse(found: Sequence[Alarm]) -> None:
    """Raise CheckFailed when there is an alarm."""
    if found:
        raise CheckFailed(
            "; ".join(alarm.message for alarm in found),
            hint="look at the clusters; then change the canonicalisation or the threshold, or raise the limit",
            code=found[0].code,
        )
