"""Unicode's normalisation forms NFC, NFD, NFKC and NFKD (UAX #15), from tables of a declared Unicode version."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokctl.kernels._boundary import writable_view
from tokctl.tokenizer import normalization_tables, unicode_tables
from tokctl.tokenizer.aligned import AlignedPieces
from tokctl.tokenizer.normalizers.rewriting import rewrite_texts

if TYPE_CHECKING:
    from tokctl.kernels.rewrite_text import RewriteTable

FORMS = ("nfc", "nfd", "nfkc", "nfkd")

_HANGUL = range(0xAC00, 0xD7A4)
_VOWELS_AND_FINALS = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))


@dataclass(frozen=True)
class UnicodeForm:
    """One of ``FORMS``, with the tables of ``unicode_version`` (9.0.0 is that of the tokenizers library)."""

    type: str
    unicode_version: str = normalization_tables.DEFAULT_VERSION

    def __post_init__(self) -> None:
        if self.type not in FORMS:
            raise ValueError(f"{self.type!r} is no normalisation form")
        if self.unicode_version not in normalization_tables.versions():
            known = ", ".join(normalization_tables.versions())
            raise ValueError(f"there are no tables for Unicode {self.unicode_version!r} (there are: {known})")

    def to_json(self) -> dict[str, Any]:
        """The form and the Unicode version."""
        return {"type": self.type, "unicode_version": self.unicode_version}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> UnicodeForm:
        """The inverse of ``to_json``."""
        return cls(value["type"], value["unicode_version"])

    def apply(self, texts: AlignedPieces) -> AlignedPieces:
        """See ``Normalizer``."""
        return rewrite_texts(_table(self.type, self.unicode_version), texts)


@functools.lru_cache(maxsize=8)
def _table(form: str, version: str) -> RewriteTable:
    from tokctl.kernels import rewrite_text as kernel
    from tokctl.kernels.code_point_map import code_point_map

    tables = normalization_tables.load(version)
    composes = form.endswith("c")
    mapped = tables.mapping("decomposed")
    if "k" in form:
        mapped |= tables.mapping("compatible")
    flags = np.zeros(unicode_tables.N_CODE_POINTS, np.uint8)
    classes = np.zeros(unicode_tables.N_CODE_POINTS, np.uint8)
    classes[tables.combining_points] = tables.combining_classes
    composing: set[int] = set()
    pairs, composites = np.empty(0, np.uint64), np.empty(0, np.int32)
    if composes:
        composing = {*tables.composites[:, 1].tolist(), *_VOWELS_AND_FINALS}
        first, second = (tables.composites[:, k].astype(np.uint64) for k in range(2))
        pairs, composites = (first << np.uint64(21)) | second, tables.composites[:, 2].copy()
    joining = composing | set(tables.combining_points.tolist())
    joining |= {point for point, to in mapped.items() if to[0] in joining}
    composing |= {point for point, to in mapped.items() if to[0] in composing}
    table = kernel.RewriteTable(
        flags,
        classes,
        code_point_map(mapped),
        writable_view(pairs),
        composites,
        np.array([True, composes], np.int64),
        np.zeros(1, np.int64),
    )
    changed = set() if composes else set(_HANGUL)
    for point, to in mapped.items():
        values = np.array(to, np.int64)
        values[1:] |= 1 << 32  # the further code points of a mapping, as the kernel has them
        alone = kernel.order_and_compose(table, values)
        if alone.tolist() != [point]:
            changed.add(point)
    for points, flag in ((changed, kernel.MAPPED), (joining, kernel.JOINS), (composing, kernel.COMPOSES)):
        flags[np.array(sorted(points), np.int64)] |= flag
    return table
