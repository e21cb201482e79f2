from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from tokctl.corpus import rejects
from tokctl.corpus.documents import REJECT_SCHEMA, Reject
from tokctl.corpus.rejects import RejectWriter, reject_batch

ROWS = [Reject("extract", "null-text" if i % 3 else "too-large", uri=f"{i}", row=i) for i in range(100)]


@pytest.mark.parametrize("n", [1, 5, 32, 100])
@pytest.mark.parametrize("mixed", [False, True])
def test_the_file_does_not_show_how_rows_came(tmp_path, monkeypatch, n, mixed):
    monkeypatch.setattr(rejects, "_GROUP", 32)
    with RejectWriter(tmp_path / "one") as writer:
        for row in ROWS:
            writer.add(row)
    with RejectWriter(tmp_path / "many") as other:
        for at in range(0, 100, n):
            if mixed and at % 2:
                for row in ROWS[at : at + n]:
                    other.add(row)
            else:
                other.add_batches([reject_batch(ROWS[at : at + n])])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "many").read_bytes()
    table = pq.read_table(tmp_path / "one")
    assert table.schema == REJECT_SCHEMA
    assert [Reject(**row) for row in table.to_pylist()] == ROWS
    assert writer.reasons == other.reasons == {"too-large": 34, "null-text": 66}
    assert writer.n_rejects == 100


def test_no_rejects(tmp_path):
    with RejectWriter(tmp_path / "x"):
        pass
    assert pq.read_table(tmp_path / "x").num_rows == 0
