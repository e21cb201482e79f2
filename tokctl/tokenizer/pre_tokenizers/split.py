"""Cutting text into words with a split pattern: ``PreTokenizer``."""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tokctl.errors import ArtifactError, UsageError
from tokctl.kernels.pattern_automaton import Automaton
from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.pre_tokenizers.code_points import white_space
from tokctl.tokenizer.pre_tokenizers.compile import compile_patterns
from tokctl.tokenizer.pre_tokenizers.parse import parse
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.pre_tokenizers.program import Unsupported
from tokctl.tokenizer.pre_tokenizers.syntax import Node

if TYPE_CHECKING:
    from tokctl.tokenizer.pre_tokenizers.backtracking import Backtracker

WHOLE_TEXT = r"(?s:.)+"  # what "none" runs: the whole text is one word
WHITE_SPACE = r"\s+"  # what "whitespace" runs
BUFFER = 1 << 16  # word ends per kernel call
_LIKE_A_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{2,}")


@dataclass(frozen=True)
class PreTokenizer:
    """Split patterns and the Unicode version they are read with.

    ``patterns`` are applied in turn, each to the pieces that the ones before made; without patterns the whole text is
    one word. Make one with ``from_pattern`` or ``from_patterns``, which check the patterns. ``drops_space``: what is all
    white space is no word (``words``), which only a model that marks the ends of words can afford.
    """

    patterns: tuple[str, ...]
    unicode_version: str = unicode_tables.DEFAULT_VERSION
    drops_space: bool = False

    @staticmethod
    def from_pattern(pattern: str, unicode_version: str | None = None) -> PreTokenizer:
        """From a name in ``patterns.NAMED``, ``none``, ``whitespace``, or a regular expression (language: see ``parse``).

        ``whitespace``: the words are what stands between white space, which is dropped.

        UsageError ``bad-pattern`` (position and hint) for an invalid expression, ``unknown-pattern`` for a plain word, which
        is a misspelt name rather than an expression that matches this word alone, ``unknown-unicode-version``.
        """
        if pattern == "none":
            return PreTokenizer.from_patterns((), unicode_version)
        if pattern == "whitespace":
            return replace(PreTokenizer.from_patterns((WHITE_SPACE,), unicode_version), drops_space=True)
        if not pattern:
            raise UsageError("the split pattern is empty", hint="write none for no splitting", code="bad-pattern")
        if pattern not in NAMED and _LIKE_A_NAME.fullmatch(pattern):
            close = difflib.get_close_matches(pattern, ["none", "whitespace", *NAMED], n=1)
            raise UsageError(
                f"there is no split pattern {pattern!r}",
                hint=f"did you mean {close[0]!r}?"
                if close
                else f"known: none, whitespace, {', '.join(NAMED)}, or a regular expression",
                code="unknown-pattern",
            )
        return PreTokenizer.from_patterns(NAMED.get(pattern, (pattern,)), unicode_version)

    @staticmethod
    def from_patterns(patterns: tuple[str, ...], unicode_version: str | None = None) -> PreTokenizer:
        """From regular expressions that are applied in turn; errors as in ``from_pattern``."""
        out = PreTokenizer(tuple(patterns), unicode_version or unicode_tables.DEFAULT_VERSION)
        _parsed(out)
        return out

    @property
    def name(self) -> str:
        """``none``, ``whitespace``, the name of the same patterns in ``NAMED``, or ``regex``."""
        if self.drops_space:
            return "whitespace" if self.patterns == (WHITE_SPACE,) else "regex"
        if not self.patterns:
            return "none"
        return next((name for name, patterns in NAMED.items() if patterns == self.patterns), "regex")

    def to_json(self) -> dict[str, Any]:
        """The value that identifies this pre-tokenizer; names are left out, so that naming a pattern changes no hash."""
        return {
            "type": "split",
            "patterns": list(self.patterns),
            "behavior": "isolated",
            "unicode_version": self.unicode_version,
            **({"white_space": "dropped"} if self.drops_space else {}),
        }

    @staticmethod
    def from_json(value: Any) -> PreTokenizer:
        """The inverse of ``to_json``; ArtifactError ``bad-pre-tokenizer`` for anything else."""
        if (
            not isinstance(value, dict)
            or value.get("type") != "split"
            or value.get("behavior") != "isolated"
            or not isinstance(value.get("patterns"), list)
            or not all(isinstance(pattern, str) for pattern in value["patterns"])
            or not isinstance(value.get("unicode_version"), str)
            or value.get("white_space", "dropped") != "dropped"
        ):
            raise ArtifactError(
                "the pre-tokenizer is not one that tokctl writes",
                hint='expected {"type": "split", "behavior": "isolated", "patterns": [...], "unicode_version": "..."}',
                code="bad-pre-tokenizer",
            )
        out = PreTokenizer.from_patterns(tuple(value["patterns"]), value["unicode_version"])
        return replace(out, drops_space=True) if "white_space" in value else out

    @property
    def automaton(self) -> Automaton | None:
        """Arrays for ``kernels.pattern_scan.scan``; None where the patterns need the slower way (see ``notice``)."""
        return _compiled(self)[0]

    @property
    def notice(self) -> str | None:
        """Why there is no automaton, for a user; None where there is one."""
        return _compiled(self)[1]

    def split(self, data: bytes | np.ndarray) -> np.ndarray:
        """``int64[n_words]``: where each word of the UTF-8 text ``data`` (bytes or ``uint8[n]``) ends.

        Words are contiguous, not empty, and cover the text; empty text has none. A match of the pattern is a word, and
        so is what lies between two matches; an empty match only cuts. Each byte that is no part of well-formed UTF-8
        is one code point of general category Cs (the lone surrogate U+DC00 + byte), as in Python's ``surrogateescape``.
        """
        automaton = self.automaton
        if automaton is None:
            return _backtracker(self).split(bytes(data))
        from tokctl.kernels._boundary import bytes_view
        from tokctl.kernels.pattern_scan import scan

        view = bytes_view(data)
        buffer = np.empty(min(BUFFER, max(view.size, 1)), np.int64)
        found = []
        position = 0
        while position < view.size:
            n, position = scan(automaton, view, position, view.size, buffer)
            found.append(buffer[:n].copy())
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def words(self, data: bytes | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``int64[n_words]`` twice: where each word starts and stops, without white space where that is dropped."""
        ends = self.split(data)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])[: len(ends)]
        if not self.drops_space:
            return starts, ends
        kept = self.filled_words(data, starts, ends)
        return starts[kept], ends[kept]

    def filled_words(self, data: bytes | np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        """``int64[k]``: the numbers of the words ``data[starts[i]:stops[i]]`` that are not white space all through."""
        from tokctl.kernels._boundary import bytes_view
        from tokctl.kernels.bpe_characters import keep_filled

        kept = np.empty(len(starts), np.int64)
        n = keep_filled(bytes_view(data), starts, stops, _spaces(self.unicode_version), kept)
        return kept[:n]


@functools.lru_cache(maxsize=8)
def _spaces(unicode_version: str) -> np.ndarray:
    """``int64[k]``: the white-space code points, ascending."""
    bounds = white_space(unicode_tables.load(unicode_version)).bounds.reshape(-1, 2)
    return np.concatenate([np.arange(first, stop, dtype=np.int64) for first, stop in bounds.tolist()])


@functools.lru_cache(maxsize=64)
def _parsed(pre_tokenizer: PreTokenizer) -> tuple[Node, ...]:
    version = pre_tokenizer.unicode_version
    try:
        table = unicode_tables.load(version)
    except KeyError:
        raise UsageError(
            f"this tokctl has no tables for Unicode {version!r}",
            hint=f"available: {', '.join(unicode_tables.versions())}",
            code="unknown-unicode-version",
        ) from None
    return tuple(parse(pattern, table) for pattern in pre_tokenizer.patterns or (WHOLE_TEXT,))


@functools.lru_cache(maxsize=64)
def _compiled(pre_tokenizer: PreTokenizer) -> tuple[Automaton | None, str | None]:
    try:
        return compile_patterns(_parsed(pre_tokenizer)), None
    except Unsupported as reason:
        return None, f"the pattern is run by a backtracking engine, which is much slower: {reason}"


@functools.lru_cache(maxsize=16)
def _backtracker(pre_tokenizer: PreTokenizer) -> Backtracker:
    from tokctl.tokenizer.pre_tokenizers.backtracking import Backtracker

    return Backtracker(_parsed(pre_tokenizer))
