"""Cutting pieces of text by a pattern, with what becomes of the matches declared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tokctl.tokenizer.added_tokens import Pieces
from tokctl.tokenizer.aligned import AlignedPieces
from tokctl.tokenizer.pre_tokenizers.matching import Pattern, Stretches

BEHAVIORS = ("isolated", "removed", "merged-with-previous", "merged-with-next", "contiguous")


@dataclass(frozen=True)
class SplitBy:
    """The five behaviours of tokenizers' ``Split``. With ``invert`` what lies between the matches counts as the match.

    isolated: each match and each stretch between is a piece. removed: the matches are dropped. merged-with-previous: a
    match goes with the stretch before it, merged-with-next with the one after it; a match beside another is by itself.
    contiguous: neighbouring matches are one piece.
    """

    pattern: Pattern
    behavior: str
    invert: bool = False
    type: str = "split"

    def __post_init__(self) -> None:
        if self.behavior not in BEHAVIORS:
            raise ValueError(f"{self.behavior!r} is not among {', '.join(BEHAVIORS)}")

    def to_json(self) -> dict[str, Any]:
        """The pattern and what becomes of its matches."""
        return {
            "type": self.type,
            "pattern": self.pattern.to_json(),
            "behavior": self.behavior,
            "invert": self.invert,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> SplitBy:
        """The inverse of ``to_json``."""
        return cls(Pattern.from_json(value["pattern"]), value["behavior"], bool(value["invert"]))

    @property
    def notice(self) -> str | None:
        """Why it is slow, for a user; None where it isn't."""
        return self.pattern.notice(labelled=self.behavior != "isolated")

    def apply(self, texts: AlignedPieces) -> AlignedPieces:
        """See ``Step``."""
        found = self.pattern.stretches(texts, labelled=self.behavior != "isolated")
        if self.invert:
            found = replace(found, is_match=~found.is_match)
        owners, starts, stops = self._pieces(found)
        filled = starts < stops
        owners, starts, stops = owners[filled], starts[filled], stops[filled]
        kept = np.flatnonzero(~texts.is_text)
        order = np.argsort(np.concatenate([owners, kept]), kind="stable")
        pieces = texts.pieces
        new = Pieces(
            np.concatenate([starts, pieces.starts[kept]])[order],
            np.concatenate([stops, pieces.stops[kept]])[order],
            np.concatenate([pieces.tokens[owners], pieces.tokens[kept]])[order],
            np.concatenate([pieces.documents[owners], pieces.documents[kept]])[order],
        )
        return replace(texts, pieces=new)

    def _pieces(self, found: Stretches) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(owners, starts, stops)`` of the pieces."""
        match = found.is_match
        if self.behavior == "removed":
            return found.owners[~match], found.starts[~match], found.stops[~match]
        if len(match) == 0 or self.behavior == "isolated":
            return found.owners, found.starts, found.stops
        before = np.concatenate([[False], match[:-1]])
        first = np.concatenate([[True], found.owners[1:] != found.owners[:-1]])
        if self.behavior == "contiguous":
            begins = first | (match != before)
        elif self.behavior == "merged-with-previous":
            begins = first | ~(match & ~before)
        else:
            begins = first | ~(before & ~match)
        at = np.flatnonzero(begins)
        last = np.concatenate([at[1:], [len(match)]]) - 1
        return found.owners[at], found.starts[at], found.stops[last]
