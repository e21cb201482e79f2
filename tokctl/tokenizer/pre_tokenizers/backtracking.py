"""Split patterns outside the automaton's subset, through the ``regex`` module.

Only that module's backtracking is used: the text is rewritten as one character for each class of code points, and the
pattern as sets of such characters. So its Unicode tables and its reading of flags don't matter, and what a pattern
means is the same with and without an automaton. Where a pattern refers back to what it has matched, code points of one class
are not alike: there the text stays as it is, and the sets are spelled as ranges of code points.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import regex

from tokctl.errors import UsageError
from tokctl.tokenizer.pre_tokenizers.alphabet import partition
from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints
from tokctl.tokenizer.pre_tokenizers.syntax import (
    Atomic,
    BackReference,
    Chars,
    Choice,
    Edge,
    Group,
    Look,
    Node,
    Repeat,
    refers_back,
    sets_of,
)
from tokctl.tokenizer.pre_tokenizers.syntax import Sequence as Parts
from tokctl.tokenizer.unicode_tables import N_CODE_POINTS

FIRST = 0xF0000  # plane 15: private, no case, no other properties


class Backtracker:
    """Patterns applied in turn, as ``regex`` objects over classes of code points."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        sets = [points for node in nodes for points in sets_of(node)]
        if any(refers_back(node) for node in nodes):
            self.class_of = np.arange(N_CODE_POINTS, dtype=np.uint32)
            ranges = [points.bounds.reshape(-1, 2) for points in sets]
        else:
            class_of, member = partition(sets)
            if member.shape[1] > 0xFFFE:
                raise UsageError(
                    "the pattern tells more than 65,534 kinds of characters apart",
                    hint="use ranges or \\p{...} instead of single characters",
                    code="bad-pattern",
                )
            self.class_of = (class_of + FIRST).astype(np.uint32)
            ranges = [_runs(row) + FIRST for row in member]
        spelled = {points.bounds.tobytes(): _spell_set(row.tolist()) for points, row in zip(sets, ranges, strict=True)}
        self.compiled: list[Any] = []
        for node in nodes:
            text = _spell(node, spelled)
            try:
                self.compiled.append(regex.compile(text, regex.V0))
            except (regex.error, OverflowError, RecursionError, MemoryError) as error:
                raise UsageError(
                    f"the pattern can't be compiled: {error}",
                    hint="simplify it; a look-behind may be the part that is too much",
                    code="bad-pattern",
                ) from error

    def split(self, data: bytes) -> np.ndarray:
        """``int64[n_words]``: ends of the words of ``data``; see ``PreTokenizer.split``."""
        classes, offsets = self._classes(data)
        cuts = [0, len(classes)]
        for pattern in self.compiled:
            cuts = _cut(pattern, classes, cuts)
        ends = np.unique(np.array(cuts, np.int64))[1:]
        return offsets[ends]

    def matches(self, data: bytes) -> list[tuple[int, int]]:
        """Where the first pattern matches in ``data``: byte ranges, some perhaps empty, as ``finditer`` gives them."""
        classes, offsets = self._classes(data)
        return [(int(offsets[m.start()]), int(offsets[m.end()])) for m in self.compiled[0].finditer(classes)]

    def _classes(self, data: bytes) -> tuple[str, np.ndarray]:
        """The text as one character for the class of each code point, and where each code point starts in ``data``."""
        text = data.decode("utf-8", "surrogateescape")
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        # A lone surrogate is an escaped byte: bytes.decode lets no other through.
        width = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000).astype(np.int64)
        width[(points >= 0xD800) & (points < 0xE000)] = 1
        return self.class_of[points].tobytes().decode("utf-32-le", "surrogatepass"), np.concatenate(
            [[0], np.cumsum(width)]
        )


def _cut(pattern: Any, text: str, cuts: list[int]) -> list[int]:
    """The cuts, and those that the matches of ``pattern`` in each piece add. Nothing outside a piece is seen."""
    out = [0]
    for begin, end in pairwise(cuts):
        for found in pattern.finditer(text[begin:end]):
            out.append(begin + found.start())
            out.append(begin + found.end())
        out.append(end)
    return sorted(set(out)) if len(text) else [0, 0]


def _runs(member: np.ndarray) -> np.ndarray:
    """``int64[k, 2]``: where runs of members begin and end, from ``bool[n]``."""
    return np.flatnonzero(np.diff(member, prepend=False, append=False)).reshape(-1, 2)


def _spell_set(ranges: list[list[int]]) -> str:
    if not ranges:
        return "(?!)"
    return "[" + "".join(f"\\U{first:08x}-\\U{end - 1:08x}" for first, end in ranges) + "]"


def _spell(node: Node, spelled: dict[bytes, str]) -> str:
    match node:
        case Chars(points):
            return _lookup(points, spelled)
        case Parts(parts):
            return "".join(_spell(part, spelled) for part in parts)
        case Choice(options):
            return "(?:" + "|".join(_spell(option, spelled) for option in options) + ")"
        case Repeat(body, low, high, mode):
            suffix = {"greedy": "", "lazy": "?", "possessive": "+"}[mode]
            most = "" if high is None else high
            return f"(?:{_spell(body, spelled)}){{{low},{most}}}{suffix}"
        case Look(body, ahead, negated):
            return "(?" + ("" if ahead else "<") + ("!" if negated else "=") + _spell(body, spelled) + ")"
        case Edge(at):
            return r"\A" if at == "start" else r"\Z"
        case Atomic(body):
            return f"(?>{_spell(body, spelled)})"
        case Group(number, body):
            return f"(?P<g{number}>{_spell(body, spelled)})"
        case BackReference(number):
            return f"(?P=g{number})"


def _lookup(points: CodePoints, spelled: dict[bytes, str]) -> str:
    return spelled[points.bounds.tobytes()]
