"""Documents as numbered rows: the same from memory and from Parquet, cut anywhere, on any number of threads."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tokctl.corpus.dedup import document_rows
from tokctl.corpus.dedup.document_rows import DocumentRows, TextBatch, ragged_text
from tokctl.errors import DataError

from .documents import cut, table

TEXTS = [f"text {i} " * (i % 7) for i in range(500)]


def _read(documents: DocumentRows, wanted: np.ndarray | None = None, workers: int = 1) -> list[tuple[int, str]]:
    def work(batch: TextBatch) -> list[str]:
        bounds = itertools.pairwise(batch.offsets.tolist())
        return [batch.data[start:stop].tobytes().decode() for start, stop in bounds]

    return [
        (int(row), text)
        for batch, texts in documents.map_texts(work, wanted=wanted, workers=workers)
        for row, text in zip(batch.rows, texts, strict=True)
    ]


@pytest.mark.parametrize("workers", [1, 3])
def test_every_row_once_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(document_rows, "BATCH_ROWS", 37)
    monkeypatch.setattr(document_rows, "BATCH_BYTES", 300)
    whole = table(TEXTS)
    pq.write_table(whole.slice(0, 200), tmp_path / "a.parquet", row_group_size=64)
    pq.write_table(whole.slice(200), tmp_path / "b.parquet", row_group_size=1000)
    wanted = np.arange(500) % 5 == 2
    wanted[64:128] = False
    for documents in (
        DocumentRows.from_parquet([tmp_path / "a.parquet", tmp_path / "b.parquet"]),
        cut(whole, [1, 0, 99, 250]),
    ):
        assert documents.n_rows == 500
        assert _read(documents, workers=workers) == list(enumerate(TEXTS))
        chosen = [(i, text) for i, text in enumerate(TEXTS) if wanted[i]]
        assert _read(documents, wanted, workers) == chosen


def test_steps_reach_the_total() -> None:
    seen: list[tuple[int, int]] = []
    documents = cut(table(TEXTS), [100, 100])
    for _ in documents.map_texts(lambda batch: None, on_step=lambda done, total: seen.append((done, total))):
        pass
    assert seen[-1] == (500, 500) and [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_every_arrow_spelling_of_text() -> None:
    plain = pa.array(["a", "", "naïve", "d"], pa.large_string())
    arrays = [
        plain,
        plain.cast(pa.string()),
        plain.cast(pa.binary()),
        plain.cast(pa.large_binary()),
        plain.dictionary_encode(),
        pa.array(["zz", "a", "", "naïve", "d", "yy"], pa.large_string()).slice(1, 4),
    ]
    for array in arrays:
        data, offsets = ragged_text(array)
        found = [data[a:b].tobytes().decode() for a, b in itertools.pairwise(offsets.tolist())]
        assert found == ["a", "", "naïve", "d"], array.type


def test_bad_columns_name_their_place(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        ragged_text(pa.array(["a", None], pa.large_string()), 40)
    assert caught.value.where.row == 41
    with pytest.raises(DataError, match="int64"):
        ragged_text(pa.array([1, 2]))
    pq.write_table(pa.table({"content": ["x"]}), tmp_path / "other.parquet")
    for documents in (
        DocumentRows.from_parquet([tmp_path / "other.parquet"]),
        DocumentRows.from_batches([pa.table({"content": ["x"]})]),
    ):
        with pytest.raises(DataError, match="text") as caught:
            list(documents.text_batches())
        assert caught.value.hint


def test_a_part_that_shrinks_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(TEXTS), path)
    documents = DocumentRows.from_parquet([path])
    pq.write_table(table(TEXTS[:10]), path)
    with pytest.raises(DataError, match="changed"):
        list(documents.text_batches())
