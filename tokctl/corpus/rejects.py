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
_GROUP = 4096


def reject_batch(rejects: Sequence[Reject]) -> pa.RecordBatch:
    """Rejects as rows of REJECT_SCHEMA."""
    columns = {name: [getattr(reject, name) for reject in rejects] for name in REJECT_SCHEMA.names}
    return pa.record_batch(columns, schema=REJECT_SCHEMA)


class RejectWriter:
    """Writes rejects in the order they are added, in row groups that don't show how; ``reasons`` counts them by reason."""

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(path, REJECT_SCHEMA, compression="zstd")
        self._waiting: list[Reject] = []
        self._batches: list[pa.RecordBatch] = []
        self._n_rows = 0
        self.reasons: Counter[str] = Counter()

    @property
    def n_rejects(self) -> int:
        return sum(self.reasons.values())

    def add(self, reject: Reject) -> None:
        """Add one reject."""
        self.reasons[reject.reason] += 1
        self._waiting.append(reject)
        if len(self._waiting) >= _GROUP:
            self._gather()
            self._flush(_GROUP)

    def add_batches(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add rows that already have the schema of rejects."""
        self._gather()
        for batch in batches:
            self.reasons.update(batch.column("reason").to_pylist())
            self._batches.append(batch)
            self._n_rows += batch.num_rows
            self._flush(_GROUP)

    def close(self) -> None:
        """Finish the file."""
        self._gather()
        self._flush(1)
        self._writer.close()

    def _gather(self) -> None:
        """Turn the single rejects into a batch behind those that wait."""
        if self._waiting:
            self._batches.append(reject_batch(self._waiting))
            self._n_rows += len(self._waiting)
            self._waiting = []

    def _flush(self, least: int) -> None:
        """Write row groups while at least ``least`` rows wait."""
        if self._n_rows < least:
            return
        table = pa.Table.from_batches(self._batches, REJECT_SCHEMA)
        at = 0
        while table.num_rows - at >= least:
            self._writer.write_table(table.slice(at, _GROUP), row_group_size=_GROUP)
            at = min(at + _GROUP, table.num_rows)
        self._batches = table.slice(at).to_batches()
        self._n_rows = table.num_rows - at

    def __enter__(self) -> RejectWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
