"""A space before each piece of text, so that its first word is like any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tokctl.tokenizer.aligned import AlignedPieces, splice


@dataclass(frozen=True)
class PrefixSpace:
    """``add_prefix_space`` of tokenizers' ``ByteLevel``: before each piece that doesn't begin with U+0020.

    The space stands for the piece's first character.
    """

    type: str = "prefix-space"

    def to_json(self) -> dict[str, Any]:
        """Its name."""
        return {"type": self.type}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> PrefixSpace:
        """The inverse of ``to_json``."""
        return cls()

    def apply(self, texts: AlignedPieces) -> AlignedPieces:
        """See ``Step``."""
        owners = np.flatnonzero(texts.is_text & (texts.pieces.starts < texts.pieces.stops))
        owners = owners[texts.data[texts.pieces.starts[owners]] != 0x20]
        starts = texts.pieces.starts[owners]
        return splice(texts, owners, starts, starts, b" ", starts)
