"""``WordCounter``: documents in, sorted unique words with counts out, within a memory limit, on one or more threads."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokctl.corpus.word_counts.budget import Budget
from tokctl.corpus.word_counts.combine import dense_parts
from tokctl.corpus.word_counts.counts import NO_WORDS, WordCounts, concatenated
from tokctl.corpus.word_counts.merge import merge_runs
from tokctl.corpus.word_counts.parquet import WordCountsWriter
from tokctl.corpus.word_counts.phases import COUNT, MERGE, READ, SPILL, START, WRITE, PhaseTimes
from tokctl.corpus.word_counts.specials import Specials
from tokctl.corpus.word_counts.table import WordTable
from tokctl.corpus.word_counts.text import flat_text, regex_words
from tokctl.corpus.word_counts.weighted import read_weighted
from tokctl.errors import DataError, UsageError
from tokctl.kernels._boundary import writable_view

if TYPE_CHECKING:
    from tokctl.kernels.word_count import Pieces
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

_MAX_SLICES = 1 << 23


class Batch(NamedTuple):
    """Documents to count together: Arrow (large) strings or binaries, one array or chunked.

    ``slices``: their slice names, an Arrow string array (may be dictionary-encoded), for a sliced counter.
    ``weights``: integers >= 0, int64[n]; a document of weight 0 is passed over.
    """

    texts: pa.Array | pa.ChunkedArray
    slices: pa.Array | pa.ChunkedArray | None = None
    weights: np.ndarray | None = None


@dataclass(frozen=True)
class CountReport:
    """What a count found. ``total`` is the sum of all counts, ``n_bytes`` the size of the documents, unweighted.

    ``specials``: (spelling, count), in the order given; ``n_spills``: sorted runs written because memory was full.
    """

    n_documents: int
    n_bytes: int
    n_words: int
    total: int
    slices: tuple[str, ...]
    specials: tuple[tuple[bytes, int], ...]
    n_spills: int


class WordCounter:
    """Counts the words of documents; each document on its own, its words never joined with the next one's.

    The result depends on the documents, weights and slices alone: not on their order, on batches, workers or memory.
    ``specials`` are carved out first (see :mod:`.specials`). ``is_sliced``: every document names its slice, and a word has a
    count for each. ``memory_limit`` (bytes; see :class:`Budget` for how it is divided) needs ``spill_dir``, an existing
    directory for temporary runs, which are gone after ``finish``. Any bytes are accepted; whether they are UTF-8 is for the
    reader to check.

    ``phases`` has the seconds of each phase so far.

    Errors of the add methods, DataError: a null document, a null slice, a count past 2**63 - 1. After an error the counter is
    of no further use.
    """

    def __init__(
        self,
        pre_tokenizer: PreTokenizer,
        specials: Sequence[str | bytes] = (),
        *,
        is_sliced: bool = False,
        memory_limit: int | None = None,
        spill_dir: Path | None = None,
        workers: int = 1,
        budget: Budget | None = None,
    ) -> None:
        if budget is None:
            budget = Budget.divide(memory_limit, workers)
        if budget.max_slots is not None and spill_dir is None:
            raise ValueError("a memory limit needs a spill_dir")
        self.budget = budget
        self.phases = PhaseTimes()
        self._pre_tokenizer = pre_tokenizer
        self._specials = Specials(specials)
        self._is_sliced = is_sliced
        self._spill_dir = spill_dir
        self._workers = workers
        self._lock = threading.Lock()
        self._has_failed = threading.Event()
        self._slice_codes: dict[str, int] = {}
        self._special_counts = [0] * len(self._specials.spellings)
        self._n_documents = self._n_bytes = self._n_spills = 0
        self._tables = [
            WordTable(
                budget,
                spill_path=None if spill_dir is None else _run_paths(spill_dir, worker),
                is_stopped=self._has_failed.is_set,
            )
            for worker in range(workers)
        ]
        self._free: queue.SimpleQueue[WordTable] = queue.SimpleQueue()
        for table in self._tables:
            self._free.put(table)

    @property
    def batch_bytes(self) -> int:
        """How much text a batch should hold for the memory limit to be kept."""
        return self.budget.batch_bytes

    def start(self) -> None:
        """Load the kernels now, which else the first batch does; only the times of the phases know the difference."""
        from tokctl.kernels.word_count import Pieces

        with self.phases.timed(START):
            nothing = Pieces(*(np.empty(0, np.int64) for _ in range(4)))
            self._count(self._tables[0], np.empty(0, np.uint8), nothing)

    def add_texts(
        self,
        texts: pa.Array | pa.ChunkedArray,
        slices: pa.Array | pa.ChunkedArray | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        """Count one batch on the calling thread. May be called from as many threads at once as there are workers."""
        table = self._free.get()
        begin, spilling = time.perf_counter(), table.spill_seconds
        try:
            self._add(table, Batch(texts, slices, weights))
            spilling = table.spill_seconds - spilling
            self.phases.add(SPILL, spilling)
            self.phases.add(COUNT, time.perf_counter() - begin - spilling)
        except BaseException:
            self._has_failed.set()
            raise
        finally:
            self._free.put(table)
        if self.budget.max_slots is not None:
            # Arrow keeps what readers have freed, several times the size of a batch: under a limit it is given back.
            pa.default_memory_pool().release_unused()

    def add_batches(self, batches: Iterable[Batch]) -> None:
        """Count all batches on ``workers`` threads. The iterable is read on the calling thread, not far ahead."""
        batches = self.phases.each(READ, batches)
        if self._workers == 1:
            for batch in batches:
                self.add_texts(*batch)
            return
        running: set[Future[None]] = set()
        with ThreadPoolExecutor(self._workers, thread_name_prefix="count") as pool:
            try:
                for batch in batches:
                    running.add(pool.submit(self.add_texts, *batch))
                    if len(running) > self._workers:
                        done, running = wait(running, return_when=FIRST_COMPLETED)
                        for future in done:
                            future.result()
                for future in running:
                    future.result()
            except BaseException:
                self._has_failed.set()
                raise

    def add_weighted(self, path: Path, slice_name: str | None = None) -> int:
        """Count a file of weighted rows (see :mod:`.weighted`), in a sliced counter all for ``slice_name``; their number."""
        if self._is_sliced and slice_name is None:
            raise UsageError(
                f"the weighted file {path} has no slices, and the words are counted by slice",
                hint="count without a slice key, or count the weighted file on its own",
                code="weighted-without-slice",
            )

        n_rows = 0

        def batches() -> Iterator[Batch]:
            nonlocal n_rows
            for texts, weights in read_weighted(path, self.batch_bytes):
                n_rows += len(texts)
                slices = None if slice_name is None else pa.array([slice_name] * len(texts), pa.large_string())
                yield Batch(texts, slices, weights)

        self.add_batches(batches())
        return n_rows

    def finish(self, path: Path) -> CountReport:
        """Write the words to a Parquet file (see :mod:`.parquet`); the counter is spent."""
        names = self._slice_names()
        with WordCountsWriter(path, tuple(sorted(names, key=str.encode))) as writer:
            for part in self._parts(names):
                with self.phases.timed(WRITE):
                    writer.append(part)
            with self.phases.timed(WRITE):
                writer.finish()
        return self._report(names, writer.n_words, writer.total)

    def finish_in_memory(self) -> tuple[WordCounts, CountReport]:
        """The words as a table in memory; the counter is spent."""
        names = self._slice_names()
        parts = list(self._parts(names))
        if parts:
            counts = concatenated(parts)
        else:
            slices = tuple(sorted(names, key=str.encode))
            shape = (0, len(slices)) if slices else (0,)
            counts = WordCounts(NO_WORDS.data, NO_WORDS.offsets, np.empty(shape, np.int64), slices)
        return counts, self._report(names, counts.n_words, counts.total)

    def _slice_names(self) -> list[str]:
        return sorted(self._slice_codes, key=self._slice_codes.__getitem__)

    def _parts(self, names: list[str]) -> Iterator[WordCounts]:
        if self._has_failed.is_set():
            raise RuntimeError("a counter can't be finished after an error")
        self._n_spills = sum(len(table.spilled) for table in self._tables)
        with self.phases.timed(MERGE):
            if not self._n_spills and self.budget.max_slots is None:
                while len(self._tables) > 1:
                    self._tables[0].absorb(self._tables.pop())
            if not self._n_spills and len(self._tables) == 1 and not self._is_sliced:
                return iter([self._tables[0].take_counts(self._workers)])
            runs = [run for table in self._tables for run in table.take_runs()]
        blocks = merge_runs(
            runs, n_slices=max(1, len(names)), merge_bytes=self.budget.merge_bytes, spill_dir=self._spill_dir
        )
        return self.phases.each(MERGE, dense_parts(blocks, names))

    def _report(self, names: list[str], n_words: int, total: int) -> CountReport:
        return CountReport(
            n_documents=self._n_documents,
            n_bytes=self._n_bytes,
            n_words=n_words,
            total=total,
            slices=tuple(sorted(names, key=str.encode)),
            specials=tuple(zip(self._specials.spellings, self._special_counts, strict=True)),
            n_spills=self._n_spills,
        )

    def _add(self, table: WordTable, batch: Batch) -> None:
        texts, slices, weights = batch
        if (slices is not None) != self._is_sliced:
            raise ValueError("slices are for sliced counters, which need them")
        if weights is not None:
            weights = np.ascontiguousarray(weights, np.int64)
            if weights.shape != (len(texts),) or bool((weights < 0).any()):
                raise ValueError("weights are integers >= 0, one a document")
        codes = None if slices is None else self._codes(slices, len(texts))
        first = 0
        for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
            last = first + len(chunk)
            self._add_chunk(
                table,
                chunk,
                np.zeros(len(chunk), np.int64) if codes is None else codes[first:last],
                np.ones(len(chunk), np.int64) if weights is None else weights[first:last],
                first,
            )
            first = last

    def _codes(self, slices: pa.Array | pa.ChunkedArray, n: int) -> np.ndarray:
        """Slice codes of names, int64[n]; new names get the next code."""
        if len(slices) != n:
            raise ValueError("one slice name a document")
        if isinstance(slices, pa.ChunkedArray):
            slices = pa.chunked_array(slices.chunks, slices.type).combine_chunks()
            if isinstance(slices, pa.ChunkedArray):
                slices = slices.chunk(0) if slices.num_chunks else pa.array([], pa.large_string())
        if slices.null_count:
            row = int(np.flatnonzero(pc.is_null(slices).to_numpy(zero_copy_only=False))[0])
            raise DataError("a document has no slice", hint="fill the slice column", code="null-slice", row=row)
        encoded = slices if pa.types.is_dictionary(slices.type) else pc.dictionary_encode(slices)
        names = encoded.dictionary.to_pylist()
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        with self._lock:
            used = np.unique(indices)  # a dictionary may have names that no row has
            code_of = np.zeros(len(names), np.int64)
            for i in used.tolist():
                code_of[i] = self._slice_codes.setdefault(str(names[i]), len(self._slice_codes))
            if len(self._slice_codes) > _MAX_SLICES:
                raise DataError(
                    f"there are more than {_MAX_SLICES:,} slices",
                    hint="choose a slice key with fewer values",
                    code="too-many-slices",
                )
        return code_of[indices]

    def _add_chunk(
        self, table: WordTable, chunk: pa.Array, codes: np.ndarray, weights: np.ndarray, first_row: int
    ) -> None:
        from tokctl.kernels.word_count import Pieces

        data, offsets = flat_text(chunk, first_row)
        documents = Pieces(offsets[:-1], offsets[1:], writable_view(weights), writable_view(codes))
        n_bytes = int(offsets[-1] - offsets[0])
        if self._specials:
            found = np.zeros(len(self._special_counts), np.int64)
            for pieces in self._specials.carve(data, documents, found):
                self._count(table, data, pieces)
        else:
            found = np.zeros(0, np.int64)
            self._count(table, data, documents)
        with self._lock:
            self._n_documents += len(chunk)
            self._n_bytes += n_bytes
            self._special_counts = [a + b for a, b in zip(self._special_counts, found.tolist(), strict=True)]

    def _count(self, table: WordTable, data: np.ndarray, pieces: Pieces) -> None:
        if not self._pre_tokenizer.patterns:
            table.count_given(data, pieces)
        elif self._pre_tokenizer.automaton is not None:
            table.count_scanned(self._pre_tokenizer.automaton, data, pieces)
        else:
            for words in regex_words(self._pre_tokenizer, data, pieces):
                table.count_given(data, words)


def _run_paths(spill_dir: Path, worker: int) -> Any:
    def path(run: int) -> Path:
        return spill_dir / f"run-{worker:03d}-{run:06d}"

    return path
