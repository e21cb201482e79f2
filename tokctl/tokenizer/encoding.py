"""What encoding gives besides ids: where each token comes from, in declared units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokctl.errors import UsageError

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
    data: np.ndarray, offsets: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Byte ranges of ``data`` as code-point ranges of their own text; a part of a character becomes the whole of it.

    Text i is ``data[offsets[i]:offsets[i + 1]]`` and no range crosses two; an empty range gets (0, 0).
    """
    from tokctl.kernels.code_points import number_code_points

    base = int(offsets[0])
    numbers = np.empty(int(offsets[-1]) - base, np.int64)
    for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        number_code_points(data[low:high], numbers[low - base : high - base])
    is_empty = starts == stops
    if len(numbers) == 0:
        return np.zeros_like(starts), np.zeros_like(stops)
    first = numbers[np.where(is_empty, 0, starts - base)]
    last = numbers[np.where(is_empty, 0, stops - base - 1)]
    return np.where(is_empty, 0, first), np.where(is_empty, 0, last + 1)


def trim_spaces(
    data: np.ndarray, starts: np.ndarray, stops: np.ndarray, trims: np.ndarray, keeps_one: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ranges without the spaces (U+0020) at either end, where ``trims bool[n]``; one leading one stays where ``keeps_one``."""
    is_space = np.concatenate([data == 0x20, [False]])
    starts, stops = starts.copy(), stops.copy()
    touched = trims & (stops > starts)
    touched[touched] = is_space[starts[touched]] | is_space[stops[touched] - 1]
    for i in np.flatnonzero(touched).tolist():
        low, high = int(starts[i]), int(stops[i])
        leading = low
        while leading < high and is_space[leading]:
            leading += 1
        trailing = high
        while trailing > low and is_space[trailing - 1]:
            trailing -= 1
        if keeps_one[i] and leading > low:
            leading -= 1
        starts[i] = leading
        stops[i] = max(trailing, leading)
    return starts, stops
