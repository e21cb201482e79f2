"""What the search for near duplicates puts on disk between its passes: buckets of candidates, and their shingle sets."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tokctl.corpus.dedup.key_groups import Groups
from tokctl.kernels._boundary import writable_view


class BucketFile:
    """Groups on disk, in the order they were added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w+b")

    def add(self, groups: Groups) -> None:
        """Append groups."""
        if groups.members.size:
            self._file.write(np.array([groups.members.size, groups.offsets.size], np.int64).tobytes())
            self._file.write(groups.members.tobytes())
            self._file.write(groups.offsets.tobytes())

    def groups(self) -> Iterator[Groups]:
        """What was added, as it was added."""
        self._file.seek(0)
        while header := self._file.read(16):
            n_members, n_offsets = np.frombuffer(header, np.int64).tolist()
            members = np.frombuffer(self._file.read(8 * n_members), np.int64)
            yield Groups(members, np.frombuffer(self._file.read(8 * n_offsets), np.int64))

    def clear(self) -> None:
        """Forget what was added."""
        self._file.seek(0)
        self._file.truncate()

    def close(self) -> None:
        """Close and delete the file."""
        self._file.close()
        self._path.unlink(missing_ok=True)


class SetFile:
    """Sorted shingle sets on disk, by node."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w+b")
        self._offsets = array("q", [0])

    def add(self, values: np.ndarray) -> int:
        """Append a set (uint64[]); its node."""
        self._file.write(values.tobytes())
        self._offsets.append(self._offsets[-1] + values.size)
        return len(self._offsets) - 2

    def equals(self, node: int, values: np.ndarray) -> bool:
        """Whether the set of ``node`` is ``values``."""
        start, stop = self._offsets[node], self._offsets[node + 1]
        if stop - start != values.size:
            return False
        self._file.flush()
        return os.pread(self._file.fileno(), 8 * values.size, 8 * start) == values.tobytes()

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """``(values uint64[], offsets int64[n + 1])``, the values mapped from disk."""
        self._file.flush()
        offsets = np.array(self._offsets, np.int64)
        if offsets[-1] == 0:
            return np.empty(0, np.uint64), offsets
        return writable_view(np.asarray(np.memmap(self._path, np.uint64, "r", shape=(int(offsets[-1]),)))), offsets

    def close(self) -> None:
        """Close and delete the file."""
        self._file.close()
        self._path.unlink(missing_ok=True)
