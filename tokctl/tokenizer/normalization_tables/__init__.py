"""Canonical normalisation and full case folding from tables that ship with tokctl, one file per Unicode version.

The companion of ``unicode_tables`` (which holds what patterns need): a result must not depend on the Python that runs
it, so ``unicodedata`` and ``str.casefold`` are never asked.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources

import numpy as np

DEFAULT_VERSION = "16.0.0"


@dataclass(frozen=True)
class NormalizationTable:
    """What NFC, NFD and full case folding need, apart from the arithmetic of Hangul syllables.

    ``combining_points int32[c]`` are the code points whose canonical combining class is not zero and
    ``combining_classes uint8[c]`` that class. ``decomposed_points int32[d]`` have a canonical decomposition: the full
    one of the i-th is ``decomposed[decomposed_offsets[i]:decomposed_offsets[i + 1]]``; the same for ``folded_*``, the
    full case folding (statuses C and F). ``composites int32[k, 3]`` are (first, second, composite), sorted.
    """

    version: str
    combining_points: np.ndarray
    combining_classes: np.ndarray
    decomposed_points: np.ndarray
    decomposed_offsets: np.ndarray
    decomposed: np.ndarray
    composites: np.ndarray
    folded_points: np.ndarray
    folded_offsets: np.ndarray
    folded: np.ndarray


@functools.cache
def load(version: str = DEFAULT_VERSION) -> NormalizationTable:
    """The table of one Unicode version; ``KeyError`` where that version is not shipped."""
    file = resources.files(__package__) / f"{version}.npz"
    if not file.is_file():
        raise KeyError(version)
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        return NormalizationTable(version=version, **{name: arrays[name] for name in arrays.files})
