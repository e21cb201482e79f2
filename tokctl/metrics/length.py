"""Length: how many tokens the documents become."""

from __future__ import annotations

from collections.abc import Iterator

from tokctl.metrics.sample import QUANTILES, Row, Sample


def rows(sample: Sample) -> Iterator[Row]:
    """``tokens.total``; ``tokens_per_document.p50``, ``.p95`` and ``.max`` by nearest rank (the k-th shortest document
    with k = ceil(q * n), so always the length of a real document).

    The percentile bootstrap of a maximum never reaches above it: read that interval as a lower bound.
    """
    yield sample.count("tokens.total", "tokens", is_total=True)
    for name in QUANTILES:
        yield sample.count(f"tokens_per_document.{name}", f"tokens.{name}", is_total=False)
