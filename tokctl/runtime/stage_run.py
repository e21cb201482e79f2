"""What a stage's ``run`` is given: parameters, inputs, a directory to fill, workers, memory and progress."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from tokctl.artifacts.digests import sha256_file
from tokctl.artifacts.durable import disk_errors, fault_point, write_bytes
from tokctl.artifacts.manifest import OutputFile
from tokctl.runtime.options import ExecutionOptions
from tokctl.runtime.parameters import StageParameters
from tokctl.runtime.progress import Phase
from tokctl.runtime.stage import ResolvedInput
from tokctl.runtime.tasks import CHECKPOINT, FinishedTask, Work, run_tasks

T = TypeVar("T")
WORK_DIRECTORY = ".work"


class StageRun:
    """One execution of a stage.

    ``directory`` is the partial output; files become outputs through :meth:`add_output`. ``facts`` is what the stage has to
    tell in its manifest (canonical JSON, part of the content digest); ``measurements`` go to ``run.json``, since they may
    differ between runs. The rows obey rows_in = rows_out + rows_rejected.
    """

    def __init__(
        self,
        parameters: StageParameters,
        inputs: dict[str, tuple[ResolvedInput, ...]],
        directory: Path,
        options: ExecutionOptions,
    ) -> None:
        self.parameters: Any = parameters
        self.inputs = inputs
        self.directory = directory
        self.options = options
        self.facts: dict[str, Any] = {}
        self.measurements: dict[str, Any] = {}
        self.rows_in = 0
        self.rows_out = 0
        self.rows_rejected = 0
        self._outputs: dict[str, OutputFile] = {}

    @property
    def workers(self) -> int:
        return self.options.workers

    @property
    def memory_limit(self) -> int | None:
        return self.options.memory_limit

    @property
    def work_directory(self) -> Path:
        """Scratch space that is removed at commit."""
        path = self.directory / WORK_DIRECTORY
        path.mkdir(exist_ok=True)
        return path

    @property
    def _checkpoint(self) -> Path:
        return self.work_directory / CHECKPOINT

    def save_checkpoint(self, data: bytes) -> None:
        """Keep what the next run of the same command can go on from, should this one end before its time."""
        write_bytes(self._checkpoint, data)
        fault_point("checkpoint")

    def load_checkpoint(self) -> bytes | None:
        """What an earlier run of the same command kept, None if there was none or it kept nothing."""
        try:
            return self._checkpoint.read_bytes()
        except FileNotFoundError:
            return None

    def add_output(self, name: str, *, rows: int | None = None, sha256: str | None = None) -> None:
        """Declare ``directory/name`` finished: it is listed in the manifest, hashed unless its ``sha256`` is given."""
        fault_point("part-write")
        path = self.directory / name
        self._outputs[name] = OutputFile(name, sha256 or sha256_file(path), path.stat().st_size, rows)

    def adopt(self, file: Path, name: str, *, rows: int | None = None, sha256: str | None = None) -> None:
        """Make a task's ``file`` the output ``name`` (a second link to it, so that a resumed run finds the task whole).

        It is hashed unless its ``sha256`` is given.
        """
        target = self.directory / name
        with disk_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            try:
                os.link(file, target)
            except OSError:
                shutil.copyfile(file, target)
        self.add_output(name, rows=rows, sha256=sha256)

    def outputs(self) -> tuple[OutputFile, ...]:
        """The declared outputs, by path."""
        return tuple(self._outputs[name] for name in sorted(self._outputs, key=str.encode))

    def tasks(
        self,
        name: str,
        tasks: Sequence[T],
        work: Work[T],
        *,
        executor: Literal["threads", "processes"],
        unit: str = "tasks",
        workers: int | None = None,
    ) -> list[FinishedTask]:
        """Run resumable tasks under a progress phase called ``name``; see :func:`tokctl.runtime.tasks.run_tasks`."""
        with self.phase(name, len(tasks), unit) as update:
            return run_tasks(
                tasks,
                work,
                self.work_directory / name.replace(" ", "-"),
                workers=workers or self.workers,
                executor=executor,
                on_done=update,
            )

    @contextmanager
    def phase(self, name: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
        """A progress phase: call the result with the absolute number of units done."""
        phase: Phase = self.options.progress.phase(name, total, unit)
        try:
            yield phase.update
        finally:
            phase.close()

    def warn(self, message: str, **fields: object) -> None:
        """Tell the user about something that doesn't stop the stage."""
        self.options.progress.log("warning", message, **fields)

    def log(self, message: str, **fields: object) -> None:
        """Tell the user a fact worth a line."""
        self.options.progress.log("info", message, **fields)
