from __future__ import annotations

import hashlib
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tokctl.corpus import shards
from tokctl.corpus.documents import DOCUMENT_SCHEMA
from tokctl.corpus.shards import ShardWriter, read_shards, row_sizes, shard_paths
from tokctl.errors import ArtifactError

SCHEMA = pa.schema([("text", pa.large_string()), ("source", pa.large_string()), ("n", pa.int64())])


def table(n: int, seed: int = 1) -> pa.Table:
    rng = random.Random(seed)
    texts = ["x" * rng.randrange(200) for _ in range(n)]
    return pa.table(
        [pa.array(texts, pa.large_string()), pa.array(["s"] * n, pa.large_string()), pa.array(range(n))], SCHEMA
    )


def write(directory, rows: pa.Table, chunk: int, target: int = 1 << 30):
    with ShardWriter(directory, rows.schema, target) as writer:
        for batch in rows.to_batches(max_chunksize=chunk):
            writer.write(batch)
    return writer.parts


def test_bytes_do_not_depend_on_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "ROW_GROUP_BYTES", 3000)
    rows = table(1000)
    written = [write(tmp_path / str(chunk), rows, chunk, 20_000) for chunk in (1, 7, 1000)]
    assert written[0] == written[1] == written[2]
    for part in written[0]:
        path = tmp_path / "7" / part.name
        assert (part.sha256, part.bytes) == (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size)
        assert part.rows == pq.read_metadata(path).num_rows
    found = pa.Table.from_batches(read_shards(tmp_path / "7"))
    assert found == rows


def test_parts_and_groups_end_with_the_row_that_fills_them(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "ROW_GROUP_BYTES", 1000)
    rows = table(500)
    sizes = row_sizes(rows.combine_chunks().to_batches()[0]).tolist()
    parts = write(tmp_path, rows, 64, 4000)
    at = 0
    for i, part in enumerate(parts):
        metadata = pq.read_metadata(tmp_path / part.name)
        taken = sizes[at : at + part.rows]
        assert sum(taken[:-1]) < 4000
        assert sum(taken) >= 4000 or i == len(parts) - 1
        groups = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
        for g, n in enumerate(groups):
            inside = taken[sum(groups[:g]) : sum(groups[: g + 1])]
            assert len(inside) == n and sum(inside[:-1]) < 1000
            assert sum(inside) >= 1000 or g == len(groups) - 1
        at += part.rows
    assert at == 500


def test_row_groups_are_bounded_in_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "ROW_GROUP_ROWS", 100)
    (part,) = write(tmp_path, table(250), 33)
    metadata = pq.read_metadata(tmp_path / part.name)
    assert [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)] == [100, 100, 50]


def test_no_rows_make_one_empty_part(tmp_path):
    with ShardWriter(tmp_path, DOCUMENT_SCHEMA) as writer:
        pass
    assert [(p.name, p.rows) for p in writer.parts] == [("part-00000.parquet", 0)]
    assert list(read_shards(tmp_path)) == []
    assert pq.read_schema(tmp_path / "part-00000.parquet").equals(DOCUMENT_SCHEMA)


def test_a_full_last_part_is_not_followed_by_an_empty_one(tmp_path):
    rows = pa.table([pa.array(["x" * 100] * 4, pa.large_string())], ["text"])
    assert [p.rows for p in write(tmp_path, rows, 10, 200)] == [2, 2]


def test_one_large_row(tmp_path):
    rows = pa.table([pa.array(["a", "b" * 100_000, "c"], pa.large_string())], ["text"])
    assert [p.rows for p in write(tmp_path, rows, 10, 1000)] == [2, 1]


def test_sizes_count_values_and_nulls():
    columns = [pa.array(["ü", None], pa.string()), pa.array([b"abc", b""], pa.large_binary()), pa.array([1, None])]
    batch = pa.record_batch(columns, names=["a", "b", "c"])
    assert row_sizes(batch).tolist() == [2 + 3 + 8, 0 + 0 + 8]
    assert row_sizes(batch.slice(1)).tolist() == [8]


def test_other_string_types_are_cast(tmp_path):
    with ShardWriter(tmp_path, pa.schema([("text", pa.large_string())])) as writer:
        writer.write(pa.record_batch([pa.array(["a"])], names=["text"]))
    assert next(read_shards(tmp_path)).column("text").type == pa.large_string()


def test_columns_and_their_order(tmp_path):
    write(tmp_path, table(10), 10)
    assert next(read_shards(tmp_path, ["n", "text"])).schema.names == ["n", "text"]
    with pytest.raises(ArtifactError) as error:
        list(read_shards(tmp_path, ["body"]))
    assert error.value.code == "no-column" and "text, source, n" in (error.value.hint or "")


def test_missing_and_broken_parts(tmp_path):
    with pytest.raises(ArtifactError) as error:
        shard_paths(tmp_path)
    assert error.value.code == "no-shards"
    write(tmp_path, table(300), 10, 2000)
    paths = shard_paths(tmp_path)
    paths[2].write_bytes(paths[2].read_bytes()[:-3])
    with pytest.raises(ArtifactError) as error:
        list(read_shards(tmp_path))
    assert error.value.code == "broken-part"
    paths[1].unlink()
    with pytest.raises(ArtifactError) as error:
        shard_paths(tmp_path)
    assert error.value.code == "missing-part"


def test_an_error_inside_leaves_no_readable_part(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "ROW_GROUP_BYTES", 500)
    with pytest.raises(RuntimeError), ShardWriter(tmp_path, SCHEMA) as writer:
        writer.write(table(50).to_batches()[0])
        raise RuntimeError
    (path,) = tmp_path.iterdir()
    with pytest.raises(pa.ArrowException):
        pq.read_metadata(path)
