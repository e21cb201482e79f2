"""One BPE fit, several vocabularies: the largest is fitted, the smaller ones are its prefixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.layout import Arithmetic, assemble, plan
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.trainers.bpe import BPEFit, OnStep, fit_bpe


@dataclass(frozen=True)
class FittedSizes:
    """``tokenizers`` and ``arithmetic`` by the size asked for; ``fit`` is of the largest; ``shortfall`` says why it is short."""

    tokenizers: dict[int, Tokenizer]
    arithmetic: dict[int, Arithmetic]
    fit: BPEFit
    shortfall: str | None


def fit_sizes(
    data: np.ndarray,
    offsets: np.ndarray,
    counts: np.ndarray,
    *,
    vocab_sizes: Sequence[int],
    alphabet: Sequence[bytes],
    pre_tokenizer: PreTokenizer,
    specials: Sequence[str] = (),
    special_layout: str = "first",
    bos: str | None = None,
    eos: str | None = None,
    ties: str = "ascending",
    min_frequency: int = 2,
    max_token_bytes: int | None = None,
    on_short: str = "error",
    on_step: OnStep | None = None,
    on_warning: Callable[[str], None] = lambda message: None,
) -> FittedSizes:
    """Fit words (arrays as in :func:`~tokctl.tokenizer.trainers.bpe.fit_bpe`) to each of ``vocab_sizes``.

    A size is exact: specials + alphabet + merges. Raises UsageError when a size can't even hold specials and alphabet;
    DataError, before the fit where that is certain, when the words don't allow the largest size and ``on_short`` is
    ``error``. With ``warn`` the sizes that can't be reached are as large as the words allow.
    """
    if on_short not in ("error", "warn"):
        raise UsageError(f"on_short is {on_short!r}", hint="error or warn", code="bad-on-short")
    sizes = sorted(set(vocab_sizes))
    if not sizes:
        raise UsageError("no vocabulary size is given", hint="vocab_size=32_000", code="no-size")
    planned = {size: plan(size, n_alphabet=len(alphabet), n_specials=len(specials)) for size in sizes}
    largest = planned[sizes[-1]]
    if on_short == "error":
        _check_reachable(largest, offsets)
    if len(sizes) > 1 and special_layout == "last" and specials:
        on_warning("special layout 'last': the specials' ids differ between the sizes; 'first' keeps every id")
    fit = fit_bpe(
        data,
        offsets,
        counts,
        n_merges=largest.n_merges,
        alphabet=alphabet,
        ties=ties,
        min_frequency=min_frequency,
        max_token_bytes=max_token_bytes,
        on_step=on_step,
    )
    shortfall = None
    if len(fit.merges) < largest.n_merges:
        shortfall = _shortfall(largest, fit, min_frequency)
        if on_short == "error":
            achieved = largest.vocab_size - largest.n_merges + len(fit.merges)
            raise DataError(
                shortfall,
                hint=f"ask for {achieved:,}, lower the minimum frequency, or accept it with on-short warn",
                code="size-short",
            )
        on_warning(shortfall)
    tokenizers, arithmetic = {}, {}
    for size in sizes:
        tokenizers[size], arithmetic[size] = assemble(
            alphabet,
            fit.merges[: planned[size].n_merges],
            specials=specials,
            special_layout=special_layout,
            pre_tokenizer=pre_tokenizer,
            bos=bos,
            eos=eos,
        )
    return FittedSizes(tokenizers, arithmetic, fit, shortfall)


def _check_reachable(wanted: Arithmetic, offsets: np.ndarray) -> None:
    """Refuse at once a size that no fit can reach: each merge takes at least one token out of some distinct word."""
    n_words = len(offsets) - 1
    most = max(int(offsets[-1] - offsets[0]) - int(np.count_nonzero(np.diff(offsets))), 0)
    if wanted.n_merges > most:
        raise DataError(
            f"a vocabulary of {wanted.vocab_size:,} can't be reached: {wanted}, and the {n_words:,} distinct words of this "
            f"corpus allow at most {most:,} merges",
            hint=f"ask for at most {wanted.vocab_size - wanted.n_merges + most:,}, give more text, or accept less with "
            "on-short warn",
            code="size-not-reachable",
        )


def _shortfall(wanted: Arithmetic, fit: BPEFit, min_frequency: int) -> str:
    achieved = Arithmetic(
        wanted.vocab_size - wanted.n_merges + len(fit.merges), wanted.n_specials, wanted.n_alphabet, len(fit.merges)
    )
    reason = (
        f"the most frequent pair left occurs {fit.best_remaining:,} times, below the minimum of {min_frequency:,}"
        if fit.stopped == "min-frequency"
        else "no pair is left to merge"
    )
    return f"the corpus doesn't fill a vocabulary of {wanted.vocab_size:,}: {achieved}; {reason}"
