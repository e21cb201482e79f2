"""Sets of code points, and the properties that patterns name: ``\\p{..}``, ``\\s``, ``\\d``, ``\\w``, simple case folding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tokctl.tokenizer.unicode_tables import CATEGORIES, N_CODE_POINTS, UnicodeTable


@dataclass(frozen=True, eq=False)
class CodePoints:
    """A set of code points as boundaries ``int64[2k]``, increasing: members are ``[b0, b1), [b2, b3), ...``."""

    bounds: np.ndarray

    @staticmethod
    def of(*ranges: tuple[int, int]) -> CodePoints:
        """The union of closed ranges ``(first, last)``."""
        out = NOTHING
        for first, last in ranges:
            out = out | CodePoints(np.array([first, last + 1], np.int64))
        return out

    @staticmethod
    def of_points(points: Iterable[int]) -> CodePoints:
        """The set of single code points."""
        sorted_points = np.unique(np.fromiter(points, np.int64))
        edges = np.concatenate([sorted_points, sorted_points + 1])
        # A boundary that is both an end and a start lies inside a run.
        values, occurrences = np.unique(edges, return_counts=True)
        return CodePoints(values[occurrences == 1])

    def __contains__(self, point: int) -> bool:
        return bool(np.searchsorted(self.bounds, point, "right") & 1)

    def contains(self, points: np.ndarray) -> np.ndarray:
        """``bool[n]``: which of the points are members."""
        return np.searchsorted(self.bounds, points, "right") & 1 == 1

    def _combine(self, other: CodePoints, keep: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> CodePoints:
        edges = np.unique(np.concatenate([self.bounds, other.bounds]))
        inside = keep(self.contains(edges), other.contains(edges))
        changed = np.diff(inside, prepend=False)
        return CodePoints(edges[changed])

    def __or__(self, other: CodePoints) -> CodePoints:
        return self._combine(other, np.logical_or)

    def __and__(self, other: CodePoints) -> CodePoints:
        return self._combine(other, np.logical_and)

    def __invert__(self) -> CodePoints:
        return self._combine(EVERYTHING, np.not_equal)

    def __bool__(self) -> bool:
        return self.bounds.size > 0


NOTHING = CodePoints(np.empty(0, np.int64))
EVERYTHING = CodePoints(np.array([0, N_CODE_POINTS], np.int64))


def _runs(starts: np.ndarray, chosen: np.ndarray) -> CodePoints:
    """The runs of a run-length table that are chosen (``bool[n_runs]``)."""
    edges = np.append(starts, N_CODE_POINTS).astype(np.int64)
    changed = np.diff(np.append(chosen, False), prepend=False)
    return CodePoints(edges[changed])


def category(table: UnicodeTable, prefix: str) -> CodePoints:
    """Code points whose general category (``Lu``) begins with ``prefix`` (``Lu`` or ``L``)."""
    chosen = np.array([name.startswith(prefix) for name in CATEGORIES])
    return _runs(table.category_starts, chosen[table.category_values])


def white_space(table: UnicodeTable) -> CodePoints:
    """``\\s``: the property White_Space."""
    return CodePoints(table.white_space.astype(np.int64))


def word_characters(table: UnicodeTable) -> CodePoints:
    """``\\w`` as in Unicode TR 18 and the Rust regex crates: Alphabetic, Mark, Nd, Pc and Join_Control."""
    out = CodePoints(table.alphabetic.astype(np.int64)) | CodePoints(table.join_control.astype(np.int64))
    for prefix in ("M", "Nd", "Pc"):
        out = out | category(table, prefix)
    return out


_GROUPS = {
    "L": "Letter",
    "M": "Mark",
    "N": "Number",
    "P": "Punctuation",
    "S": "Symbol",
    "Z": "Separator",
    "C": "Other",
}


def _loose(name: str) -> str:
    return "".join(character for character in name.lower() if character not in " _-")


def named_property(table: UnicodeTable, name: str) -> CodePoints | None:
    """The set that ``\\p{name}`` names, or None for an unknown name.

    Known: general categories by short or long name, ``L&`` and ``LC``, scripts by long name (also ``gc=``,
    ``script=``, ``sc=``), ``White_Space``, ``Alphabetic``, ``Any``, ``Assigned``. Case, spaces, ``_`` and ``-`` don't count.
    """
    key, separator, value = name.partition("=")
    kind = _loose(key) if separator else ""
    wanted = _loose(value if separator else name)
    if kind in ("", "gc", "generalcategory"):
        for short, long in (_GROUPS | CATEGORIES).items():
            if wanted in (_loose(short), _loose(long)):
                return category(table, short)
        if wanted in ("lc", "l&", "casedletter"):
            return category(table, "Lu") | category(table, "Ll") | category(table, "Lt")
    if kind in ("", "sc", "script"):
        for index, script in enumerate(table.script_names):
            if wanted == _loose(script):
                return _runs(table.script_starts, table.script_values == index)
    if kind == "":
        if wanted in ("whitespace", "space"):
            return white_space(table)
        if wanted in ("alphabetic", "alpha"):
            return CodePoints(table.alphabetic.astype(np.int64))
        if wanted == "any":
            return EVERYTHING
        if wanted == "assigned":
            return ~category(table, "Cn")
    return None


def ignoring_case(table: UnicodeTable, points: CodePoints) -> CodePoints:
    """``points`` and everything that has the same simple case folding as one of them (statuses C and S).

    So ``s`` is joined by ``S`` and ``ſ``, but ``i`` not by the Turkic ``ı`` and ``İ`` (status T).
    """
    folds = table.folds.astype(np.int64)
    members = np.concatenate([folds[:, 0], folds[:, 1]])
    orbit = np.concatenate([folds[:, 1], folds[:, 1]])
    touched = np.unique(orbit[points.contains(members)])
    return points | CodePoints.of_points(members[np.isin(orbit, touched)].tolist())
