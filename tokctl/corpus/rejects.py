"""``rejects.parquet``: every input row that did not become an output row, with the stage, the place and the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from tokctl.corpus.documents import REJECT_SCHEMA, Reject

FILE_NAME = "rejects.parquet"
_BATCH = 4096


def reject_batch(rejects: Sequence[Reject]) -> pa.RecordBatch:
    """Rejects as rows of REJECT_SCHEMA."""
    columns = {name: [getattr(reject, name) for reject in rejects] for name in REJECT_SCHEMA.names}
    return pa.record_batch(columns, schema=REJECT_SCHEMA)


class RejectWriter:
    """Writes rejects in the order they are added; ``reasons`` counts them by reason."""

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(path, REJECT_SCHEMA, compression="zstd")
        self._waiting: list[Reject] = []
        self.reasons: Counter[str] = Counter()

    @property
    def n_rejects(self) -> int:
        return sum(self.reasons.values())

    def add(self, reject: Reject) -> None:
        """Add one reject."""
        self.reasons[reject.reason] += 1
        self._waiting.append(reject)
        if len(self._waiting) >= _BATCH:
            self._flush()

    def add_batches(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add rows that already have the schema of rejects."""
        self._flush()
        for batch in batches:
            self.reasons.update(batch.column("reason").to_pylist())
            self._writer.write_batch(batch)

    def close(self) -> None:
        """Finish the file."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_batch(reject_batch(self._waiting))
            self._waiting = []

    def __enter__(self) -> RejectWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
