"""The k-way merge of sorted runs, streaming, within a given amount of memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tokctl.corpus.word_counts.runs import FileRun, MemoryRun, Rows, Run
from tokctl.errors import DataError
from tokctl.kernels._boundary import bytes_view

MAX_FAN_IN = 64
_ROW_BYTES = 64  # 32 of a row's columns and as much for its word


def overflow_error(word: bytes) -> DataError:
    """The DataError (code ``count-overflow``) for a word whose count passes 2**63 - 1."""
    return DataError(
        f"the count of {shown(word)} passes 2^63 - 1, the most that a 64-bit count holds",
        hint="lower the weights of the input",
        code="count-overflow",
    )


def shown(word: bytes) -> str:
    """A word for a message: as text where it is text, never longer than a line."""
    text = word[:60].decode("utf-8", "backslashreplace")
    return repr(text) + (f"... ({len(word):,} bytes)" if len(word) > 60 else "")


def merge_runs(
    runs: Sequence[Run], *, n_slices: int, merge_bytes: int, spill_dir: Path | None = None
) -> Iterator[Rows]:
    """Merge runs to blocks of rows, sorted and unique; all rows of one word (a row a slice) are in one block.

    More than 64 runs are first merged to fewer, by way of ``spill_dir`` (default: the system's place for temporary files).
    Runs are deleted when they are read. ``n_slices``: how many slice codes there are. DataError: a sum passes 2**63 - 1.
    """
    runs = list(runs)
    if len(runs) == 1 and n_slices == 1 and isinstance(runs[0], MemoryRun):
        yield runs[0].take_all()
        return
    if len(runs) <= MAX_FAN_IN:
        yield from _merge(runs, n_slices, merge_bytes)
        return
    with tempfile.TemporaryDirectory(prefix="merge-", dir=spill_dir) as directory:
        n_merged = 0
        while len(runs) > MAX_FAN_IN:
            path = Path(directory, f"merged-{n_merged:05d}")
            n_merged += 1
            runs = [*runs[MAX_FAN_IN:], FileRun.write(path, _merge(runs[:MAX_FAN_IN], n_slices, merge_bytes))]
        yield from _merge(runs, n_slices, merge_bytes)


def _merge(runs: list[Run], n_slices: int, merge_bytes: int) -> Iterator[Rows]:
    from tokctl.kernels import word_merge as kernel

    share = merge_bytes // (len(runs) + 2)
    buffers = _Buffers(runs, max(4, share // _ROW_BYTES), max(64, share // 2))
    out_rows = max(n_slices, 4, share // _ROW_BYTES)
    output = _empty_output(out_rows, max(64, share // 2))
    state = np.zeros(4, np.int64)
    kernel.start_merge(buffers.inputs, state)
    while True:
        status = kernel.merge_rows(buffers.inputs, output, state, n_slices)
        if status == kernel.NEED_INPUT:
            buffers.load(int(state[kernel.RUN]))
            kernel.resume_run(buffers.inputs, state)
        elif status == kernel.OVERFLOW:
            raise overflow_error(buffers.current_word(int(state[kernel.RUN])))
        else:
            n = int(state[kernel.OUT_ROWS])
            next_word = buffers.current_word_length(int(buffers.inputs.heap[0])) if status == kernel.OUTPUT_FULL else 0
            if n:
                yield Rows(*output).part(0, n)
            if status == kernel.DONE:
                break
            output = _empty_output(out_rows, max(64, share // 2, next_word))
            state[kernel.OUT_ROWS] = state[kernel.OUT_BYTES] = 0
    for run in runs:
        run.delete()


def _empty_output(rows: int, n_bytes: int):  # type: ignore[no-untyped-def]
    from tokctl.kernels.word_merge import Output

    return Output(np.empty(n_bytes, np.uint8), *(np.empty(rows, np.int64) for _ in range(4)))


class _Buffers:
    """The current blocks of all runs, side by side in one array: each run has a region of its own."""

    def __init__(self, runs: list[Run], max_rows: int, max_bytes: int) -> None:
        from tokctl.kernels.word_merge import Inputs

        k = len(runs)
        self._runs = runs
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._base = [run * max_bytes for run in range(k)]
        self._size = [max_bytes] * k
        self.inputs = Inputs(
            data=np.empty(k * max_bytes, np.uint8),
            starts=np.empty((k, max_rows), np.int64),
            stops=np.empty((k, max_rows), np.int64),
            slices=np.empty((k, max_rows), np.int64),
            counts=np.empty((k, max_rows), np.int64),
            next=np.zeros(k, np.int64),
            length=np.zeros(k, np.int64),
            is_last=np.zeros(k, np.uint8),
            prefixes=np.zeros(k, np.uint64),
            heap=np.zeros(k, np.int64),
        )
        for run in range(k):
            self.load(run)

    def load(self, run: int) -> None:
        """Read the next block of a run into its region."""
        rows, is_last = self._runs[run].next_rows(self._max_rows, self._max_bytes)
        inputs = self.inputs
        n = rows.n_rows
        first, last = (int(rows.starts.min()), int(rows.stops.max())) if n else (0, 0)
        if last - first > self._size[run]:  # a word larger than the region
            self._base[run] = inputs.data.size
            self._size[run] = last - first
            self.inputs = inputs = inputs._replace(data=np.concatenate([inputs.data, np.empty(last - first, np.uint8)]))
        base = self._base[run]
        inputs.data[base : base + last - first] = bytes_view(rows.data)[first:last]
        inputs.starts[run, :n] = rows.starts + (base - first)
        inputs.stops[run, :n] = rows.stops + (base - first)
        inputs.slices[run, :n] = rows.slices
        inputs.counts[run, :n] = rows.counts
        inputs.next[run] = 0
        inputs.length[run] = n
        inputs.is_last[run] = is_last

    def current_word_length(self, run: int) -> int:
        row = self.inputs.next[run]
        return int(self.inputs.stops[run, row] - self.inputs.starts[run, row])

    def current_word(self, run: int) -> bytes:
        row = self.inputs.next[run]
        return self.inputs.data[self.inputs.starts[run, row] : self.inputs.stops[run, row]].tobytes()
