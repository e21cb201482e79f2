"""Normalisation, full case folding and full lower case from tables that ship with tokctl, one file per Unicode version.

9.0.0 is what the normalisation forms of tokenizers 0.23.3 implement, 17.0.0 its lower case and what it takes for a
number (both probed over all code points; the tests repeat that). 16.0.0 is the default for everything of tokctl's own.

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
    """What the normalisation forms, full case folding and lower case need, apart from the arithmetic of Hangul syllables.

    ``combining_points int32[c]`` are the code points whose canonical combining class is not zero and
    ``combining_classes uint8[c]`` that class. ``decomposed_points int32[d]`` have a canonical decomposition: the full
    one of the i-th is ``decomposed[decomposed_offsets[i]:decomposed_offsets[i + 1]]``; the same for ``compatible_*``,
    the full compatibility decomposition where it is another one; ``folded_*``, the full case folding (statuses C and F);
    and ``lowered_*``, the full lower case without context. ``composites int32[k, 3]`` are (first, second, composite), sorted.
    """

    version: str
    combining_points: np.ndarray
    combining_classes: np.ndarray
    decomposed_points: np.ndarray
    decomposed_offsets: np.ndarray
    decomposed: np.ndarray
    composites: np.ndarray
    compatible_points: np.ndarray
    compatible_offsets: np.ndarray
    compatible: np.ndarray
    folded_points: np.ndarray
    folded_offsets: np.ndarray
    folded: np.ndarray
    lowered_points: np.ndarray
    lowered_offsets: np.ndarray
    lowered: np.ndarray

    def mapping(self, name: str) -> dict[int, list[int]]:
        """``decomposed``, ``compatible``, ``folded`` or ``lowered`` as code point -> code points."""
        points, offsets, values = (getattr(self, f"{name}{part}") for part in ("_points", "_offsets", ""))
        flat, bounds = values.tolist(), offsets.tolist()
        return {point: flat[bounds[i] : bounds[i + 1]] for i, point in enumerate(points.tolist())}


def versions() -> list[str]:
    """The Unicode versions that ship with this tokctl, oldest first."""
    names = (entry.name for entry in resources.files(__package__).iterdir())
    found = [name.removesuffix(".npz") for name in names if name.endswith(".npz")]
    return sorted(found, key=lambda version: [int(part) for part in version.split(".")])


@functools.cache
def load(version: str = DEFAULT_VERSION) -> NormalizationTable:
    """The table of one Unicode version; ``KeyError`` where that version is not shipped."""
    file = resources.files(__package__) / f"{version}.npz"
    if not file.is_file():
        raise KeyError(version)
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        return NormalizationTable(version=version, **{name: arrays[name] for name in arrays.files})
