"""Where the time of a count goes: seconds of each phase, added up over the threads that were in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

START, READ, COUNT, SPILL, MERGE, WRITE = PHASES = (
    "start",  # loading the compiled kernels, or compiling them
    "read",
    "split and count",
    "spill",
    "sort and merge",
    "write",
)


class PhaseTimes:
    """Wall-clock seconds by phase. Any thread may add; a phase is timed by the thread that is in it."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self._lock = threading.Lock()

    def add(self, phase: str, seconds: float) -> None:
        with self._lock:
            self._seconds[phase] += seconds

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Time what is done inside."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.add(phase, time.perf_counter() - begin)

    def each(self, phase: str, items: Iterable[T]) -> Iterator[T]:
        """The items; making each of them is timed, what is done with it is not."""
        iterator = iter(items)
        while True:
            with self.timed(phase):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    def to_json(self, n_bytes: int) -> dict[str, Any]:
        """Seconds of each phase, its share in them all, and how many of the ``n_bytes`` counted a thread counts in a second."""
        total = sum(self._seconds.values()) or 1.0
        return {
            "seconds": {phase: round(seconds, 4) for phase, seconds in self._seconds.items()},
            "shares": {phase: round(seconds / total, 3) for phase, seconds in self._seconds.items()},
            "bytes_per_second_per_core": round(n_bytes / self._seconds[COUNT]) if self._seconds[COUNT] else 0,
        }

    def line(self, n_bytes: int) -> str:
        """The same for a person."""
        found = self.to_json(n_bytes)
        shares = ", ".join(f"{phase} {share:.0%}" for phase, share in found["shares"].items() if share >= 0.005)
        return f"counted {found['bytes_per_second_per_core'] / 1e6:,.0f} MB a second and core; of the time: {shares}"
