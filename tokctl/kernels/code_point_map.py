"""A map from code points to sequences of values, in two stages of small arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit

_N_PAGES = 0x1100


class CodePointMap(NamedTuple):
    """Entry e of ``slots[pages[cp >> 8] * 256 + (cp & 255)]`` is ``values[offsets[e - 1]:offsets[e]]``.

    ``pages`` int32[0x1100], ``slots`` int32[256 * p], ``offsets`` int32[e + 1], ``values`` of one type; entry 0 is none.
    """

    pages: np.ndarray
    slots: np.ndarray
    offsets: np.ndarray
    values: np.ndarray


def code_point_map(mapping: Mapping[int, Iterable[int]], dtype: type = np.int32) -> CodePointMap:
    """The arrays of ``mapping``, its values as ``dtype``."""
    pages = np.zeros(_N_PAGES, np.int32)
    used = sorted({point >> 8 for point in mapping})
    pages[used] = np.arange(1, len(used) + 1)
    slots = np.zeros(256 * (len(used) + 1), np.int32)
    offsets, values = [0], list[int]()
    for entry, point in enumerate(sorted(mapping), start=1):
        slots[pages[point >> 8] * 256 + (point & 255)] = entry
        values.extend(mapping[point])
        offsets.append(len(values))
    return CodePointMap(pages, slots, np.array(offsets, np.int32), np.array(values, dtype))


@jit(inner=True)
def map_entry(mapping, point):
    """The entry of a code point, 0 where there is none."""
    return mapping.slots[mapping.pages[point >> 8] * 256 + (point & 255)]
