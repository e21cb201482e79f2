from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from runtime.toy_stage import LOSING_STAGE, PROCESS_STAGE, STAGE, ToyParameters

from tokctl.artifacts.digests import DigestCache
from tokctl.artifacts.manifest import read_manifest
from tokctl.artifacts.verify import verify_directory
from tokctl.errors import ArtifactError, DataError, UsageError
from tokctl.runtime.execute import execute
from tokctl.runtime.options import ExecutionOptions
from tokctl.runtime.output_lock import output_lock


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKCTL_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path):
    directory = tmp_path / "source"
    directory.mkdir()
    for index in range(5):
        (directory / f"{index}.txt").write_text(f"line {index}\n\nmore\n")
    return directory


def run(source, out, stage=STAGE, force=False, dry_run=False, workers=2, **parameters):
    options = ExecutionOptions(workers=workers, force=force, dry_run=dry_run)
    return execute(stage, ToyParameters(**parameters), {"input": [str(source)]}, Path(out), options)


def tree(directory: Path) -> dict[str, bytes]:
    return {
        p.relative_to(directory).as_posix(): p.read_bytes()
        for p in sorted(directory.rglob("*"))
        if p.is_file() and p.name != "run.json"
    }


def test_writes_outputs_manifest_and_run_record(source, tmp_path):
    outcome = run(source, tmp_path / "out")
    assert outcome.ran and outcome.state_before == "absent"
    manifest = read_manifest(tmp_path / "out")
    assert manifest.counts == {"rows_in": 15, "rows_out": 10, "rows_rejected": 5}
    assert [o.rows for o in manifest.outputs] == [2] * 5
    assert (tmp_path / "out/part-00003").read_text() == "LINE 3\nMORE"
    record = json.loads((tmp_path / "out/run.json").read_text())
    assert record["workers"] == 2 and record["process_peak_rss_bytes"] > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cache", "out", "source"]


def test_second_run_does_nothing_until_something_that_matters_changes(source, tmp_path):
    run(source, tmp_path / "out")
    assert not run(source, tmp_path / "out").ran
    assert not run(source, tmp_path / "out", chatty=True).ran
    assert run(source, tmp_path / "out", suffix="!").state_before == "stale"
    (source / "0.txt").write_text("other\n")
    assert run(source, tmp_path / "out", suffix="!").ran
    assert (tmp_path / "out/part-00000").read_text() == "OTHER!"


def test_force_runs_and_gives_the_same_bytes(source, tmp_path):
    run(source, tmp_path / "out")
    before = tree(tmp_path / "out")
    assert run(source, tmp_path / "out", force=True).ran
    assert tree(tmp_path / "out") == before


def test_dry_run_writes_nothing(source, tmp_path):
    outcome = run(source, tmp_path / "out", dry_run=True)
    assert not outcome.ran and not (tmp_path / "out").exists()


@pytest.mark.parametrize("stage", [STAGE, PROCESS_STAGE], ids=["threads", "processes"])
def test_same_bytes_for_any_number_of_workers(source, tmp_path, stage):
    trees = []
    for workers in (1, 2, 4):
        run(source, tmp_path / f"out{workers}", stage=stage, workers=workers)
        trees.append(tree(tmp_path / f"out{workers}"))
    assert trees[0] == trees[1] == trees[2]


def test_a_failed_run_leaves_no_output_and_goes_on_from_finished_tasks(source, tmp_path):
    (source / "9.txt").write_text("boom\n")
    with pytest.raises(RuntimeError):
        run(source, tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()
    (partial,) = tmp_path.glob("out.partial-*")
    finished = sorted(p.name for p in (partial / ".work/upper").iterdir() if p.name.isdigit())
    assert finished == [f"{i:06d}" for i in range(5)]
    marker = partial / ".work/upper/000000/part"
    marker.write_text("KEPT\nKEPT")  # proof that a finished task isn't done again
    with pytest.raises(RuntimeError):
        run(source, tmp_path / "out", workers=1)
    assert marker.read_text() == "KEPT\nKEPT"


def test_a_failed_run_without_a_finished_task_leaves_nothing(source, tmp_path):
    (source / "0.txt").write_text("boom\n")
    with pytest.raises(RuntimeError):
        run(source, tmp_path / "out", workers=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cache", "source"]


def test_a_users_directory_with_a_name_like_that_of_an_unfinished_output_stays(source, tmp_path):
    (tmp_path / "out.partial-notes").mkdir()
    (tmp_path / f"out.partial-{'0' * 16}").mkdir()
    run(source, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out", "out.partial-notes"]


@pytest.mark.parametrize("fault", ["part-write", "manifest-write", "rename"])
def test_killed_at_a_fault_point_then_resumed_gives_the_same_bytes(source, tmp_path, fault):
    run(source, tmp_path / "whole")
    environment = {**os.environ, "TOKCTL_FAULT_POINT": fault, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, str(Path(__file__).with_name("toy_stage.py")), str(source), str(tmp_path / "out")]
    killed = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert killed.returncode == -9
    assert not (tmp_path / "out").exists()
    assert run(source, tmp_path / "out").state_before == "partial"
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
    assert not list(tmp_path.glob("out.partial-*"))


def test_a_stale_output_survives_until_the_new_one_is_whole(source, tmp_path):
    run(source, tmp_path / "out")
    before = tree(tmp_path / "out")
    (source / "9.txt").write_text("boom\n")
    with pytest.raises(RuntimeError):
        run(source, tmp_path / "out")
    assert tree(tmp_path / "out") == before


def test_lost_rows_are_refused(source, tmp_path):
    with pytest.raises(DataError, match="unaccounted") as caught:
        run(source, tmp_path / "out", stage=LOSING_STAGE)
    assert caught.value.code == "rows-lost"
    assert not (tmp_path / "out").exists()


def test_foreign_and_occupied_outputs_are_refused(source, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "mine.txt").write_text("x")
    with pytest.raises(ArtifactError, match="not written by tokctl"):
        run(source, foreign)
    run(source, tmp_path / "out")
    other = type(STAGE)(**{**vars(STAGE), "name": "other"})
    with pytest.raises(ArtifactError, match="output of 'toy'"):
        run(source, tmp_path / "out", stage=other)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArtifactError, match="not a directory"):
        run(source, tmp_path / "file")


def test_two_runs_into_one_output(source, tmp_path):
    with output_lock(tmp_path / "out"), pytest.raises(ArtifactError, match="another run") as caught:
        run(source, tmp_path / "out")
    assert caught.value.code == "output-in-use"
    assert run(source, tmp_path / "out").ran


def test_an_edited_manifest_is_refused(source, tmp_path):
    run(source, tmp_path / "out")
    path = tmp_path / "out/manifest.json"
    path.write_text(path.read_text().replace('"rows_out": 10', '"rows_out": 11'))
    with pytest.raises(ArtifactError) as caught:
        run(source, tmp_path / "out")
    assert caught.value.code == "edited-manifest"


def test_verify_finds_a_changed_a_missing_and_an_undeclared_file(source, tmp_path):
    run(source, tmp_path / "out")
    assert verify_directory(tmp_path / "out")[1] == []
    (tmp_path / "out/part-00000").write_text("LINE X\nMORE")
    (tmp_path / "out/part-00001").unlink()
    (tmp_path / "out/extra").write_text("x")
    codes = [finding.code for finding in verify_directory(tmp_path / "out")[1]]
    assert codes == ["changed-output", "missing-output", "undeclared-file"]


def test_a_stage_output_as_input_is_checked_against_its_manifest(source, tmp_path):
    run(source, tmp_path / "first")
    run(tmp_path / "first", tmp_path / "second")
    part = tmp_path / "first/part-00000"
    stat = part.stat()
    part.write_text("CHANGED 00")
    os.utime(part, ns=(stat.st_atime_ns, stat.st_mtime_ns - 10**10))
    with pytest.raises(ArtifactError) as caught:
        run(tmp_path / "first", tmp_path / "second")
    assert caught.value.code == "changed-output"


def test_moving_an_output_changes_no_fingerprint(source, tmp_path):
    run(source, tmp_path / "first")
    run(tmp_path / "first", tmp_path / "second")
    shutil.move(tmp_path / "first", tmp_path / "elsewhere")
    assert not run(tmp_path / "elsewhere", tmp_path / "second").ran


def test_out_equal_to_an_input_is_refused(source, tmp_path):
    run(source, tmp_path / "out")
    with pytest.raises(ArtifactError) as caught:
        run(tmp_path / "out", tmp_path / "out")
    assert caught.value.code == "output-is-input"


def test_missing_and_surplus_inputs():
    with pytest.raises(UsageError, match="missing"):
        execute(STAGE, ToyParameters(), {}, Path("nowhere"), ExecutionOptions())


def test_digest_cache_is_used_and_can_be_bypassed(source, tmp_path):
    path = source / "0.txt"
    os.utime(path, ns=(0, 10**18))
    cache = DigestCache()
    first = cache.sha256(path)
    cache.save()
    status = path.stat()
    path.write_bytes(b"x" * status.st_size)
    os.utime(path, ns=(0, 10**18))
    assert DigestCache().sha256(path) == first  # same size, mtime and inode: believed
    assert DigestCache().sha256(path, fresh=True) != first


def test_a_damaged_digest_cache_is_ignored(source, tmp_path):
    (tmp_path / "cache").mkdir(exist_ok=True)
    (tmp_path / "cache/digests.sqlite").write_bytes(b"garbage" * 100)
    assert run(source, tmp_path / "out").ran


def test_the_digest_cache_knows_files_with_any_name_in_any_folder(source, tmp_path):
    (source / "deeper").mkdir()
    paths = [source / name for name in ("0.txt", "é.txt", os.fsdecode(b"\xff.txt"), "deeper/1.txt")]
    for path in paths:
        path.write_text(path.name.encode("utf-8", "replace").decode())
        os.utime(path, ns=(0, 10**18))
    cache = DigestCache()
    first = [cache.sha256(path) for path in paths]
    cache.save()
    for path in paths:
        size = path.stat().st_size
        path.write_bytes(b"x" * size)
        os.utime(path, ns=(0, 10**18))
    again = DigestCache()
    assert [again.sha256(path) for path in paths] == first
