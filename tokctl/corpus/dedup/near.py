"""Near duplicates: MinHash finds candidates, the exact Jaccard similarity of their shingle sets decides.

1. Every document is read once. Its shingle set becomes a signature, the signature one key a band, and the keys go to
   one file a band; texts, sets and signatures are not kept. A document too short for a shingle is compared exactly.
2. Documents with equal keys in a band form buckets, found one file and one range of keys at a time.
3. Documents in buckets are read again and their sets written to disk. Equal sets collapse into one node.
4. In each bucket, nodes are compared and similar ones united. A cluster is a component of verified pairs, so its ends
   may be less similar than the threshold: by default such a cluster keeps more than one document, so that each one
   removed is itself similar to the one kept in its place. What a row reports is that similarity.

The result depends on the documents alone: not on their order, on batches or on the number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from tokctl.corpus.dedup.banding import BandPlan, plan_bands
from tokctl.corpus.dedup.canonical import FOR_NEAR_DUPLICATES, Canonicalisation, CanonicalTexts, canonicalise
from tokctl.corpus.dedup.document_rows import DocumentRows, OnStep, TextBatch
from tokctl.corpus.dedup.exact import DIGESTS, Duplicates, ExactIndex, check_empty_rule, text_keys
from tokctl.corpus.dedup.key_groups import Groups, KeyFile
from tokctl.corpus.dedup.minhash import SignatureScheme, signatures
from tokctl.corpus.dedup.shingling import ShingleSets, Shingling, shingle_sets
from tokctl.corpus.dedup.spill_files import BucketFile, SetFile
from tokctl.corpus.dedup.survivors import Clusters
from tokctl.errors import UsageError

KEEP_RULES = ("similar", "one")
_SHORT_TEXT_HASH = "xxh3-128"
_COMPARISONS_A_CALL = 20_000
_REMEMBERED_FAILURES = 1 << 18


@dataclass(frozen=True, slots=True)
class NearSettings:
    """How near duplicates are found.

    threshold: documents of this Jaccard similarity or a greater one are similar (``common / union >= threshold``).
    recall: the share of pairs exactly at the threshold that candidates must include; fixes the bands.
    max_failures: a document that has met so many dissimilar ones in one bucket is compared no further there.
    keep: ``similar``: a document is removed only for one that it is itself similar to; ``one``: a cluster keeps exactly
    one document, and what only a chain of similar ones ties to it is removed as well.
    empty: see ExactSettings.
    """

    threshold: float = 0.8
    recall: float = 0.99
    signature: SignatureScheme = field(default_factory=SignatureScheme)
    shingling: Shingling = field(default_factory=Shingling)
    canonicalisation: Canonicalisation = FOR_NEAR_DUPLICATES
    keep: str = "similar"
    empty: str = "keep"
    max_failures: int = 500

    def __post_init__(self) -> None:
        if self.shingling.unit != "character" and not self.canonicalisation.collapse_space:
            raise UsageError(
                "word shingles need white space collapsed",
                hint="collapse white space, or use character shingles",
                code="bad-shingle",
            )
        if self.max_failures < 1:
            raise UsageError(f"{self.max_failures} failed comparisons", hint="give at least 1", code="bad-limit")
        if self.keep not in KEEP_RULES:
            hint = f"choose one of {', '.join(KEEP_RULES)}"
            raise UsageError(f"unknown rule for chained documents {self.keep!r}", hint=hint, code="unknown-choice")
        check_empty_rule(self.empty)
        _ = self.bands  # refuses what can't be reached

    @property
    def bands(self) -> BandPlan:
        """The bands and rows that reach the recall."""
        return plan_bands(self.signature.num_perm, self.threshold, self.recall)

    def to_json(self) -> dict[str, object]:
        """For a manifest; real numbers in their shortest form as text."""
        plan = self.bands
        return {
            "threshold": repr(self.threshold),
            "target_recall": repr(self.recall),
            "recall_at_threshold": f"{plan.recall(self.threshold):.6f}",
            "bands": plan.n_bands,
            "rows": plan.n_rows,
            "s_curve": [[f"{similarity:.2f}", f"{recall:.6f}"] for similarity, recall in plan.s_curve()],
            "signature": self.signature.to_json(),
            "shingling": self.shingling.to_json(),
            "canonicalisation": self.canonicalisation.to_json(),
            "keep": self.keep,
            "empty": self.empty,
            "max_failures": self.max_failures,
        }


@dataclass
class NearWork:
    """What was met on the way.

    The first four don't depend on the order of the input: documents ``by_word`` and ``by_character``, ``too_short`` for
    a shingle (compared exactly), and ``candidates`` (documents in some bucket with another set). ``skipped_pairs`` is
    what ``max_failures`` left out; ``compared_pairs``, ``united_pairs`` and the collisions of hashes are for curiosity.
    """

    by_word: int = 0
    by_character: int = 0
    too_short: int = 0
    candidates: int = 0
    skipped_pairs: int = 0
    compared_pairs: int = 0
    united_pairs: int = 0
    text_collisions: int = 0
    set_collisions: int = 0


class _Closable(Protocol):
    def close(self) -> None: ...


class _Sketch(NamedTuple):
    """What one batch leaves: rows too short and their text keys; band keys and set digests of the others."""

    is_empty: np.ndarray
    is_short: np.ndarray
    by_character: np.ndarray
    text_keys: np.ndarray
    band_keys: np.ndarray
    digests: np.ndarray


class NearDuplicateSearch:
    """The search over one input; ``run`` finds the clusters, ``measure`` then the similarities to the survivors.

    ``scratch`` is an existing directory for temporary files, deleted by ``close`` (or use it as a context manager):
    8 bytes a document and band, 16 bytes a document, and 8 bytes for each distinct shingle of a candidate.

    Memory: about 80 bytes a document, the sorting of one range of keys within ``memory_limit`` and a few batches of
    text for each worker. The sets on disk are mapped, so the pages of them in use count as cache of the machine.
    """

    def __init__(
        self,
        documents: DocumentRows,
        settings: NearSettings,
        *,
        scratch: Path,
        memory_limit: int = 1 << 30,
        workers: int = 1,
        on_step: OnStep | None = None,
    ) -> None:
        self.work = NearWork()
        self._documents = documents
        self._settings = settings
        self._memory_limit = memory_limit
        self._workers = workers
        self._on_step = on_step
        self._labels = np.arange(documents.n_rows, dtype=np.int64)
        self._lengths = np.zeros(documents.n_rows, np.int64)
        self._is_empty = np.zeros(documents.n_rows, np.bool_)
        plan = settings.bands
        self._bands = [KeyFile(scratch / f"band-{i:03}.keys", 1) for i in range(plan.n_bands)]
        self._digests = KeyFile(scratch / "sets.keys", 2)
        self._short = ExactIndex(scratch / "short", settings.canonicalisation, DIGESTS[_SHORT_TEXT_HASH])
        self._buckets = BucketFile(scratch / "buckets")
        self._sets = SetFile(scratch / "sets")
        # by sketched document, numbered in row order
        self._rows = np.empty(0, np.int64)
        self._nodes = np.empty(0, np.int64)

    def __enter__(self) -> NearDuplicateSearch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the temporary files."""
        files: list[_Closable] = [*self._bands, self._digests, self._short, self._buckets, self._sets]
        for file in files:
            file.close()

    def run(self) -> Duplicates:
        """Find the clusters; ``on_step`` gets the rows of the first pass."""
        self._sketch()
        self.work.text_collisions = self._short.resolve(
            self._documents, self._labels, self._lengths, self._memory_limit, self._workers
        )
        leaders = np.arange(self._rows.size, dtype=np.int64)
        doubted = np.zeros(self._rows.size, np.bool_)  # documents whose sets must be seen
        for groups in self._digests.groups(self._memory_limit):
            leaders[groups.members] = np.repeat(groups.members[groups.offsets[:-1]], np.diff(groups.offsets))
            doubted[groups.members] = True
        self._find_buckets(leaders, doubted)
        collapsed = self._read_sets(leaders, doubted)
        if self.work.set_collisions:  # buckets that looked like one set may hold several; all of them have been read
            self._buckets.clear()
            self._find_buckets(leaders, doubted)
        for band in self._bands:
            band.close()
        self._unite(collapsed)
        return Duplicates(self._labels, self._lengths, self._is_empty)

    def measure(self, clusters: Clusters) -> int:
        """Set survivors and similarities by the ``keep`` rule; how many documents a chain alone ties to the first one.

        Under ``similar``, what is not similar to the survivor of its cluster looks for another among its like: the
        one that the survivor rule prefers survives, and so on until every document has a survivor it is similar to.
        Documents of equal sets go together. What has met ``max_failures`` survivors in vain survives itself.
        """
        members = clusters.members
        nodes = self._nodes_of(members)
        same = clusters.preferred(np.arange(members.size), np.where(nodes >= 0, nodes, -1 - clusters.labels[members]))
        distinct = np.flatnonzero(same == np.arange(members.size))
        survivors, similarity = np.arange(members.size), np.ones(members.size)

        survivors[distinct] = clusters.preferred(distinct)
        similarity[distinct] = self._similarities(members[distinct], members[survivors[distinct]])
        is_far = similarity < self._settings.threshold
        n_far = int(np.count_nonzero(is_far[same]))
        if self._settings.keep == "similar":
            far = np.flatnonzero(is_far)
            for _ in range(self._settings.max_failures):
                if not far.size:
                    break
                others = clusters.preferred(far)
                found = self._similarities(members[far], members[others])
                is_near = found >= self._settings.threshold
                survivors[far[is_near]] = others[is_near]
                similarity[far[is_near]] = found[is_near]
                far = far[~is_near]
            survivors[far], similarity[far] = far, 1.0
        clusters.set_survivors(survivors[same], similarity[same])
        return n_far

    def _similarities(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """``float64[n]``: Jaccard similarity of rows of one cluster; of two short documents 1, as they are equal."""
        from tokctl.kernels.jaccard import similarities

        left_nodes, right_nodes = self._nodes_of(left), self._nodes_of(right)
        has_sets = np.flatnonzero((left_nodes >= 0) & (right_nodes >= 0))
        out = np.empty(has_sets.size, np.float64)
        similarities(*self._sets.arrays(), left_nodes[has_sets], right_nodes[has_sets], out)
        values = np.ones(left.size, np.float64)
        values[has_sets] = out
        return values

    def _sketch(self) -> None:
        rows = []
        for batch, sketch in self._documents.map_texts(
            self._sketch_batch, workers=self._workers, on_step=self._on_step
        ):
            self._lengths[batch.rows] = np.diff(batch.offsets)
            self._is_empty[batch.rows] = sketch.is_empty
            self._short.add(batch.rows[sketch.is_short], sketch.text_keys)
            rows.append(batch.rows[~sketch.is_short])
            self._digests.add(sketch.digests)
            for file, keys in zip(self._bands, sketch.band_keys, strict=True):
                file.add(keys)
            n_by_character = int(np.count_nonzero(sketch.by_character & ~sketch.is_short))
            self.work.by_character += n_by_character
            self.work.by_word += rows[-1].size - n_by_character
            self.work.too_short += int(np.count_nonzero(sketch.is_short))
        self._rows = np.concatenate(rows) if rows else self._rows

    def _shingles(self, batch: TextBatch) -> tuple[CanonicalTexts, ShingleSets]:
        settings = self._settings
        needs_scripts = settings.shingling.unit == "auto"
        texts = canonicalise(batch.data, batch.offsets, settings.canonicalisation, needs_scripts=needs_scripts)
        return texts, shingle_sets(texts, settings.shingling, settings.signature.hash)

    def _sketch_batch(self, batch: TextBatch) -> _Sketch:
        from tokctl.kernels.minhash import band_keys

        texts, sets = self._shingles(batch)
        is_short = np.diff(sets.offsets) == 0
        offsets = np.append(sets.offsets[:-1][~is_short], sets.offsets[-1])  # short ones hold nothing
        plan = self._settings.bands
        keys = np.empty((plan.n_bands, offsets.size - 1), np.uint64)
        values = signatures(sets.hashes, offsets, self._settings.signature)
        words = values.view(np.uint32)  # one or two a value
        band_keys(words, plan.n_bands, plan.n_rows * (values.itemsize // 4), keys)
        unit = self._settings.shingling.unit
        by_character = texts.is_unspaced if unit == "auto" else np.full(batch.rows.size, unit == "character")
        short_keys = text_keys(texts, np.flatnonzero(is_short), DIGESTS[_SHORT_TEXT_HASH])
        return _Sketch(texts.is_empty, is_short, by_character, short_keys, keys, sets.digests[~is_short])

    def _find_buckets(self, leaders: np.ndarray, doubted: np.ndarray) -> None:
        """Write the buckets in which two different sets meet, and mark their documents."""
        is_candidate = np.zeros(doubted.size, np.bool_)
        for band in self._bands:
            for groups in band.groups(self._memory_limit):
                starts = groups.offsets[:-1]
                sets = leaders[groups.members]
                is_mixed = np.minimum.reduceat(sets, starts) != np.maximum.reduceat(sets, starts)
                sizes = np.diff(groups.offsets)
                members = groups.members[np.repeat(is_mixed, sizes)]
                is_candidate[members] = True
                self._buckets.add(Groups(members, np.append(0, np.cumsum(sizes[is_mixed]))))
        self.work.candidates = int(np.count_nonzero(is_candidate))
        doubted |= is_candidate

    def _read_sets(self, leaders: np.ndarray, doubted: np.ndarray) -> np.ndarray:
        """Write the sets of doubted documents as nodes; ``bool[n]``: documents that share the node of their leader.

        A leader is the first of its digest, so its set is there before those that may equal it. Where digests collide,
        ``leaders`` are corrected to the first document of the same set.
        """

        def work(batch: TextBatch) -> ShingleSets:
            sets = self._shingles(batch)[1]
            for start, stop in pairwise(sets.offsets.tolist()):
                sets.hashes[start:stop].sort()
            return sets

        wanted = np.zeros(self._documents.n_rows, np.bool_)
        wanted[self._rows[doubted]] = True
        self._nodes = np.full(self._rows.size, -1, np.int64)
        collapsed = np.zeros(self._rows.size, np.bool_)
        others: dict[int, list[int]] = {}  # leader -> leaders of other sets with its digest
        for batch, sets in self._documents.map_texts(work, wanted=wanted, workers=self._workers):
            for i, number in enumerate(np.searchsorted(self._rows, batch.rows).tolist()):
                values = sets.hashes[sets.offsets[i] : sets.offsets[i + 1]]
                first = int(leaders[number])
                for leader in [first, *others.get(first, [])] if first != number else []:
                    if self._sets.equals(int(self._nodes[leader]), values):
                        leaders[number] = leader
                        self._nodes[number] = self._nodes[leader]
                        collapsed[number] = True
                        break
                else:
                    self._nodes[number] = self._sets.add(values)
                    if first != number:
                        self.work.set_collisions += 1
                        leaders[number] = number
                        others.setdefault(first, []).append(number)
        return collapsed

    def _unite(self, collapsed: np.ndarray) -> None:
        """Compare what shares a bucket, and label every document with the lowest row of its component."""
        from tokctl.kernels.jaccard import COMPARED, SKIPPED, UNITED, Forest, find_all, unite_buckets

        values, offsets = self._sets.arrays()
        n_nodes = offsets.size - 1
        forest = Forest(
            np.arange(n_nodes, dtype=np.int64),
            np.zeros(_REMEMBERED_FAILURES, np.uint64),
            np.full(n_nodes, -1, np.int64),
            np.zeros(n_nodes, np.int64),
            np.zeros(n_nodes, np.int64),
        )
        counts = np.zeros(3, np.int64)
        limit = self._settings.max_failures
        copies = np.bincount(self._nodes[self._nodes >= 0], minlength=n_nodes)
        for groups in self._buckets.groups():
            members, buckets = self._bucket_nodes(groups, collapsed, copies)
            state = np.zeros(3, np.int64)
            while not unite_buckets(
                forest,
                values,
                offsets,
                members,
                buckets,
                self._settings.threshold,
                limit,
                state,
                counts,
                _COMPARISONS_A_CALL,
            ):
                pass  # a Ctrl-C comes through here
        self.work.compared_pairs = int(counts[COMPARED])
        self.work.united_pairs = int(counts[UNITED])
        self.work.skipped_pairs = int(counts[SKIPPED])

        find_all(forest.parent)
        first_row = np.full(n_nodes, self._documents.n_rows, np.int64)
        has_node = self._nodes >= 0
        roots = forest.parent[self._nodes[has_node]]
        np.minimum.at(first_row, roots, self._rows[has_node])
        self._labels[self._rows[has_node]] = first_row[roots]

    def _bucket_nodes(self, groups: Groups, collapsed: np.ndarray, copies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The distinct nodes of buckets.

        Where a limit may cut comparisons short they stand in an order that the documents alone fix: sets that many
        documents have come first, as what a template made is often similar to the template only.
        """
        keep = ~collapsed[groups.members]
        members = groups.members[keep]
        sizes = np.add.reduceat(keep.astype(np.int64), groups.offsets[:-1])
        buckets = np.append(0, np.cumsum(sizes))
        for j in np.flatnonzero(sizes > self._settings.max_failures):
            start, stop = buckets[j], buckets[j + 1]
            digests = self._digests.keys(members[start:stop])
            order = np.lexsort((digests[:, 1], digests[:, 0], -copies[self._nodes[members[start:stop]]]))
            members[start:stop] = members[start:stop][order]
        return self._nodes[members], buckets

    def _nodes_of(self, rows: np.ndarray) -> np.ndarray:
        """The node of each row, -1 where it has none."""
        if not self._rows.size:
            return np.full(rows.size, -1, np.int64)
        number = np.minimum(np.searchsorted(self._rows, rows), self._rows.size - 1)
        return np.where(self._rows[number] == rows, self._nodes[number], -1)
