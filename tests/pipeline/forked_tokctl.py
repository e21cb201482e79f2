"""tokctl in forks of one process that has everything loaded: a run that is to be killed spends its time on work.

As a script: one JSON request a line on standard input, one JSON answer a line on standard output. :class:`ForkedTokctl` is
the other side.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple


class Ended(NamedTuple):
    """How a run ended: its exit status (negative: the signal that killed it), seconds, and what it printed."""

    status: int
    seconds: float
    printed: str


class ForkedTokctl:
    """Runs commands, each in a fork; use as a context manager. What is printed goes through a file in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._printed = directory / "forked-output"
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._printed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> ForkedTokctl:
        return self

    def __exit__(self, *rest: object) -> None:
        self._process.communicate()

    def run(
        self,
        arguments: Sequence[object],
        *,
        environment: Mapping[str, str] | None = None,
        send: int | None = None,
        after: float = 0.0,
        forked: bool = True,
    ) -> Ended:
        """``tokctl ARGUMENTS...``; ``send`` is a signal that it gets ``after`` so many seconds.

        Without ``forked`` the process that others are forked from runs it, and keeps what it has loaded.
        """
        request = {
            "arguments": [str(argument) for argument in arguments],
            "environment": dict(environment or {}),
            "send": send,
            "after": after,
            "forked": forked,
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Ended(answer["status"], answer["seconds"], self._printed.read_text())


def _serve(printed: Path, requests: IO[str], answers: IO[str]) -> None:
    from tokctl.cli.entry import run

    for line in requests:
        request = json.loads(line)
        printed.write_bytes(b"")
        started = time.perf_counter()
        if request["forked"]:
            status = _in_fork(printed, request)
        else:
            with printed.open("w") as file:
                sys.stdout = sys.stderr = file
                status = run(request["arguments"])
        print(json.dumps({"status": status, "seconds": time.perf_counter() - started}), file=answers, flush=True)


def _in_fork(printed: Path, request: dict) -> int:
    from tokctl.cli.entry import run

    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            os.environ.update(request["environment"])
            sys.stdout = sys.stderr = printed.open("w", buffering=1)
            status = run(request["arguments"])
        finally:
            sys.stdout.flush()
            os._exit(status)
    if request["send"] is not None:
        time.sleep(request["after"])
        os.kill(pid, request["send"])
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _serve(Path(sys.argv[1]), sys.stdin, os.fdopen(os.dup(1), "w"))
