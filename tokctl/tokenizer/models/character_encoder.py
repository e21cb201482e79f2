"""Driving the kernels of character-level BPE: words of each piece of text, their symbols, merges, and places."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn, TypeVar

import numpy as np

from tokctl.errors import DataError
from tokctl.kernels._boundary import writable_view
from tokctl.tokenizer.added_tokens import Pieces
from tokctl.tokenizer.models.bpe_characters import CharacterBPE

if TYPE_CHECKING:
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

T = TypeVar("T")
BATCH_BYTES = 1 << 20  # text per call of a kernel, so that Ctrl-C is heard


class CharacterEncoder:
    """Encodes pieces of text; threads may share it."""

    def __init__(self, model: CharacterBPE, pre_tokenizer: PreTokenizer) -> None:
        self._model = model
        self._pre_tokenizer = pre_tokenizer

    def encode(self, data: np.ndarray, pieces: Pieces, workers: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """``(ids uint32[n], n_ids int64[k])``: the ids of all pieces in order, and how many each has.

        Raises DataError (its row is the document, its offset the place in it) for a character outside the alphabet.
        """
        self._model.character_ids, self._model.merge_table  # noqa: B018 - made once, before threads ask for them
        n_ids = np.zeros(len(pieces.starts), np.int64)

        def run(batch: tuple[int, int]) -> np.ndarray:
            words, owners = self.cut(data, pieces, *batch)
            ids, _, n_of_words = self._encode(data, words, pieces)
            np.add.at(n_ids, owners, n_of_words)
            return ids

        return np.concatenate(_run_all(run, word_slices(pieces.stops - pieces.starts), workers)), n_ids

    def cut(
        self, data: np.ndarray, pieces: Pieces, first: int = 0, last: int | None = None
    ) -> tuple[Pieces, np.ndarray]:
        """``(words, owners int64[n])``: pieces ``first`` to ``last - 1`` cut into words, and the piece each comes from.

        Added tokens stay; white space is left out where the pre-tokenizer drops it.
        """
        starts, stops, owners = ([np.empty(0, np.int64)] for _ in range(3))
        for i in range(first, len(pieces.starts) if last is None else last):
            low, high = int(pieces.starts[i]), int(pieces.stops[i])
            if pieces.tokens[i] >= 0:
                begins, ends = np.array([0], np.int64), np.array([high - low], np.int64)
            else:
                begins, ends = self._pre_tokenizer.words(data[low:high])
            starts.append(begins + low)
            stops.append(ends + low)
            owners.append(np.full(len(ends), i, np.int64))
        owner = np.concatenate(owners)
        return Pieces(
            np.concatenate(starts), np.concatenate(stops), pieces.tokens[owner], pieces.documents[owner]
        ), owner

    def encode_words(
        self, data: np.ndarray, words: Pieces, workers: int = 1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(ids uint32[n], lengths int64[n], n_ids int64[k])``: the ids of words, how many bytes of ``data`` each stands
        for, and how many each word has. Errors as in ``encode``."""
        self._model.character_ids, self._model.merge_table  # noqa: B018

        def run(batch: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            part = Pieces(
                *(column[slice(*batch)] for column in (words.starts, words.stops, words.tokens, words.documents))
            )
            return self._encode(data, part, words)

        parts = _run_all(run, word_slices(words.stops - words.starts), workers)
        ids, lengths, n_ids = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return ids, lengths, n_ids

    def _encode(self, data: np.ndarray, words: Pieces, pieces: Pieces) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``encode_words`` of some words, in this thread; ``pieces`` are all, for an error's place."""
        from tokctl.kernels.bpe_characters import measure_symbols, pack_symbols

        model = self._model
        starts, stops = writable_view(words.starts), writable_view(words.stops)
        is_added = words.tokens >= 0
        symbols, offsets = spell(model, data, np.where(is_added, stops, starts), stops, (~is_added).astype(np.uint8))
        unknown = np.flatnonzero(symbols < 0)
        if len(unknown) and model.unknown_id is None:
            word = int(np.searchsorted(offsets, unknown[0], side="right")) - 1
            self._refuse(data, pieces, int(words.documents[word]), int(starts[word]), int(stops[word]))
        symbols[unknown] = 0 if model.unknown_id is None else model.unknown_id
        n_symbols = merge_spelled(model, symbols, offsets)
        n_ids = np.where(is_added, 1, n_symbols)
        ids, lengths = np.empty(int(n_ids.sum()), np.uint32), np.empty(int(n_ids.sum()), np.int64)
        pack_symbols(symbols, offsets, n_symbols, words.tokens, ids)
        unknown_id = -1 if model.unknown_id is None else model.unknown_id
        measure_symbols(data, starts, stops, words.tokens, ids, n_ids, model.text_lengths, unknown_id, lengths)
        return ids, lengths, n_ids

    def _refuse(self, data: np.ndarray, pieces: Pieces, row: int, start: int, stop: int) -> NoReturn:
        """The error about the first unknown character of a word."""
        inner, final, _ = self._model.characters
        text = data[start:stop].tobytes().decode("utf-8", "surrogateescape")
        for i, char in enumerate(text):
            known = final if i == len(text) - 1 else inner
            if ord(char) not in known:
                break
        first = int(np.searchsorted(pieces.documents, row))
        where = " at the end of a word" if ord(char) in inner else " inside a word" if ord(char) in final else ""
        raise DataError(
            f"the character {shown(ord(char))}{where} is not in this tokenizer's alphabet of "
            f"{self._model.n_characters:,} characters",
            hint="fit with an unknown token (--special NAME --unk NAME) or on text that has it",
            code="unknown-character",
            row=row,
            offset=start + len(text[:i].encode("utf-8", "surrogateescape")) - int(pieces.starts[first]),
        )


def spell(
    model: CharacterBPE,
    data: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    is_whole: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """``(symbols int32[n], offsets int64[n_words + 1])``: the base symbols of words; -1 - code point for an unknown one."""
    from tokctl.kernels.bpe_characters import spell_words

    n_words = len(starts)
    if is_whole is None:
        is_whole = np.ones(n_words, np.uint8)
    symbols = np.empty(int((stops - starts).sum()) + n_words, np.int32)
    offsets = np.zeros(n_words + 1, np.int64)
    for low, high in word_slices(stops - starts):
        spell_words(data, starts, stops, is_whole, model.character_ids, low, high, symbols, offsets)
    return symbols[: offsets[-1]], offsets


def merge_spelled(model: CharacterBPE, symbols: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Merge words of symbols in place; ``int64[n_words]``: how many each has now. No symbol is negative."""
    from tokctl.kernels.bpe_merge_word import merge_space
    from tokctl.kernels.bpe_symbols import merge_words

    n_symbols = np.diff(offsets)
    space = merge_space(max(64, int(n_symbols.max(initial=0))))
    for low, high in word_slices(n_symbols):
        merge_words(symbols, offsets, n_symbols, low, high, model.merge_table, space)
    return n_symbols


def word_slices(lengths: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of words of about ``BATCH_BYTES`` in all, in order."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(BATCH_BYTES, total, BATCH_BYTES)) + 1
    return list(pairwise(np.unique(np.concatenate([[0], cuts, [len(lengths)]])).tolist()))


def shown(point: int) -> str:
    """A character for a message: as it is where it can be printed, and its code point."""
    if 0xDC80 <= point <= 0xDCFF:
        return f"byte 0x{point - 0xDC00:02X}"
    char = chr(point)
    return f"{char!r} (U+{point:04X})"


def _run_all(run: Callable[[tuple[int, int]], T], batches: list[tuple[int, int]], workers: int) -> list[T]:
    """What ``run`` gives for each batch, in order; for an empty one where there is none."""
    batches = batches or [(0, 0)]
    if workers == 1 or len(batches) == 1:
        return [run(batch) for batch in batches]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run, batches))
