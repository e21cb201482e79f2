"""Fairness: what a slice pays in tokens against a baseline, on the same documents."""

from __future__ import annotations

from collections.abc import Iterator

from tokctl.metrics.sample import Row, Sample


def rows(sample: Sample) -> Iterator[Row]:
    """``amplification.micro``: the candidate's tokens over the baseline's tokens on the same documents (paired)."""
    metric = "amplification.micro"
    if "baseline_tokens" not in sample.totals:
        yield sample.missing(metric, "no baseline was named")
    elif sample.n_baseline_failed:
        yield sample.missing(metric, f"the baseline failed on {sample.n_baseline_failed} documents")
    else:
        yield sample.ratio(metric, "tokens", "baseline_tokens", "the baseline has no tokens")
