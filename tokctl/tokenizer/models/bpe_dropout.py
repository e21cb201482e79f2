"""Driving the dropout kernel: words of each text with their numbers, slices, threads, and words too long for one call."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tokctl.errors import DataError
from tokctl.tokenizer.added_tokens import Pieces
from tokctl.tokenizer.models.bpe import BPE

if TYPE_CHECKING:
    from tokctl.kernels.bpe_dropout import DropSpace
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

SLICE_BYTES = 1 << 20  # text per kernel call, so that Ctrl-C is heard
CHUNK_BYTES = 4 << 20  # text per task
BLOCK_WORDS = 1 << 16
LONGEST_WORD = 1 << 12  # longer words get working arrays of their own
_BUFFER_IDS = 1 << 20
_MERGE_STEPS = 1 << 20


class DropoutEncoder:
    """Encodes pieces of text with dropout; threads may share it. Nothing is remembered from word to word."""

    def __init__(self, model: BPE, pre_tokenizer: PreTokenizer) -> None:
        self._model = model
        self._pre_tokenizer = pre_tokenizer

    def encode(
        self, data: np.ndarray, pieces: Pieces, keys: np.ndarray, threshold: int, workers: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """``(ids uint32[n], n_ids int64[k])`` as ``BPEEncoder.encode``; ``keys uint64[m]`` by document.

        The words of a document are numbered from 0 through all its pieces of text. Whole-word look-up is left out: every
        token is made by merges. DataError as there.
        """
        n_ids = np.zeros(len(pieces.starts), np.int64)
        ranges = _whole_documents(pieces, CHUNK_BYTES)
        self._model.merge_table  # noqa: B018 - made once, before threads ask for it
        if workers == 1 or len(ranges) == 1:
            parts = [self._encode_range(data, pieces, keys, threshold, n_ids, *bounds) for bounds in ranges]
        else:
            with ThreadPoolExecutor(workers) as pool:
                tasks = [
                    pool.submit(self._encode_range, data, pieces, keys, threshold, n_ids, *bounds) for bounds in ranges
                ]
                try:
                    parts = [task.result() for task in tasks]
                except BaseException:
                    for task in tasks:
                        task.cancel()
                    raise
        return (np.concatenate(parts) if parts else np.empty(0, np.uint32)), n_ids

    def _encode_range(
        self,
        data: np.ndarray,
        pieces: Pieces,
        keys: np.ndarray,
        threshold: int,
        n_ids: np.ndarray,
        first: int,
        last: int,
    ) -> np.ndarray:
        from tokctl.kernels import bpe_dropout as kernel

        space = kernel.drop_space(LONGEST_WORD)
        out = _Output()
        keys_signed = keys.view(np.int64)
        document, occurrence, origin = -1, 0, 0
        for i in range(first, last):
            owner, low, high = int(pieces.documents[i]), int(pieces.starts[i]), int(pieces.stops[i])
            if owner != document:
                document, occurrence, origin = owner, 0, low
            before = out.total
            if pieces.tokens[i] >= 0:
                out.append(np.array([pieces.tokens[i]], np.uint32))
            else:
                key = int(keys_signed[owner])
                for start, ends in self._blocks(data, low, high):
                    self._drop(data, start, ends, key, occurrence, np.uint64(threshold), space, out, owner, origin)
                    occurrence += len(ends)
            n_ids[i] = out.total - before
        return out.ids()

    def _blocks(self, data: np.ndarray, low: int, high: int) -> Iterator[tuple[int, np.ndarray]]:
        """``(start, ends int64[n])`` of the words of a piece of text, some thousands at a time."""
        automaton = self._pre_tokenizer.automaton
        if automaton is None:
            ends = np.asarray(self._pre_tokenizer.split(data[low:high]), np.int64) + low
            if len(ends):
                yield low, ends
            return
        from tokctl.kernels.pattern_scan import scan

        buffer = np.empty(min(BLOCK_WORDS, max(high - low, 1)), np.int64)
        while low < high:
            n, position = scan(automaton, data, low, high, buffer)
            yield low, buffer[:n]
            low = position

    def _drop(
        self,
        data: np.ndarray,
        start: int,
        ends: np.ndarray,
        key: int,
        occurrence: int,
        threshold: np.uint64,
        space: DropSpace,
        out: _Output,
        document: int,
        origin: int,
    ) -> None:
        from tokctl.kernels import bpe_dropout as kernel

        byte_ids, merges = self._model.byte_ids, self._model.merge_table
        cursor = np.zeros(3, np.int64)
        while True:
            cursor[kernel.N_OUT] = out.used
            status = kernel.drop_words(
                data, start, ends, key, occurrence, byte_ids, merges, threshold, space, out.buffer, cursor, SLICE_BYTES
            )
            out.advance(int(cursor[kernel.N_OUT]))
            if status == kernel.DONE:
                return
            if status == kernel.OUT_FULL:
                out.flush()
            elif status == kernel.UNKNOWN_BYTE:
                raise self._unknown_byte(data, int(cursor[kernel.AT]), document, origin)
            elif status == kernel.LONG_WORD:
                word = int(cursor[kernel.WORD])
                begin = start if word == 0 else int(ends[word - 1])
                large = kernel.drop_space(int(ends[word]) - begin)
                at = kernel.start_drop(data, begin, int(ends[word]), byte_ids, merges, key, occurrence + word, large)
                if at >= 0:
                    raise self._unknown_byte(data, int(at), document, origin)
                while not kernel.continue_drop(merges, threshold, large, _MERGE_STEPS):
                    pass
                ids = np.empty(int(large.merge.state[kernel.N_SYMBOLS]), np.uint32)
                kernel.write_merged(large.merge, ids, 0)
                out.append(ids)
                cursor[kernel.WORD] += 1

    def _unknown_byte(self, data: np.ndarray, position: int, document: int, origin: int) -> DataError:
        return DataError(
            f"the byte 0x{int(data[position]):02X} is not in this tokenizer's alphabet of "
            f"{int((self._model.byte_ids >= 0).sum())} bytes",
            hint="fit with all 256 bytes, or remove such bytes from the text",
            code="byte-outside-alphabet",
            row=document,
            offset=position - origin,
        )


class _Output:
    """Ids that grow: a buffer for the kernel and the full ones before it."""

    def __init__(self) -> None:
        self.buffer = np.empty(_BUFFER_IDS, np.uint32)
        self.used = 0
        self.total = 0
        self._parts: list[np.ndarray] = []

    def advance(self, used: int) -> None:
        self.total += used - self.used
        self.used = used

    def flush(self) -> None:
        self._parts.append(self.buffer[: self.used].copy())
        self.used = 0

    def append(self, ids: np.ndarray) -> None:
        if len(ids) > len(self.buffer) - self.used:
            self.flush()
        if len(ids) > len(self.buffer):
            self._parts.append(ids)
        else:
            self.buffer[self.used : self.used + len(ids)] = ids
            self.used += len(ids)
        self.total += len(ids)

    def ids(self) -> np.ndarray:
        self.flush()
        return np.concatenate(self._parts)


def _whole_documents(pieces: Pieces, size: int) -> list[tuple[int, int]]:
    """Ranges of the pieces of whole documents, about ``size`` bytes each, in order."""
    if len(pieces.starts) == 0:
        return []
    done = np.cumsum(pieces.stops - pieces.starts)
    last = np.flatnonzero(np.diff(pieces.documents, append=-1))  # the last piece of each document
    groups = done[last] // size
    cuts = last[np.flatnonzero(np.diff(groups))] + 1
    return list(pairwise([0, *cuts.tolist(), len(done)]))
