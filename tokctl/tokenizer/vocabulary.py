"""Vocabulary: token id -> bytes, as one ragged array."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

UNUSED, TOKEN, LITERAL = range(3)
"""What an id is to the model: nothing, a token that the model can make, or text that is only ever decoded."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """``data uint8[n_bytes]``, ``offsets int64[V + 1]``: id i is ``data[offsets[i]:offsets[i + 1]]``; ``kinds uint8[V]``."""

    data: np.ndarray
    offsets: np.ndarray
    kinds: np.ndarray

    @classmethod
    def from_tokens(cls, tokens: Iterable[bytes | None], literals: Iterable[int] = ()) -> Vocabulary:
        """From the bytes of each id in order (None: an unused id); the ids in ``literals`` are decoded only."""
        spelled = list(tokens)
        lengths = np.fromiter((len(token or b"") for token in spelled), np.int64, len(spelled))
        offsets = np.zeros(len(spelled) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        kinds = np.fromiter((UNUSED if token is None else TOKEN for token in spelled), np.uint8, len(spelled))
        kinds[list(literals)] = LITERAL
        data = np.frombuffer(b"".join([token or b"" for token in spelled]), np.uint8).copy()
        return cls(data, offsets, kinds)

    def __len__(self) -> int:
        return len(self.kinds)

    def token(self, token_id: int) -> bytes:
        """The bytes of one id (empty for an unused one); ``IndexError`` beyond the vocabulary."""
        if not 0 <= token_id < len(self):
            raise IndexError(token_id)
        return self.data[self.offsets[token_id] : self.offsets[token_id + 1]].tobytes()

    def tokens(self) -> list[bytes | None]:
        """The bytes of every id in order; None for an unused one."""
        whole = self.data.tobytes()
        bounds = self.offsets.tolist()
        return [
            None if kind == UNUSED else whole[bounds[i] : bounds[i + 1]] for i, kind in enumerate(self.kinds.tolist())
        ]

    @cached_property
    def rows(self) -> np.ndarray:
        """``uint8[16 V]``: the tokens in the layout of ``kernels/token_bytes.py``."""
        from tokctl.kernels._pages import table_of_zeros
        from tokctl.kernels.token_bytes import ROW, fill_token_rows

        rows = table_of_zeros(ROW // 8 * max(len(self), 1)).view(np.uint8)
        fill_token_rows(self.data, self.offsets, self.kinds, rows)
        return rows

    @property
    def lengths(self) -> np.ndarray:
        """``int64[V]``: the bytes of each id."""
        return np.diff(self.offsets)
