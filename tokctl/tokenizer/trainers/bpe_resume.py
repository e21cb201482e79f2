"""Going on with a BPE fit from the merges that were made: after an interruption, or behind a pair that is passed over.

The state of a fit is its words and its merges: the words are merged up to where it was, by the kernels that encode, and
a fit over the tokens that there are by then continues the numbering. The result is that of one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokctl.errors import DataError
from tokctl.tokenizer.trainers.bpe import BPEFit, OnPartial, OnStep, fit_bpe
from tokctl.tokenizer.trainers.segments import Segments, merged_segments


@dataclass(frozen=True)
class Progress:
    """How far a fit has come: what another run of it can go on from."""

    fit: BPEFit
    passed_over: list[tuple[int, int]]


def first_merges(fit: BPEFit, n: int) -> BPEFit:
    """The first ``n`` merges of a fit, as a fit to go on from."""
    return BPEFit(fit.merges[:n], fit.pair_counts[:n], fit.ambiguous[:n], fit.n_tokens[: n + 1], "reached", 0)


def resume_bpe(
    segments: Segments,
    done: BPEFit,
    *,
    n_merges: int,
    alphabet: Sequence[bytes],
    on_step: OnStep | None = None,
    on_partial: OnPartial | None = None,
    **options: Any,
) -> BPEFit:
    """The fit to ``n_merges`` merges of which those of ``done`` are made; ``segments`` are the words before the first.

    ``alphabet`` are their tokens; ``options`` are those of :func:`~tokctl.tokenizer.trainers.bpe.fit_bpe`. DataError where
    the words can't be what ``done`` was made from.
    """
    n_done, n_base = len(done.merges), len(alphabet)
    tokens = list(alphabet)
    for left, right in done.merges.tolist():
        if not 0 <= left < len(tokens) or not 0 <= right < len(tokens):
            raise DataError(
                f"the merges to go on from use the id {max(left, right)} too early",
                hint="begin anew with --force",
                code="bad-resume",
            )
        tokens.append(tokens[left] + tokens[right])
    rows = merged_segments(segments, done.merges, n_base)
    if int(np.dot(np.diff(rows.offsets), rows.counts)) != int(done.n_tokens[n_done]):
        raise DataError(
            "the merges to go on from were made from other words", hint="begin anew with --force", code="bad-resume"
        )

    def whole(rest: BPEFit) -> BPEFit:
        return BPEFit(
            np.concatenate([done.merges, rest.merges]),
            np.concatenate([done.pair_counts, rest.pair_counts]),
            np.concatenate([done.ambiguous, rest.ambiguous]),
            np.concatenate([done.n_tokens, rest.n_tokens[1:]]),
            rest.stopped,
            rest.best_remaining,
        )

    rest = fit_bpe(
        np.empty(0, np.uint8),
        np.zeros(1, np.int64),
        rows.counts,
        n_merges=n_merges - n_done,
        alphabet=tokens,
        segments=(rows.symbols, rows.offsets),
        on_step=None if on_step is None else lambda n, total: on_step(n_done + n, n_done + total),
        on_partial=None if on_partial is None else lambda so_far: on_partial(lambda: whole(so_far())),
        **options,
    )
    return whole(rest)
