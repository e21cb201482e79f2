"""Malformed raw input through every command that reads documents: an error that names the place, or a counted reject."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from corpus.reading import gzip_members, warc_record
from pipeline.cli_answers import STAGES, check_rows, nothing_made, reading, tokctl

from tokctl import count_words
from tokctl.corpus.word_counts import WordCounts

GOOD = b'{"text": "a good row"}\n'


class Case(NamedTuple):
    """A file and what becomes of it: rejects by reason with ``rows_out`` good rows, or an error with its place."""

    name: str
    data: bytes
    rows_out: int = 0
    rejects: dict[str, int] | None = None
    error: str | None = None
    row: int | None = None
    offset: int | None = None
    options: tuple[str, ...] = ()


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


_LINES = b"".join(b'{"text": "row %d"}\n' % i for i in range(600))


def _cut(compress: Callable[[bytes], bytes]) -> bytes:
    """A whole member and half of another."""
    whole = compress(_LINES)
    return whole + whole[: len(whole) // 2]


_WARC = [warc_record(i, b"<p>" + b"some text of a page " * 20) for i in range(3)]
CASES = {
    "empty file": Case("x.txt", b"", rejects={"empty-document": 1}),
    "empty JSON lines": Case("x.jsonl", b"", rejects={"empty-document": 1}),
    "blank JSON lines": Case("x.jsonl", b"\n\n  \n" + GOOD, rows_out=1),
    "cut JSON line": Case("x.jsonl", GOOD + b'{"text": "cut', rows_out=1, rejects={"invalid-json": 1}),
    "not objects": Case("x.jsonl", GOOD + b'[1]\n3\nnull\n"s"\n', rows_out=1, rejects={"not-an-object": 4}),
    "null text": Case("x.jsonl", GOOD + b'{"text": null}\n', rows_out=1, rejects={"null-text": 1}),
    "text of another type": Case("x.jsonl", GOOD + b'{"text": [5]}\n', rows_out=1, rejects={"text-not-string": 1}),
    "no text": Case("x.jsonl", GOOD + b'{"body": "x"}\n', rows_out=1, rejects={"missing-text": 1}),
    "wrong field": Case("x.jsonl", b'{"body": "x"}\n', error="no-text-field"),
    "one key twice": Case("x.jsonl", GOOD + b'{"text": "a", "text": "b"}\n', rows_out=1, rejects={"duplicate-key": 1}),
    "deep JSON": Case("x.jsonl", GOOD + b"[" * 100_000 + b"\n", rows_out=1, rejects={"invalid-json": 1}),
    "UTF-16 lines": Case("x.jsonl", '{"text": "a"}\n'.encode("utf-16"), error="not-utf8"),
    "invalid text": Case("x.txt", b"abc\xff\n", error="invalid-utf8", offset=3),
    "invalid line": Case("x.jsonl", GOOD + b'{"text": "\xff"}\n', error="invalid-utf8", row=1, offset=10),
    "lone surrogate": Case("x.jsonl", GOOD + b'{"text": "a\\ud800b"}\n', error="lone-surrogate", row=1),
    "cut gzip": Case("x.jsonl.gz", _cut(gzip.compress), rejects={"truncated-gzip": 1}, rows_out=-1),
    "cut bzip2": Case("x.jsonl.bz2", _cut(bz2.compress), rejects={"truncated-bzip2": 1}, rows_out=-1),
    "cut xz": Case("x.jsonl.xz", _cut(lzma.compress), rejects={"truncated-xz": 1}, rows_out=-1),
    "cut zstd": Case(
        "x.jsonl.zst",
        _cut(zstandard.compress),
        rejects={"truncated-zstd": 1},
        rows_out=-1,
    ),
    "not gzip": Case("x.txt.gz", b"plain text", rejects={"corrupt-gzip": 1}),
    "decompression bomb": Case("x.txt.gz", gzip.compress(b"a" * (20 << 20)), rejects={"decompression-bomb": 1}),
    "too much from one file": Case(
        "x.txt.gz",
        gzip.compress(_LINES),
        rejects={"decompression-bomb": 1},
        options=("--max-decompressed-bytes", "10kB"),
    ),
    "too large a document": Case(
        "x.txt", b"a" * 1001, rejects={"too-large": 1}, options=("--max-document-bytes", "1kB")
    ),
    "cut WARC": Case("x.warc", b"".join(_WARC)[:-80], rows_out=2, rejects={"truncated-record": 1}),
    "cut WARC.gz": Case("x.warc.gz", gzip_members(_WARC)[:-40], rows_out=2, rejects={"truncated-gzip": 1}),
    "no WARC": Case("x.warc", b"nothing of the kind\n" * 9, rejects={"malformed-warc": 1}),
    "another schema": Case("x.parquet", parquet(pa.table({"body": ["a"]})), error="no-text-column"),
    "column of another type": Case("x.parquet", parquet(pa.table({"text": [1, 2]})), error="not-text-column"),
    "null in Parquet": Case(
        "x.parquet", parquet(pa.table({"text": ["a", None]})), rows_out=1, rejects={"null-text": 1}
    ),
    "invalid in Parquet": Case(
        "x.parquet",
        parquet(pa.table({"text": pa.array([b"ok", b"a\xff"], pa.binary())})),
        error="invalid-utf8",
        row=1,
        offset=1,
    ),
    "cut Parquet": Case("x.parquet", parquet(pa.table({"text": ["a"]}))[:-9], rejects={"corrupt-parquet": 1}),
    "binary": Case("x.unknown", b"\x7fELF\x00\x01\x02" * 9, rejects={"binary-file": 1}),
}

VERBATIM = {"empty file": Case("x.txt", b"", rows_out=1)}
"""What ``encode`` does differently: it encodes what there is, so that decoding gives exactly that back."""


# encode takes a plain file as it is: an empty one is a document without tokens
@pytest.mark.parametrize(
    ("kind", "stage"), [(k, s) for k in CASES for s in STAGES if (k, s) != ("empty file", "encode")]
)
def test_every_kind_through_every_stage(kind: str, stage: str, artifacts: Path, tmp_path: Path) -> None:
    case = VERBATIM.get(kind, CASES[kind]) if stage == "encode" else CASES[kind]
    file, out = tmp_path / case.name, tmp_path / "out"
    file.write_bytes(case.data)
    answer = tokctl(*reading(stage, artifacts / "tok", file), *case.options, "-o", out)
    if case.error is not None:
        assert (answer.code, answer.error["code"]) == (3, case.error)
        assert answer.where == (str(file), case.row, case.offset)
        assert nothing_made(out)
        return
    if stage == "compare" and not case.rows_out:
        assert (answer.code, answer.error["code"]) == (3, "no-documents")
        assert nothing_made(out)
        return
    assert answer.code == 0
    manifest = check_rows(out)
    rejects = dict(manifest["facts"]["rejects"])
    for_other_reasons = rejects.pop("exact-duplicate", 0) + rejects.pop("near-duplicate", 0)
    assert rejects == (case.rejects or {})
    if case.rows_out >= 0:
        assert manifest["counts"]["rows_out"] + for_other_reasons == case.rows_out
    else:  # the first member is whole; how much of the second is there depends on the compressor's blocks
        assert 601 <= manifest["counts"]["rows_in"] <= 1200
    if case.rejects:
        assert "rejected; the first: " in answer.stderr


@pytest.mark.parametrize("kind", [kind for kind in CASES if kind != "empty file"])
def test_rows_on_stdout_are_whole_or_refused(kind: str, artifacts: Path, tmp_path: Path) -> None:
    """Without ``-o`` there is no list of rejects: they are an error, or with ``--errors skip`` part of the answer."""
    case = VERBATIM.get(kind, CASES[kind])
    file = tmp_path / case.name
    file.write_bytes(case.data)
    command = [*reading("encode", artifacts / "tok", file), *case.options]
    answer = tokctl(*command)
    if case.error is not None or case.rejects:
        assert answer.code == 3
        first = "missing-text" if kind == "wrong field" else case.error
        assert answer.error["code"] in (first, *(case.rejects or ()))
    else:
        assert (len(answer.result["rows"]), answer.result["rejected"]) == (case.rows_out, [])
    if case.rejects:
        skipped = tokctl(*command, "--errors", "skip").result
        assert [reject["reason"] for reject in skipped["rejected"]] == [
            r for r, n in case.rejects.items() for _ in range(n)
        ]
        if case.rows_out >= 0:
            assert len(skipped["rows"]) == case.rows_out


@pytest.mark.parametrize("stage", STAGES)
def test_invalid_utf8_under_each_policy(stage: str, artifacts: Path, tmp_path: Path) -> None:
    for name, data in (("a.txt", b"fine"), ("b.txt", b"abc\xffdef \xc3(\n"), ("c.txt", b"\xe2\x82")):
        (tmp_path / name).write_bytes(data)
    files = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt")]
    command = reading(stage, artifacts / "tok", *files)
    place = {"file": "b/b.txt", "row": None, "offset": 3}

    stopped = tokctl(*command, "-o", tmp_path / "error")
    assert (stopped.code, stopped.error["code"], stopped.where) == (3, "invalid-utf8", (str(files[1]), None, 3))
    assert "--errors replace" in stopped.error["hint"] and nothing_made(tmp_path / "error")

    for policy in ("replace", "bytes"):
        answer = tokctl(*command, "-o", tmp_path / policy, "--errors", policy)
        manifest = check_rows(tmp_path / policy)
        assert manifest["counts"] == {"rows_in": 3, "rows_out": 3, "rows_rejected": 0}
        assert manifest["facts"]["ill_formed"] == {"sequences": 3, "documents": 2, "first": place}
        assert "3 ill-formed sequences in 2 documents were" in answer.stderr and "b/b.txt, byte 3" in answer.stderr

    answer = tokctl(*command, "-o", tmp_path / "skip", "--errors", "skip")
    manifest = check_rows(tmp_path / "skip")
    assert manifest["counts"] == {"rows_in": 3, "rows_out": 1, "rows_rejected": 2}
    rejects = pq.read_table(tmp_path / "skip/rejects.parquet").to_pylist()
    assert [(r["source"], r["uri"], r["offset"]) for r in rejects] == [("b", "b.txt", 3), ("c", "c.txt", 0)]
    assert "2 records were rejected; the first: b/b.txt, byte 3: invalid-utf8" in answer.stderr


def _texts(out: Path) -> list[Any]:
    return pq.read_table(sorted(out.glob("part-*.parquet"))[0]).column("text").to_pylist()


def test_policies_say_what_the_text_is(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"abc\xffdef \xc3(\n")
    for policy, text in (("replace", "abc\ufffddef \ufffd(\n"), ("bytes", b"abc\xffdef \xc3(\n")):
        tokctl("extract", tmp_path / "b.txt", "-o", tmp_path / policy, "--errors", policy)
        assert _texts(tmp_path / policy) == [text]
    (tmp_path / "s.jsonl").write_bytes(b'{"text": "a\\ud800b"}\n{"text": "\\ud83d\\ude00"}\n')
    for policy, texts in (
        ("replace", ["a\ufffdb", "😀"]),
        ("bytes", [b"a\xed\xa0\x80b", "😀".encode()]),
        ("skip", ["😀"]),
    ):
        tokctl("extract", tmp_path / "s.jsonl", "-o", tmp_path / f"s-{policy}", "--errors", policy)
        assert _texts(tmp_path / f"s-{policy}") == texts


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("policy", ["replace", "skip", "bytes"])
def test_lone_surrogates_under_each_policy(stage: str, policy: str, artifacts: Path, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(GOOD + b'{"text": "a\\ud800b"}\n')
    tokctl(*reading(stage, artifacts / "tok", tmp_path / "s.jsonl"), "-o", tmp_path / "out", "--errors", policy)
    manifest = check_rows(tmp_path / "out")
    assert manifest["facts"]["rejects"] == ({"lone-surrogate": 1} if policy == "skip" else {})
    assert manifest["facts"]["ill_formed"]["sequences"] == (0 if policy == "skip" else 1)


KEPT = {
    "NUL": b"a\x00b\x00\n" * 50,
    "CRLF": b"one\r\ntwo\r\n\r\nthree\rfour\n",
    "line separators": "a\u2028b\u2029c\x85d\x0be\x0cf\n".encode(),
    "no newline": b"x",
    "white space": b"the  cat\n\tsat ",
    "marks inside": "a\ufeffb\ufeff".encode(),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_bytes_are_kept_from_a_file_as_from_an_iterator(text: bytes, artifacts: Path, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(text)
    tokctl("extract", tmp_path / "x.txt", "-o", tmp_path / "documents")
    assert _texts(tmp_path / "documents") == [text.decode()]
    words = []
    for source in ("x.txt", "documents"):
        tokctl("count", tmp_path / source, "-o", tmp_path / f"words-{source}")
        words.append((tmp_path / f"words-{source}/words.parquet").read_bytes())
    assert words[0] == words[1]
    counted = WordCounts.read_parquet(tmp_path / "words-x.txt/words.parquet")
    given = count_words(iter([text]), "gpt2")
    assert counted.data.tobytes() == given.data.tobytes() and counted.counts.tolist() == given.counts.tolist()
    rows = tokctl("encode", "--tokenizer", artifacts / "tok", tmp_path / "x.txt").result["rows"]
    assert (
        rows[0]["ids"] == tokctl("encode", "--tokenizer", artifacts / "tok", "-", stdin=text).result["rows"][0]["ids"]
    )
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    assert tokctl("decode", "--tokenizer", artifacts / "tok", stdin=lines).result["rows"][0]["text"] == text.decode()


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "encode"])
def test_a_mark_at_the_start_is_no_text(stage: str, artifacts: Path, tmp_path: Path) -> None:
    found = set()
    for directory, mark in (("plain", b""), ("marked", b"\xef\xbb\xbf")):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "x.txt").write_bytes(mark + b"the cat sat on the mat")
        out = tmp_path / f"out-{directory}"
        assert tokctl(*reading(stage, artifacts / "tok", tmp_path / directory / "x.txt"), "-o", out).code == 0
        name = {"count": "words.parquet", "fit bpe": "tokctl.json", "compare": "comparison.json"}.get(stage)
        documents = out / "train" if stage == "split" else out
        found.add((out / name).read_bytes() if name else _texts(documents)[0])
    assert len(found) == 1


def test_encode_is_exact_even_about_the_mark(artifacts: Path, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"\xef\xbb\xbfthe cat")
    rows = tokctl("encode", "--tokenizer", artifacts / "tok", tmp_path / "x.txt").result["rows"]
    decoded = tokctl("decode", "--tokenizer", artifacts / "tok", stdin=json.dumps(rows[0]).encode())
    assert decoded.result["rows"][0]["text"] == "\ufeffthe cat"


@pytest.mark.parametrize("stage", STAGES)
def test_an_empty_corpus(stage: str, artifacts: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    answer = tokctl(*reading(stage, artifacts / "tok", tmp_path / "none"), "-o", tmp_path / "out")
    if stage == "compare":
        assert (answer.code, answer.error["code"]) == (3, "no-documents")
        return
    assert check_rows(tmp_path / "out")["counts"] == {"rows_in": 0, "rows_out": 0, "rows_rejected": 0}
    assert "there was nothing to read" in answer.stderr
    if stage in ("extract", "dedup exact", "dedup minhash", "split"):  # an empty output is an input like any other
        source = tmp_path / "out" / ("train" if stage == "split" else "")
        assert tokctl("count", source, "-o", tmp_path / "words").code == 0
        assert (
            tokctl("fit", "bpe", "--counts", tmp_path / "words", "--vocab-size", "256", "-o", tmp_path / "t").code == 0
        )


def test_a_vocabulary_that_an_empty_corpus_cannot_fill(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    answer = tokctl("fit", "bpe", tmp_path / "none", "--vocab-size", "300", "-o", tmp_path / "out")
    assert (answer.code, answer.error["code"]) == (3, "size-not-reachable")
    assert "256" in answer.error["message"] and nothing_made(tmp_path / "out")


LOOPS: dict[str, Callable[[Path], None]] = {
    "symlink-loop": lambda root: (root / "up").symlink_to(".."),
    "broken-link": lambda root: (root / "gone.txt").symlink_to("nowhere"),
    "itself": lambda root: (root / "self.txt").symlink_to("self.txt"),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", LOOPS)
def test_links_that_lead_nowhere(kind: str, stage: str, artifacts: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    LOOPS[kind](root)
    answer = tokctl(*reading(stage, artifacts / "tok", root), "-o", tmp_path / "out")
    assert (answer.code, answer.error["code"]) == (3, "symlink-loop" if kind == "itself" else kind)
    assert answer.where[0].startswith(str(root)) and nothing_made(tmp_path / "out")


@pytest.mark.parametrize("stage", STAGES)
def test_inputs_that_are_not_there(
    stage: str, artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("nowhere.txt", "@nowhere", "*.nothing", "", "x" * 5000, "a\0b"):
        answer = tokctl(*reading(stage, artifacts / "tok", name), "-o", tmp_path / "out")
        assert (answer.code, answer.error["code"]) == (2, "missing-input"), name
        assert nothing_made(tmp_path / "out")


def test_encode_obeys_its_input_format(artifacts: Path, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b'{"text": "a"}\n{"text": "b"}\n')
    command = ["encode", "--tokenizer", artifacts / "tok", tmp_path / "x.txt", "--input"]
    lengths = {kind: len(tokctl(*command, kind).result["rows"]) for kind in ("auto", "document", "lines", "jsonl")}
    assert lengths == {"auto": 1, "document": 1, "lines": 2, "jsonl": 2}
    assert tokctl(*command, "parquet").error["code"] == "corrupt-parquet"
