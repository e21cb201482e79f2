"""Which document of a cluster survives, by a rule that doesn't depend on the order of the input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokctl.corpus.dedup.document_rows import DocumentRows
from tokctl.corpus.dedup.exact import Duplicates
from tokctl.corpus.documents import CLUSTER_SCHEMA, REJECT_SCHEMA
from tokctl.errors import UsageError

_SOURCE_PRIORITY = "source-priority="


@dataclass(frozen=True, slots=True)
class SurvivorRule:
    """``longest`` (most bytes of text), ``lowest-id``, or ``source-priority`` (the earliest of ``sources``, others last).

    Ties end at the lowest ``doc_id`` (in the order of its UTF-8 bytes); only rows that even share their id are told
    apart by their place in the input.
    """

    kind: str = "longest"
    sources: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> SurvivorRule:
        """``longest``, ``lowest-id`` or ``source-priority=a,b,c``; anything else raises UsageError."""
        if text in ("longest", "lowest-id"):
            return cls(text)
        sources = tuple(name.strip() for name in text.removeprefix(_SOURCE_PRIORITY).split(","))
        if not text.startswith(_SOURCE_PRIORITY) or "" in sources or len(set(sources)) < len(sources):
            raise UsageError(
                f"not a survivor rule: {text!r}",
                hint="choose longest, lowest-id or source-priority=A,B,... (each source once)",
                code="unknown-choice",
            )
        return cls("source-priority", sources)

    def __str__(self) -> str:
        return _SOURCE_PRIORITY + ",".join(self.sources) if self.sources else self.kind


class Clusters:
    """Clusters of documents with their survivors.

    ``labels int64[n]``: the lowest row of each row's cluster; ``kept int64[n]``: the row that survives in its place
    (its own when it does), -1 for a document that was dropped as empty; ``sizes int64[n]`` of the cluster. Rows are
    input rows, and all batches come in their order.
    """

    def __init__(
        self, documents: DocumentRows, duplicates: Duplicates, rule: SurvivorRule, *, drop_empty: bool = False
    ) -> None:
        self._documents = documents
        self.labels = duplicates.labels.copy()
        if drop_empty:
            self.labels[duplicates.is_empty] = np.flatnonzero(duplicates.is_empty)
        self.sizes = np.bincount(self.labels, minlength=documents.n_rows)[self.labels]
        self._members = np.flatnonzero(self.sizes > 1)
        table = self._read_members(duplicates.lengths, rule)
        self._member_ids = table.column("doc_id").combine_chunks()
        labels = self.labels[self._members]
        self._order = _places(table, labels, ["rank", "doc_id"])
        self._lowest_id = _first_of_each(labels, _places(table, labels, ["doc_id"]))
        self.kept = np.arange(documents.n_rows, dtype=np.int64)
        if drop_empty:
            self.kept[duplicates.is_empty] = -1
        # by member, like what is read here: an exact duplicate is wholly similar
        everyone = np.arange(self._members.size)
        self.set_survivors(self.preferred(everyone), np.ones(everyone.size))

    @property
    def survives(self) -> np.ndarray:
        """``bool[n]``: whether each row is kept."""
        return self.kept == np.arange(self._documents.n_rows)

    @property
    def members(self) -> np.ndarray:
        """``int64[m]``: the rows whose cluster has at least two documents, ascending."""
        return self._members

    def preferred(self, chosen: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
        """For each of ``chosen`` (int64[k], places in ``members``) the one that the rule prefers among those of its group.

        ``groups`` int64[k] divide clusters further; without it a group is what is chosen of a cluster.
        """
        groups = self.labels[self._members[chosen]] if groups is None else groups
        return chosen[_first_of_each(groups, self._order[chosen])]

    def set_survivors(self, survivors: np.ndarray, similarity: np.ndarray) -> None:
        """For each of ``members`` its survivor (int64[m], a place in ``members``) and their similarity (float64[m])."""
        self._survivor, self._similarity = survivors, similarity
        self.kept[self._members] = self._members[survivors]

    @property
    def statistics(self) -> dict[str, int]:
        """Counts that don't depend on the order of the input: documents, empty dropped, clusters, duplicates, largest."""
        return {
            "documents": self._documents.n_rows,
            "empty_dropped": int(np.count_nonzero(self.kept < 0)),
            "clusters": int(np.count_nonzero(self.labels[self._members] == self._members)),
            "duplicates": int(np.count_nonzero(self.kept[self._members] != self._members)),
            "largest_cluster": int(self.sizes.max(initial=0)),
        }

    def removed_by_source(self) -> dict[str, tuple[int, int]]:
        """Source -> (documents, documents removed), by name."""
        totals: dict[str, int] = {}
        removed: dict[str, int] = {}
        survives = self.survives
        for rows, batch in self._documents.batches(["source"]):
            source = batch.column(0)
            _count_into(totals, source)
            _count_into(removed, source.filter(pa.array(~survives[rows])))
        return {name: (totals[name], removed.get(name, 0)) for name in sorted(totals)}

    def cluster_batches(self, *, all_documents: bool = False) -> Iterator[pa.RecordBatch]:
        """Rows of CLUSTER_SCHEMA: the documents of clusters of two and more, or all but the empty ones dropped.

        ``cluster_id`` is the lowest ``doc_id`` of the cluster, ``similarity`` the document's to the survivor.
        """
        wanted = self.kept >= 0 if all_documents else self.sizes > 1
        for rows, batch in self._documents.batches(["doc_id"], wanted):
            own = _strings(batch.column(0))
            place, is_member = self._member_places(rows)
            similarity = np.ones(rows.size)
            similarity[is_member] = self._similarity[place[is_member]]
            yield pa.record_batch(
                [
                    own,
                    self._ids(self._lowest_id, place, is_member, own),
                    pa.array(self.sizes[rows], pa.int64()),
                    self._ids(self._survivor, place, is_member, own),
                    pa.array(similarity, pa.float64(), from_pandas=True),
                ],
                schema=CLUSTER_SCHEMA,
            )

    def reject_batches(self, stage: str, reason: str) -> Iterator[pa.RecordBatch]:
        """Rows of REJECT_SCHEMA: duplicates with ``reason`` and the id kept in their place, empty ones as ``empty``."""
        for rows, batch in self._documents.batches(["doc_id", "source", "uri"], ~self.survives):
            own = _strings(batch.column(0))
            place, is_member = self._member_places(rows)
            is_empty = pa.array(self.kept[rows] < 0)
            missing = pa.nulls(rows.size, pa.int64())
            kept_id = self._ids(self._survivor, place, is_member, own)
            yield pa.record_batch(
                [
                    own,
                    _strings(batch.column(1)),
                    _strings(batch.column(2)),
                    missing,
                    missing,
                    pa.array([stage] * rows.size, pa.large_string()),
                    pc.if_else(is_empty, pa.scalar("empty", pa.large_string()), pa.scalar(reason, pa.large_string())),
                    pc.if_else(is_empty, pa.scalar(None, pa.large_string()), kept_id),
                ],
                schema=REJECT_SCHEMA,
            )

    def _read_members(self, lengths: np.ndarray, rule: SurvivorRule) -> pa.Table:
        """``doc_id`` and ``rank`` (less survives) of the members, in row order."""
        ids, ranks = [pa.array([], pa.large_string())], [np.empty(0, np.int64)]
        priority = pa.array(rule.sources, pa.large_string())
        for rows, batch in self._documents.batches(["doc_id", "source"], self.sizes > 1):
            ids.append(_strings(batch.column(0)))
            if rule.kind == "longest":
                ranks.append(-lengths[rows])
            elif rule.kind == "source-priority":
                place = pc.index_in(_strings(batch.column(1)), value_set=priority)
                ranks.append(pc.fill_null(place, len(priority)).to_numpy().astype(np.int64))
            else:
                ranks.append(np.zeros(rows.size, np.int64))
        return pa.table({"doc_id": pa.chunked_array(ids), "rank": np.concatenate(ranks)})

    def _member_places(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self._members.size:
            return np.zeros(rows.size, np.int64), np.zeros(rows.size, np.bool_)
        place = np.minimum(np.searchsorted(self._members, rows), self._members.size - 1)
        return place, self._members[place] == rows

    def _ids(self, chosen: np.ndarray, place: np.ndarray, is_member: np.ndarray, own: pa.Array) -> pa.Array:
        """The id of the member ``chosen`` for the cluster of each row; a row without a cluster has its own."""
        if not is_member.any():
            return own
        taken = self._member_ids.take(pa.array(chosen[place]))
        return pc.if_else(pa.array(is_member), taken, own)


def _places(table: pa.Table, labels: np.ndarray, keys: list[str]) -> np.ndarray:
    """``int64[m]``: the place of each row of ``table`` in the order of its label, ``keys`` and, last, its row."""
    rows = np.arange(labels.size)
    table = table.append_column("label", pa.array(labels)).append_column("row", pa.array(rows))
    order = pc.sort_indices(table, [(name, "ascending") for name in ("label", *keys, "row")]).to_numpy()
    places = np.empty(labels.size, np.int64)
    places[order] = rows
    return places


def _first_of_each(labels: np.ndarray, places: np.ndarray) -> np.ndarray:
    """For each item the index of the one with the lowest place among those of its label."""
    order = np.lexsort((places, labels))
    starts = np.flatnonzero(np.append(True, labels[order][1:] != labels[order][:-1])[: labels.size])
    first = np.empty(labels.size, np.int64)
    first[order] = np.repeat(order[starts], np.diff(np.append(starts, labels.size)))
    return first


def _count_into(counts: dict[str, int], names: pa.Array) -> None:
    for entry in pc.value_counts(_strings(names)):
        name = entry["values"].as_py()
        counts[name] = counts.get(name, 0) + entry["counts"].as_py()


def _strings(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.large_string())
