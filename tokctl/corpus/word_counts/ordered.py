"""The words of a hash table in their order, on one or more threads."""

from __future__ import annotations

import itertools
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tokctl.kernels.word_count import Table

_SAMPLE = 1024  # prefixes that are looked at to divide the words among threads


class OrderedWords(NamedTuple):
    """Rows by (word, slice): ``data uint8[]``, ``offsets int64[n + 1]``, ``slices int64[n]`` or empty, ``counts int64[n]``."""

    data: np.ndarray
    offsets: np.ndarray
    slices: np.ndarray
    counts: np.ndarray


def ordered_words(table: Table, n_words: int, *, has_slices: bool, threads: int = 1) -> OrderedWords:
    """The ``n_words`` of a table, sorted. Each thread orders and copies a range of words; the result is the same."""
    from tokctl.kernels import word_order as kernel

    with ThreadPoolExecutor(threads, thread_name_prefix="order") as pool:
        parts = _ordered_rows(table, n_words, pool, threads)
        places = np.cumsum([0, *pool.map(partial(kernel.total_bytes, table), parts)], dtype=np.int64)
        out = OrderedWords(
            data=np.empty(places[-1], np.uint8),
            offsets=np.empty(n_words + 1, np.int64),
            slices=np.empty(n_words if has_slices else 0, np.int64),
            counts=np.empty(n_words, np.int64),
        )
        out.offsets[-1] = places[-1]
        ends = np.cumsum([rows.size for rows in parts])

        def gather(k: int) -> None:
            own = slice(ends[k] - parts[k].size, ends[k])
            columns = out.offsets[own], out.slices[own], out.counts[own]
            kernel.gather(table, parts[k], places[k], places[k + 1], out.data, *columns)

        list(pool.map(gather, range(len(parts))))
    return out


def _ordered_rows(table: Table, n_words: int, pool: Executor, threads: int) -> list[np.ndarray]:
    """The rows of a table in order, as one or more parts that follow each other, each ordered by a thread."""
    from tokctl.kernels import word_order as kernel

    prefixes, rows = np.empty(n_words, np.uint64), np.empty(n_words, np.int64)
    kernel.collect(table, prefixes, rows)
    other_prefixes, other_rows = np.empty(n_words, np.uint64), np.empty(n_words, np.int64)
    starts = np.array([0, n_words], np.int64)
    if threads > 1 and n_words:
        starts = np.empty(threads + 1, np.int64)
        sample = np.sort(prefixes[:: max(1, n_words // _SAMPLE)])
        pivots = sample[np.arange(1, threads) * sample.size // threads]
        kernel.deal(prefixes, rows, pivots, starts, other_prefixes, other_rows)
        prefixes, rows, other_prefixes, other_rows = other_prefixes, other_rows, prefixes, rows

    def order(own: slice) -> np.ndarray:
        arrays = prefixes[own], rows[own], other_prefixes[own], other_rows[own]
        kernel.sort_prefixes(*arrays, np.empty(kernel.HISTOGRAM, np.int64))
        kernel.order_equal_prefixes(table, *arrays)
        return rows[own]

    return list(pool.map(order, itertools.starmap(slice, itertools.pairwise(starts.tolist()))))
