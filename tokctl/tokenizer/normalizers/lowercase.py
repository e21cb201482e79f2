"""Full lower case of each character by itself (``İ`` becomes two characters; no language, no final sigma)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokctl.tokenizer import normalization_tables, unicode_tables
from tokctl.tokenizer.aligned import AlignedPieces
from tokctl.tokenizer.normalizers.rewriting import rewrite_texts

if TYPE_CHECKING:
    from tokctl.kernels.rewrite_text import RewriteTable


@dataclass(frozen=True)
class Lowercase:
    """Lower case with the tables of ``unicode_version`` (17.0.0 is that of the tokenizers library)."""

    unicode_version: str = normalization_tables.DEFAULT_VERSION
    type: str = "lowercase"

    def __post_init__(self) -> None:
        if self.unicode_version not in normalization_tables.versions():
            known = ", ".join(normalization_tables.versions())
            raise ValueError(f"there are no tables for Unicode {self.unicode_version!r} (there are: {known})")

    def to_json(self) -> dict[str, Any]:
        """The Unicode version."""
        return {"type": self.type, "unicode_version": self.unicode_version}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Lowercase:
        """The inverse of ``to_json``."""
        return cls(value["unicode_version"])

    def apply(self, texts: AlignedPieces) -> AlignedPieces:
        """See ``Normalizer``."""
        return rewrite_texts(_table(self.unicode_version), texts)


@functools.lru_cache(maxsize=2)
def _table(version: str) -> RewriteTable:
    from tokctl.kernels import rewrite_text as kernel
    from tokctl.kernels.code_point_map import code_point_map

    lowered = normalization_tables.load(version).mapping("lowered")
    flags = np.zeros(unicode_tables.N_CODE_POINTS, np.uint8)
    flags[np.array(sorted(lowered), np.int64)] = kernel.MAPPED
    return kernel.RewriteTable(
        flags,
        np.zeros(unicode_tables.N_CODE_POINTS, np.uint8),
        code_point_map(lowered),
        np.empty(0, np.uint64),
        np.empty(0, np.int32),
        np.zeros(2, np.int64),
        np.ones(1, np.int64),
    )
