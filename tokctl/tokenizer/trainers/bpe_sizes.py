"""One BPE fit, several vocabularies: the largest is fitted, the smaller ones are its prefixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.layout import Arithmetic
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.trainers.bpe import BPEFit, OnStep, fit_bpe
from tokctl.tokenizer.trainers.bpe_replay import Replay, choose_ranks, replay
from tokctl.tokenizer.trainers.bpe_resume import Progress, resume_bpe
from tokctl.tokenizer.trainers.bpe_start import Start


@dataclass(frozen=True)
class FittedSizes:
    """``tokenizers`` and ``arithmetic`` by the size asked for; ``fit`` is of the largest; ``shortfall`` says why it is short.

    ``replay``: what was counted again, if that was asked for. ``facts``: what the manifest should say besides.
    """

    tokenizers: dict[int, Tokenizer]
    arithmetic: dict[int, Arithmetic]
    fit: BPEFit
    shortfall: str | None
    replay: Replay | None
    facts: dict[str, Any]


def fit_sizes(
    start: Start,
    *,
    vocab_sizes: Sequence[int],
    special_layout: str = "first",
    ties: str = "ascending",
    min_frequency: int = 2,
    max_token_bytes: int | None = None,
    on_short: str = "error",
    replay_merges: int | str | None = None,
    resume: Progress | None = None,
    on_step: OnStep | None = None,
    on_progress: Callable[[Callable[[], Progress]], None] | None = None,
    on_replay: OnStep | None = None,
    on_warning: Callable[[str], None] = lambda message: None,
) -> FittedSizes:
    """Fit the words of ``start`` to each of ``vocab_sizes``.

    A size is exact: what ``start`` begins with, and merges. Raises UsageError when a size can't even hold the former;
    DataError, before the fit where that is certain, when the words don't allow the largest size and ``on_short`` is
    ``error``. With ``warn`` the sizes that can't be reached are as large as the words allow. ``replay_merges``: how many
    merges to count again (``choose_ranks``); CheckFailed where one of them differs. ``resume``: go on from there;
    ``on_progress`` is told about ten times a second how to get hold of the progress made (``fit_bpe``'s ``on_partial``).
    """
    if on_short not in ("error", "warn"):
        raise UsageError(f"on_short is {on_short!r}", hint="error or warn", code="bad-on-short")
    sizes = sorted(set(vocab_sizes))
    if not sizes:
        raise UsageError("no vocabulary size is given", hint="vocab_size=32_000", code="no-size")
    planned = {size: start.fixed.for_size(size) for size in sizes}
    largest = planned[sizes[-1]]
    if on_short == "error":
        _check_reachable(largest, start)
    if len(sizes) > 1 and special_layout == "last" and start.fixed.n_specials:
        on_warning("special layout 'last': the specials' ids differ between the sizes; 'first' keeps every id")
    options: dict[str, Any] = {"ties": ties, "min_frequency": min_frequency, "max_token_bytes": max_token_bytes}
    fit, passed_over = _fit(start, largest.n_merges, on_step, resume, on_progress, options)
    replayed = None
    if replay_merges is not None:
        replayed = _replay(start, fit, passed_over, replay_merges, on_replay, options)
    shortfall = None
    if len(fit.merges) < largest.n_merges:
        shortfall = _shortfall(largest, fit, min_frequency)
        if on_short == "error":
            achieved = largest.n_fixed + len(fit.merges)
            raise DataError(
                shortfall,
                hint=f"ask for {achieved:,}, lower the minimum frequency, or accept it with on-short warn",
                code="size-short",
            )
        on_warning(shortfall)
    tokenizers, arithmetic = {}, {}
    for size in sizes:
        merges = fit.merges[: planned[size].n_merges]
        tokenizers[size] = start.assemble(merges)
        arithmetic[size] = start.fixed.for_size(start.fixed.n_fixed + len(merges))
    facts = dict(start.facts)
    if start.growth is not None:
        facts["extension"] = {"passed_over": len(passed_over), **start.growth.prove(fit.merges)}
    return FittedSizes(tokenizers, arithmetic, fit, shortfall, replayed, facts)


def _fit(
    start: Start,
    n_merges: int,
    on_step: OnStep | None,
    resume: Progress | None,
    on_progress: Callable[[Callable[[], Progress]], None] | None,
    options: dict[str, Any],
) -> tuple[BPEFit, list[tuple[int, int]]]:
    """The fit, and the pairs that an extension had to pass over: each costs the fit once more, and there are next to none."""
    passed_over = list(resume.passed_over) if resume is not None else []
    done = resume.fit if resume is not None else None
    while True:
        avoided = list(passed_over)
        more: dict[str, Any] = {"passed_over": avoided, "on_step": on_step, **options}
        if on_progress is not None:
            more["on_partial"] = lambda so_far, avoided=avoided: on_progress(lambda: Progress(so_far(), avoided))
        if done is not None and len(done.merges):
            fit = resume_bpe(start.rows, done, n_merges=n_merges, alphabet=start.tokens, **more)
        else:
            rows = start.segments
            words = start.words if rows is None else (*start.words[:2], rows.counts)
            segments = None if rows is None else (rows.symbols, rows.offsets)
            fit = fit_bpe(*words, n_merges=n_merges, alphabet=start.tokens, segments=segments, **more)
        unfit = None if start.growth is None else start.growth.first_unfit(fit.merges)
        if unfit is None:
            return fit, passed_over
        passed_over.append((int(fit.merges[unfit, 0]), int(fit.merges[unfit, 1])))
        done = None  # from the start: a tie with a pair that is passed over is none


def _replay(
    start: Start,
    fit: BPEFit,
    passed_over: list[tuple[int, int]],
    wanted: int | str,
    on_step: OnStep | None,
    options: dict[str, Any],
) -> Replay:
    rows, growth = start.rows, start.growth
    ranks = choose_ranks(len(fit.merges), wanted, len(rows.symbols))
    unproven = set(passed_over)

    def is_passed_over(rank: int, left: int, right: int) -> bool:
        """Whether the fit left the pair alone; that it had to is proven where the pair is met first."""
        if (left, right) in unproven and growth is not None:
            if not growth.is_unfit(fit.merges[:rank], (left, right)):
                return False
            unproven.remove((left, right))
        return (left, right) in passed_over

    return replay(
        rows, fit, tokens=start.tokens, ranks=ranks, is_passed_over=is_passed_over, on_step=on_step, **options
    )


def _check_reachable(wanted: Arithmetic, start: Start) -> None:
    """Refuse at once a size that no fit can reach: each merge takes at least one token out of some distinct word."""
    offsets = start.words[1] if start.segments is None else start.segments.offsets
    n_words = len(offsets) - 1
    most = max(int(offsets[-1] - offsets[0]) - int(np.count_nonzero(np.diff(offsets))), 0)
    if wanted.n_merges > most:
        raise DataError(
            f"a vocabulary of {wanted.vocab_size:,} can't be reached: {wanted}, and the {n_words:,} distinct words of this "
            f"corpus allow at most {most:,} merges",
            hint=f"ask for at most {wanted.n_fixed + most:,}, give more text, or accept less with on-short warn",
            code="size-not-reachable",
        )


def _shortfall(wanted: Arithmetic, fit: BPEFit, min_frequency: int) -> str:
    achieved = wanted.for_size(wanted.n_fixed + len(fit.merges))
    reason = (
        f"the most frequent pair left occurs {fit.best_remaining:,} times, below the minimum of {min_frequency:,}"
        if fit.stopped == "min-frequency"
        else "no pair is left to merge"
    )
    return f"the corpus doesn't fill a vocabulary of {wanted.vocab_size:,}: {achieved}; {reason}"
