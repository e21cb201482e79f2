"""What a document, a reject and a cluster row are: the Arrow schemas every corpus stage reads and writes."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

DOCUMENT_SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.large_string(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),  # large_binary under --errors bytes
        pa.field("source", pa.large_string(), nullable=False),
        pa.field("uri", pa.large_string(), nullable=False),
        pa.field("language", pa.large_string(), nullable=False),
        pa.field("license", pa.large_string()),
        pa.field("group_id", pa.large_string()),
        pa.field("sha256_raw", pa.large_string(), nullable=False),
        pa.field("sha256_text", pa.large_string(), nullable=False),
        pa.field("meta", pa.large_string(), nullable=False),  # one JSON object, canonical
    ]
)

REJECT_SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.large_string()),
        pa.field("source", pa.large_string()),
        pa.field("uri", pa.large_string()),
        pa.field("row", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("stage", pa.large_string(), nullable=False),
        pa.field("reason", pa.large_string(), nullable=False),
        pa.field("evidence", pa.large_string()),
    ]
)

CLUSTER_SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.large_string(), nullable=False),
        pa.field("cluster_id", pa.large_string(), nullable=False),
        pa.field("cluster_size", pa.int64(), nullable=False),
        pa.field("kept_id", pa.large_string(), nullable=False),
        pa.field("similarity", pa.float64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Reject:
    """One input row that did not become an output row: where it was, which stage refused it, and why.

    ``reason`` is a stable slug (``invalid-utf8``, ``null-text``); ``evidence`` is a short human-readable detail.
    """

    stage: str
    reason: str
    doc_id: str | None = None
    source: str | None = None
    uri: str | None = None
    row: int | None = None
    offset: int | None = None
    evidence: str | None = None
