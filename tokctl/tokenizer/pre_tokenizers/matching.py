"""Where a pattern matches, for the uses that treat matches and what lies between them in different ways.

``PreTokenizer`` makes words of both alike and doesn't say which is which. For a pattern that leaves nothing between
matches, and for one that matches runs of a set of characters, that is easily told; another pattern is run by the
backtracking engine.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokctl.errors import ArtifactError, UsageError
from tokctl.kernels._boundary import bytes_view, writable_view
from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.aligned import AlignedPieces
from tokctl.tokenizer.pre_tokenizers.alphabet import partition
from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints
from tokctl.tokenizer.pre_tokenizers.determinise import DEAD, determinise
from tokctl.tokenizer.pre_tokenizers.parse import parse
from tokctl.tokenizer.pre_tokenizers.program import Unsupported, assemble
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.pre_tokenizers.syntax import Chars, Node, Repeat

_SLICE_BYTES = 1 << 22
_WORDS = 1 << 16


@dataclass(frozen=True)
class Stretches:
    """The text pieces as stretches that match or don't, in order: int64[n] arrays and ``is_match bool[n]``.

    Stretch k is ``data[starts[k]:stops[k]]`` of piece ``owners[k]``; the stretches of a piece cover it. A match may be empty.
    """

    owners: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    is_match: np.ndarray


@dataclass(frozen=True)
class Pattern:
    """A regular expression (language: see ``parse``) or, with ``literal``, a string that is found as it is."""

    text: str
    literal: bool = False
    unicode_version: str = unicode_tables.DEFAULT_VERSION

    def __post_init__(self) -> None:
        if not self.text:
            raise UsageError("the pattern is empty", code="bad-pattern")
        _parsed(self)

    @property
    def regex(self) -> str:
        """The expression."""
        return re.escape(self.text) if self.literal else self.text

    @property
    def matches_everything(self) -> bool:
        """Whether nothing can lie between two matches."""
        return _matches_everything(self)

    def to_json(self) -> dict[str, Any]:
        """The text and how it is read."""
        return {"text": self.text, "literal": self.literal, "unicode_version": self.unicode_version}

    @staticmethod
    def from_json(value: Any) -> Pattern:
        """The inverse of ``to_json``; ArtifactError ``bad-pattern`` for anything else."""
        if (
            not isinstance(value, dict)
            or value.keys() != {"text", "literal", "unicode_version"}
            or not all(isinstance(value[key], str) for key in ("text", "unicode_version"))
            or not isinstance(value["literal"], bool)
        ):
            raise ArtifactError(
                f"{value!r} is no pattern",
                hint='expected {"text": "...", "literal": false, "unicode_version": "..."}',
                code="bad-pattern",
            )
        return Pattern(value["text"], value["literal"], value["unicode_version"])

    def notice(self, *, labelled: bool) -> str | None:
        """Why cutting takes the slower way, for a user; None where it doesn't. ``labelled``: see ``stretches``."""
        if labelled and not self.matches_everything and _run_of(self) is None:
            return (
                f"the pattern {self.text!r} is run by a backtracking engine, which is much slower: it has to tell matches "
                "from what lies between them"
            )
        return self._words.notice

    @property
    def _words(self) -> PreTokenizer:
        return PreTokenizer.from_patterns((self.regex,), self.unicode_version)

    def stretches(self, texts: AlignedPieces, *, labelled: bool = True) -> Stretches:
        """The text pieces cut at the matches. Without ``labelled`` nobody asks for ``is_match``, which says nothing."""
        data = bytes_view(texts.data)
        if self.notice(labelled=labelled) is not None:
            return _backtrack_pieces(self, data, texts)
        owners, stops = _split_pieces(self._words, data, texts)
        is_first = np.diff(owners, prepend=-1) != 0
        starts = np.where(is_first, texts.pieces.starts[owners], np.roll(stops, 1))
        is_match = np.ones(len(starts), np.bool_)
        run = _run_of(self)
        if labelled and run is not None and not self.matches_everything:
            is_match = run.contains(_first_points(data, starts))
        return Stretches(owners, starts, stops, is_match)


def _split_pieces(words: PreTokenizer, data: np.ndarray, texts: AlignedPieces) -> tuple[np.ndarray, np.ndarray]:
    """``(owners, stops)`` int64[n] of the words of all text pieces; ``words`` has an automaton."""
    from tokctl.kernels.piece_words import PIECE, POSITION, split_pieces

    pieces = texts.pieces
    starts, stops, tokens = (writable_view(a) for a in (pieces.starts, pieces.stops, pieces.tokens))
    cursor = np.zeros(2, np.int64)
    cursor[POSITION] = starts[0] if len(starts) else 0
    buffer = np.empty((2, min(_WORDS, max(int((stops - starts).sum()), 1))), np.int64)
    parts = [np.empty((2, 0), np.int64)]
    while cursor[PIECE] < len(starts):
        n = split_pieces(words.automaton, data, starts, stops, tokens, cursor, buffer[0], buffer[1], _SLICE_BYTES)
        parts.append(buffer[:, :n].copy())
    owners, ends = np.concatenate(parts, axis=1)
    return owners, ends


def _first_points(data: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """``int64[n]``: the code points of ``data`` at ``starts``; a stray byte is U+DC00 + byte."""
    padded = np.concatenate([data, np.zeros(3, np.uint8)]).astype(np.int64)
    b0, b1, b2, b3 = (padded[starts + k] for k in range(4))
    from tokctl.kernels.code_points import origin_ends

    ends = ~starts
    origin_ends(data, ends)
    length = ends - starts
    points = np.where(b0 < 0x80, b0, 0xDC00 + b0)
    points = np.where(length == 2, (b0 & 0x1F) << 6 | (b1 & 0x3F), points)
    points = np.where(length == 3, (b0 & 0x0F) << 12 | (b1 & 0x3F) << 6 | (b2 & 0x3F), points)
    return np.where(length == 4, (b0 & 0x07) << 18 | (b1 & 0x3F) << 12 | (b2 & 0x3F) << 6 | (b3 & 0x3F), points)


@functools.lru_cache(maxsize=64)
def _parsed(pattern: Pattern) -> Node:
    try:
        table = unicode_tables.load(pattern.unicode_version)
    except KeyError:
        raise UsageError(
            f"this tokctl has no tables for Unicode {pattern.unicode_version!r}",
            hint=f"available: {', '.join(unicode_tables.versions())}",
            code="unknown-unicode-version",
        ) from None
    return parse(pattern.regex, table)


def _run_of(pattern: Pattern) -> CodePoints | None:
    """The set of a pattern that is one set, or a greedy run of it."""
    match _parsed(pattern):
        case Chars(points):
            return points
        case Repeat(Chars(points), 1, _, "greedy" | "possessive"):
            return points
        case _:
            return None


@functools.lru_cache(maxsize=64)
def _matches_everything(pattern: Pattern) -> bool:
    """True where a match is certain after any one code point, whatever follows; False also where it isn't known."""
    try:
        program = assemble(_parsed(pattern))
        _, member = partition(program.sets)
        machine = determinise(program, member)
    except Unsupported:
        return False
    first = machine.target[0, :-1]
    return bool((first != DEAD).all() and machine.matched[first].all())


@functools.lru_cache(maxsize=16)
def _compiled(pattern: Pattern) -> Any:
    from tokctl.tokenizer.pre_tokenizers.backtracking import Backtracker

    return Backtracker((_parsed(pattern),))


def _backtrack_pieces(pattern: Pattern, data: np.ndarray, texts: AlignedPieces) -> Stretches:
    rows: list[tuple[int, int, int, bool]] = []
    for owner in np.flatnonzero(texts.is_text & (texts.pieces.starts < texts.pieces.stops)).tolist():
        low, high = int(texts.pieces.starts[owner]), int(texts.pieces.stops[owner])
        done = low
        for start, stop in _compiled(pattern).matches(data[low:high].tobytes()):
            if done < low + start:
                rows.append((owner, done, low + start, False))
            rows.append((owner, low + start, low + stop, True))
            done = low + stop
        if done < high:
            rows.append((owner, done, high, False))
    owners, starts, stops = (np.array([row[k] for row in rows], np.int64) for k in range(3))
    return Stretches(owners, starts, stops, np.array([row[3] for row in rows], np.bool_))
