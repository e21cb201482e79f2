"""Driving the encoding kernels: slices, output buffers, threads, and words too long for one call."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokctl.errors import DataError
from tokctl.kernels._boundary import bytes_view
from tokctl.tokenizer.added_tokens import Pieces
from tokctl.tokenizer.models.bpe import BPE

if TYPE_CHECKING:
    from tokctl.kernels.bpe_encode import Segments, Workspace
    from tokctl.kernels.bpe_merge_word import MergeSpace
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

SLICE_BYTES = 4 << 20  # text per kernel call, so that Ctrl-C is heard
CHUNK_BYTES = 8 << 20  # text per task when several threads work
_BUFFER_IDS = 1 << 24  # memory that is only touched where it is needed
_MERGE_STEPS = 1 << 20
_SHORT_TEXT = 1 << 12  # bytes


class _Space(NamedTuple):
    work: Workspace
    merge: MergeSpace


class _One(NamedTuple):
    """One text as a segment, and the cursor at its start: kept for short texts, where making arrays takes most of the time."""

    segments: Segments
    cursor: np.ndarray


class BPEEncoder:
    """Encodes pieces of text; threads may share it. Workspaces are kept, so that later calls begin with a warm cache."""

    def __init__(self, model: BPE, pre_tokenizer: PreTokenizer) -> None:
        self._model = model
        self._pre_tokenizer = pre_tokenizer
        self._spaces: list[_Space] = []  # append and pop are atomic
        self._ones: list[_One] = []

    def encode(self, data: np.ndarray, pieces: Pieces, workers: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """``(ids uint32[n], n_ids int64[k])``: the ids of all pieces in order, and how many each has.

        Raises DataError (its offset is the place in ``data``, its row the document) for a byte outside the alphabet.
        """
        n_ids = np.zeros(len(pieces.starts), np.int64)
        # Without an automaton every word takes memory until its chunk is encoded.
        in_chunks = workers > 1 or self._pre_tokenizer.automaton is None
        ranges = _chunks(pieces, CHUNK_BYTES) if in_chunks else [(0, len(n_ids))]
        self._model.tables  # noqa: B018 - made once, before threads ask for it
        if workers == 1 or len(ranges) == 1:
            parts = [self._encode_range(data, pieces, n_ids, *bounds) for bounds in ranges]
        else:
            with ThreadPoolExecutor(workers) as pool:
                tasks = [pool.submit(self._encode_range, data, pieces, n_ids, *bounds) for bounds in ranges]
                try:
                    parts = [task.result() for task in tasks]
                except BaseException:
                    for task in tasks:
                        task.cancel()
                    raise
        return (parts[0] if len(parts) == 1 else np.concatenate(parts)), n_ids

    def encode_text(self, text: bytes) -> np.ndarray:
        """``ids uint32[n]`` of one text without added tokens; DataError as above."""
        automaton = self._pre_tokenizer.automaton
        if automaton is None or not 0 < len(text) <= _SHORT_TEXT:
            return self.encode(bytes_view(text), _whole(len(text)))[0]
        data = np.frombuffer(bytearray(text), np.uint8)  # a copy costs less than a view of the right kind
        from tokctl.kernels import bpe_encode as kernel

        space = self._take_space()
        try:
            one = self._ones.pop()
        except IndexError:
            segments = kernel.Segments(*(np.full(1, value, np.int64) for value in (0, 0, -1, 0)))
            one = _One(segments, np.zeros(4, np.int64))
        one.segments.stops[0] = len(data)
        one.segments.n_ids[0] = 0
        one.cursor[:] = 0
        out = np.empty(len(data) + kernel.SPARE_IDS, np.uint32)
        try:
            status = kernel.encode_segments(
                automaton, data, one.segments, self._model.tables, *space, out, one.cursor, SLICE_BYTES
            )
            n = int(one.cursor[kernel.N_OUT])
        finally:
            self._spaces.append(space)
            self._ones.append(one)
        return out[:n] if status == kernel.DONE else self.encode(data, _whole(len(data)))[0]

    def _take_space(self) -> _Space:
        from tokctl.kernels.bpe_encode import LONGEST_WORD, workspace
        from tokctl.kernels.bpe_merge_word import merge_space

        try:
            return self._spaces.pop()
        except IndexError:
            return _Space(workspace(), merge_space(LONGEST_WORD))

    def _encode_range(self, data: np.ndarray, pieces: Pieces, n_ids: np.ndarray, first: int, last: int) -> np.ndarray:
        from tokctl.kernels.bpe_encode import Segments

        segments = Segments(
            pieces.starts[first:last], pieces.stops[first:last], pieces.tokens[first:last], n_ids[first:last]
        )
        space = self._take_space()
        try:
            if self._pre_tokenizer.automaton is not None:
                return self._run(data, segments, pieces.documents[first:last], space, scanned=True)
            words, owners = self._words(data, segments)
            ids = self._run(data, words, pieces.documents[first:last][owners], space, scanned=False)
            np.add.at(segments.n_ids, owners, words.n_ids)
            return ids
        finally:
            self._spaces.append(space)

    def _words(self, data: np.ndarray, segments: Segments) -> tuple[Segments, np.ndarray]:
        """Each word of the text segments as a segment of its own, and the segment it is of."""
        from tokctl.kernels.bpe_encode import Segments

        starts, stops, tokens, owners = ([np.empty(0, np.int64)] for _ in range(4))
        for i, token in enumerate(segments.tokens.tolist()):
            low, high = int(segments.starts[i]), int(segments.stops[i])
            if token >= 0:
                ends, begins = np.array([high], np.int64), np.array([low], np.int64)
            else:
                ends = np.asarray(self._pre_tokenizer.split(data[low:high]), np.int64) + low
                begins = np.concatenate([np.array([low], np.int64), ends[:-1]])[: len(ends)]
            starts.append(begins)
            stops.append(ends)
            tokens.append(np.full(len(ends), token, np.int64))
            owners.append(np.full(len(ends), i, np.int64))
        joined = np.concatenate(starts), np.concatenate(stops), np.concatenate(tokens)
        return Segments(*joined, np.zeros(len(joined[0]), np.int64)), np.concatenate(owners)

    def _run(
        self, data: np.ndarray, segments: Segments, documents: np.ndarray, space: _Space, *, scanned: bool
    ) -> np.ndarray:
        from tokctl.kernels import bpe_encode as kernel

        model = self._model.tables
        cursor = np.zeros(4, np.int64)
        if len(segments.starts):
            cursor[kernel.POSITION] = segments.starts[0]
        text = int((segments.stops - segments.starts).sum()) + len(segments.starts) + kernel.SPARE_IDS
        out = np.empty(min(text, max(_BUFFER_IDS, text // 2)), np.uint32)
        while True:
            if scanned:
                status = kernel.encode_segments(
                    self._pre_tokenizer.automaton, data, segments, model, *space, out, cursor, SLICE_BYTES
                )
            else:
                status = kernel.encode_words(data, segments, model, *space, out, cursor, SLICE_BYTES)
            written = int(cursor[kernel.N_OUT])
            start, stop = int(cursor[kernel.POSITION]), int(cursor[kernel.STOP])
            if status == kernel.DONE:
                out.resize(written, refcheck=False)
                return out
            if status == kernel.UNKNOWN_BYTE:
                self._refuse_byte(data, start, documents, segments, int(cursor[kernel.SEGMENT]))
            elif status == kernel.OUT_FULL:
                out.resize(max(2 * len(out), written + stop - start + kernel.SPARE_IDS), refcheck=False)
            elif status == kernel.LONG_WORD:  # there is room for its ids
                ids = self._merge_long(data, start, stop, documents, segments, int(cursor[kernel.SEGMENT]))
                out[written : written + len(ids)] = ids
                segments.n_ids[cursor[kernel.SEGMENT]] += len(ids)
                cursor[kernel.N_OUT] = written + len(ids)
                cursor[kernel.POSITION] = stop

    def _merge_long(
        self, data: np.ndarray, start: int, stop: int, documents: np.ndarray, segments: Segments, segment: int
    ) -> np.ndarray:
        """The ids of one very long word, merged in slices. Takes 36 bytes of memory for each byte of the word."""
        from tokctl.kernels import bpe_merge_word as kernel

        model = self._model.tables
        space = kernel.merge_space(stop - start)
        unknown = kernel.start_merge(data, start, stop, model.byte_ids, model.merge_table, space)
        if unknown >= 0:
            self._refuse_byte(data, int(unknown), documents, segments, segment)
        while not kernel.continue_merge(model.merge_table, space, _MERGE_STEPS):
            pass
        ids = np.empty(int(space.state[kernel.N_SYMBOLS]), np.uint32)
        kernel.write_merged(space, ids, 0)
        return ids

    def _refuse_byte(
        self, data: np.ndarray, position: int, documents: np.ndarray, segments: Segments, segment: int
    ) -> None:
        row = int(documents[segment])
        first = segment
        while first > 0 and documents[first - 1] == row:
            first -= 1
        raise DataError(
            f"the byte 0x{int(data[position]):02X} is not in this tokenizer's alphabet of "
            f"{int((self._model.byte_ids >= 0).sum())} bytes",
            hint="fit with all 256 bytes, or remove such bytes from the text",
            code="byte-outside-alphabet",
            row=row,
            offset=position - int(segments.starts[first]),
        )


def _whole(n_bytes: int) -> Pieces:
    """One text of ``n_bytes``."""
    return Pieces(*(np.array([value], np.int64) for value in (0, n_bytes, -1, 0)))


def _chunks(pieces: Pieces, size: int) -> list[tuple[int, int]]:
    """Ranges of whole pieces of about ``size`` bytes each, in order."""
    lengths = np.cumsum(pieces.stops - pieces.starts)
    total = int(lengths[-1]) if len(lengths) else 0
    cuts = [int(np.searchsorted(lengths, target)) + 1 for target in range(size, total, size)]
    bounds = sorted({0, *[cut for cut in cuts if cut < len(lengths)], len(lengths)})
    return list(pairwise(bounds)) or [(0, 0)]
