"""What encoding gives besides ids: where each token comes from, in declared units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokctl.errors import UsageError
from tokctl.tokenizer.vocabulary import Vocabulary

UNITS = ("raw_utf8_bytes", "raw_codepoints", "normalized_codepoints")


@dataclass(frozen=True)
class Encoding:
    """One encoded text: four lists of one length.

    ``offsets[i]`` is the half-open range of the text that token i stands for, (0, 0) for a token that was added around
    it. In code points a token that is a part of a character gets the whole character, as in tokenizers: the ranges of
    ``E2 82`` and ``AC`` are both that of ``€``. A byte that is no part of well-formed UTF-8 counts as one code point.
    ``special_mask[i]`` is 1 for a control token, whether it was added or named by the text; an added token that is not
    special has 0. ``sequence_ids[i]`` is 0 for what comes from the text, None for what was added.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    special_mask: list[int]
    sequence_ids: list[int | None]


@dataclass(frozen=True)
class FlatEncoding:
    """Many encoded texts as arrays: text i has the tokens ``offsets[i]:offsets[i + 1]``; the rest is as in Encoding.

    ``ids uint32[n]``; ``starts``, ``stops`` int64[n] within each text; ``special_mask uint8[n]``;
    ``sequence_ids int8[n]`` with -1 for None; ``offsets int64[m + 1]``.
    """

    ids: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    special_mask: np.ndarray
    sequence_ids: np.ndarray
    offsets: np.ndarray

    def text(self, i: int) -> Encoding:
        """The encoding of text ``i`` as lists."""
        part = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        pairs = list(zip(self.starts[part].tolist(), self.stops[part].tolist(), strict=True))
        sequence_ids = [None if value < 0 else value for value in self.sequence_ids[part].tolist()]
        return Encoding(self.ids[part].tolist(), pairs, self.special_mask[part].tolist(), sequence_ids)


def check_unit(unit: str) -> str:
    """``unit`` if it is one of UNITS, else UsageError."""
    if unit not in UNITS:
        raise UsageError(
            f"unknown offset unit {unit!r}", hint=f"choose one of: {', '.join(UNITS)}", code="unknown-unit"
        )
    return unit


def in_code_points(
    data: np.ndarray, offsets: np.ndarray, documents: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Byte ranges of ``data`` as code-point ranges of their own text; a part of a character becomes the whole of it.

    Text i is ``data[offsets[i]:offsets[i + 1]]``; range k lies in text ``documents[k]``. An empty range stays empty.
    """
    from tokctl.kernels.code_points import number_code_points

    base = int(offsets[0])
    numbers = np.empty(int(offsets[-1]) - base, np.int64)
    for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        number_code_points(data[low:high], numbers[low - base : high - base])
    if len(numbers) == 0:
        return np.zeros_like(starts), np.zeros_like(stops)
    last = np.where(stops > offsets[documents], numbers[np.maximum(stops - 1 - base, 0)] + 1, 0)
    first = np.where(starts < stops, numbers[np.minimum(starts - base, len(numbers) - 1)], last)
    return first, last


def space_margins(vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """``int64[V]`` twice: the spaces (U+0020) at the start and at the end of each token of a model.

    ``ByteLevel`` of tokenizers looks at the token's spelling, where other white space is a letter.
    """
    leading, trailing = np.zeros(len(vocabulary), np.int64), np.zeros(len(vocabulary), np.int64)
    lengths = vocabulary.lengths
    filled = np.flatnonzero(lengths)
    is_space = vocabulary.data == 0x20
    begins, ends = vocabulary.offsets[filled], vocabulary.offsets[filled + 1] - 1
    for token_id in filled[is_space[begins] | is_space[ends]].tolist():
        token = vocabulary.token(token_id)
        leading[token_id] = len(token) - len(token.lstrip(b" "))
        trailing[token_id] = len(token) - len(token.rstrip(b" "))
    return leading, trailing


def trim_spaces(
    starts: np.ndarray, stops: np.ndarray, leading: np.ndarray, trailing: np.ndarray, keeps_one: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ranges without their tokens' margins (``int64[n]``); a single leading space stays where ``keeps_one bool[n]``.

    As the ``ByteLevel`` post-processor of tokenizers: of a token that is all space the end of its range is left.
    """
    leading = np.where(keeps_one & (leading == 1), 0, leading)
    first = np.minimum(starts + leading, stops)
    return first, np.maximum(stops - trailing, first)
