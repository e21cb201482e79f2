"""Small document tables for the deduplication tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from tokctl.corpus.dedup.document_rows import DocumentRows


def table(
    texts: Sequence[str | bytes], *, ids: Sequence[str] | None = None, sources: Sequence[str] | None = None
) -> pa.Table:
    """The columns that deduplication reads; ids are ``d0``, ``d1``, ... unless given."""
    kind = pa.large_binary() if any(isinstance(text, bytes) for text in texts) else pa.large_string()
    return pa.table(
        {
            "doc_id": pa.array(ids or [f"d{i}" for i in range(len(texts))], pa.large_string()),
            "text": pa.array(texts, kind),
            "source": pa.array(sources or ["s"] * len(texts), pa.large_string()),
            "uri": pa.array([f"u{i}" for i in range(len(texts))], pa.large_string()),
        }
    )


def rows(texts: Sequence[str | bytes], **columns: Sequence[str]) -> DocumentRows:
    """The texts as DocumentRows."""
    return DocumentRows.from_batches([table(texts, **columns)])


def cut(whole: pa.Table, sizes: Iterable[int]) -> DocumentRows:
    """The same rows in batches of the given sizes, the rest in a last one."""
    batches, start = [], 0
    for size in sizes:
        batches.append(whole.slice(start, size))
        start += size
    return DocumentRows.from_batches([*batches, whole.slice(start)])
