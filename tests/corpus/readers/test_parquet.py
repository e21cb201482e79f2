from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus.reading import read, reasons, texts

from tokctl.errors import DataError


@pytest.fixture
def table(tmp_path):
    def write(columns, name="x.parquet", **options):
        path = tmp_path / name
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
        return path

    return write


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
def test_text_types(table, kind):
    rows, rejects = read(table({"text": pa.array(["a", None, "ü\0", ""]).cast(kind)}))
    assert texts(rows) == ["a", "ü\0", ""]
    assert [(r.row, r.reason) for r in rejects] == [(1, "null-text")]


def test_fields_and_structs(table):
    body = pa.array([{"t": "A", "n": 1}, None, {"t": None, "n": 2}])
    path = table({"body": body, "id": [10, 11, 12], "lang": ["de", "en", None], "x": [1.5, None, 2.0]})
    options = {"text_column": "body.t", "id_field": "id", "language_field": "lang", "meta_fields": ("x", "body.n")}
    rows, rejects = read(path, **options)
    assert reasons(rejects) == ["null-text", "null-text"]
    (row,) = rows
    assert (row["doc_id"], row["text"], row["language"]) == ("x/x.parquet#10", "A", "de")
    assert json.loads(row["meta"]) == {"body.n": 1, "format": "parquet", "language_origin": "column", "x": "1.5"}


def test_many_row_groups_keep_order_and_row_numbers(table):
    values = [None if i == 777 else f"row {i}" for i in range(1000)]
    rows, rejects = read(table({"text": values}, row_group_size=64))
    assert texts(rows) == [value for value in values if value]
    assert rejects[0].row == 777


def test_another_schema_is_an_error_that_names_the_columns(table):
    with pytest.raises(DataError) as error:
        read(table({"body": ["a"], "n": [1]}))
    assert error.value.code == "no-text-column"
    assert "body (string), n (int64)" in (error.value.hint or "")
    with pytest.raises(DataError) as error:
        read(table({"text": [1]}))
    assert error.value.code == "not-text-column"
    with pytest.raises(DataError) as error:
        read(table({"text": ["a"]}), id_field="id")
    assert error.value.code == "no-column"


def test_strings_are_checked(table):
    broken = pa.array([b"ok", b"a\xff"]).cast(pa.binary()).view(pa.string())
    path = table(pa.table({"text": broken}))
    with pytest.raises(DataError) as error:
        read(path)
    assert (error.value.code, error.value.where.row, error.value.where.offset) == ("invalid-utf8", 1, 1)
    assert texts(read(path, errors="replace")[0]) == ["ok", "a\ufffd"]
    assert texts(read(path, errors="bytes")[0]) == [b"ok", b"a\xff"]
    assert reasons(read(path, errors="skip")[1]) == ["invalid-utf8"]


def test_broken_files(table, tmp_path):
    path = table({"text": ["words and words"] * 1000})
    data = path.read_bytes()
    for broken in (data[:-1], data[: len(data) // 2], b"PAR1", b"no parquet at all"):
        path.write_bytes(broken)
        rows, rejects = read(path)
        assert (rows, reasons(rejects)) == ([], ["corrupt-parquet"])
    path.write_bytes(b"")
    assert reasons(read(path)[1]) == ["empty-document"]


def test_too_large(table):
    rows, rejects = read(table({"text": ["123456", "1"]}), max_document_bytes=5)
    assert (texts(rows), reasons(rejects)) == (["1"], ["too-large"])
