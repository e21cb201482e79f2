"""Putting something before each piece of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tokctl.tokenizer.aligned import AlignedPieces, splice


@dataclass(frozen=True)
class Prepend:
    """``content`` before each piece that is not empty; it stands for the piece's first character."""

    content: str
    type: str = "prepend"

    def __post_init__(self) -> None:
        self.content.encode()

    def to_json(self) -> dict[str, Any]:
        """What is put before a piece."""
        return {"type": self.type, "content": self.content}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Prepend:
        """The inverse of ``to_json``."""
        return cls(str(value["content"]))

    def apply(self, texts: AlignedPieces) -> AlignedPieces:
        """See ``Normalizer``."""
        owners = np.flatnonzero(texts.is_text & (texts.pieces.starts < texts.pieces.stops))
        starts = texts.pieces.starts[owners]
        return splice(texts, owners, starts, starts, self.content.encode(), starts)
