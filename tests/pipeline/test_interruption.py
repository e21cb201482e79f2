"""A run that dies at any moment leaves nothing that counts as finished and isn't, and the next run makes the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pipeline.forked_tokctl import ForkedTokctl
from pipeline.small_pipeline import NODES, command, differences, result_of, tree, write_pipeline

N_KILLS = 20
FAULT_POINTS = ("part-write", "manifest-write", "rename")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("interruption")
    write_pipeline(directory)
    return directory


@pytest.fixture(scope="module")
def forked(place) -> Iterator[ForkedTokctl]:
    """Has run the pipeline once into ``undisturbed``."""
    with ForkedTokctl(place) as forked:
        done = forked.run(run_arguments(place, "undisturbed"), forked=False)
        assert done.status == 0, done.printed
        yield forked


@pytest.fixture(scope="module")
def undisturbed(place, forked) -> dict[str, bytes]:
    whole = tree(place / "undisturbed")
    assert {name.partition("/")[0] for name in whole} == set(NODES)
    return whole


def run_arguments(place: Path, out: str, *more: str) -> list[object]:
    return ["run", place / "pipeline.toml", "-o", place / out, "--workers", "1", *more]


def assert_whole(out: Path, undisturbed: dict[str, bytes]) -> None:
    """The same files with the same bytes, and nothing beside the nodes: no partial directory, no lock."""
    assert differences(tree(out), undisturbed) == []
    assert sorted(path.name for path in out.iterdir()) == sorted(NODES)


@pytest.mark.slow
def test_killed_at_random_moments_then_resumed(place, forked, undisturbed):
    seconds = min(forked.run(run_arguments(place, f"timed-{i}")).seconds for i in range(2))
    moments = random.Random(20)
    n_killed = 0
    for attempt in range(N_KILLS):
        out = place / f"killed-{attempt}"
        moment = moments.uniform(0, seconds)
        ended = forked.run(run_arguments(place, out.name), send=signal.SIGKILL, after=moment)
        n_killed += ended.status == -signal.SIGKILL
        for node in NODES:  # what has its final name is whole
            if (out / node).exists():
                assert differences(tree(out / node), tree(place / "undisturbed" / node)) == [], (attempt, moment)
        resumed = forked.run(run_arguments(place, out.name))
        assert resumed.status == 0, resumed.printed
        assert_whole(out, undisturbed)
        shutil.rmtree(out)
    assert n_killed >= N_KILLS // 2  # a machine that is busy or idle by turns may finish some earlier than measured


@pytest.mark.slow
def test_killed_again_and_again_in_one_output(place, forked, undisturbed):
    out = place / "again"
    moments = random.Random(7)
    for _ in range(N_KILLS):
        if forked.run(run_arguments(place, out.name), send=signal.SIGKILL, after=moments.uniform(0, 0.3)).status == 0:
            break
    assert forked.run(run_arguments(place, out.name)).status == 0
    assert_whole(out, undisturbed)


@pytest.mark.parametrize("fault", FAULT_POINTS)
def test_killed_at_a_fault_point_of_each_stage(place, forked, undisturbed, fault):
    out = place / f"fault-{fault}"
    for node in NODES:
        arguments = run_arguments(place, out.name, "--only", node)
        killed = forked.run(arguments, environment={"TOKCTL_FAULT_POINT": fault})
        assert killed.status == -signal.SIGKILL, (node, killed.printed)
        assert not (out / node).exists()
        assert list(out.glob(f"{node}.partial-*"))
        resumed = forked.run(arguments)
        assert resumed.status == 0, resumed.printed
    assert_whole(out, undisturbed)


@pytest.mark.parametrize("fault", [*FAULT_POINTS, "replaced"])
def test_killed_while_an_output_is_replaced(place, forked, undisturbed, fault):
    """The old output stays whole until the new one is; then nothing of the old one stays."""
    out = place / f"replace-{fault}"
    shutil.copytree(place / "undisturbed", out)
    arguments = run_arguments(place, out.name, "--force", "--only", "documents")
    killed = forked.run(arguments, environment={"TOKCTL_FAULT_POINT": fault})
    assert killed.status == -signal.SIGKILL
    assert differences(tree(out / "documents"), tree(place / "undisturbed/documents")) == []
    assert list(out.glob("documents.partial-*"))
    done = forked.run(run_arguments(place, out.name))
    assert f"nothing to do: all {len(NODES)} stages are up to date" in done.printed
    assert_whole(out, undisturbed)


def test_interrupted_then_resumed(place, forked, undisturbed):
    """Ctrl-C: exit code 130, what to do, and a state that the next run goes on from."""
    moments = random.Random(3)
    n_interrupted = 0
    for attempt in range(4):
        out = place / f"interrupted-{attempt}"
        ended = forked.run(run_arguments(place, out.name), send=signal.SIGINT, after=moments.uniform(0, 0.5))
        if ended.status:
            n_interrupted += 1
            assert ended.status == 130, ended.printed
            assert "error: interrupted\nhint: run the same command again" in ended.printed
            assert "Traceback" not in ended.printed
            assert not list(out.glob(".*.lock"))
        assert forked.run(run_arguments(place, out.name)).status == 0
        assert_whole(out, undisturbed)
    assert n_interrupted >= 2


@pytest.fixture(scope="module")
def many_files(place) -> Path:
    """Enough files for several reading tasks."""
    directory = place / "many"
    directory.mkdir()
    for index in range(2100):
        (directory / f"{index:04d}.txt").write_text(f"the {index}th file\n")
    return directory


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_worker_processes_end_with_the_run(place, many_files, number, capsys):
    """A signal to the main process, or Ctrl-C to the group as a terminal sends it: no process stays, the tasks that were
    finished are kept."""
    out = place / f"workers-{number.name}"
    arguments = ["extract", many_files, "-o", out, "--workers", 2]
    process = subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True, start_new_session=True)
    finished = out.parent / f"{out.name}.partial-*/.work/read/000000"
    wait_for(lambda: list(out.parent.glob(finished.relative_to(out.parent).as_posix())) or process.poll() is not None)
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    said = process.communicate(timeout=30)[1]
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    assert process.returncode == (130 if number == signal.SIGINT else -number), said
    assert not out.exists()
    if number == signal.SIGINT:
        assert "hint: run the same command again" in said
        assert "Traceback" not in said
    result = result_of(arguments, capsys)
    assert result["state_before"] == "partial"
    result_of(["extract", many_files, "-o", place / "at-once", "--workers", 1], capsys)
    assert differences(tree(out), tree(place / "at-once")) == []
    assert not list(place.glob(f"{out.name}.partial-*"))


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.005)
