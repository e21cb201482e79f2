"""One thread's hash table of words: grows while it may, then writes itself to disk as a sorted run and starts afresh."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tokctl.corpus.word_counts.budget import Budget
from tokctl.corpus.word_counts.merge import overflow_error
from tokctl.corpus.word_counts.runs import FileRun, MemoryRun, Rows, Run

if TYPE_CHECKING:
    from tokctl.kernels.word_count import Pieces, Table

_BLOCK_WORDS = 1024
_STEP_WORDS = 1 << 20  # per kernel call: some 50 ms, after which Ctrl-C is seen


class WordTable:
    """Counts words of pieces of text within a budget; used by one thread at a time.

    ``spill_path(k)`` names the file of the k-th run; without it the table only grows. ``is_stopped()`` is asked between
    steps: when it says yes, counting ends there (another thread has failed and all is void).
    """

    def __init__(
        self,
        budget: Budget,
        *,
        spill_path: Callable[[int], Path] | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        from tokctl.kernels.word_count import Block

        self.spilled: list[FileRun] = []
        self.spill_seconds = 0.0
        self._budget = budget
        self._spill_path = spill_path
        self._is_stopped = is_stopped
        self._short = _aligned_zeros(2 * budget.first_slots)
        self._slots = _aligned_zeros(4 * budget.first_slots)
        self._arena = np.empty(budget.first_arena, np.uint8)
        self._state = np.array([0, budget.first_slots // 2, 0, budget.first_slots // 2, 0, 0], np.int64)
        self._block = Block(
            ends=np.empty(_BLOCK_WORDS, np.int64),
            starts=np.empty(_BLOCK_WORDS, np.int64),
            short=np.empty(3 * (_BLOCK_WORDS + 1), np.uint64),
            keys=np.empty(4 * _BLOCK_WORDS, np.uint64),
            places=np.empty(_BLOCK_WORDS + 1, np.int64),
        )

    @property
    def n_words(self) -> int:
        """(word, slice) pairs in the tables now."""
        return int(self._state[0] + self._state[2])

    @property
    def _table(self) -> Table:
        from tokctl.kernels.word_count import Table

        return Table(self._short, self._slots, self._arena, self._state)

    def count_scanned(self, automaton: Any, data: np.ndarray, pieces: Pieces) -> None:
        """Count the words that the pattern automaton finds in each piece of ``data``."""
        from tokctl.kernels import word_count as kernel

        self._count(kernel.count_scanned, (automaton, data, pieces), data, pieces)

    def count_given(self, data: np.ndarray, pieces: Pieces) -> None:
        """Count each piece of ``data`` as one word."""
        from tokctl.kernels import word_count as kernel

        self._count(kernel.count_given, (data, pieces), data, pieces)

    def _count(self, step: Callable[..., int], arguments: tuple[Any, ...], data: np.ndarray, pieces: Pieces) -> None:
        from tokctl.kernels import word_count as kernel

        cursor = np.zeros(3, np.int64)
        if pieces.starts.size:
            cursor[kernel.POSITION] = pieces.starts[0]
        while not self._is_stopped():
            status = step(*arguments, self._block, self._table, cursor, _STEP_WORDS)
            if status == kernel.DONE:
                return
            if status == kernel.TABLE_FULL:
                self._grow_slots()
            elif status == kernel.SHORT_FULL:
                self._grow_short()
            elif status == kernel.ARENA_FULL:
                self._grow_arena(int(self._state[kernel.NEEDED]))
            elif status == kernel.OVERFLOW:
                raise overflow_error(data[cursor[kernel.POSITION] : cursor[kernel.STOP]].tobytes())

    def _grow_slots(self) -> None:
        from tokctl.kernels.word_count import MAX_WORDS, rehash

        n_slots = self._slots.size // 4
        if (
            self._budget.max_slots is not None
            and 2 * n_slots > self._budget.max_slots
            and self.n_words
            and self._spill()
        ):
            return
        slots = _aligned_zeros(8 * n_slots)
        rehash(self._slots, slots)
        self._slots = slots
        self._state[MAX_WORDS] = n_slots  # half of the slots

    def _grow_short(self) -> None:
        from tokctl.kernels.word_count import MAX_SHORT, rehash_short

        n_slots = self._short.size // 2
        if (
            self._budget.max_slots is not None
            and 2 * n_slots > self._budget.max_slots
            and self.n_words
            and self._spill()
        ):
            return
        short = _aligned_zeros(4 * n_slots)
        rehash_short(self._short, short)
        self._short = short
        self._state[MAX_SHORT] = n_slots  # half of the slots

    def _grow_arena(self, needed: int) -> None:
        from tokctl.kernels.word_count import ARENA_USED

        used = int(self._state[ARENA_USED])
        size = max(2 * self._arena.size, used + needed)
        limit = self._budget.max_arena
        if limit is not None and size > limit:
            size = max(limit, used + needed)
            # A word that is larger than the whole arena gets one of its own, and leaves with it at the next spill.
            if size > limit and self.n_words and self._spill():
                return
        arena = np.empty(size, np.uint8)
        arena[:used] = self._arena[:used]
        self._arena = arena

    def _spill(self) -> bool:
        """Write the table's words as a sorted run and empty it; False where there is nowhere to write."""
        if self._spill_path is None:
            return False
        begin = time.perf_counter()
        self.spilled.append(FileRun.write(self._spill_path(len(self.spilled)), [self._sorted_rows()]))
        self.spill_seconds += time.perf_counter() - begin
        from tokctl.kernels.word_count import ARENA_USED, N_SHORT, N_WORDS

        self._short.fill(0)
        self._slots.fill(0)
        self._state[[N_WORDS, N_SHORT, ARENA_USED]] = 0
        if self._budget.max_arena is not None and self._arena.size > self._budget.max_arena:
            self._arena = np.empty(self._budget.first_arena, np.uint8)
        return True

    def take_runs(self) -> list[Run]:
        """All that was counted, as sorted runs; frees the table."""
        last = MemoryRun(self._sorted_rows())
        self._short = _aligned_zeros(2)
        self._slots = _aligned_zeros(4)
        self._arena = np.empty(0, np.uint8)
        self._state[:] = 0
        return [*self.spilled, last]

    def _sorted_rows(self) -> Rows:
        from tokctl.kernels import word_order as kernel

        n, table = self.n_words, self._table
        prefixes = np.empty(n, np.uint64)
        rows = np.empty(n, np.int64)
        kernel.collect(table, prefixes, rows)
        order = np.argsort(prefixes)
        prefixes, rows = prefixes[order], rows[order]
        kernel.order_equal_prefixes(table, prefixes, rows, order)
        del prefixes, order
        data = np.empty(kernel.total_bytes(table, rows), np.uint8)
        offsets, slices, counts = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        kernel.gather(table, rows, data, offsets, slices, counts)
        return Rows(data, offsets[:-1], offsets[1:], slices, counts)


def _aligned_zeros(n: int) -> np.ndarray:
    """``uint64[n]`` zeros that begin on a cache line, so that no slot straddles two."""
    buffer = np.zeros(n + 7, np.uint64)
    skip = (-buffer.ctypes.data % 64) // 8
    return buffer[skip : skip + n]
