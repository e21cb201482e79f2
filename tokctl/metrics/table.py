"""The metrics, as a literal table: what each measures, in which unit, and which way is better."""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """``better`` is ``higher`` or ``lower``; ``summary`` is one line for a reader of a report."""

    unit: str
    better: str
    summary: str


METRICS: dict[str, Metric] = {
    "tokens.total": Metric("tokens", "lower", "tokens of all documents"),
    "tokens_per_document.p50": Metric("tokens", "lower", "median document length"),
    "tokens_per_document.p95": Metric("tokens", "lower", "95th percentile of document length"),
    "tokens_per_document.max": Metric("tokens", "lower", "longest document"),
    "bytes_per_token.micro": Metric("bytes/token", "higher", "UTF-8 bytes over tokens"),
    "code_points_per_token.micro": Metric("code points/token", "higher", "code points over tokens"),
    "single_byte_share.micro": Metric("share", "lower", "tokens that are one byte, over tokens"),
    "round_trip.documents": Metric("share", "higher", "documents that decode to their exact bytes"),
    "amplification.micro": Metric("ratio", "lower", "tokens over the baseline's tokens, same documents"),
}

# Each turns a Sample into rows; a row's id is a key of METRICS.
FAMILIES: dict[str, str] = {
    "length": "tokctl.metrics.length:rows",
    "compression": "tokctl.metrics.compression:rows",
    "coverage": "tokctl.metrics.coverage:rows",
    "fairness": "tokctl.metrics.fairness:rows",
}
