"""Which rows have equal keys, out of core: keys go to a file, and are sorted one range of key values at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

_CHUNK = 1 << 18
_LEAST_MEMORY = 1 << 22  # a range of fewer bytes than this saves nothing and costs a pass over the file


class Groups(NamedTuple):
    """Groups of at least two: group j is ``members[offsets[j]:offsets[j + 1]]`` (int64), ascending inside a group."""

    members: np.ndarray
    offsets: np.ndarray


class KeyFile:
    """Keys of ``width`` uint64 words, numbered from 0 in the order they are added.

    Keys are hashes: the upper half of their first word is taken to be spread evenly when the work is cut into ranges.
    """

    def __init__(self, path: Path, width: int) -> None:
        self.n_keys = 0
        self._width = width
        self._path = path
        self._file = path.open("wb")

    def add(self, keys: np.ndarray) -> None:
        """Append ``keys`` (uint64[n, width], or uint64[n] when the width is one)."""
        self._file.write(np.ascontiguousarray(keys, np.uint64).tobytes())
        self.n_keys += keys.shape[0]

    def keys(self, numbers: np.ndarray) -> np.ndarray:
        """``uint64[n, width]``: the keys of some numbers."""
        self._file.flush()
        stored = np.memmap(self._path, np.uint64, "r", shape=(self.n_keys, self._width))
        return np.array(stored[numbers])

    def groups(self, memory_limit: int) -> Iterator[Groups]:
        """Groups of numbers with equal keys, in ascending order of their keys.

        One range of keys is in memory at a time: about 4 words a key (a range is never smaller than one group).
        """
        self._file.flush()
        n_ranges = max(1, -(-self.n_keys * 8 * (2 * self._width + 3) // max(_LEAST_MEMORY, memory_limit)))
        for number in range(n_ranges):
            keys, members = self._range(number, n_ranges)
            order = np.lexsort(keys.T[::-1])  # stable: equal keys stay in ascending order of members
            keys, members = keys[order], members[order]
            is_first = np.ones(members.size + 1, np.bool_)
            is_first[1:-1] = (keys[1:] != keys[:-1]).any(axis=1)
            starts = np.flatnonzero(is_first)
            sizes = np.diff(starts)
            if (sizes > 1).any():
                yield Groups(members[np.repeat(sizes > 1, sizes)], np.append(0, np.cumsum(sizes[sizes > 1])))

    def close(self) -> None:
        """Close and delete the file."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _range(self, number: int, n_ranges: int) -> tuple[np.ndarray, np.ndarray]:
        keys, members = [np.empty((0, self._width), np.uint64)], [np.empty(0, np.int64)]
        with self._path.open("rb") as file:
            for first in range(0, self.n_keys, _CHUNK):
                count = min(_CHUNK, self.n_keys - first)
                chunk = np.fromfile(file, np.uint64, count * self._width).reshape(count, self._width)
                upper = (chunk[:, 0] >> np.uint64(32)) * np.uint64(n_ranges) >> np.uint64(32)
                chosen = np.flatnonzero(upper == number)
                keys.append(chunk[chosen])
                members.append(chosen + first)
        return np.concatenate(keys), np.concatenate(members)
