"""The post-processor: which control tokens go around one text, or around a pair of texts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """One place of a template: a sequence (``A`` or ``B``) or a token id; ``type_id`` as in tokenizers."""

    what: str | int
    type_id: int = 0


SINGLE: tuple[Piece, ...] = (Piece("A"),)
PAIR: tuple[Piece, ...] = (Piece("A"), Piece("B", 1))


@dataclass(frozen=True)
class Template:
    """What ``add_special_tokens`` does.

    ``trim_offsets``: offsets leave out the spaces at a token's ends, as the ``ByteLevel`` processor of tokenizers has
    it; ``trim_keeps_first``: with that, one space at the start of a text's first token is kept (``add_prefix_space``).
    Neither changes an id.
    """

    single: tuple[Piece, ...] = SINGLE
    pair: tuple[Piece, ...] = PAIR
    trim_offsets: bool = False
    trim_keeps_first: bool = False

    @property
    def prefix(self) -> tuple[int, ...]:
        """The ids before a single text."""
        at = next(i for i, piece in enumerate(self.single) if piece.what == "A")
        return tuple(piece.what for piece in self.single[:at] if isinstance(piece.what, int))

    @property
    def suffix(self) -> tuple[int, ...]:
        """The ids after a single text."""
        at = next(i for i, piece in enumerate(self.single) if piece.what == "A")
        return tuple(piece.what for piece in self.single[at + 1 :] if isinstance(piece.what, int))

    @property
    def ids(self) -> set[int]:
        """All token ids it names."""
        return {piece.what for piece in (*self.single, *self.pair) if isinstance(piece.what, int)}

    @classmethod
    def around(cls, prefix: tuple[int, ...], suffix: tuple[int, ...]) -> Template:
        """The template that puts ids before and after each text."""
        before, after = tuple(map(Piece, prefix)), tuple(map(Piece, suffix))
        pair_after = tuple(Piece(i, 1) for i in suffix)
        return cls((*before, Piece("A"), *after), (*before, Piece("A"), *after, Piece("B", 1), *pair_after))

    def is_valid(self) -> bool:
        """Whether ``single`` holds A once, and ``pair`` A and B once each."""
        single = [piece.what for piece in self.single if isinstance(piece.what, str)]
        pair = [piece.what for piece in self.pair if isinstance(piece.what, str)]
        return single == ["A"] and sorted(pair) == ["A", "B"]


NOTHING_ADDED = Template()
