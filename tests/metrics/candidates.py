"""Small tokenizers for tests: fixed chunks of bytes, and the ways in which a candidate can misbehave."""

from __future__ import annotations

import numpy as np


class Chunks:
    """Cuts every text into pieces of ``size`` bytes; ids are assigned on first sight, bytes first."""

    def __init__(self, size: int, semantic_hash: str | None = None) -> None:
        self.size = size
        self.semantic_hash = semantic_hash or f"chunks-{size}"
        self._ids = {bytes([b]): b for b in range(256)}
        self._tokens = [bytes([b]) for b in range(256)]

    # Room for whatever the tests' texts need, so that the size is fixed before the first text.
    vocab_size = 4096

    def encode_flat(self, texts):
        ids, offsets = [], [0]
        for text in texts:
            data = text.encode() if isinstance(text, str) else text
            for start in range(0, len(data), self.size):
                ids.append(self._id(data[start : start + self.size]))
            offsets.append(len(ids))
        return np.array(ids, np.uint32), np.array(offsets, np.int64)

    def _id(self, token: bytes) -> int:
        if token not in self._ids:
            self._ids[token] = len(self._tokens)
            self._tokens.append(token)
        return self._ids[token]

    def decode_bytes(self, ids) -> bytes:
        return b"".join(self._tokens[i] for i in ids)


class Lossy(Chunks):
    """Decodes everything in upper case."""

    def decode_bytes(self, ids) -> bytes:
        return super().decode_bytes(ids).upper()


class Fragile(Chunks):
    """Raises on a text that holds ``boom``."""

    def encode_flat(self, texts):
        if any("boom" in (text if isinstance(text, str) else text.decode()) for text in texts):
            raise RuntimeError("boom")
        return super().encode_flat(texts)


class OutOfRange(Chunks):
    """Gives an id that its vocabulary does not have."""

    def encode_flat(self, texts):
        ids, offsets = super().encode_flat(texts)
        return ids + 5000, offsets
