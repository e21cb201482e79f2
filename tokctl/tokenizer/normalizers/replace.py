"""Replacing what a pattern matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tokctl.tokenizer.aligned import AlignedPieces, splice
from tokctl.tokenizer.pre_tokenizers.matching import Pattern


@dataclass(frozen=True)
class Replace:
    """Each match of ``pattern`` becomes ``content``, which stands for the match's last character."""

    pattern: Pattern
    content: str
    type: str = "replace"

    def __post_init__(self) -> None:
        self.content.encode()

    def to_json(self) -> dict[str, Any]:
        """The pattern and what its matches become."""
        return {"type": self.type, "pattern": self.pattern.to_json(), "content": self.content}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Replace:
        """The inverse of ``to_json``."""
        return cls(Pattern.from_json(value["pattern"]), str(value["content"]))

    def apply(self, texts: AlignedPieces) -> AlignedPieces:
        """See ``Normalizer``."""
        found = self.pattern.stretches(texts)
        chosen = np.flatnonzero(found.is_match)
        starts, stops = found.starts[chosen], found.stops[chosen]
        last = np.maximum(stops - 1, 0)
        for _ in range(3):  # back to where the last character begins
            last = np.where((last > starts) & (texts.data[last] & 0xC0 == 0x80), last - 1, last)
        return splice(texts, found.owners[chosen], starts, stops, self.content.encode(), last)
