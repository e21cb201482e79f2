"""Files that change, vanish or don't fit, outputs that belong to something else, and artifacts that were changed by hand."""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus.reading import gzip_members, warc_record
from pipeline.cli_answers import STAGES, check_rows, nothing_made, reading, tokctl

from tokctl.cli import encode_command
from tokctl.runtime import execute
from tokctl.runtime.stage_run import StageRun

TEXT = b"the cat sat on the mat\n" * 50


def _files(root: Path) -> dict[str, Path]:
    root.mkdir()
    pq.write_table(pa.table({"text": ["the cat", "the mat"]}), root / "x.parquet")
    for name, data in (
        ("x.txt", TEXT),
        ("x.jsonl.gz", gzip.compress(b'{"text": "the cat"}\n' * 50)),
        ("x.warc.gz", gzip_members([warc_record(1, b"<p>" + TEXT)])),
        ("x.html", b"<p>" + TEXT),
        ("x.py", TEXT),
    ):
        (root / name).write_bytes(data)
    return {path.name: path for path in root.iterdir()}


@contextmanager
def _meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> Iterator[None]:
    """Do ``act`` when inputs have been hashed and reading is about to begin."""

    def begin(*arguments: Any, **named: Any) -> StageRun:
        act()
        return StageRun(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(execute, "StageRun", begin)
        patch.setattr(encode_command, "StageRun", begin)
        yield


@pytest.mark.parametrize("stage", STAGES)
def test_a_file_that_is_removed_while_it_is_read(
    stage: str, artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, file in _files(tmp_path / "raw").items():
        with _meanwhile(monkeypatch, file.unlink):
            answer = tokctl(*reading(stage, artifacts / "tok", file), "-o", tmp_path / name)
        assert (answer.code, answer.error["code"], answer.where[0]) == (3, "unreadable", str(file))
        assert nothing_made(tmp_path / name)


@pytest.mark.parametrize("stage", STAGES)
def test_a_file_that_changes_while_it_is_read(
    stage: str, artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.txt"
    changes = {"longer": lambda: file.write_bytes(TEXT + b"more"), "same size": lambda: file.write_bytes(TEXT.upper())}
    for name, change in changes.items():
        file.write_bytes(TEXT)
        os.utime(file, (1, 1))
        with _meanwhile(monkeypatch, change):
            answer = tokctl(*reading(stage, artifacts / "tok", file), "-o", tmp_path / name)
        assert (answer.code, answer.error["code"], answer.where[0]) == (3, "changed-while-read", str(file)), name
        assert nothing_made(tmp_path / name)


def test_rows_for_stdout_of_a_file_that_is_removed(
    artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in _files(tmp_path / "raw").values():
        with _meanwhile(monkeypatch, file.unlink):
            answer = tokctl("encode", "--tokenizer", artifacts / "tok", file)
        assert (answer.code, answer.error["code"]) == (3, "unreadable")


@pytest.mark.parametrize("stage", STAGES[1:])
def test_a_shard_that_is_removed_or_decays(
    stage: str, artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decay(part: Path) -> None:
        """What a bad disk does: other bytes, the same size and time; the digest that is remembered still seems right."""
        status = part.stat()
        data = bytearray(part.read_bytes())
        data[4:-200] = bytes(b ^ 0x5A for b in data[4:-200])
        part.write_bytes(data)
        os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))

    for name, act in (("removed", Path.unlink), ("decayed", decay)):
        shutil.copytree(artifacts / "documents", tmp_path / name)
        with _meanwhile(monkeypatch, lambda name=name, act=act: act(tmp_path / name / "part-00000.parquet")):  # type: ignore[misc]
            answer = tokctl(*reading(stage, artifacts / "tok", tmp_path / name), "-o", tmp_path / "out")
        assert (answer.code, answer.error["code"]) == (4, "broken-part"), (name, answer.error)
        assert nothing_made(tmp_path / "out")


@contextmanager
def _small_files(limit: int) -> Iterator[None]:
    """No file can grow beyond ``limit`` bytes: the writes of a full disk or a quota, without being root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _commands(artifacts: Path) -> dict[str, list[str]]:
    commands = {stage: reading(stage, artifacts / "tok", artifacts / "a.txt") for stage in STAGES}
    for name in ("huggingface", "tiktoken"):
        commands[f"export {name}"] = ["export", name, "--tokenizer", str(artifacts / "tok"), "--verify-strings", "5"]
    commands["merge"] = ["count", "--merge", "--counts", str(artifacts / "words")]
    return commands


ALL_STAGES = (*STAGES, "export huggingface", "export tiktoken", "merge")


@pytest.mark.parametrize("stage", ALL_STAGES)
def test_no_disk_space(stage: str, artifacts: Path, tmp_path: Path) -> None:
    command, out = _commands(artifacts)[stage], tmp_path / "out"
    for limit in (0, 300):
        with _small_files(limit):
            answer = tokctl(*command, "-o", out)
        assert (answer.code, answer.error["code"]) == (4, "no-space"), (limit, answer.error)
        assert "run the same command again" in answer.error["hint"]
        assert nothing_made(out)
    assert tokctl(*command, "-o", out).code == 0
    check_rows(out)
    assert not list(tmp_path.glob("out.partial-*"))
    assert tokctl("verify", out).result["findings"] == []


def test_a_full_file_system(artifacts: Path, tmp_path: Path) -> None:
    disk, source = tmp_path / "disk", tmp_path / "big.txt"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("can't mount a file system here; test_no_disk_space limits the size of files instead")
    try:
        source.write_bytes(os.urandom(600_000).hex().encode())
        for stage in ("extract", "count", "dedup exact", "dedup minhash", "split", "encode"):
            command = [*reading(stage, artifacts / "tok", source), *(["--pattern", "none"] if stage == "count" else [])]
            answer = tokctl(*command, "-o", disk / "out")
            assert (answer.code, answer.error["code"]) == (4, "no-space"), (stage, answer.error)
            assert nothing_made(disk / "out")
            for left in disk.glob("out.partial-*"):
                shutil.rmtree(left)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("stage", ALL_STAGES)
def test_an_output_that_is_something_else(stage: str, artifacts: Path, tmp_path: Path) -> None:
    command = _commands(artifacts)[stage]
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_bytes(b"mine")
    other = "words" if stage not in ("count", "merge") else "documents"
    shutil.copytree(artifacts / other, tmp_path / "other")
    outputs = {"file": "output-foreign", "mine": "output-foreign", "other": "output-foreign"}
    outputs |= {"other/inside": "output-foreign", "file/below": "not-writable", "x" * 300: "not-writable"}
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for name, code in outputs.items():
        answer = tokctl(*command, "-o", tmp_path / name)
        assert (answer.code, answer.error["code"]) == (4, code), name
    assert tokctl(*command, "-o", "/proc/out").error["code"] == "not-writable"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    for name in ("", "/", "a\0b"):
        answer = tokctl(*command, "-o", name)
        assert (answer.code, answer.error["code"]) in ((2, "bad-output"), (4, "output-foreign")), name


def test_an_output_is_not_its_own_input(artifacts: Path, tmp_path: Path) -> None:
    shutil.copytree(artifacts / "documents", tmp_path / "documents")
    answer = tokctl("dedup", "exact", tmp_path / "documents", "-o", tmp_path / "documents")
    assert (answer.code, answer.error["code"]) == (4, "output-is-input")


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def test_two_runs_write_one_output(tmp_path: Path) -> None:
    """Real processes: the second is refused while the first is at work, which ends as if nothing had been."""
    source, out = tmp_path / "x.jsonl", tmp_path / "out"
    source.write_bytes(b"".join(b'{"text": "row %d"}\n' % i for i in range(200_000)))
    lock = tmp_path / ".out.lock"
    command = [sys.executable, "-m", "tokctl", "extract", str(source), "-o", str(out), "--json", "--workers", "1"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not _content(lock) and first.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        first.send_signal(signal.SIGSTOP)
        assert _content(lock) == str(first.pid).encode() and first.poll() is None
        second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert second.returncode == 4
        error = json.loads(second.stdout)["error"]
        assert error["code"] == "output-in-use" and str(out) in error["message"]
        assert f"process {first.pid}" in error["message"] and "Traceback" not in second.stderr
        assert not out.exists()
    finally:
        first.send_signal(signal.SIGCONT)
        stdout, _ = first.communicate(timeout=120)
    assert first.returncode == 0 and json.loads(stdout)["result"]["counts"]["rows_out"] == 200_000
    assert tokctl("verify", out).code == 0 and not lock.exists()


def _edit(manifest: Path) -> None:
    value = json.loads(manifest.read_bytes())
    value["counts"]["rows_out"] += 1
    manifest.write_text(json.dumps(value))


MANIFESTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "edited": (_edit, "edited-manifest"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:200]), "broken-manifest"),
    "no object": (lambda path: path.write_bytes(b"[]"), "broken-manifest"),
    "not UTF-8": (lambda path: path.write_bytes(b"\xff" + path.read_bytes()), "broken-manifest"),
    "a key twice": (lambda path: path.write_bytes(b'{"stage": 1, ' + path.read_bytes()[1:]), "broken-manifest"),
    "other types": (lambda path: path.write_bytes(b'{"stage": [], "schema_version": 1e999}'), "broken-manifest"),
    "newer": (
        lambda path: path.write_bytes(path.read_bytes().replace(b'"schema_version": 1', b'"schema_version": 2')),
        "newer-manifest",
    ),
}


def _consumers(artifacts: Path, kind: str, changed: Path) -> list[list[Any]]:
    tokenizer, text = artifacts / "tok", artifacts / "a.txt"
    if kind == "documents":
        return [reading(stage, tokenizer, changed) for stage in STAGES]
    if kind == "words":
        return [
            ["fit", "bpe", "--counts", changed, "--vocab-size", "260"],
            ["count", "--merge", "--counts", changed, "--counts", artifacts / "words"],
        ]
    return [
        ["encode", "--tokenizer", changed, text],
        ["compare", "--validation", text, "--candidate", f"a={changed}"],
        ["export", "huggingface", "--tokenizer", changed],
        ["export", "tiktoken", "--tokenizer", changed],
    ]


@pytest.mark.parametrize("kind", ["documents", "words", "tok"])
@pytest.mark.parametrize("change", MANIFESTS)
def test_a_manifest_that_was_changed(change: str, kind: str, artifacts: Path, tmp_path: Path) -> None:
    changed, out = tmp_path / "changed", tmp_path / "out"
    shutil.copytree(artifacts / kind, changed)
    act, code = MANIFESTS[change]
    act(changed / "manifest.json")
    for command in _consumers(artifacts, kind, changed):
        answer = tokctl(*command, "-o", out)
        assert answer.code == 4, command
        assert answer.error["code"] in (code, "wrong-stage") and nothing_made(out), command
    verified = tokctl("verify", changed)
    assert verified.code == 1 and [finding["code"] for finding in verified.result["findings"]] == [code]
    assert tokctl("status", changed).error["code"] == code
    if kind == "tok":
        for command in (["decode", "--tokenizer", changed], ["inspect", "--tokenizer", changed, "the cat"]):
            assert tokctl(*command).error["code"] == code
    else:
        assert tokctl("hash", changed).error["code"] == code


@pytest.mark.parametrize("kind", ["documents", "words", "tok"])
@pytest.mark.parametrize("change", ["flipped", "removed", "replaced by a directory"])
def test_an_output_that_was_changed(change: str, kind: str, artifacts: Path, tmp_path: Path) -> None:
    changed, out = tmp_path / "changed", tmp_path / "out"
    shutil.copytree(artifacts / kind, changed)
    main = changed / {"documents": "part-00000.parquet", "words": "words.parquet", "tok": "tokctl.json"}[kind]
    data = bytearray(main.read_bytes())
    main.unlink()
    if change == "flipped":
        data[len(data) // 2] ^= 1
        main.write_bytes(data)
    elif change != "removed":
        main.mkdir()
    code = "changed-output" if change == "flipped" else "missing-output"
    for command in _consumers(artifacts, kind, changed):
        answer = tokctl(*command, "-o", out)
        assert answer.code == 4, command
        assert answer.error["code"] in (code, "wrong-stage") and nothing_made(out), command
    verified = tokctl("verify", changed)
    assert verified.code == 1 and code in [finding["code"] for finding in verified.result["findings"]]
    assert tokctl("hash", changed).code == 4
    if kind == "tok":
        for command in (["decode", "--tokenizer", changed], ["inspect", "--tokenizer", changed, "the cat"]):
            assert tokctl(*command).code == 4


def test_an_unfinished_output_is_not_read(artifacts: Path, tmp_path: Path) -> None:
    """A directory of whole shards without a manifest is what a killed run leaves, not documents."""
    unfinished = tmp_path / f"documents.partial-{'0' * 16}"
    unfinished.mkdir()
    shutil.copy(artifacts / "documents/part-00000.parquet", unfinished)
    for stage in STAGES:
        answer = tokctl(*reading(stage, artifacts / "tok", unfinished), "-o", tmp_path / "out")
        assert (answer.code, answer.error["code"]) == (4, "unfinished-input")
        assert nothing_made(tmp_path / "out")
    assert [row["state"] for row in tokctl("status", tmp_path).result["rows"]] == ["partial"]


def test_outputs_of_the_wrong_stage(artifacts: Path, tmp_path: Path) -> None:
    at, out = artifacts, tmp_path / "out"
    tokenizer, text = at / "tok", at / "a.txt"
    wrong = [reading(stage, tokenizer, at / kind) for stage in STAGES for kind in ("words", "encoded", "tok")]
    wrong += [
        ["extract", at / "documents"],
        ["extract", at / "split/train"],
        ["fit", "bpe", "--counts", at / "documents", "--vocab-size", "260"],
        ["encode", "--tokenizer", at / "documents", text],
        ["encode", "--tokenizer", at / "words", text],
        ["export", "huggingface", "--tokenizer", at / "encoded"],
        ["compare", "--validation", text, "--candidate", f"a={at / 'documents'}"],
        ["compare", "--validation", text, "--candidate", f"a={tokenizer}", "--gates", at / "documents"],
        ["count", "--weighted", at / "words"],
        ["split", at / "documents", "--clusters", at / "documents"],
    ]
    for command in wrong:
        answer = tokctl(*command, "-o", out)
        assert (answer.code, answer.error["code"]) == (4, "wrong-stage"), command
        assert nothing_made(out)
    for command in (["decode", "--tokenizer", at / "words"], ["inspect", "--tokenizer", at / "words", "x"]):
        assert (tokctl(*command).code, tokctl(*command).error["code"]) == (4, "wrong-stage")
    for command in (
        ["fit", "bpe", "--counts", text, "--vocab-size", "260"],
        ["count", "--merge", "--counts", tmp_path],
    ):
        answer = tokctl(*command, "-o", out)
        assert (answer.code, answer.error["code"]) == (4, "no-manifest")


def test_another_programs_manifest_is_no_ones_business(tmp_path: Path) -> None:
    """Browser extensions have a manifest.json too: their files are raw files."""
    (tmp_path / "extension/pages").mkdir(parents=True)
    (tmp_path / "extension/manifest.json").write_text('{"manifest_version": 3, "name": "x"}')
    (tmp_path / "extension/pages/a.txt").write_text("a page")
    for name in ("extension/pages", "extension"):
        answer = tokctl("extract", tmp_path / name, "-o", tmp_path / f"out-{name[-5:]}", "--format", "text")
        assert answer.code == 0 and answer.result["counts"]["rows_out"] >= 1
