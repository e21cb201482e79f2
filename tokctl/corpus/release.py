"""The corpus release hash: one digest that says which documents a corpus, or one role of it, consists of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokctl.artifacts.framed_hash import framed_sha256

RELEASE_DOMAIN = "corpus-release-v1"


class DocumentDigest:
    """SHA-256 of a set of documents, whatever their order: built up batch by batch, 32 bytes of memory a document.

    Each document gives SHA-256(sha256_text as 64 hexadecimal digits, then doc_id in UTF-8); the digest of the set is
    SHA-256 of those 32-byte values in ascending order. A document that occurs twice counts twice.
    """

    def __init__(self) -> None:
        self._digests = bytearray()

    def add(self, doc_ids: pa.Array | pa.ChunkedArray, text_hashes: pa.Array | pa.ChunkedArray) -> None:
        """Add documents by ``doc_id`` and ``sha256_text``, two string arrays of one length."""
        for doc_id, text_hash in zip(doc_ids.to_pylist(), text_hashes.to_pylist(), strict=True):
            self._digests += hashlib.sha256(text_hash.encode("ascii") + doc_id.encode()).digest()

    @property
    def n_documents(self) -> int:
        return len(self._digests) // 32

    def hexdigest(self) -> str:
        """Lower-case hexadecimal digest of the documents so far."""
        words = np.frombuffer(bytes(self._digests), dtype=">u8").reshape(-1, 4)
        order = np.lexsort((words[:, 3], words[:, 2], words[:, 1], words[:, 0]))
        return hashlib.sha256(words[order].tobytes()).hexdigest()


@dataclass(frozen=True)
class RoleRecord:
    """What a split manifest declares about one role; every field is an exact count, ``digest`` as DocumentDigest."""

    documents: int
    groups: int
    bytes: int
    code_points: int
    digest: str

    def to_json(self) -> dict[str, int | str]:
        return {
            "documents": self.documents,
            "groups": self.groups,
            "bytes": self.bytes,
            "code_points": self.code_points,
            "digest": self.digest,
        }


class RoleStatistics:
    """Accumulates the ``RoleRecord`` of one role. Groups are counted by position, 8 bytes of memory each."""

    def __init__(self) -> None:
        self._digest = DocumentDigest()
        self._groups = np.empty(0, np.uint64)
        self._recent: list[np.ndarray] = []
        self._n_recent = 0
        self._bytes = 0
        self._code_points = 0

    def add(self, batch: pa.RecordBatch | pa.Table, group_positions: np.ndarray) -> None:
        """Add the documents of ``batch`` (columns doc_id, sha256_text, text) with their groups ``uint64[n]``."""
        self._digest.add(batch.column("doc_id"), batch.column("sha256_text"))
        self._recent.append(np.unique(group_positions))
        self._n_recent += len(self._recent[-1])
        if self._n_recent > len(self._groups):
            self._compact()
        self._bytes += int(text_bytes(batch.column("text")).sum())
        self._code_points += int(text_code_points(batch.column("text")).sum())

    def _compact(self) -> None:
        self._groups = np.unique(np.concatenate([self._groups, *self._recent]))
        self._recent, self._n_recent = [], 0

    @property
    def groups(self) -> np.ndarray:
        """Positions of the groups seen, ``uint64[]``, ascending."""
        self._compact()
        return self._groups

    def record(self) -> RoleRecord:
        return RoleRecord(
            documents=self._digest.n_documents,
            groups=len(self.groups),
            bytes=self._bytes,
            code_points=self._code_points,
            digest=self._digest.hexdigest(),
        )


def release_hash(roles: Mapping[str, RoleRecord]) -> str:
    """Framed SHA-256 of role name -> record under ``corpus-release-v1``: the identity of a split corpus."""
    return framed_sha256(RELEASE_DOMAIN, {"roles": {name: record.to_json() for name, record in roles.items()}})


def text_bytes(texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Length of each text in bytes, ``int64[n]``; strings (UTF-8) or binary, not null."""
    return np.asarray(pc.binary_length(texts)).astype(np.int64)


def text_code_points(texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Length of each text in code points, ``int64[n]``; in binary text each byte that is not UTF-8 counts as one."""
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
        return np.asarray(pc.utf8_length(texts)).astype(np.int64)
    lengths = (len(text.decode("utf-8", "surrogateescape")) for text in texts.to_pylist())
    return np.fromiter(lengths, np.int64, len(texts))
