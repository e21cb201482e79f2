"""Every subcommand on malformed input of all kinds: a handled exit code, one valid answer, and no row unaccounted for.

Inputs are broken copies of whole ones: bytes flipped, cut out, doubled and put elsewhere, so that they get past the first check.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from corpus.reading import gzip_members, warc_record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipeline.cli_answers import STAGES, Answer, check_rows, nothing_made, reading, tokctl

POLICIES = ("error", "replace", "skip", "bytes")


def bounded(max_examples: int) -> Any:
    return settings(
        max_examples=max_examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


@contextmanager
def workplace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tokctl-fuzz-") as directory:
        yield Path(directory)


PIECES = st.sampled_from(
    [
        *(b"\xff", b"\x00", b"\xef\xbb\xbf", b"\xe2\x82", b"\xed\xa0\x80", b"\r\n", b"\n", b"\\ud800", "é文".encode()),
        *(b'"', b"'", b"{", b"[", b"}", b" ", b"=", b"null", b"1e999", b"-1", b'{"text":'),
        *(b"<pre>", b"\x1f\x8b", b"PAR1", b"WARC/1.0\r\n"),
    ]
)


@st.composite
def broken(draw: st.DrawFn, whole: bytes) -> bytes:
    """``whole`` after up to 4 changes."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(["put", "flip", "cut", "end", "double"]))
        if kind == "put":
            data[at:at] = draw(PIECES)
        elif kind == "flip" and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del data[at : at + draw(st.integers(1, 20))]
        elif kind == "end":
            del data[at:]
        else:
            data[at:at] = data[at : at + draw(st.integers(1, 40))]
    return bytes(data)


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["the cat", "", None, "文"], "id": [1, 2, 3, 4]}), sink)
    return sink.getvalue().to_pybytes()


_ROWS = (
    b'{"text": "the cat", "id": "a"}\n{"text": "sat \\u00e9\\n", "id": "b", "n": [1, {"x": null}]}\n\n{"text": ""}\n'
)
_WARC = [warc_record(i, b"<html lang=de><p>the cat sat</p>") for i in range(2)]
RAW = {
    "x.txt": b"the cat sat on the mat\r\n\x00 caf\xc3\xa9\n" * 3,
    "x.jsonl": _ROWS,
    "x.jsonl.gz": gzip.compress(_ROWS, mtime=0),
    "x.parquet": _parquet(),
    "x.warc": b"".join(_WARC),
    "x.warc.gz": gzip_members(_WARC),
    "x.py": b"def f():\n    return 'the cat'\n",
    "x.md": b"# The cat\n\nsat\n",
    "x.html": b"<html><head><meta charset=utf-8><title>t</title></head><body><p>the cat<pre> x\n  y</pre></body></html>",
}


def _n_rows(name: str, data: bytes) -> int | None:
    """How many records there must be, where a slow and obvious look at the bytes can tell."""
    if name in ("x.txt", "x.md"):
        return 1
    if name == "x.jsonl" and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")):
        lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        return sum(bool(line.strip(b" \t\r")) for line in lines) if data else 1
    return None


def accounted_for(answer: Answer, out: Path, n_rows: int | None, allowed: tuple[int, ...]) -> None:
    """A whole output in which each row is out or rejected, or an error and no output."""
    assert answer.code in (0, *allowed), answer.document
    if answer.code:
        assert nothing_made(out)
        return
    counts = check_rows(out)["counts"]
    if n_rows is not None:
        assert counts["rows_in"] == n_rows, answer.document


@st.composite
def raw_file(draw: st.DrawFn) -> tuple[str, bytes]:
    name = draw(st.sampled_from(sorted(RAW)))
    return name, draw(broken(RAW[name]))


@bounded(120)
@given(file=raw_file(), stage=st.sampled_from(STAGES), errors=st.sampled_from(POLICIES))
def test_raw_files(artifacts: Path, file: tuple[str, bytes], stage: str, errors: str) -> None:
    name, data = file
    with workplace() as work:
        (work / name).write_bytes(data)
        answer = tokctl(*reading(stage, artifacts / "tok", work / name), "-o", work / "out", "--errors", errors)
        accounted_for(answer, work / "out", _n_rows(name, data), (3,))


@bounded(45)
@given(
    file=raw_file(),
    errors=st.sampled_from(POLICIES),
    kind=st.sampled_from(["auto", "document", "lines", "jsonl", "parquet"]),
)
def test_rows_on_stdout(artifacts: Path, file: tuple[str, bytes], errors: str, kind: str) -> None:
    name, data = file
    with workplace() as work:
        (work / name).write_bytes(data)
        command = ["encode", "--tokenizer", artifacts / "tok", "--errors", errors, "--input", kind]
        answer = tokctl(*command, work / name)
        assert answer.code in (0, 3)
        n_rows = _n_rows(name, data) if kind == "auto" else 1 if kind == "document" else None
        if answer.code == 0 and n_rows is not None:
            assert len(answer.result["rows"]) + len(answer.result["rejected"]) == n_rows
        if answer.code == 0:
            rows = "".join(json.dumps(row) + "\n" for row in answer.result["rows"]).encode()
            decoded = tokctl("decode", "--tokenizer", artifacts / "tok", stdin=rows).result["rows"]
            assert [row["doc_id"] for row in decoded] == [row["doc_id"] for row in answer.result["rows"]]
        assert tokctl(*command, "-", stdin=data).code in (0, 3)


@bounded(45)
@given(
    rows=st.one_of(
        broken(b'{"doc_id": "a", "ids": [1, 2, 3]}\n\n[4, 5]\n{"ids": []}\n'),
        st.lists(st.lists(st.integers(-(2**70), 2**70) | st.integers(0, 300)), max_size=3).map(
            lambda v: json.dumps(v).encode()
        ),
        st.lists(st.lists(st.integers(0, 264), max_size=9), max_size=4).map(
            lambda v: "".join(json.dumps({"ids": ids}) + "\n" for ids in v).encode()
        ),
    ),
    errors=st.sampled_from(["bytes", "replace", "strict"]),
)
def test_ids(artifacts: Path, rows: bytes, errors: str) -> None:
    answer = tokctl("decode", "--tokenizer", artifacts / "tok", "--errors", errors, stdin=rows)
    assert answer.code in (0, 3)
    if answer.code == 0:
        assert len(answer.result["rows"]) == sum(bool(line.strip()) for line in rows.split(b"\n"))


@bounded(40)
@given(text=st.text(max_size=40) | st.binary(max_size=40).map(lambda b: b.decode("utf-8", "surrogateescape")))
def test_inspect(artifacts: Path, text: str) -> None:
    answer = tokctl("inspect", "--tokenizer", artifacts / "tok", "-", stdin=text.encode("utf-8", "surrogatepass"))
    assert answer.code == 0
    assert answer.result["n_bytes"] == len(text.encode("utf-8", "surrogatepass"))


@bounded(40)
@given(row=broken(b'{"text": "a", "count": 3}\n{"hex": "ff00", "count": 9007199254740993}\n'))
def test_weighted_rows(row: bytes) -> None:
    with workplace() as work:
        (work / "w.jsonl").write_bytes(row)
        answer = tokctl("count", "--weighted", work / "w.jsonl", "-o", work / "out")
        lines = row.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        accounted_for(answer, work / "out", sum(bool(line.strip()) for line in lines), (3,))


TOKENIZERS = {"hf": "tokenizer.json", "tiktoken": "tokenizer.tiktoken", "tok": "tokctl.json"}


@bounded(45)
@given(data=st.data(), kind=st.sampled_from(sorted(TOKENIZERS)), alone=st.booleans())
def test_tokenizers(artifacts: Path, data: st.DataObject, kind: str, alone: bool) -> None:
    """A changed copy without its manifest is read, if it still is a tokenizer; with it, it is refused."""
    name = TOKENIZERS[kind]
    with workplace() as work:
        shutil.copytree(artifacts / kind, work / "t")
        whole = (work / "t" / name).read_bytes()
        changed = data.draw(broken(whole))
        (work / "t" / name).write_bytes(changed)
        if alone:
            (work / "t/manifest.json").unlink()
        path = work / "t" / name if alone and data.draw(st.booleans()) else work / "t"
        text = artifacts / "a.txt"
        for command in (
            ["encode", "--tokenizer", path, text],
            ["inspect", "--tokenizer", path, "the cat"],
            ["hash", path],
            ["export", "tiktoken", "--tokenizer", path, "-o", work / "out", "--verify-strings", "3"],
        ):
            answer = tokctl(*command)
            assert answer.code in ((0, 4) if alone or changed == whole else (4,)), (command, answer.document)
        assert tokctl("decode", "--tokenizer", path, stdin=b'{"ids": [0, 1]}').code in (0, 3, 4)


@bounded(45)
@given(data=st.data(), kind=st.sampled_from(["documents", "words", "split"]))
def test_artifacts(artifacts: Path, data: st.DataObject, kind: str) -> None:
    """Any file of an output changed, manifest or not: nothing is made of it, verify finds it, nothing crashes on it."""
    with workplace() as work:
        shutil.copytree(artifacts / kind, work / "t")
        files = sorted(p for p in (work / "t").rglob("*") if p.is_file() and p.name != "run.json")
        file = data.draw(st.sampled_from(files))
        whole = file.read_bytes()
        file.write_bytes(data.draw(broken(whole)))
        is_same = file.read_bytes() == whole
        source = {"documents": work / "t", "words": work / "t", "split": work / "t/train"}[kind]
        answers = [tokctl("verify", work / "t"), tokctl("hash", work / "t"), tokctl("status", work / "t")]
        if kind == "words":
            answers.append(tokctl("fit", "bpe", "--counts", source, "--vocab-size", "260", "-o", work / "out"))
        else:
            stage = data.draw(st.sampled_from([stage for stage in STAGES[1:7] if stage != "split" or kind != "split"]))
            answers.append(tokctl(*reading(stage, artifacts / "tok", source), "-o", work / "out"))
        verified, *others = answers
        assert all(answer.code in (0, 3, 4) for answer in others), others
        if is_same:
            assert [answer.code for answer in answers] == [0] * len(answers)
        elif file.name != "manifest.json":  # white space in a manifest changes nothing that it says
            assert verified.code == 1
            assert answers[1].code == 4


_PIPELINE = b"""[pipeline]
output = "out"
[node.documents]
stage = "extract"
input = ["x.txt"]
errors = "replace"
shard_bytes = "1MB"
[node.words]
stage = "count"
input = ["${documents}"]
pattern = "cl100k"
"""
_GATES = b"""[[gate]]
metric = "bytes_per_token.micro"
op = ">="
limit = 1.5
slice = "language=und"
severity = "warn"
"""


@bounded(45)
@given(pipeline=broken(_PIPELINE), gates=broken(_GATES))
def test_configuration_files(artifacts: Path, pipeline: bytes, gates: bytes) -> None:
    with workplace() as work:
        (work / "x.txt").write_bytes(b"the cat sat")
        (work / "p.toml").write_bytes(pipeline)
        (work / "g.toml").write_bytes(gates)
        assert tokctl("run", work / "p.toml", "-o", work / "out").code in (0, 2, 3, 4)
        assert tokctl("status", work / "p.toml", "-o", work / "out").code in (0, 2, 3, 4)
        command = reading("compare", artifacts / "tok", work / "x.txt")
        assert tokctl(*command, "--gates", work / "g.toml").code in (0, 1, 2)
        for manifest in work.rglob("manifest.json"):
            if ".partial-" not in str(manifest):
                check_rows(manifest.parent)


OPTIONS = st.sampled_from(
    [
        *(
            "--pattern",
            "--special",
            "--vocab-size",
            "--errors",
            "--format",
            "--encoding",
            "--text-field",
            "--text-column",
        ),
        *("--id-field", "--slice-by", "--weight-field", "--weighted", "--counts", "--merge", "--validation", "--test"),
        *(
            "--group-by",
            "--stratify-by",
            "--seed",
            "--count-test",
            "--count",
            "--clusters",
            "--threshold",
            "--num-perm",
        ),
        *("--recall", "--keep", "--empty", "--hash", "--shingle", "--max-cluster-size", "--max-source-removal"),
        *("--nfc", "--tokenizer", "--bos", "--eos", "--input", "--offsets", "--max-tokens", "--allow-special"),
        *("--special-in-text", "--candidate", "--baseline", "--gates", "--ties", "--byte-order", "--min-frequency"),
        *("--max-token-bytes", "--on-short", "--special-layout", "--verify-strings", "--name", "--memory-limit"),
        *("--dry-run", "--force", "--quiet", "--language", "--language-from-path", "--source", "--max-document-bytes"),
        *("--max-ratio", "--shard-bytes", "--log-format"),
    ]
)
VALUES = st.sampled_from(
    [
        *("-", "0", "1", "-1", "2", "260", "300,400", "1e3", "nan", "0.5", "x", "none", "gpt2", "(", "\\d+", "meta.x"),
        *("uri~(.)", "error", "replace", "skip", "bytes", "jsonl", "text", "parquet", "utf-16", "language", "source"),
        *(
            "true",
            "64MB",
            "é",
            "longest",
            "lowest-id",
            "source-priority=a,b",
            "drop",
            "keep",
            "ascending",
            "first-seen",
        ),
        *(
            "after-bytes",
            "json",
            "strict",
            "a.txt",
            "documents",
            "words",
            "tok",
            "split",
            "split/train",
            "split/validation",
        ),
        *("encoded", "hf", "a=tok", "b=hf", "@a.txt", ""),
    ]
)
COMMANDS = st.sampled_from(
    [
        *STAGES,
        "export huggingface",
        "export tiktoken",
        "decode",
        "inspect",
        "run",
        "status",
        "verify",
        "hash",
        "schema",
        "stages",
    ]
)


@bounded(150)
@given(
    command=COMMANDS,
    words=st.lists(
        st.tuples(OPTIONS, VALUES).map(list) | VALUES.map(lambda v: [v]) | OPTIONS.map(lambda o: [o]), max_size=5
    ),
    stdin=st.sampled_from([b"", b"the cat", b'{"ids": [1, 2]}\n', b"\xff"]),
)
def test_arguments(artifacts: Path, command: str, words: list[list[str]], stdin: bytes) -> None:
    """Any options and values in any order; what is read is in the working directory, what is written goes elsewhere."""
    known = {"a.txt", "documents", "words", "tok", "split", "split/train", "split/validation", "encoded", "hf"}
    paths = {name: str(artifacts / name) for name in known}
    paths |= {"a=tok": f"a={artifacts / 'tok'}", "b=hf": f"b={artifacts / 'hf'}", "@a.txt": f"@{artifacts / 'a.txt'}"}
    flat = [paths.get(word, word) for pair in words for word in pair]
    with workplace() as work:
        output = (
            []
            if command in ("decode", "inspect", "status", "verify", "hash", "schema", "stages")
            else ["-o", work / "out"]
        )
        answer = tokctl(*command.split(), *flat, *output, stdin=stdin)
        assert answer.code in (0, 1, 2, 3, 4), answer.document
        if answer.code == 0 and (work / "out/manifest.json").exists():
            check_rows(work / "out")
        elif answer.code:
            assert nothing_made(work / "out")
    assert tokctl("verify", *(artifacts / name for name in ("documents", "words", "tok", "split"))).code == 0
