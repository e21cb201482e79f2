"""Pieces of text that have been rewritten, with where in the raw text each of their bytes comes from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tokctl.tokenizer.added_tokens import Pieces

IDENTITY = np.empty(0, np.int64)


@dataclass(frozen=True)
class AlignedPieces:
    """``pieces`` of ``data uint8[n]``, in order.

    ``origins int64[n]`` says what each byte of ``data`` stands for: p >= 0 the byte p of the raw text, ~p the whole code
    point that begins at p there. ``IDENTITY`` (empty) where ``data`` is the raw text, or where nobody asked.
    """

    data: np.ndarray
    pieces: Pieces
    origins: np.ndarray = field(default_factory=lambda: IDENTITY)
    is_rewritten: bool = False

    @property
    def is_text(self) -> np.ndarray:
        """``bool[k]``: the pieces that are text, not an added token."""
        return self.pieces.tokens < 0

    def document_bounds(self, offsets: np.ndarray) -> np.ndarray:
        """``int64[m + 1]``: where each text begins in ``data``, and where the last one ends; ``offsets`` are the raw ones."""
        if not self.is_rewritten:
            return offsets
        stops = np.concatenate([[0], self.pieces.stops])
        ends = np.searchsorted(self.pieces.documents, np.arange(len(offsets) - 1), side="right")
        return np.concatenate([[0], stops[ends]]).astype(np.int64)

    def joined(self) -> tuple[np.ndarray, np.ndarray]:
        """``(places, begins)`` int64: the bytes of ``data`` that the pieces hold, one piece after another, and where each
        piece begins among them. What lies between pieces is left out."""
        lengths = self.pieces.stops - self.pieces.starts
        begins = np.cumsum(lengths) - lengths
        return np.arange(lengths.sum()) + np.repeat(self.pieces.starts - begins, lengths), begins


def splice(
    texts: AlignedPieces, owners: np.ndarray, starts: np.ndarray, stops: np.ndarray, content: bytes, sources: np.ndarray
) -> AlignedPieces:
    """Replace ranges of the text by ``content``.

    Range k is ``data[starts[k]:stops[k]]``, perhaps empty, inside piece ``owners[k]``; ranges are in order and disjoint.
    What is written stands for the code point of ``data`` that begins at ``sources[k]``. Int64 arrays.
    """
    if len(owners) == 0:
        return texts
    pieces = texts.pieces
    lengths = pieces.stops - pieces.starts
    gathered, begins = texts.joined()
    shift = (begins - pieces.starts)[owners]
    first, last = starts + shift, stops + shift
    change = np.zeros(len(gathered) + 1, np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, last, -1)
    kept = np.cumsum(change[:-1]) == 0
    n_kept = np.concatenate([[0], np.cumsum(kept)])
    places = np.repeat(n_kept[first], len(content))
    inserted = np.tile(np.frombuffer(content, np.uint8), len(owners))
    data = np.insert(texts.data[gathered[kept]], places, inserted)
    origins = IDENTITY
    if len(texts.origins):
        whole = texts.origins[sources]
        whole = np.where(whole >= 0, ~whole, whole)
        origins = np.insert(texts.origins[gathered[kept]], places, np.repeat(whole, len(content)))
    after = lengths - np.bincount(owners, last - first, len(lengths)).astype(np.int64)
    after += np.bincount(owners, minlength=len(lengths)) * len(content)
    new_stops = np.cumsum(after)
    return AlignedPieces(data, replace(pieces, starts=new_stops - after, stops=new_stops), origins, True)


def raw_ranges(
    data: np.ndarray, origins: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of rewritten text (int64[n] each) as ranges of the raw text ``data``; an empty range becomes (0, 0).

    From the start of what the first byte stands for to the end of what the last one does.
    """
    from tokctl.kernels.code_points import origin_ends

    is_empty = starts >= stops
    last = len(origins) - 1
    first = origins[np.clip(starts, 0, last)]
    ends = origins[np.clip(stops - 1, 0, last)]
    origin_ends(data, ends)
    return np.where(is_empty, 0, np.where(first >= 0, first, ~first)), np.where(is_empty, 0, ends)
