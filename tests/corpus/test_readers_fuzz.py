"""Malformed bytes to every reader: rows, rejects or a TokctlError, and no other exception."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from corpus.reading import gzip_members, warc_record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokctl.corpus.documents import Reject
from tokctl.corpus.ingest import document_schema, iter_batches, read_records
from tokctl.corpus.inputs import InputFile
from tokctl.corpus.read_options import ERRORS, ReadOptions
from tokctl.errors import TokctlError


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": ["a", None, "ü" * 30], "id": [1, 2, 2]}), sink)
    return sink.getvalue()


WARC = [warc_record(i, b"<html lang=x><p>w%d \xc3\xbc" % i) for i in range(3)]
SEEDS = {
    "x.txt": "\ufeffwörds\r\n\0".encode(),
    "x.md": "\ufeffwörds".encode("utf-16"),
    "x.py": b"print(1)\n",
    "x.bin": b"some words\n",
    "x.jsonl": b'{"text": "a\\ud800\\u00fc", "id": 1, "m": {"k": [1.5, null]}}\n{"text": "b", "id": 2}\n[1]\n{"text"',
    "x.json": b'{"text": "a", "id": 1}\n',
    "x.html": '<html lang="de"><meta charset=utf-8><p>Grüße<pre> a\n</pre>'.encode(),
    "x.warc": b"".join(WARC),
    "x.warc.gz": gzip_members(WARC),
    "x.parquet": parquet(),
    "x.jsonl.gz": gzip.compress(b'{"text": "a", "id": 1}\n' * 3),
    "x.txt.zst": zstandard.compress(b"words " * 9),
    "x.txt.bz2": bz2.compress(b"words " * 9),
    "x.txt.xz": lzma.compress(b"words " * 9),
}

AWKWARD = [b"\n", b"\0", b"\xff", b"\xed\xa0\x80", b'"', b"\r\n\r\n"]


@st.composite
def mutations(draw, seed: bytes) -> bytes:
    data = bytearray(seed)
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["flip", "cut", "insert", "repeat", "drop"]))
        at = draw(st.integers(0, len(data)))
        if kind == "flip" and data:
            data[at % len(data)] = draw(st.integers(0, 255))
        elif kind == "cut":
            del data[at:]
        elif kind == "insert":
            data[at:at] = draw(st.one_of(st.binary(max_size=8), st.sampled_from(AWKWARD)))
        elif kind == "repeat":
            data[at:at] = data[at : at + 40]
        else:
            del data[at : at + draw(st.integers(1, 20))]
    return bytes(data)


def exercise(path, name: str, data: bytes, errors: str, id_field: str | None) -> None:
    path.write_bytes(data)
    options = ReadOptions(
        errors=errors,
        id_field=id_field,
        meta_fields=("m",) if name.endswith((".jsonl", ".json", ".gz")) else (),
        time_limit=5,
        max_document_bytes=100_000,
    )
    files = [InputFile("s", name, str(path))]
    try:
        records = list(read_records(files, options))
        rejects: list[Reject] = []
        n_rows = 0
        for batch in iter_batches(files, options, document_schema(errors).names, on_reject=rejects.append):
            batch.validate(full=True)
            n_rows += batch.num_rows
            assert len(set(batch.column("doc_id").to_pylist())) == batch.num_rows
    except TokctlError as error:
        assert error.message and error.code
        return
    assert n_rows + len(rejects) == len(records)
    assert all(reject.reason and reject.evidence and reject.uri == name for reject in rejects)


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_malformed_files(name, tmp_path):
    @settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.one_of(mutations(SEEDS[name]), st.binary(max_size=200)),
        st.sampled_from(ERRORS),
        st.sampled_from([None, "id"]) if "json" in name or "parquet" in name else st.none(),
    )
    def run(data, errors, id_field):
        exercise(tmp_path / name, name, data, errors, id_field)

    run()
