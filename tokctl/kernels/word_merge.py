"""The k-way merge of sorted runs of (word, slice, count) rows, in steps that stop to be fed and emptied.

The runs' current blocks lie side by side in one flat buffer, so that the kernel has one signature for any number of
runs. Rows are ordered by word (bytewise), then slice; equal rows are added, with a check against overflow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import compare_bytes, copy_bytes, equal_bytes, prefix8

DONE, NEED_INPUT, OUTPUT_FULL, OVERFLOW = range(4)

# state of a merge
HEAP_SIZE, RUN, OUT_ROWS, OUT_BYTES = range(4)

_MAX_COUNT = np.iinfo(np.int64).max


class Inputs(NamedTuple):
    """The current block of each of k runs.

    ``data uint8[]``; ``starts``, ``stops`` (of words in ``data``), ``slices``, ``counts`` int64[k, rows];
    ``next``, ``length`` int64[k]: the current row and the number of rows; ``is_last`` uint8[k]: no block follows;
    ``prefixes`` uint64[k]: first 8 bytes of the current word; ``heap`` int64[k]: runs, smallest current row first.
    """

    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    slices: np.ndarray
    counts: np.ndarray
    next: np.ndarray
    length: np.ndarray
    is_last: np.ndarray
    prefixes: np.ndarray
    heap: np.ndarray


class Output(NamedTuple):
    """Merged rows: ``data uint8[]``, ``starts``, ``stops``, ``slices``, ``counts`` int64[rows]; rows of one word share bytes."""

    data: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    slices: np.ndarray
    counts: np.ndarray


@jit(inner=True)
def _is_before(inputs, a, b):
    """Whether run ``a``'s current row comes before run ``b``'s; equal rows in the order of the runs."""
    if inputs.prefixes[a] != inputs.prefixes[b]:
        return inputs.prefixes[a] < inputs.prefixes[b]
    i, j = inputs.next[a], inputs.next[b]
    order = compare_bytes(
        inputs.data, inputs.starts[a, i], inputs.stops[a, i], inputs.data, inputs.starts[b, j], inputs.stops[b, j]
    )
    if order != 0:
        return order < 0
    if inputs.slices[a, i] != inputs.slices[b, j]:
        return inputs.slices[a, i] < inputs.slices[b, j]
    return a < b


@jit(inner=True)
def _read_prefix(inputs, run):
    row = inputs.next[run]
    inputs.prefixes[run] = prefix8(inputs.data, inputs.starts[run, row], inputs.stops[run, row])


@jit(inner=True)
def _sift_down(inputs, size, at):
    heap = inputs.heap
    run = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _is_before(inputs, heap[child + 1], heap[child]):
            child += 1
        if not _is_before(inputs, heap[child], run):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = run


@jit
def start_merge(inputs, state):
    """Build the heap from the runs that have rows; every run's first block is loaded."""
    size = np.int64(0)
    for run in range(inputs.length.size):
        if inputs.length[run] > 0:
            _read_prefix(inputs, run)
            inputs.heap[size] = run
            size += 1
    state[HEAP_SIZE] = size
    for at in range(size // 2 - 1, -1, -1):
        _sift_down(inputs, size, at)


@jit
def resume_run(inputs, state):
    """Run ``state[RUN]``, the top of the heap, has a new block loaded: put it where it belongs."""
    _read_prefix(inputs, state[RUN])
    _sift_down(inputs, state[HEAP_SIZE], np.int64(0))


@jit
def merge_rows(inputs, output, state, n_slices):
    """Merge until all is done or something is needed.

    DONE; NEED_INPUT: run ``state[RUN]`` needs its next block, then :func:`resume_run`; OUTPUT_FULL: no row of the next
    word is in the output yet, so that the rows of one word always leave together (if the output is empty, its ``data``
    is too small for that word); OVERFLOW: adding run ``state[RUN]``'s current row would pass 2**63 - 1.
    """
    size = state[HEAP_SIZE]
    rows = state[OUT_ROWS]
    used = state[OUT_BYTES]
    status = DONE
    while size > 0:
        run = inputs.heap[0]
        row = inputs.next[run]
        start, stop = inputs.starts[run, row], inputs.stops[run, row]
        length = stop - start
        slice_code = inputs.slices[run, row]
        count = inputs.counts[run, row]
        same_word = (
            rows > 0
            and output.stops[rows - 1] - output.starts[rows - 1] == length
            and equal_bytes(inputs.data, start, output.data, output.starts[rows - 1], length)
        )
        if same_word and output.slices[rows - 1] == slice_code:
            if output.counts[rows - 1] > _MAX_COUNT - count:
                state[RUN] = run
                status = OVERFLOW
                break
            output.counts[rows - 1] += count
        else:
            if same_word:
                output.starts[rows] = output.starts[rows - 1]
                output.stops[rows] = output.stops[rows - 1]
            else:
                if rows + n_slices > output.counts.size or used + length > output.data.size:
                    status = OUTPUT_FULL
                    break
                copy_bytes(inputs.data, start, stop, output.data, used)
                output.starts[rows] = used
                used += length
                output.stops[rows] = used
            output.slices[rows] = slice_code
            output.counts[rows] = count
            rows += 1
        row += 1
        inputs.next[run] = row
        if row < inputs.length[run]:
            _read_prefix(inputs, run)
            _sift_down(inputs, size, np.int64(0))
        elif inputs.is_last[run] != 0:
            size -= 1
            inputs.heap[0] = inputs.heap[size]
            _sift_down(inputs, size, np.int64(0))
        else:
            state[RUN] = run
            status = NEED_INPUT
            break
    state[HEAP_SIZE] = size
    state[OUT_ROWS] = rows
    state[OUT_BYTES] = used
    return status


@jit
def spread(starts, stops, slices, counts, column_of, offsets, dense):
    """Rows of (word, slice) to one row a word: ``offsets int64[n_words + 1]``, ``dense int64[n_words, n_slices]``.

    ``column_of int64[n_slices]`` maps a slice code to its column; ``dense`` comes filled with zeros. Returns n_words.
    """
    n = 0
    offsets[0] = 0
    for i in range(starts.size):
        if i == 0 or starts[i] != starts[i - 1]:
            n += 1
            offsets[n] = stops[i]
        dense[n - 1, column_of[slices[i]]] = counts[i]
    return n


@jit
def copy_words(data, starts, stops, out):
    """Copy ``data[starts[i]:stops[i]]`` end to end into ``out``."""
    position = 0
    for i in range(starts.size):
        length = stops[i] - starts[i]
        copy_bytes(data, starts[i], stops[i], out, position)
        position += length


@jit
def first_unordered(data, offsets):
    """The first i whose word is empty or does not come after word i - 1 (bytewise); n_words if there is none."""
    for i in range(offsets.size - 1):
        if offsets[i] >= offsets[i + 1]:
            return i
        if i > 0 and compare_bytes(data, offsets[i - 1], offsets[i], data, offsets[i], offsets[i + 1]) >= 0:
            return i
    return offsets.size - 1
