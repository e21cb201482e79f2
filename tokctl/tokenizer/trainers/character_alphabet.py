"""The alphabet of character-level BPE: which characters of a corpus become base tokens, and what is left out.

Characters are ranked by how often they occur, then by code point. A limit or a coverage keeps the first of them; what that
leaves out is reported with its mass and the commonest words that hold it, never dropped unsaid.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.models.bpe_characters import EndOfWord, character_of
from tokctl.tokenizer.models.character_encoder import shown, word_slices

_MAX_LISTED = 100
_MAX_WORDS = 3


@dataclass(frozen=True)
class DroppedCharacter:
    """A character outside the alphabet: how often the corpus has it, and the commonest words that do."""

    point: int
    count: int
    words: tuple[bytes, ...]

    def to_json(self) -> dict[str, Any]:
        """For the manifest; the count as a decimal string, words that are no UTF-8 in hexadecimal."""
        return {
            "character": shown(self.point),
            "count": str(self.count),
            "words": [_as_text(word) for word in self.words],
        }


@dataclass(frozen=True)
class CharacterAlphabet:
    """The base symbols of a fit and what was left out.

    ``inner``, ``final``: code points inside words and, where the marker is a suffix, at their ends; ascending. The base
    tokens are the inner characters, the final ones with the marker behind them, then the marker where it is a symbol.
    """

    inner: tuple[int, ...]
    final: tuple[int, ...]
    end_of_word: EndOfWord | None
    n_occurrences: int
    n_left_out: int
    left_out_mass: int
    left_out: tuple[DroppedCharacter, ...]
    """The most frequent of those that were left out."""

    @property
    def tokens(self) -> tuple[bytes, ...]:
        """The base tokens in id order."""
        end = self.end_of_word
        tokens = [character_of(point) for point in self.inner]
        if end is not None and end.is_suffix:
            tokens += [character_of(point) + end.marker.encode() for point in self.final]
        elif end is not None:
            tokens.append(end.marker.encode())
        return tuple(tokens)

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "characters": len({*self.inner, *self.final}),
            "occurrences": str(self.n_occurrences),
            "dropped": self.n_left_out,
            "dropped_occurrences": str(self.left_out_mass),
            "dropped_characters": [character.to_json() for character in self.left_out],
        }


def choose_alphabet(
    data: np.ndarray,
    offsets: np.ndarray,
    counts: np.ndarray,
    *,
    end_of_word: EndOfWord | None = None,
    limit: int | None = None,
    coverage: Decimal | None = None,
    max_dropped: Decimal = Decimal("0.001"),
    room: int | None = None,
) -> CharacterAlphabet:
    """The alphabet of weighted words (``uint8[]``, ``int64[n + 1]``, ``int64[n]``).

    ``limit``: the most characters to keep. ``coverage``: keep the fewest characters that make up this share of all
    occurrences. ``max_dropped``: DataError when a larger share is left out. ``room``: how many base tokens the vocabulary
    can hold; UsageError names the characters that don't fit. DataError too where a word holds the marker itself.
    """
    _check_marker(data, offsets, counts, end_of_word)
    inner, final = _count(data, offsets, counts)
    total = inner + final
    points = np.flatnonzero(total)
    ranked = points[np.lexsort((points, -total[points]))]
    mass = int(total[ranked].astype(object).sum()) if len(ranked) else 0
    kept = ranked[: _n_kept(total[ranked], mass, limit, coverage)]
    by_form = end_of_word is not None and end_of_word.is_suffix
    n_forms = (inner[kept] > 0).astype(np.int64) + (final[kept] > 0) if by_form else np.ones(len(kept), np.int64)
    if room is not None:
        _check_room(kept, n_forms, total, mass, room - (end_of_word is not None and not by_form))
    left_out = ranked[len(kept) :]
    left_out_mass = int(total[left_out].astype(object).sum()) if len(left_out) else 0
    inner_points = np.sort(kept[inner[kept] > 0]) if by_form else np.sort(kept)
    alphabet = CharacterAlphabet(
        tuple(inner_points.tolist()),
        tuple(np.sort(kept[final[kept] > 0]).tolist()) if by_form else (),
        end_of_word,
        mass,
        len(left_out),
        left_out_mass,
        _examples(data, offsets, counts, left_out[:_MAX_LISTED], total),
    )
    if left_out_mass and Fraction(left_out_mass, mass) > Fraction(max_dropped):
        raise _too_much(alphabet, max_dropped)
    return alphabet


def _count(data: np.ndarray, offsets: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How often each code point stands inside words and at their ends: ``int64[0x110000]`` twice."""
    from tokctl.kernels.bpe_characters import N_POINTS, count_characters

    inner, final = np.zeros(N_POINTS, np.int64), np.zeros(N_POINTS, np.int64)
    for low, high in word_slices(np.diff(offsets)):
        count_characters(data, offsets, counts, low, high, inner, final)
    return inner, final


def _n_kept(ranked_counts: np.ndarray, mass: int, limit: int | None, coverage: Decimal | None) -> int:
    n = len(ranked_counts) if limit is None else min(limit, len(ranked_counts))
    if coverage is None or not mass:
        return n
    wanted = Fraction(coverage) * mass
    reached = np.cumsum(ranked_counts)
    enough = int(np.searchsorted(reached, -(-wanted.numerator // wanted.denominator), side="left")) + 1
    return min(n, enough)


def _check_marker(data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, end_of_word: EndOfWord | None) -> None:
    """Refuse words that hold the marker: their tokens could not be told from those that end a word."""
    if end_of_word is None:
        return
    marker = end_of_word.marker.encode()
    if len(data) < len(marker):
        return
    is_here = data[: len(data) - len(marker) + 1] == marker[0]
    for i, byte in enumerate(marker[1:], 1):
        is_here &= data[i : len(data) - len(marker) + 1 + i] == byte
    for at in np.flatnonzero(is_here).tolist():
        word = int(np.searchsorted(offsets, at, side="right")) - 1
        if counts[word] > 0 and at + len(marker) <= offsets[word + 1]:
            shown_word = data[offsets[word] : offsets[word + 1]].tobytes()[:60]
            raise DataError(
                f"the word {shown_word!r} holds {end_of_word.marker!r}, which marks the end of a word",
                hint="choose a marker that the corpus doesn't spell: --end-of-word MARKER",
                code="marker-in-corpus",
                row=word,
            )


def _check_room(kept: np.ndarray, n_forms: np.ndarray, total: np.ndarray, mass: int, room: int) -> None:
    needed = int(n_forms.sum())
    if needed <= room:
        return
    fits = int(np.searchsorted(np.cumsum(n_forms), max(room, 0), side="right"))
    missing = kept[fits:]
    missing_mass = int(total[missing].astype(object).sum())
    raise UsageError(
        f"the vocabulary has room for {max(room, 0):,} base tokens, but the {len(kept):,} characters of the corpus need "
        f"{needed:,}: {_characters(len(missing))} don't fit, {_percent(missing_mass, mass)} of all occurrences "
        f"({_listed(missing, total)})",
        hint=f"ask for at least {needed - room:,} more, or keep fewer characters: --limit-alphabet {fits} "
        "--max-dropped SHARE",
        code="vocabulary-too-small",
    )


def _too_much(alphabet: CharacterAlphabet, max_dropped: Decimal) -> DataError:
    listed = ", ".join(
        f"{shown(c.point)} x {c.count:,} as in {' '.join(_as_text(word) for word in c.words)}"
        for c in alphabet.left_out[:5]
    )
    share = _percent(alphabet.left_out_mass, alphabet.n_occurrences)
    allowed = -(-Fraction(alphabet.left_out_mass, alphabet.n_occurrences) * 1000 // 1)
    return DataError(
        f"the alphabet leaves out {_characters(alphabet.n_left_out)}, {share} of all occurrences, more than the "
        f"{max_dropped} that may be: {listed}",
        hint=f"keep more characters, or allow it with --max-dropped {Decimal(int(allowed)) / 1000}",
        code="alphabet-drops-too-much",
    )


def _examples(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray, points: np.ndarray, total: np.ndarray
) -> tuple[DroppedCharacter, ...]:
    """Of each character the commonest words, equal counts in the words' order."""
    from tokctl.kernels.bpe_characters import words_with

    if not len(points):
        return ()
    wanted = np.sort(points)
    words = np.full((len(wanted), _MAX_WORDS), -1, np.int64)
    for low, high in word_slices(np.diff(offsets)):
        words_with(data, offsets, counts, low, high, wanted, words)
    found = {}
    for point, row in zip(wanted.tolist(), words.tolist(), strict=True):
        spelled = [data[offsets[word] : offsets[word + 1]].tobytes() for word in row if word >= 0]
        found[point] = DroppedCharacter(point, int(total[point]), tuple(spelled))
    return tuple(found[point] for point in points.tolist())


def _listed(points: np.ndarray, total: np.ndarray) -> str:
    listed = [f"{shown(point)} x {int(total[point]):,}" for point in points[:10].tolist()]
    return ", ".join(listed) + (", ..." if len(points) > 10 else "")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %"


def _as_text(word: bytes) -> str:
    short = word if len(word) <= 100 else word[:100]
    try:
        return short.decode()
    except UnicodeDecodeError:
        return short.decode("utf-8", "backslashreplace")


def _characters(n: int) -> str:
    return f"{n:,} character{'' if n == 1 else 's'}"
