"""Removing the white space at the ends of each piece of text."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.aligned import AlignedPieces, splice
from tokctl.tokenizer.pre_tokenizers.code_points import white_space


@dataclass(frozen=True)
class Strip:
    """White_Space characters removed on the ``left`` and on the ``right``."""

    left: bool
    right: bool
    type: str = "strip"

    def to_json(self) -> dict[str, Any]:
        """The two sides."""
        return {"type": self.type, "left": self.left, "right": self.right}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Strip:
        """The inverse of ``to_json``."""
        return cls(bool(value["left"]), bool(value["right"]))

    def apply(self, texts: AlignedPieces) -> AlignedPieces:
        """See ``Normalizer``."""
        ranges: list[tuple[int, int, int]] = []
        for owner in np.flatnonzero(texts.is_text).tolist():
            start, stop = int(texts.pieces.starts[owner]), int(texts.pieces.stops[owner])
            first = self._first_kept(texts.data, start, stop) if self.left else start
            last = self._last_kept(texts.data, first, stop) if self.right else stop
            ranges += [(owner, low, high) for low, high in ((start, first), (last, stop)) if low < high]
        owners, starts, stops = (np.array([r[k] for r in ranges], np.int64) for k in range(3))
        return splice(texts, owners, starts, stops, b"", starts)

    @staticmethod
    def _first_kept(data: np.ndarray, start: int, stop: int) -> int:
        while start < stop:
            length = next((len(s) for s in _spaces() if data[start : min(start + len(s), stop)].tobytes() == s), 0)
            if not length:
                break
            start += length
        return start

    @staticmethod
    def _last_kept(data: np.ndarray, start: int, stop: int) -> int:
        while start < stop:
            length = next((len(s) for s in _spaces() if data[max(stop - len(s), start) : stop].tobytes() == s), 0)
            if not length:
                break
            stop -= length
        return stop


@functools.cache
def _spaces() -> tuple[bytes, ...]:
    """The White_Space characters in UTF-8 (the same in every Unicode version since 6.3)."""
    bounds = white_space(unicode_tables.load()).bounds.reshape(-1, 2).tolist()
    return tuple(chr(point).encode() for begin, end in bounds for point in range(begin, end))
