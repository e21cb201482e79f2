"""Cutting texts before anything else looks at them, as some libraries do: a named policy, since it changes ids.

``llama3``: Meta's reference tokenizer of Llama 3 hands tiktoken at most 400,000 characters at a time, and cuts within them
runs of more than 25,000 white-space or 25,000 other characters. Nothing is matched across a cut: no word, no merge, no
added token. Without a policy no length changes any id.
"""

from __future__ import annotations

import numpy as np

from tokctl.errors import UsageError
from tokctl.tokenizer.added_tokens import Pieces

POLICIES: dict[str, tuple[int, int]] = {"llama3": (400_000, 25_000)}
"""Policy -> code points of a piece, code points of a run of one kind."""

NO_POLICY = "none"
_SLICE_BYTES = 1 << 24
_CUTS = 4096


def check_policy(name: str) -> str:
    """``name`` if it is ``none`` or one of POLICIES, else UsageError."""
    if name != NO_POLICY and name not in POLICIES:
        known = ", ".join([NO_POLICY, *POLICIES])
        raise UsageError(f"unknown split policy {name!r}", hint=f"choose one of: {known}", code="split-policy")
    return name


def whole_texts(offsets: np.ndarray) -> Pieces:
    """One piece a text: text i is ``offsets[i]`` to ``offsets[i + 1]``."""
    n = len(offsets) - 1
    return Pieces(offsets[:-1].copy(), offsets[1:].copy(), np.full(n, -1, np.int64), np.arange(n))


def cut_long_texts(data: np.ndarray, offsets: np.ndarray, max_points: int, max_run: int) -> Pieces:
    """The texts ``data[offsets[i]:offsets[i + 1]]`` in pieces: see ``kernels/length_cuts.py``."""
    from tokctl.kernels.length_cuts import POSITION, find_length_cuts

    pieces = whole_texts(offsets)
    cuts: list[np.ndarray] = []
    owners: list[np.ndarray] = []
    buffer = np.empty(_CUTS, np.int64)
    # a text of few bytes has few code points
    for text in np.flatnonzero(pieces.stops - pieces.starts > min(max_points, max_run)).tolist():
        stop = int(pieces.stops[text])
        cursor = np.zeros(4, np.int64)
        cursor[POSITION] = pieces.starts[text]
        while cursor[POSITION] < stop:
            n = find_length_cuts(data, stop, max_points, max_run, cursor, buffer, _SLICE_BYTES)
            cuts.append(buffer[:n].copy())
            owners.append(np.full(n, text, np.int64))
    if not cuts:
        return pieces
    starts = np.concatenate([pieces.starts, *cuts])
    documents = np.concatenate([pieces.documents, *owners])
    order = np.lexsort((starts, documents))
    starts, documents = starts[order], documents[order]
    is_last = np.diff(documents, append=-1) != 0
    stops = np.where(is_last, pieces.stops[documents], np.append(starts[1:], 0))
    return Pieces(starts, stops, np.full(len(starts), -1, np.int64), documents)
