"""Wrong arguments, pipeline files, gate files, tokenizer files and ids: a usage or artifact error that says what to type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pipeline.cli_answers import check_rows, nothing_made, raw, reading, tokctl

BPE = "fit bpe {a} -o {out} --vocab-size"
USAGE = {
    # command, with {a} a text, {words} counts, {tok} a tokenizer -> the error's code
    "": "usage",
    "nonsense": "usage",
    "--nonsense": "usage",
    "dedup nonsense {a} -o {out}": "usage",
    "count {a}": "usage",
    "extract -o {out}": "usage",
    "count -o {out}": "missing-input",
    "count {a} -o {out} --nonsense": "usage",
    "count {a} -o {out} --workers 0": "usage",
    "count {a} -o {out} --workers x": "usage",
    "count {a} -o {out} --workers 1000000000000": "usage",
    "count {a} -o {out} --memory-limit x": "bad-parameter",
    "count {a} -o {out} --memory-limit -5": "bad-parameter",
    "count {a} -o {out} --memory-limit 1": "memory-limit-too-small",
    "count {a} -o {out} --errors x": "usage",
    "count {a} -o {out} --format x": "usage",
    "count {a} -o {out} --encoding x": "bad-encoding",
    "count {a} -o {out} --max-ratio 0": "bad-parameter",
    "count {a} -o {out} --max-ratio 1.5": "bad-parameter",
    "count {a} -o {out} --max-document-bytes 99999999999999999999": "bad-parameter",
    "count {a} -o {out} --log-format x": "usage",
    "count {a} -o {out} --pattern (": "bad-pattern",
    "count {a} -o {out} --pattern ''": "bad-pattern",
    "count {a} -o {out} --pattern gtp2": "unknown-pattern",
    "count {a} -o {out} --special ''": "empty-special",
    "count {a} -o {out} --slice-by x": "unknown-column",
    "count --counts {words} -o {out}": "input-choice",
    "count --merge -o {out}": "input-choice",
    "extract {a} -o {out} --time-limit 0": "bad-parameter",
    "extract {a} -o {out} --extractor x": "unknown-extractor",
    "extract {a} -o {out} --language-from-path (": "bad-path-rule",
    "extract {a} -o {out} --language-from-path x": "bad-path-rule",
    "extract {a} -o {out} --source a/b": "bad-source",
    "extract - - -o {out}": "ambiguous-input",
    "split {a} -o {out} --validation 2": "bad-parameter",
    "split {a} -o {out} --validation nan": "bad-parameter",
    "split {a} -o {out} --validation x": "bad-parameter",
    "split {a} -o {out} --validation 0.9 --test 0.9": "bad-fraction",
    "split {a} -o {out} --group-by x": "unknown-column",
    "split {a} -o {out} --group-by uri~(": "bad-pattern",
    "split {a} -o {out} --stratify-by x": "unknown-column",
    "split {a} -o {out} --seed -1": "bad-parameter",
    "split {a} -o {out} --seed 18446744073709551615": "bad-parameter",
    "split {a} -o {out} --count x --count-test 1": "usage",
    "split {split} -o {out}": "split-again",
    "count {split} -o {out}": "whole-split",
    "dedup minhash {a} -o {out} --threshold 2": "bad-parameter",
    "dedup minhash {a} -o {out} --num-perm 0": "bad-parameter",
    "dedup minhash {a} -o {out} --num-perm 1": "recall-out-of-reach",
    "dedup minhash {a} -o {out} --num-perm 999999999": "bad-signature",
    "dedup exact {a} -o {out} --keep x": "unknown-choice",
    "dedup exact {a} -o {out} --keep source-priority=": "unknown-choice",
    "dedup exact {a} -o {out} --max-source-removal nan": "bad-parameter",
    "fit bpe {a} -o {out}": "usage",
    "fit bpe -o {out} --vocab-size 300": "input-choice",
    f"{BPE} 0": "bad-parameter",
    f"{BPE} x": "bad-parameter",
    f"{BPE} ''": "bad-parameter",
    f"{BPE} 300,": "bad-parameter",
    f"{BPE} -300": "bad-parameter",
    f"{BPE} 1{'0' * 30}": "bad-parameter",
    f"{BPE} 100": "vocabulary-too-small",
    f"{BPE} 256 --special x": "vocabulary-too-small",
    f"{BPE} 260 --counts {{words}}": "input-choice",
    f"{BPE} 260 --special x --special x": "repeated-special",
    f"{BPE} 260 --bos x": "unknown-special",
    f"{BPE} 260 --min-frequency -1": "bad-parameter",
    f"{BPE} 260 --pattern (": "bad-pattern",
    f"{BPE} 260 --ties x": "usage",
    "fit bpe --counts {words} -o {out} --vocab-size 260 --pattern cl100k": "pattern-differs",
    "fit bpe --counts {words} -o {out} --vocab-size 260 --ties first-seen": "first-seen-needs-text",
    "fit bpe {split}/test -o {out} --vocab-size 260": "not-train",
    "fit bpe {split} -o {out} --vocab-size 260": "not-train",
    "encode {a}": "usage",
    "encode {a} --tokenizer {tok} --bos": "no-bos",
    "encode {a} --tokenizer {tok} --allow-special x": "unknown-special",
    "encode {a} --tokenizer {tok} --offsets x": "usage",
    "encode {a} --tokenizer {tok} --input x": "usage",
    "encode {a} --tokenizer {tok} --max-tokens 3 --offsets raw_codepoints": "offsets-truncated",
    "decode": "usage",
    "decode --tokenizer {tok} --errors x": "usage",
    "inspect --tokenizer {tok}": "usage",
    "inspect --tokenizer {tok} x --allow-special x": "unknown-special",
    "compare --candidate a={tok}": "usage",
    "compare --validation {a}": "usage",
    "compare --validation {a} --candidate {tok}": "missing-name",
    "compare --validation {a} --candidate a={tok} --candidate a={tok}": "name-twice",
    "compare --validation {a} --candidate a={tok} --baseline x": "unknown-candidate",
    "compare --validation {a} --candidate a={tok} --slice-by x": "unknown-column",
    "compare --validation {a} --candidate a={tok} --allow-not-checked x": "unknown-gate",
    "compare --validation {split}/train --candidate a={tok}": "not-validation",
    "export nonsense": "usage",
    "export tiktoken --tokenizer {tok} -o {out} --name ../x": "bad-parameter",
    "export tiktoken --tokenizer {tok} -o {out} --verify-strings -1": "bad-parameter",
    "hash": "usage",
    "verify": "usage",
    "status": "usage",
    "status {out}": "no-pipeline",
    "run": "usage",
    "run {out}": "no-pipeline",
    "run {words}": "no-pipeline",
    "schema": "usage",
    "schema nonsense": "unknown-schema",
    "cache nonsense": "usage",
}


@pytest.mark.parametrize("line", USAGE)
def test_wrong_arguments(line: str, artifacts: Path, tmp_path: Path) -> None:
    names = {"a": artifacts / "a.txt", "out": tmp_path / "out"}
    names |= {name: artifacts / name for name in ("words", "tok", "split")}
    words = ["" if word == "''" else word.format(**names) for word in line.split(" ") if word]
    answer = tokctl(*words)
    assert (answer.code, answer.error["code"]) == (2, USAGE[line]), answer.error
    assert nothing_made(tmp_path / "out")
    assert not list(tmp_path.glob("out.partial-*")), "a wrong argument is noticed before anything is begun"


ARTIFACTS = {
    "hash {out}": "no-artifact",
    "hash {a}": "unsupported",
    "verify {out}": "no-manifest",
    "verify {a}": "no-manifest",
    "encode {a} --tokenizer {out}": "no-tokenizer",
    "encode {a} --tokenizer {sizes}": "several-tokenizers",
    "decode --tokenizer {out}": "no-tokenizer",
    "decode --tokenizer {sizes}": "several-tokenizers",
    "inspect --tokenizer {out} x": "no-tokenizer",
    "export huggingface --tokenizer {out} -o {out}": "no-tokenizer",
    "export huggingface --tokenizer {sizes} -o {out}": "several-tokenizers",
    "compare --validation {a} --candidate a={out}": "no-tokenizer",
}


@pytest.mark.parametrize("line", ARTIFACTS)
def test_artifacts_that_are_not_there(line: str, artifacts: Path, tmp_path: Path) -> None:
    names = {"a": artifacts / "a.txt", "out": tmp_path / "out", "sizes": artifacts / "sizes"}
    answer = tokctl(*(word.format(**names) for word in line.split(" ")))
    assert (answer.code, answer.error["code"]) == (4, ARTIFACTS[line])
    assert nothing_made(tmp_path / "out")


def test_suggestions(artifacts: Path, tmp_path: Path) -> None:
    a, out = artifacts / "a.txt", tmp_path / "out"
    assert tokctl("cuont", a, "-o", out).error["hint"] == "did you mean 'count'?"
    assert tokctl("schema", "fit bep").error["hint"] == "did you mean 'fit bpe'?"
    assert tokctl("count", a, "-o", out, "--pattern", "cl100").error["hint"] == "did you mean 'cl100k'?"
    (tmp_path / "p.toml").write_text("[node.a]\nstage = 'count'\ninput = ['a.txt']\npatern = 'gpt2'\n")
    assert tokctl("run", tmp_path / "p.toml").error["hint"] == "did you mean 'pattern'?"


NODE = "[node.d]\nstage = 'extract'\ninput = ['a.txt']\n"
PIPELINES = {
    "": "bad-pipeline",
    "x =": "bad-pipeline",
    "\x00": "bad-pipeline",
    "node = 3": "bad-pipeline",
    "[node]\nd = 3": "bad-pipeline",
    "[node.d]": "bad-pipeline",
    "[other]\n" + NODE: "bad-pipeline",
    "[pipeline]\noutput = 5\n" + NODE: "bad-pipeline",
    "[pipeline]\noutput = ''\n" + NODE: "bad-pipeline",
    "[pipeline]\nx = 5\n" + NODE: "bad-pipeline",
    "[node.'../d']\nstage = 'extract'\ninput = ['a.txt']": "bad-pipeline",
    "[node.d]\nstage = 'extract'\ninput = 5": "bad-pipeline",
    "[node.d]\nstage = 'nonsense'": "unknown-stage",
    "[node.d]\nstage = 'extract'": "missing-input",
    "[node.d]\nstage = 'extract'\ninput = ['nowhere.txt']": "missing-input",
    "[node.d]\nstage = 'extract'\ninput = ['a\\u0000b']": "missing-input",
    "[node.d]\nstage = 'extract'\ninput = ['${x}']": "unknown-node",
    "[node.d]\nstage = 'extract'\ninput = ['${d}']": "cycle",
    "[node.a]\nstage='count'\ninput=['${b}']\n[node.b]\nstage='extract'\ninput=['${a}']": "cycle",
    NODE + "seed = 1": "unknown-parameter",
    NODE + "errors = 5": "bad-parameter",
    NODE + "errors = ['error']": "bad-parameter",
    NODE + "shard_bytes = 1.5": "bad-parameter",
    NODE + "shard_bytes = true": "bad-parameter",
    NODE + "meta_field = 'x'": "bad-parameter",
    NODE + "main_content = 'perhaps'": "bad-parameter",
    NODE + "time_limit = 2026-01-01": "bad-parameter",
    NODE + "source = 'a/b'": "bad-source",
    "[node.d]\nstage='split'\ninput=['a.txt']\nvalidation=inf": "bad-parameter",
    "[node.d]\nstage='fit bpe'\ninput=['a.txt']": "bad-parameter",
    "[node.d]\nstage='fit bpe'\ninput=['a.txt']\nvocab_size={a=1}": "bad-parameter",
    "[node.d]\nstage='fit bpe'\ninput=['a.txt']\nvocab_size=300\npattern='('": "bad-pattern",
    "[node.d]\nstage='compare'\nvalidation=['a.txt']\ncandidate=['tok']": "missing-name",
}


@pytest.mark.parametrize("text", PIPELINES)
def test_pipeline_files(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text")
    (tmp_path / "p.toml").write_text(text)
    for command in ("run", "status"):
        answer = tokctl(command, tmp_path / "p.toml")
        assert (answer.code, answer.error["code"]) == (2, PIPELINES[text]), answer.error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "p.toml"]


def test_a_pipeline_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(b"\xff\xfe")
    assert tokctl("run", tmp_path / "p.toml").error["code"] == "bad-pipeline"
    assert tokctl("run", tmp_path).error["code"] == "no-pipeline"


def test_a_pipeline_stops_at_the_first_error_and_keeps_what_is_finished(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat")
    (tmp_path / "b.txt").write_bytes(b"\xff")
    nodes = "".join(f"[node.{n}]\nstage = 'extract'\ninput = ['{n}.txt']\n" for n in "ab")
    (tmp_path / "p.toml").write_text(nodes + "[node.c]\nstage = 'count'\ninput = ['${b}']\n")
    answer = tokctl("run", tmp_path / "p.toml")
    assert (answer.code, answer.error["code"]) == (3, "invalid-utf8")
    states = {row["node"]: row["state"] for row in tokctl("status", tmp_path / "p.toml").result["rows"]}
    assert states["a"] == "current" and states["b"] in ("absent", "partial") and states["c"] == "absent"
    for name in ("a.txt", "a.txt/below"):
        answer = tokctl("run", tmp_path / "p.toml", "-o", tmp_path / name)
        assert (answer.code, answer.error["code"]) == (4, "not-writable")


GATES = {
    "": "bad-gate",
    "gate = 3": "bad-gate",
    "[[gate]]\nmetric = 'x'\nop = '>='\nlimit = 1": "bad-gate",
    "[[gate]]\nmetric = 'bytes_per_token.micro'\nop = '=>'\nlimit = 1": "bad-gate",
    "[[gate]]\nmetric = 'bytes_per_token.micro'\nop = '>='\nlimit = '1'": "bad-gate",
    "[[gate]]\nmetric = 'bytes_per_token.micro'\nop = '>='\nlimit = nan": "bad-gate",
    "[[gate]]\nmetric = 'bytes_per_token.micro'\nop = '>='": "bad-gate",
    "[[gate]]\nmetric = 'bytes_per_token.micro'\nop = '>='\nlimit = 1\nx = 1": "bad-gate",
    "[[gate]]\nmetric = 'bytes_per_token.micro'\nop = '>='\nlimit = 1\nslice = 'de'": "bad-gate",
    "[[gate]]\nmetric = 'bytes_per_token.micro'\nop = '>='\nlimit = 1\nrelative_to = 'x'": "unknown-candidate",
}


@pytest.mark.parametrize("text", GATES)
def test_gate_files(text: str, artifacts: Path, tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(text)
    command = [*reading("compare", artifacts / "tok", artifacts / "a.txt"), "--gates", tmp_path / "g.toml"]
    for more in ([], ["-o", tmp_path / "out"]):
        answer = tokctl(*command, *more)
        assert (answer.code, answer.error["code"]) == (2, GATES[text])
    assert nothing_made(tmp_path / "out")


def test_gate_files_that_are_no_files_and_gates_that_fail(artifacts: Path, tmp_path: Path) -> None:
    command = [*reading("compare", artifacts / "tok", artifacts / "a.txt"), "--gates"]
    (tmp_path / "g.toml").write_bytes(b"\xff\xfe")
    assert tokctl(*command, tmp_path / "g.toml").error["code"] == "bad-gate"
    for name in (tmp_path, tmp_path / "nowhere.toml"):
        answer = tokctl(*command, name)
        assert (answer.code, answer.error["code"]) == (2, "missing-input")
    for more, code in (("limit = 1000", "gate-failed"), ("limit = 0\nslice = 'language=xx'", "gate-failed")):
        (tmp_path / "g.toml").write_text(f"[[gate]]\nmetric = 'bytes_per_token.micro'\nop = '>='\n{more}")
        answer = tokctl(*command, tmp_path / "g.toml")
        assert (answer.code, answer.error["code"]) == (1, code)
        assert answer.result["passed"] is False


def _tokenizer_files(artifacts: Path) -> dict[str, tuple[str, bytes]]:
    hf = (artifacts / "hf/tokenizer.json").read_bytes()
    ranks = (artifacts / "tiktoken/tokenizer.tiktoken").read_bytes()
    native = (artifacts / "tok/tokctl.json").read_bytes()
    files = {}
    for name, datas in {
        "tokenizer.json": [
            b"",
            b"{}",
            b"[]",
            b"\xff",
            hf[: len(hf) // 2],
            b"[" * 100_000,
            hf.replace(b'"BPE"', b'"WordPiece"'),
            hf.replace(b'"merges"', b'"mergez"'),
            b'{"model": null}',
            b'{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}',
            hf.replace(b'"id": 0', b'"id": "0"'),
        ],
        "tokctl.json": [
            b"",
            b"{}",
            native[:100],
            native.replace(b'"version":1', b'"version":99'),
            b'{"format": 5}',
            b'{"format": "tokctl-tokenizer", "version": 1}',
            native.replace(b'"merges"', b'"ranks"'),
        ],
        "x.tiktoken": [b"", b"zz", ranks, ranks[:-3], b"YQ== 0\nYQ== 1\n", b"YQ== x\n", b"\xff\xff", b"YQ== -1\n"],
        "vocab.json": [b"{}", b'{"a": 0}'],
        "x.model": [b"x"],
        "merges.txt": [b"a b"],
        "vocab.txt": [b"a"],
        "tekken.json": [b"{}"],
    }.items():
        files |= {f"{name} {i}": (name, data) for i, data in enumerate(datas)}
    return files


def test_tokenizer_files(artifacts: Path, tmp_path: Path) -> None:
    for label, (name, data) in _tokenizer_files(artifacts).items():
        directory = tmp_path / label.replace(" ", "-")
        directory.mkdir()
        (directory / name).write_bytes(data)
        for path in (directory / name, directory):
            for command in (
                ["encode", "--tokenizer", path, artifacts / "a.txt"],
                ["encode", "--tokenizer", path, artifacts / "a.txt", "-o", tmp_path / "out"],
                ["decode", "--tokenizer", path],
                ["inspect", "--tokenizer", path, "x"],
                ["hash", path],
                ["export", "huggingface", "--tokenizer", path, "-o", tmp_path / "out"],
                ["compare", "--validation", artifacts / "a.txt", "--candidate", f"a={path}"],
            ):
                answer = tokctl(*command, stdin=b'{"ids": [0]}')
                assert answer.code == 4, (label, command)
        assert nothing_made(tmp_path / "out")


IDS = {
    b'{"ids": [99999]}': ("unknown-id", 0),
    b'{"ids": [-1]}': ("unknown-id", 0),
    b'{"ids": [1]}\n\n{"ids": [1, 265]}': ("unknown-id", 2),
    b'{"ids": [18446744073709551616]}': ("not-an-id", 0),
    b'{"ids": [1.5]}': ("no-ids", 0),
    b'{"ids": [true]}': ("no-ids", 0),
    b'{"ids": "abc"}': ("no-ids", 0),
    b'{"ids": [[1]]}': ("no-ids", 0),
    b'{"ids": null}': ("no-ids", 0),
    b"{}": ("no-ids", 0),
    b"3": ("no-ids", 0),
    b'{"ids": [1]}\n{"ids": [NaN]}': ("no-ids", 1),
    b'{"ids": [1,': ("invalid-json", 0),
    b"\xff": ("invalid-json", 0),
    b"[" * 100_000: ("invalid-json", 0),
    b'{"ids": [' + b"1" * 5000 + b"]}": ("invalid-json", 0),
}


@pytest.mark.parametrize("data", IDS, ids=lambda data: repr(data[:40]))
def test_ids_that_are_none(data: bytes, artifacts: Path, tmp_path: Path) -> None:
    code, row = IDS[data]
    (tmp_path / "rows.jsonl").write_bytes(data)
    for arguments, stdin in (([], data), ([tmp_path / "rows.jsonl"], b"")):
        answer = tokctl("decode", "--tokenizer", artifacts / "tok", *arguments, stdin=stdin)
        assert (answer.code, answer.error["code"], answer.where[:2]) == (
            3,
            code,
            (str(arguments[0]) if arguments else "-", row),
        )
        assert f"row {row}" in answer.error["message"]


def test_ids_whose_bytes_are_no_text(artifacts: Path) -> None:
    command = ["decode", "--tokenizer", artifacts / "tok"]
    (row,) = tokctl("encode", "--tokenizer", artifacts / "tok", "--errors", "bytes", stdin=b"a\xe2\x82").result["rows"]
    stdin = json.dumps(row | {"doc_id": "\ud800"}).encode()
    assert tokctl(*command, stdin=stdin).result["rows"] == [{"doc_id": "\ud800", "hex": "61e282"}]
    assert tokctl(*command, "--errors", "replace", stdin=stdin).result["rows"][0]["text"] == "a\ufffd"
    answer = tokctl(*command, "--errors", "strict", stdin=stdin)
    assert (answer.code, answer.error["code"]) == (3, "invalid-utf8")
    assert answer.error["hint"] == "choose --errors bytes or replace"


def test_rows_files_that_cannot_be_read(artifacts: Path, tmp_path: Path) -> None:
    for name, found in (("nowhere", (3, "unreadable")), (".", (4, "no-manifest"))):
        answer = tokctl("decode", "--tokenizer", artifacts / "tok", tmp_path / name)
        assert (answer.code, answer.error["code"]) == found


WEIGHTED = {
    b'{"text": "a"}': "bad-weighted-row",
    b'{"text": "a", "count": -1}': "bad-weighted-row",
    b'{"text": "a", "count": 1.5}': "bad-weighted-row",
    b'{"text": "a", "count": 9223372036854775808}': "bad-weighted-row",
    b'{"text": "a", "hex": "61", "count": 1}': "bad-weighted-row",
    b'{"hex": "6", "count": 1}': "bad-weighted-row",
    b'{"text": null, "count": 1}': "bad-weighted-row",
    b'{"text": "\\ud800", "count": 1}': "bad-weighted-row",
    b"[1]": "bad-weighted-row",
    b"{": "bad-weighted-row",
    b"\xff": "bad-weighted-row",
}


@pytest.mark.parametrize("row", WEIGHTED)
def test_weighted_rows(row: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.jsonl").write_bytes(b'{"text": "fine", "count": 3}\n' + row + b"\n")
    answer = tokctl("count", "--weighted", tmp_path / "w.jsonl", "-o", tmp_path / "out")
    assert (answer.code, answer.error["code"]) == (3, WEIGHTED[row])
    assert answer.where[:2] == (str(tmp_path / "w.jsonl"), 1) and nothing_made(tmp_path / "out")


def test_dry_runs_write_nothing_and_answer_in_json(artifacts: Path, tmp_path: Path) -> None:
    for stage in ("extract", "count", "encode", "compare"):
        command = reading(stage, artifacts / "tok", artifacts / "a.txt")
        answer = tokctl(*command, "-o", tmp_path / "out", "--dry-run")
        assert answer.result["ran"] is False and not list(tmp_path.iterdir())


def test_names_that_are_not_utf8_and_a_terminal_that_is_ascii(tmp_path: Path) -> None:
    """Text and names reach stdout whatever the locale, as escapes where they are no text."""
    name = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(name, "wb") as file:  # noqa: PTH123 (a name that is no text)
        file.write("naïve 文".encode())
    answer = tokctl("extract", os.fsdecode(name), "-o", tmp_path / "out")
    assert answer.code == 0 and check_rows(tmp_path / "out")["counts"]["rows_out"] == 1
    answer = tokctl("extract", os.fsdecode(name) + "x", "-o", tmp_path / "other")
    assert answer.error["code"] == "missing-input" and "\\udce9" in answer.error["message"]
    done = subprocess.run(
        [sys.executable, "-m", "tokctl", "extract", name + b"x", "-o", tmp_path / "other"],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2 and b"Traceback" not in done.stderr and "caf\\udce9" in done.stderr.decode("ascii")


def test_errors_for_people_and_for_log_files(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"abc\xff")
    command = ["count", str(tmp_path / "b.txt"), "-o", str(tmp_path / "out")]
    code, out, err = raw(*command)
    assert (code, out) == (3, "")
    what, where, hint = err.splitlines()[-3:]
    assert what == "error: b/b.txt: byte 0xff at offset 3 is not valid utf-8"
    assert where == f"  at: {tmp_path / 'b.txt'}, byte 3" and hint.startswith("hint: choose --errors")
    code, out, err = raw(*command, "--log-format", "json")
    records = [json.loads(line) for line in err.splitlines()]
    assert (code, out) == (3, "") and records[-1]["level"] == "error" and records[-1]["code"] == "invalid-utf8"
