"""Tasks: independent pieces of a stage's work, each finished atomically, so that a killed run goes on where it was.

A task writes into a directory of its own and returns a JSON object. When both are on disk the directory gets its final
name; a task whose directory has it is not done again. Results come back in task order for any number of workers.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from tokctl.artifacts.durable import disk_errors, fault_point, fsync_path, write_bytes
from tokctl.errors import DataError

T = TypeVar("T")
Work = Callable[[T, Path], dict[str, Any]]
_RESULT = "result.json"
CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class FinishedTask:
    """A task's directory and what its work returned."""

    directory: Path
    result: dict[str, Any]


def run_tasks(
    tasks: Sequence[T],
    work: Work[T],
    directory: Path,
    *,
    workers: int,
    executor: Literal["threads", "processes"],
    on_done: Callable[[int], None] = lambda done: None,
) -> list[FinishedTask]:
    """Do each task once and return all of them in order.

    ``work(task, task_directory)`` must depend on nothing but the task; with ``processes`` it and the tasks are pickled.
    ``on_done(n)`` is told how many are finished. The first error stops the rest and is raised; finished tasks stay on disk.
    """
    directory.mkdir(parents=True, exist_ok=True)
    finished: dict[int, FinishedTask] = {}
    waiting: list[int] = []
    for index in range(len(tasks)):
        done = _load(directory / f"{index:06d}")
        if done is None:
            waiting.append(index)
        else:
            finished[index] = done
    on_done(len(finished))
    if workers <= 1 or len(waiting) <= 1:
        for index in waiting:
            finished[index] = _perform(work, tasks[index], directory / f"{index:06d}")
            on_done(len(finished))
    elif waiting:
        with _pool(executor, min(workers, len(waiting))) as pool:
            for index, task in _bounded(pool, work, tasks, waiting, directory, in_flight=2 * workers):
                finished[index] = task
                on_done(len(finished))
    return [finished[index] for index in range(len(tasks))]


def can_be_resumed(work_directory: Path) -> bool:
    """Whether a work directory has a checkpoint, or a finished task in one of the directories of :func:`run_tasks`."""
    return (work_directory / CHECKPOINT).is_file() or any(
        result.parent.name.isdigit() for result in work_directory.glob(f"*/*/{_RESULT}")
    )


def _bounded(
    pool: Executor, work: Work[T], tasks: Sequence[T], waiting: list[int], directory: Path, in_flight: int
) -> Iterator[tuple[int, FinishedTask]]:
    queue = iter(waiting)
    running: dict[Future[FinishedTask], int] = {}
    try:
        while True:
            while len(running) < in_flight and (index := next(queue, None)) is not None:
                running[pool.submit(_perform, work, tasks[index], directory / f"{index:06d}")] = index
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            # the lowest index first, so that of two failures the same one is reported each time they finish together
            for future in sorted(done, key=lambda f: running[f]):
                index = running.pop(future)
                yield index, future.result()
    except BrokenProcessPool:
        raise DataError(
            "a worker process died; the operating system may have been out of memory",
            hint="run the same command again with fewer --workers: what is finished is kept",
            code="worker-died",
        ) from None


@contextmanager
def _pool(executor: str, workers: int) -> Iterator[Executor]:
    pool: Executor
    if executor == "threads":
        pool = ThreadPoolExecutor(workers)
    else:
        # spawn: a fork would copy locks held by the parent's threads
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_follow_parent)
    try:
        yield pool
    except BaseException:
        if isinstance(pool, ProcessPoolExecutor):
            for process in list((pool._processes or {}).values()):
                process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown(wait=True)


def _follow_parent() -> None:
    """A worker ends when its parent does, however that died, and not before: Ctrl-C reaches the whole process group, and
    the parent alone decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # at once: the next run may be about to do the task that this process is doing


def _perform(work: Work[T], task: T, final: Path) -> FinishedTask:
    temporary = final.with_name(final.name + ".unfinished")
    with disk_errors(final):
        if temporary.exists():
            shutil.rmtree(temporary)
        temporary.mkdir()
        result = work(task, temporary)
        fault_point("part-write")
        for file in sorted(temporary.iterdir()):
            fsync_path(file)
        write_bytes(temporary / _RESULT, json.dumps(result, sort_keys=True).encode())
        temporary.rename(final)
        fsync_path(final.parent)
    return FinishedTask(final, result)


def _load(directory: Path) -> FinishedTask | None:
    try:
        return FinishedTask(directory, json.loads((directory / _RESULT).read_bytes()))
    except FileNotFoundError:
        return None
