"""Fit byte-level BPE: from words and their counts to a list of merges.

The algorithm is Sennrich et al. 2016 over bytes: in each round the pair of adjacent tokens with the highest weighted
count becomes a token. Counts are of windows (``aaa`` holds two windows of (a, a)), as in tokenizers and minbpe, and the
pair is replaced from left to right without overlap. Which of several pairs with the same count is taken is a parameter
(``TIES``), because it is what trainers differ in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from tokctl.errors import DataError, UsageError
from tokctl.kernels._boundary import bytes_view, writable_view

if TYPE_CHECKING:
    from tokctl.kernels.bpe_merge import FitState

OnStep = Callable[[int, int], None]
Stopped = Literal["reached", "no-pairs", "min-frequency"]
OnPartial = Callable[[Callable[[], "BPEFit"]], None]

TIES: dict[str, str] = {
    "ascending": "smaller (left id, right id): tokenizers, rustbpe",
    "descending": "larger (left id, right id)",
    "first-seen": "the pair that is met first in the current text: minbpe; the words must come in text order",
    "sentencepiece": "fewer characters, then the bytewise smaller merged string: sentencepiece",
    "subword-nmt": "the bytewise larger left string, then the larger right one: subword-nmt",
}
"""Name of a tie-break -> what it prefers among the pairs with the highest count."""

_INT64_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class BPEFit:
    """Merges in rank order and what happened on the way; m = number of merges made.

    A fit to fewer merges is a prefix: with the same words and options, ``merges[:k]`` is the result for ``n_merges=k``.
    """

    merges: np.ndarray
    """int32[m, 2]: (left id, right id). Base tokens have ids 0 .. len(alphabet)-1, merge k makes id len(alphabet)+k."""
    pair_counts: np.ndarray
    """int64[m]: weighted number of windows of the pair when it was chosen."""
    ambiguous: np.ndarray
    """bool[m]: whether another pair had the same count, so that the tie-break decided."""
    n_tokens: np.ndarray
    """int64[m+1]: weighted number of tokens in all words before the first merge, and after each merge."""
    stopped: Stopped
    """``reached``: as many merges as asked for. ``no-pairs``: no pair is left that may be merged (all words are single
    tokens, or the pairs would exceed ``max_token_bytes``). ``min-frequency``: pairs are left, all below the minimum."""
    best_remaining: int
    """Count of the best pair that was not merged (0 if there is none)."""


def fit_bpe(
    data: np.ndarray,
    offsets: np.ndarray,
    counts: np.ndarray,
    *,
    n_merges: int,
    alphabet: Sequence[bytes],
    segments: tuple[np.ndarray, np.ndarray] | None = None,
    passed_over: Sequence[tuple[int, int]] = (),
    ties: str = "ascending",
    min_frequency: int = 2,
    max_token_bytes: int | None = None,
    on_step: OnStep | None = None,
    on_partial: OnPartial | None = None,
) -> BPEFit:
    """Fit ``n_merges`` merges to weighted words.

    ``data`` uint8[n_bytes], ``offsets`` int64[n_words+1] and ``counts`` int64[n_words] are the words: word i is
    ``data[offsets[i]:offsets[i+1]]`` and occurs ``counts[i]`` times (0 is allowed: as if it were not there). Their order
    doesn't matter, except for ``ties="first-seen"``, where it must be the order of first occurrence in the text.

    ``alphabet``: the base tokens in id order, each one byte, no byte twice. ``segments``: (symbols int32[n], offsets
    int64[n_words+1]) are the words in tokens of an ``alphabet`` of any strings instead, one row for each of ``counts``;
    ``data`` and ``offsets`` are then not looked at. ``passed_over``: pairs that are never merged. ``ties``: a name in
    ``TIES``; it is asked after the count. For ``sentencepiece``, the characters of a string that is not valid UTF-8 are
    its bytes other than 80..BF. ``min_frequency``: a pair with a smaller count is not merged (0 means 1).
    ``max_token_bytes`` (inclusive): a pair whose merged string would be longer is never merged; None is no limit.
    ``on_step(done, total)`` is called with numbers of merges, about ten times a second, and may raise to stop the fit;
    ``on_partial(so_far)`` as often, with a function that makes the fit up to there (``bpe_resume.py`` goes on from it).

    Equal to tokenizers' ``BpeTrainer`` with ``ties="ascending"``, the gpt2 byte order and ``max_token_length =
    max_token_bytes + 1``, for max_token_bytes >= 2 (tokenizers merges pairs of single characters whatever the limit).

    Memory: 20 to 25 bytes a byte of distinct words (pool 8, occurrence lists at most 12, the rest for the pairs that
    are frequent enough), and 100 bytes a merge. Above 2**31 bytes of distinct words positions take 64 bits, and memory
    doubles.

    Raises ``UsageError`` for an option and ``DataError`` for words that can't be fitted: a byte outside the alphabet
    (``row`` = word, ``offset`` in it), a negative count, a weighted length of 2**63 or more.
    """
    _check_options(n_merges, alphabet, ties, min_frequency, max_token_bytes, of_bytes=segments is None)
    rows = None
    if segments is not None:
        rows = _check_rows(*segments, n_tokens=len(alphabet))
        lengths = np.array([len(token) for token in alphabet], np.int64)[rows[0]]
        data = np.frombuffer(b"".join(alphabet), np.uint8)[_byte_places(rows[0], alphabet, lengths)]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])[rows[1]]
    data, offsets, counts = _check_words(data, offsets, counts)
    from tokctl.tokenizer.trainers.bpe_state import prepare

    state = prepare(
        data,
        offsets,
        counts,
        n_merges=n_merges,
        alphabet=alphabet,
        ties=ties,
        min_frequency=max(min_frequency, 1),
        max_token_bytes=_INT64_MAX if max_token_bytes is None else max_token_bytes,
        rows=rows,
        passed_over=passed_over,
    )
    return _run(state, n_merges, on_step, on_partial)


def _check_options(
    n_merges: int,
    alphabet: Sequence[bytes],
    ties: str,
    min_frequency: int,
    max_token_bytes: int | None,
    *,
    of_bytes: bool,
) -> None:
    if ties not in TIES:
        raise UsageError(f"unknown tie-break {ties!r}", hint=f"choose one of: {', '.join(TIES)}", code="unknown-ties")
    if not 0 <= n_merges <= _INT32_MAX - len(alphabet):
        raise UsageError(f"{n_merges} merges can't be fitted: token ids are 32-bit integers from 0 up", code="bad-size")
    if min_frequency < 0:
        raise UsageError(f"the minimum frequency is negative: {min_frequency}", code="bad-min-frequency")
    if max_token_bytes is not None and max_token_bytes < 1:
        raise UsageError(
            f"the longest token can't have {max_token_bytes} bytes", hint="1 or more", code="bad-max-token-bytes"
        )
    for token in alphabet:
        if not token or (of_bytes and len(token) != 1):
            raise UsageError(
                f"the base token {token!r} is {'not a single byte' if token else 'empty'}", code="bad-alphabet"
            )
    if len(set(alphabet)) != len(alphabet):
        twice = next(token for i, token in enumerate(alphabet) if token in alphabet[:i])
        raise UsageError(f"the base token {twice!r} is in the alphabet twice", code="bad-alphabet")


def _check_words(
    data: np.ndarray, offsets: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three arrays with pinned types and ``offsets[0] == 0``."""
    data = bytes_view(data)
    if data.dtype != np.uint8 or data.ndim != 1:
        raise DataError(f"the words' data is {data.dtype}[{data.ndim}-D], not one row of uint8", code="bad-words")
    offsets = _as_int64(offsets, "offsets")
    counts = _as_int64(counts, "counts")
    if offsets.ndim != 1 or counts.ndim != 1 or len(offsets) != len(counts) + 1:
        raise DataError(
            f"{counts.shape} counts and {offsets.shape} offsets don't describe the same words",
            hint="offsets has one entry more than counts",
            code="bad-words",
        )
    if offsets[0] < 0 or offsets[-1] > len(data) or (len(counts) and bool((np.diff(offsets) < 0).any())):
        raise DataError("the word offsets don't ascend within the data", code="bad-words")
    if len(counts) and int(counts.min()) < 0:
        row = int(np.argmax(counts < 0))
        raise DataError(f"word {row} has the negative count {counts[row]}", row=row, code="negative-count")
    _check_total(offsets, counts)
    if offsets[0] != 0 or offsets[-1] != len(data):
        data = data[offsets[0] : offsets[-1]]
        offsets = offsets - offsets[0]
    return data, offsets, counts


def _check_rows(symbols: np.ndarray, offsets: np.ndarray, *, n_tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of symbols with pinned types, all of them below ``n_tokens``."""
    offsets = _as_int64(offsets, "offsets")
    symbols = writable_view(np.asarray(symbols)[offsets[0] : offsets[-1]].astype(np.int32, copy=False))
    if len(symbols) and not 0 <= int(symbols.min()) <= int(symbols.max()) < n_tokens:
        raise DataError(f"a symbol of the words is not among the {n_tokens} base tokens", code="bad-words")
    return symbols, offsets - offsets[0]


def _byte_places(symbols: np.ndarray, alphabet: Sequence[bytes], lengths: np.ndarray) -> np.ndarray:
    """Where each byte of rows of symbols stands in the alphabet's bytes, one token after another."""
    starts = np.concatenate([[0], np.cumsum([len(token) for token in alphabet])])[symbols]
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)


def _as_int64(array: np.ndarray, name: str) -> np.ndarray:
    array = np.asarray(array)
    if array.dtype.kind not in "iu":
        raise DataError(f"the {name} are {array.dtype}, not integers", code="bad-words")
    if array.dtype == np.uint64 and array.size and int(array.max()) > _INT64_MAX:
        raise DataError(f"the {name} don't fit into 64 bits with a sign: {array.max()}", code="bad-words")
    return writable_view(array.astype(np.int64, copy=False))


def _check_total(offsets: np.ndarray, counts: np.ndarray) -> None:
    """``DataError`` unless the weighted length of all words, and so every count in a fit, is below 2**63."""
    if not len(counts):
        return
    lengths = np.diff(offsets)
    if float(np.dot(counts.astype(np.float64), lengths.astype(np.float64))) < 2.0**62:
        return
    total = sum(count * length for count, length in zip(counts.tolist(), lengths.tolist(), strict=True))
    if total > _INT64_MAX:
        raise DataError(
            f"the words have {total} bytes in all, weighted by their counts; the limit is 2**63 - 1",
            hint="divide the counts by a common factor",
            code="count-overflow",
        )


def _run(state: FitState, n_merges: int, on_step: OnStep | None = None, on_partial: OnPartial | None = None) -> BPEFit:
    from tokctl.kernels import bpe_merge
    from tokctl.tokenizer.trainers.bpe_state import best_rare, grow

    n_steps = 16
    while True:
        started = time.monotonic()
        status = int(bpe_merge.merge_steps(state, n_steps))
        done = int(state.control[bpe_merge.N_MERGES])
        if status == bpe_merge.NO_ROOM:
            state = grow(state)
        if on_step is not None:
            on_step(done, n_merges)
        if on_partial is not None:
            on_partial(partial(_fit_so_far, state, done, "reached", 0))
        if status in (bpe_merge.ENOUGH, bpe_merge.NO_PAIR):
            break
        # Early merges take milliseconds each and late ones microseconds: keep a call near a tenth of a second.
        elapsed = time.monotonic() - started
        n_steps = max(1, n_steps // 2) if elapsed > 0.2 else min(2 * n_steps, 4096) if elapsed < 0.05 else n_steps
    best = int(state.control[bpe_merge.BEST_COUNT]) or best_rare(state)
    if done == n_merges:
        return _fit_so_far(state, done, "reached", best)
    return _fit_so_far(state, done, "min-frequency" if best else "no-pairs", best)


def _fit_so_far(state: FitState, done: int, stopped: Stopped, best_remaining: int) -> BPEFit:
    return BPEFit(
        merges=state.merges[:done].copy(),
        pair_counts=state.pair_counts[:done].copy(),
        ambiguous=state.ambiguous[:done].astype(bool),
        n_tokens=state.n_tokens[: done + 1].copy(),
        stopped=stopped,
        best_remaining=best_remaining,
    )
