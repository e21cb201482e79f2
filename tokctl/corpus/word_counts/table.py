"""One thread's hash table of words: grows while it may, then writes itself to disk as a sorted run and starts afresh."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tokctl.corpus.word_counts.budget import Budget
from tokctl.corpus.word_counts.counts import WordCounts
from tokctl.corpus.word_counts.merge import overflow_error
from tokctl.corpus.word_counts.ordered import ordered_words
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
            if status == kernel.OVERFLOW:
                raise overflow_error(data[cursor[kernel.POSITION] : cursor[kernel.STOP]].tobytes())
            self._make_room(status)

    def _make_room(self, status: int) -> None:
        """What a kernel asked for by its status."""
        from tokctl.kernels import word_count as kernel

        if status == kernel.TABLE_FULL:
            self._grow_slots()
        elif status == kernel.SHORT_FULL:
            self._grow_short()
        elif status == kernel.ARENA_FULL:
            self._grow_arena(int(self._state[kernel.NEEDED]))

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

    def absorb(self, other: WordTable) -> None:
        """Add the words that ``other`` holds to these, and free it. DataError: a count passes 2**63 - 1."""
        from tokctl.kernels import word_absorb as kernel
        from tokctl.kernels.word_count import DONE, OVERFLOW

        cursor = np.zeros(2, np.int64)
        for step in (kernel.absorb_short, kernel.absorb_slots):
            while (status := step(other._table, self._table, cursor)) != DONE:
                if status == OVERFLOW:
                    is_short = step is kernel.absorb_short
                    row = -1 - cursor[kernel.SHORT] if is_short else cursor[kernel.SLOT]
                    raise overflow_error(other._word(int(row)))
                self._make_room(status)
        other._free()

    def take_runs(self) -> list[Run]:
        """All that was counted, as sorted runs; frees the table."""
        last = MemoryRun(self._sorted_rows())
        self._free()
        return [*self.spilled, last]

    def take_counts(self, threads: int = 1) -> WordCounts:
        """The words without their slices, of which there is one, sorted by that many threads; frees the table."""
        words = ordered_words(self._table, self.n_words, has_slices=False, threads=threads)
        self._free()
        return WordCounts(words.data, words.offsets, words.counts)

    def _free(self) -> None:
        self._short = _aligned_zeros(2)
        self._slots = _aligned_zeros(4)
        self._arena = np.empty(0, np.uint8)
        self._state[:] = 0

    def _word(self, row: int) -> bytes:
        """The bytes of a row's word; see ``kernels.word_order`` for rows."""
        from tokctl.kernels import word_order as kernel

        rows = np.array([row], np.int64)
        data = np.empty(kernel.total_bytes(self._table, rows), np.uint8)
        offsets, slices, counts = np.empty(1, np.int64), np.empty(0, np.int64), np.empty(1, np.int64)
        kernel.gather(self._table, rows, 0, data.size, data, offsets, slices, counts)
        return data.tobytes()

    def _sorted_rows(self) -> Rows:
        words = ordered_words(self._table, self.n_words, has_slices=True)
        return Rows(words.data, words.offsets[:-1], words.offsets[1:], words.slices, words.counts)


def _aligned_zeros(n: int) -> np.ndarray:
    """``uint64[n]`` zeros that begin on a cache line, so that no slot straddles two."""
    buffer = np.zeros(n + 7, np.uint64)
    skip = (-buffer.ctypes.data % 64) // 8
    return buffer[skip : skip + n]
