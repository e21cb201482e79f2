"""Canonicalisation for comparison: what two documents may differ in and still count as the same text.

It decides only what is compared; a surviving document keeps its own text. Every property comes from the Unicode
tables that ship with tokctl (``UNICODE_VERSION``), never from the running Python.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokctl.kernels._boundary import bytes_view, writable_view
from tokctl.tokenizer import normalization_tables, unicode_tables

if TYPE_CHECKING:
    from tokctl.kernels.canonical_text import CanonicalTable

UNICODE_VERSION = normalization_tables.DEFAULT_VERSION

# Scripts written without spaces between words.
UNSPACED_SCRIPTS = ("Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")


@dataclass(frozen=True, slots=True)
class Canonicalisation:
    """What comparison ignores; everything is off by default, so that only equal bytes are equal.

    nfc: Normalization Form C (with ``fold_case``: the caseless match of Unicode's definition D145, composed).
    fold_case: full case folding (``Straße`` = ``STRASSE``), independent of language.
    collapse_space: each run of White_Space is one space, none at either end.
    zero_digits: each decimal digit (Nd) is ``0``.
    drop_punctuation: code points of the general categories P* are left out (symbols, S*, stay).

    A document of which nothing is left is compared by its own bytes, so that ``!!!`` and ``???`` stay different.
    """

    nfc: bool = False
    fold_case: bool = False
    collapse_space: bool = False
    zero_digits: bool = False
    drop_punctuation: bool = False

    @property
    def is_identity(self) -> bool:
        """Whether texts are compared byte for byte."""
        return self == Canonicalisation()

    def to_json(self) -> dict[str, object]:
        """For a manifest: the options and the version of the tables behind them."""
        options: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        return options if self.is_identity else {**options, "unicode_version": UNICODE_VERSION}


NOTHING = Canonicalisation()
FOR_NEAR_DUPLICATES = Canonicalisation(nfc=True, fold_case=True, collapse_space=True, drop_punctuation=True)


class CanonicalTexts(NamedTuple):
    """Texts as compared: ``data uint8[]``, ``offsets int64[n + 1]`` and, for each, what the pass saw.

    ``is_empty bool[n]``: nothing was left (the text stands as it was); ``is_unspaced bool[n]``: more than half of the
    letters and marks belong to scripts written without spaces.
    """

    data: np.ndarray
    offsets: np.ndarray
    is_empty: np.ndarray
    is_unspaced: np.ndarray


def canonicalise(
    data: np.ndarray, offsets: np.ndarray, how: Canonicalisation, *, needs_scripts: bool = False
) -> CanonicalTexts:
    """Canonical forms of the texts ``data[offsets[i]:offsets[i + 1]]`` (UTF-8; stray bytes are kept apart, see the kernel).

    With the identity nothing is copied, and ``is_unspaced`` is filled only when ``needs_scripts``.
    """
    offsets = writable_view(offsets.astype(np.int64, copy=False))
    data = bytes_view(data)
    n = offsets.size - 1
    if how.is_identity and not needs_scripts:
        return CanonicalTexts(data, offsets, np.diff(offsets) == 0, np.zeros(n, np.bool_))
    from tokctl.kernels.canonical_text import IS_EMPTY, MAX_GROWTH, N_LETTERS, N_UNSPACED
    from tokctl.kernels.canonical_text import canonicalise as run

    out = np.empty(MAX_GROWTH * int(offsets[-1] - offsets[0]) + 16, np.uint8)
    out_offsets = np.empty(n + 1, np.int64)
    facts = np.zeros((n, 3), np.int64)
    run(_table(how), data, offsets, out, out_offsets, facts)
    is_unspaced = 2 * facts[:, N_UNSPACED] > facts[:, N_LETTERS]
    if how.is_identity:  # the kernel respells stray bytes; equal bytes are equal either way, and these need no copy
        return CanonicalTexts(data, offsets, np.diff(offsets) == 0, is_unspaced)
    return CanonicalTexts(out[: out_offsets[-1]], out_offsets, facts[:, IS_EMPTY] != 0, is_unspaced)


def canonical_text(text: str | bytes, how: Canonicalisation) -> bytes:
    """The canonical form of one text; see ``canonicalise``."""
    raw = text.encode("utf-8") if isinstance(text, str) else text
    texts = canonicalise(np.frombuffer(raw, np.uint8), np.array([0, len(raw)], np.int64), how)
    return texts.data[texts.offsets[0] : texts.offsets[1]].tobytes()


@functools.cache
def _table(how: Canonicalisation) -> CanonicalTable:
    from tokctl.kernels import canonical_text as kernel
    from tokctl.kernels.code_point_map import code_point_map

    properties = unicode_tables.load(UNICODE_VERSION)
    forms = normalization_tables.load(UNICODE_VERSION)
    flags = np.zeros(unicode_tables.N_CODE_POINTS, np.uint8)
    categories = np.array(list(unicode_tables.CATEGORIES))
    by_category = np.zeros(categories.size, np.uint8)
    by_category[[name[0] in "LM" for name in categories]] |= kernel.LETTER
    if how.zero_digits:
        by_category[categories == "Nd"] |= kernel.DIGIT
    if how.drop_punctuation:
        by_category[[name[0] == "P" for name in categories]] |= kernel.PUNCTUATION
    flags |= _spread(properties.category_starts, by_category[properties.category_values])
    by_script = np.isin(np.array(properties.script_names), UNSPACED_SCRIPTS) * np.uint8(kernel.UNSPACED)
    flags |= _spread(properties.script_starts, by_script[properties.script_values])
    if how.collapse_space:
        for start, stop in properties.white_space.reshape(-1, 2):
            flags[start:stop] |= kernel.SPACE

    nothing: dict[int, list[int]] = {}
    decomposed = forms.mapping("decomposed") if how.nfc else nothing
    folds = forms.mapping("folded") if how.fold_case else nothing
    if how.nfc:
        folds = {start: [d for point in to for d in decomposed.get(point, [point])] for start, to in folds.items()}
    classes = np.zeros(unicode_tables.N_CODE_POINTS, np.uint8)
    classes[forms.combining_points] = forms.combining_classes
    pairs = (forms.composites[:, 0].astype(np.uint64) << np.uint64(21)) | forms.composites[:, 1].astype(np.uint64)
    composites = forms.composites[:, 2].copy()
    if not how.nfc:
        classes[:] = 0
        pairs, composites = pairs[:0], composites[:0]
    table = kernel.CanonicalTable(
        flags,
        classes,
        code_point_map({}, np.uint8),
        code_point_map(decomposed),
        code_point_map(folds),
        writable_view(pairs),
        writable_view(composites),
    )

    single: dict[int, bytes] = {}
    for point in sorted({*decomposed, *folds}):
        alone = kernel.normalise(table, np.array([point], np.int64)).tolist()
        if alone != [point]:
            flags[point] |= kernel.MAPPED
            single[point] = "".join(map(chr, alone)).encode("utf-8")
    if how.nfc:
        seconds = {*forms.composites[:, 1].tolist(), *range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}
        joining = seconds | set(forms.combining_points.tolist())
        for mapping in (decomposed, folds):
            joining |= {start for start, to in mapping.items() if to[0] in joining}
        flags[sorted(joining)] |= kernel.JOINS
    return table._replace(single=code_point_map(single, np.uint8))


def _spread(starts: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.repeat(values, np.diff(np.append(starts, unicode_tables.N_CODE_POINTS)))
