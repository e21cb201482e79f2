"""Compression: how much text a token carries, over all documents together (micro)."""

from __future__ import annotations

from collections.abc import Iterator

from tokctl.metrics.sample import Row, Sample


def rows(sample: Sample) -> Iterator[Row]:
    """``bytes_per_token.micro``: UTF-8 bytes over tokens; ``code_points_per_token.micro``: code points over tokens."""
    for metric, numerator in (("bytes_per_token.micro", "bytes"), ("code_points_per_token.micro", "code_points")):
        yield sample.ratio(metric, numerator, "tokens", "there are no tokens")
