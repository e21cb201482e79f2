"""Coverage: how well the vocabulary covers the text, and whether the text comes back."""

from __future__ import annotations

from collections.abc import Iterator

from tokctl.metrics.sample import Row, Sample


def rows(sample: Sample) -> Iterator[Row]:
    """``single_byte_share.micro``: tokens whose byte string is one byte, over tokens (an ``a`` counts as much as a stray
    UTF-8 byte); ``round_trip.documents``: documents whose ids decode to their exact bytes, over documents. A document
    that the candidate could not encode does not come back, so this one has a value even then.
    """
    yield sample.ratio("single_byte_share.micro", "single_byte_tokens", "tokens", "there are no tokens")
    yield sample.returned("round_trip.documents")
