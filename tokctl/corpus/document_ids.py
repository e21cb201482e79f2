"""Document ids: from where a document was and the id it brought along, else from its text. Never a row number.

- a file that is one document: ``source/uri``
- a record with an id (``--id-field``, WARC-Record-ID): ``source/uri#id``
- any other record: the sha256 of its text, ``-`` and its ordinal among equal texts, in reading order from 0

Ids are unique: should a record's id occur again, ``~1``, ``~2`` ... is put behind it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

_RUN = 1 << 12


class IdRegister:
    """Gives out unique ids in order, at about 8 bytes of memory a document.

    What has been given out is kept as 64-bit hashes. Two names with one hash (1 in 10**6 runs of 10 million documents) cost
    the later one a needless ordinal: the ids stay unique, and the same on every run.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []  # sorted uint64 arrays, each more than twice as long as the next
        self._recent: set[int] = set()
        self._repeats: dict[int, int] = {}  # hash -> how often it was seen, for those seen twice

    def assign(
        self, sources: Sequence[str], uris: Sequence[str], own_ids: Sequence[str | None], digests: Sequence[str]
    ) -> list[str]:
        """The ids of documents that follow all before: by ``source``, ``uri``, own id ("" whole file, None by text), sha256."""
        names = [
            digest if own is None else f"{source}/{uri}#{own}" if own else f"{source}/{uri}"
            for source, uri, own, digest in zip(sources, uris, own_ids, digests, strict=True)
        ]
        hashes = [_hash(name) for name in names]
        known = self._known(hashes)
        ids = []
        for name, own, key, is_known in zip(names, own_ids, hashes, known, strict=True):
            ordinal = self._ordinal(key, is_known)
            if own is None:
                ids.append(f"{name}-{ordinal}")
            elif ordinal == 0:
                ids.append(name)
            else:
                ids.append(self._repeated(name, ordinal))
        if len(self._recent) >= _RUN:
            self._compact()
        return ids

    def _ordinal(self, key: int, is_known: bool) -> int:
        if is_known or key in self._recent:
            self._repeats[key] = self._repeats.get(key, 0) + 1
            return self._repeats[key]
        self._recent.add(key)
        return 0

    def _repeated(self, name: str, ordinal: int) -> str:
        """``name~k`` for the first k from ``ordinal`` on that no record has as its own id so far; it is then taken."""
        while True:
            candidate = f"{name}~{ordinal}"
            key = _hash(candidate)
            if self._ordinal(key, self._known([key])[0]) == 0:
                return candidate
            ordinal += 1

    def _known(self, hashes: list[int]) -> list[bool]:
        wanted = np.array(hashes, np.uint64)
        found = np.zeros(len(wanted), bool)
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, wanted), len(run) - 1)
            found |= run[place] == wanted
        return found.tolist()

    def _compact(self) -> None:
        run = np.sort(np.fromiter(self._recent, np.uint64, len(self._recent)))
        self._recent = set()
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
