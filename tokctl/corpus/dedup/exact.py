"""Exact duplicates: documents whose canonical texts have the same bytes.

Two passes. The first keeps a hash of each canonical text on disk; the second reads again only the documents whose hash
occurs more than once, and compares their bytes: a hash collision costs time and never a document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import xxhash

from tokctl.corpus.dedup.canonical import NOTHING, Canonicalisation, CanonicalTexts, canonicalise
from tokctl.corpus.dedup.document_rows import DocumentRows, OnStep, TextBatch
from tokctl.corpus.dedup.key_groups import KeyFile
from tokctl.errors import UsageError

Digest = Callable[[bytes | memoryview], bytes]

DIGESTS: dict[str, Digest] = {
    "xxh3-128": xxhash.xxh3_128_digest,
    "sha256": lambda text: hashlib.sha256(text).digest(),
}
EMPTY_RULES = ("keep", "drop")
_RECORD_WORDS = 3


@dataclass(frozen=True, slots=True)
class ExactSettings:
    """How exact duplicates are found.

    empty: a document of which canonicalisation leaves nothing is ``keep``: a document like any other (compared by its
    own bytes, so one of several equal ones survives) or ``drop``: rejected with the reason ``empty``.
    """

    canonicalisation: Canonicalisation = NOTHING
    hash: str = "xxh3-128"
    empty: str = "keep"

    def __post_init__(self) -> None:
        if self.hash not in DIGESTS:
            hint = f"choose one of {', '.join(DIGESTS)}"
            raise UsageError(f"unknown text hash {self.hash!r}", hint=hint, code="unknown-choice")
        check_empty_rule(self.empty)

    def to_json(self) -> dict[str, object]:
        """For a manifest."""
        canonicalisation = self.canonicalisation.to_json()
        return {"canonicalisation": canonicalisation, "hash": self.hash, "empty": self.empty}


class Duplicates(NamedTuple):
    """Clusters of rows, before a survivor is chosen.

    ``labels int64[n]`` is the lowest row of each row's cluster, ``lengths int64[n]`` its text in bytes,
    ``is_empty bool[n]`` whether canonicalisation left nothing of it.
    """

    labels: np.ndarray
    lengths: np.ndarray
    is_empty: np.ndarray


def check_empty_rule(rule: str) -> None:
    """Raise UsageError unless ``rule`` says what happens to empty documents."""
    if rule not in EMPTY_RULES:
        hint = f"choose one of {', '.join(EMPTY_RULES)}"
        raise UsageError(f"unknown rule for empty documents {rule!r}", hint=hint, code="unknown-choice")


def find_exact(
    documents: DocumentRows,
    settings: ExactSettings,
    *,
    scratch: Path,
    memory_limit: int = 1 << 30,
    workers: int = 1,
    on_step: OnStep | None = None,
) -> tuple[Duplicates, int]:
    """The exact duplicates of ``documents``, and how many hash collisions their comparison met.

    Memory: about 40 bytes a document, the sorting of one range of hashes and the distinct duplicated texts of one partition,
    both within ``memory_limit``, and a few batches of text for each worker. ``scratch`` is an existing directory for
    temporary files. ``on_step`` gets rows of the first pass.
    """
    lengths = np.zeros(documents.n_rows, np.int64)
    is_empty = np.zeros(documents.n_rows, np.bool_)
    labels = np.arange(documents.n_rows, dtype=np.int64)
    digest = DIGESTS[settings.hash]

    def work(batch: TextBatch) -> tuple[CanonicalTexts, np.ndarray]:
        texts = canonicalise(batch.data, batch.offsets, settings.canonicalisation)
        return texts, text_keys(texts, np.arange(batch.rows.size), digest)

    index = ExactIndex(scratch / "texts", settings.canonicalisation, digest)
    try:
        for batch, (texts, keys) in documents.map_texts(work, workers=workers, on_step=on_step):
            lengths[batch.rows] = np.diff(batch.offsets)
            is_empty[batch.rows] = texts.is_empty
            index.add(batch.rows, keys)
        n_collisions = index.resolve(documents, labels, lengths, memory_limit, workers)
    finally:
        index.close()
    return Duplicates(labels, lengths, is_empty), n_collisions


def text_keys(texts: CanonicalTexts, chosen: np.ndarray, digest: Digest) -> np.ndarray:
    """``uint64[n, bytes / 8]``: the hashes of the texts ``chosen`` (int64[n]) as keys of an ExactIndex."""
    data = texts.data.data
    spans = zip(texts.offsets[chosen].tolist(), texts.offsets[chosen + 1].tolist(), strict=True)
    digests = b"".join([digest(data[start:stop]) for start, stop in spans])
    return np.frombuffer(digests, "<u8").reshape(chosen.size, _key_width(digest))


def _key_width(digest: Digest) -> int:
    return len(digest(b"")) // 8


class ExactIndex:
    """Hashes of texts on disk, and the comparison of the texts behind equal ones."""

    def __init__(self, path: Path, how: Canonicalisation, digest: Digest) -> None:
        self._path = path
        self._how = how
        self._keys = KeyFile(path.with_suffix(".keys"), _key_width(digest))
        self._rows: list[np.ndarray] = []

    def add(self, rows: np.ndarray, keys: np.ndarray) -> None:
        """Add the ``text_keys`` of ``rows`` (int64[n]), which ascend from call to call."""
        self._rows.append(rows)
        self._keys.add(keys)

    def resolve(
        self, documents: DocumentRows, labels: np.ndarray, lengths: np.ndarray, memory_limit: int, workers: int
    ) -> int:
        """Set ``labels`` of all added rows that have the same canonical bytes to the lowest of them.

        Returns the number of collisions: comparisons in which a text differed from one of the same hash.
        """
        rows = np.concatenate(self._rows) if self._rows else np.empty(0, np.int64)
        members, numbers, n_groups = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        for groups in self._keys.groups(memory_limit):
            sizes = np.diff(groups.offsets)
            members.append(rows[groups.members])
            numbers.append(np.repeat(np.arange(n_groups, n_groups + sizes.size), sizes))
            n_groups += sizes.size
        doubted = np.concatenate(members)
        if not doubted.size:
            return 0
        order = np.argsort(doubted)
        doubted, group_of = doubted[order], np.concatenate(numbers)[order]
        wanted = np.zeros(documents.n_rows, np.bool_)
        wanted[doubted] = True

        def work(batch: TextBatch) -> CanonicalTexts:
            return canonicalise(batch.data, batch.offsets, self._how)

        def texts() -> Iterator[tuple[int, int, bytes]]:
            for batch, canonical in documents.map_texts(work, wanted=wanted, workers=workers):
                numbers = group_of[np.searchsorted(doubted, batch.rows)].tolist()
                bounds = canonical.offsets.tolist()
                data = canonical.data.data
                for i, row in enumerate(batch.rows.tolist()):
                    yield row, numbers[i], data[bounds[i] : bounds[i + 1]].tobytes()

        _, first = np.unique(group_of, return_index=True)
        n_partitions = max(1, -(-int(lengths[doubted[first]].sum()) // max(1, memory_limit)))
        if n_partitions == 1:
            return _compare(texts(), labels)
        return sum(_compare(part, labels) for part in self._partitions(texts(), n_partitions))

    def close(self) -> None:
        """Delete the files."""
        self._keys.close()

    def _partitions(
        self, texts: Iterator[tuple[int, int, bytes]], n_partitions: int
    ) -> Iterator[Iterator[tuple[int, int, bytes]]]:
        """The texts again, whole groups at a time, through one file a partition."""
        n_partitions = min(n_partitions, 256)  # open files
        paths = [self._path.with_suffix(f".part-{i}") for i in range(n_partitions)]
        files = [path.open("w+b") for path in paths]
        try:
            for row, group, text in texts:
                file = files[group % n_partitions]
                file.write(np.array([row, group, len(text)], np.int64).tobytes())
                file.write(text)
            for file in files:
                file.seek(0)
                yield _read_records(file)
        finally:
            for file, path in zip(files, paths, strict=True):
                file.close()
                path.unlink()


def _read_records(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    while header := file.read(8 * _RECORD_WORDS):
        row, group, length = np.frombuffer(header, np.int64).tolist()
        yield row, group, file.read(length)


def _compare(texts: Iterator[tuple[int, int, bytes]], labels: np.ndarray) -> int:
    """Label rows of equal texts; rows ascend, so the first of a text is the lowest."""
    seen: dict[int, list[tuple[int, bytes]]] = {}
    n_collisions = 0
    for row, group, text in texts:
        known = seen.setdefault(group, [])
        for first, other in known:
            if other == text:
                labels[row] = first
                break
            n_collisions += 1
        else:
            known.append((row, text))
    return n_collisions
