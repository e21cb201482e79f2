"""Replaying a BPE fit: chosen merges are counted again from scratch, by another way than the one that chose them.

For a merge k all words are segmented by the merges before it with the kernels that encode, every pair of neighbours is
counted anew, and the chosen pair, its count, whether the tie-break decided, and the number of tokens are compared with
what the fit recorded. Where the fit ended early, the best pair left is checked too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokctl.errors import CheckFailed, UsageError
from tokctl.tokenizer.trainers.bpe import BPEFit, OnStep
from tokctl.tokenizer.trainers.segments import SLICE_ROWS, Segments

SAMPLE = 64
"""How many merges are replayed of a fit that is too large for all of them."""

SEED = 0
_ALL_WORK = 200_000_000  # symbols that are counted again at most where nobody says how many merges to replay
_MIN_CAPACITY = 1 << 17


@dataclass(frozen=True)
class Replay:
    """What was replayed: ``ranks`` of ``n_merges`` merges, all of them or a sample; every one agreed."""

    ranks: tuple[int, ...]
    n_merges: int

    @property
    def is_complete(self) -> bool:
        return len(self.ranks) == self.n_merges

    def to_json(self) -> dict[str, Any]:
        """For the manifest; the ranks are listed where they are a sample."""
        sample = {} if self.is_complete else {"seed": SEED, "ranks": list(self.ranks)}
        return {
            "replayed": len(self.ranks),
            "of": self.n_merges,
            "merges": "all" if self.is_complete else "sample",
            "result": "equal",
            **sample,
        }


def choose_ranks(n_merges: int, wanted: int | str, n_symbols: int = 0) -> list[int]:
    """The ranks to replay, ascending: the first, the last, and of the rest those with the smallest sha256 of seed and rank.

    ``wanted`` is their number, ``all``, or ``auto``: all where recounting ``n_symbols`` symbols so often is quick, else
    ``SAMPLE``. UsageError for anything else.
    """
    if wanted == "auto":
        wanted = "all" if n_merges * n_symbols <= _ALL_WORK else SAMPLE
    if wanted == "all":
        return list(range(n_merges))
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise UsageError(
            f"the number of merges to replay is {wanted!r}", hint="a number from 1 up, or all", code="bad-replay"
        )
    ends = [0, n_merges - 1][: max(wanted, 1)]
    rest = sorted(range(1, n_merges - 1), key=lambda rank: hashlib.sha256(f"{SEED}:{rank}".encode()).digest())
    chosen = {rank for rank in ends if 0 <= rank < n_merges}
    return sorted(chosen | set(rest[: max(wanted - len(chosen), 0)]))


def replay(
    segments: Segments,
    fit: BPEFit,
    *,
    tokens: Sequence[bytes],
    ranks: Collection[int],
    ties: str = "ascending",
    min_frequency: int = 2,
    max_token_bytes: int | None = None,
    is_passed_over: Callable[[int, int, int], bool] = lambda rank, left, right: False,
    on_step: OnStep | None = None,
) -> Replay:
    """Replay the merges ``ranks`` of a fit; CheckFailed names the first one that a fresh count would not have chosen.

    ``segments`` are the words before the first merge, ``tokens`` the bytes of the symbols they use (the base tokens in id
    order); the other parameters are those of the fit. ``is_passed_over(rank, left, right)`` says whether the fit had to
    leave a pair alone that is better than the one it chose as merge ``rank``. ``on_step(done, total)`` counts replayed
    merges and may raise.
    """
    words = _Recount(segments, fit, tokens, ties, max_token_bytes, is_passed_over)
    checked = sorted(set(ranks))
    for done, rank in enumerate(checked):
        words.merge_up_to(rank, on_wait=lambda done=done: on_step and on_step(done, len(checked)))  # type: ignore[misc]
        words.check(rank)
        if on_step is not None:
            on_step(done + 1, len(checked))
    if fit.stopped != "reached":
        words.merge_up_to(len(fit.merges))
        words.check_end(max(min_frequency, 1))
    return Replay(tuple(checked), len(fit.merges))


@dataclass(frozen=True, order=False)
class _Descending:
    """A pair of strings that sorts before the smaller ones."""

    strings: tuple[bytes, bytes]

    def __lt__(self, other: _Descending) -> bool:
        return self.strings > other.strings


class _Recount:
    """Words as the first ``rank`` merges leave them, and fresh counts of their pairs."""

    def __init__(
        self,
        segments: Segments,
        fit: BPEFit,
        tokens: Sequence[bytes],
        ties: str,
        max_token_bytes: int | None,
        is_passed_over: Callable[[int, int, int], bool],
    ) -> None:
        from tokctl.kernels.bpe_merge_word import merge_space

        self._fit = fit
        self._ties = ties
        self._max_bytes = 2**63 - 1 if max_token_bytes is None else max_token_bytes
        self._is_passed_over = is_passed_over
        self._tokens = list(tokens)
        for left, right in fit.merges.tolist():
            self._tokens.append(self._tokens[left] + self._tokens[right])
        self._lengths = np.fromiter((len(token) for token in self._tokens), np.int64, len(self._tokens))
        self._n_base = len(tokens)
        self._rank = 0
        self._symbols = segments.symbols.astype(np.int32)  # a copy, merged in place
        self._offsets = np.ascontiguousarray(segments.offsets, np.int64)
        self._counts = np.ascontiguousarray(segments.counts, np.int64)
        self._n_symbols = np.diff(self._offsets)
        self._space = merge_space(max(64, int(self._n_symbols.max(initial=0))))

    def merge_up_to(self, rank: int, on_wait: Callable[[], Any] = lambda: None) -> None:
        """Go on to the segmentation by the first ``rank`` merges; those made before find no more pairs of theirs."""
        from tokctl.kernels.bpe_symbols import merge_words
        from tokctl.kernels.merge_table import merge_table

        if rank == self._rank:
            return
        merges = np.ascontiguousarray(self._fit.merges[self._rank : rank], np.int32)
        numbers = np.arange(self._rank, rank, dtype=np.int32)
        table = merge_table(merges[:, 0].copy(), merges[:, 1].copy(), numbers, numbers + np.int32(self._n_base))
        n_words = len(self._counts)
        for first in range(0, n_words, SLICE_ROWS):
            last = min(first + SLICE_ROWS, n_words)
            merge_words(self._symbols, self._offsets, self._n_symbols, first, last, table, self._space)
            on_wait()
        self._rank = rank

    def check(self, rank: int) -> None:
        """Compare merge ``rank`` with what the words say now."""
        fit = self._fit
        left, right = fit.merges[rank].tolist()
        n_tokens = int(np.dot(self._n_symbols, self._counts))
        if n_tokens != int(fit.n_tokens[rank]):
            raise self._difference(rank, f"{fit.n_tokens[rank]:,} tokens before it", f"{n_tokens:,}")
        keys, counts, firsts = self._pairs()
        chosen = counts[keys == (left << 32 | right)]
        found = int(chosen[0]) if len(chosen) else 0
        if found != int(fit.pair_counts[rank]):
            raise self._difference(rank, f"{fit.pair_counts[rank]:,} occurrences", f"{found:,}")
        best, n_tied = self._best(rank, keys, counts, firsts)
        if best != (left, right):
            what = f"{self._shown(*best)} as the better pair" if best else "no pair at all"
            raise self._difference(rank, "it as the best pair", what)
        if (n_tied > 1) != bool(fit.ambiguous[rank]):
            raise self._difference(
                rank,
                "a choice by tie-break" if fit.ambiguous[rank] else "a choice without tie",
                f"{n_tied:,} pairs of the same count",
            )

    def check_end(self, min_frequency: int) -> None:
        """Compare the best pair left with what the fit says it is."""
        keys, counts, firsts = self._pairs()
        best, _ = self._best(self._rank, keys, counts, firsts)
        found = int(counts[keys == (best[0] << 32 | best[1])][0]) if best else 0
        if found != self._fit.best_remaining or found >= min_frequency:
            raise CheckFailed(
                f"the replay finds a pair of {found:,} occurrences after the last merge, the fit {self._fit.best_remaining:,} "
                f"(the minimum is {min_frequency:,})",
                hint="this is a defect of tokctl: please report it with the corpus",
                code="replay-differs",
            )

    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(keys, counts, places of the first window)``, int64[n] each, of all pairs that may be merged."""
        from tokctl.kernels.bpe_symbols import COUNT, FIRST, KEY, NO_KEY, count_pairs

        longest = int(self._n_symbols.max(initial=0))
        capacity = _MIN_CAPACITY
        while capacity < 4 * longest:
            capacity *= 2
        table = np.empty((capacity, 3), np.int64)
        table[:, KEY] = NO_KEY
        n_words = len(self._counts)
        word = n_rows = 0
        while word < n_words:
            target = min(word + SLICE_ROWS, n_words)
            word, n_rows = count_pairs(
                self._symbols,
                self._offsets,
                self._n_symbols,
                self._counts,
                self._lengths,
                self._max_bytes,
                word,
                target,
                table,
                n_rows,
            )
            if word < target:
                table = _larger(table)
        rows = table[table[:, KEY] != NO_KEY]
        return rows[:, KEY], rows[:, COUNT], rows[:, FIRST]

    def _best(
        self, rank: int, keys: np.ndarray, counts: np.ndarray, firsts: np.ndarray
    ) -> tuple[tuple[int, int] | tuple[()], int]:
        """The best pair that the fit was not to leave alone, and how many such pairs have its count."""
        while len(keys):
            tied = np.flatnonzero(counts == counts.max())
            pairs = [
                (int(key >> 32), int(key & 0xFFFFFFFF), int(at))
                for key, at in zip(keys[tied], firsts[tied], strict=True)
            ]
            allowed = [pair for pair in pairs if not self._is_passed_over(rank, pair[0], pair[1])]
            if allowed:
                left, right, _ = min(allowed, key=self._preference)
                return (left, right), len(allowed)
            keys, counts, firsts = (np.delete(column, tied) for column in (keys, counts, firsts))
        return (), 0

    def _preference(self, pair: tuple[int, int, int]) -> Any:
        """What the tie-break asks for, smallest first."""
        left, right, first = pair
        if self._ties == "ascending":
            return left, right
        if self._ties == "descending":
            return -left, -right
        if self._ties == "first-seen":
            return first
        if self._ties == "subword-nmt":
            return _Descending((self._tokens[left], self._tokens[right])), left, right
        joined = self._tokens[left] + self._tokens[right]
        if self._ties == "sentencepiece":
            return sum(byte & 0xC0 != 0x80 for byte in joined), joined, left, right
        raise UsageError(f"unknown tie-break {self._ties!r}", code="unknown-ties")

    def _shown(self, left: int, right: int) -> str:
        return f"({self._tokens[left]!r}, {self._tokens[right]!r})"

    def _difference(self, rank: int, recorded: str, found: str) -> CheckFailed:
        return CheckFailed(
            f"merge {rank} {self._shown(*self._fit.merges[rank].tolist())}: the fit recorded {recorded}, "
            f"a recount from scratch finds {found}",
            hint="this is a defect of tokctl: please report it with the corpus",
            code="replay-differs",
            row=rank,
        )


def _larger(table: np.ndarray) -> np.ndarray:
    """The rows of a table of pairs in one of twice the capacity."""
    from tokctl.kernels.bpe_symbols import KEY, NO_KEY, copy_pairs

    larger = np.empty((2 * len(table), 3), np.int64)
    larger[:, KEY] = NO_KEY
    copy_pairs(table, larger)
    return larger
