"""Llama 3's cutting of long texts, with strings: windows of so many characters, in each the runs that ``str.isspace`` makes."""

from __future__ import annotations

from itertools import groupby, pairwise


def llama3_pieces(text: str, max_points: int = 400_000, max_run: int = 25_000) -> list[str]:
    """The pieces in order; none for an empty text."""
    pieces = []
    for start in range(0, len(text), max_points):
        window = text[start : start + max_points]
        cuts, at = [0], 0
        for _, run in groupby(window, str.isspace):
            n = len(list(run))
            cuts += range(at + max_run, at + n, max_run)
            at += n
        pieces += [window[first:last] for first, last in pairwise([*cuts, len(window)])]
    return pieces
