"""Extraction in a process that can be killed: started once, fed in batches, started again after a page that took too long."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import marshal
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from tokctl.corpus.extractors import EXTRACTORS, EXTRAS
from tokctl.corpus.read_options import ReadOptions
from tokctl.errors import DataError, MissingExtra, UsageError

# sys.path is the parent's, so that a user's extractor is found in both
_BOOT = """
import sys
sys.path[:] = {path!r}
from tokctl.corpus.extractors.serve import arguments, main
main(*arguments())
"""
_PIPE_BYTES = 1 << 20


class PageSource(NamedTuple):
    """A page to extract and the charset of its HTTP header."""

    raw: bytes
    charset: str | None


class Extracted(NamedTuple):
    """A page's text in UTF-8 with what was found out about it."""

    text: bytes
    language: str | None
    note: str | None
    encoding: str
    encoding_origin: str
    n_invalid: int
    first_invalid: int | None


class NotExtracted(NamedTuple):
    """Why a page gave no text: ``reason`` is ``time-limit``, ``extractor-failed``, ``extractor-crashed`` or an encoding's slug."""

    reason: str
    evidence: str
    encoding: str | None = None
    offset: int | None = None
    found: bytes = b""


class ExtractionProcess:
    """One child process for pages of one set of options; not thread-safe.

    ``submit`` a batch, do something else, ``collect`` its results in order. Raises MissingExtra or UsageError when the
    extractor can't be loaded.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._batch: list[PageSource] = []
        self._child: subprocess.Popen[bytes] | None = None
        self._extractor = EXTRACTORS.get(options.extractor, options.extractor)
        module, colon, name = self._extractor.partition(":")
        if not (module and colon and name):
            raise UsageError(
                f"the extractor {options.extractor!r} is unknown",
                hint=f"choose one of {', '.join(sorted(EXTRACTORS))}, or name your own as package.module:function",
                code="bad-extractor",
            )

    def submit(self, batch: Sequence[PageSource]) -> None:
        """Hand over a batch. One that was never collected (its caller gave up) is dropped with its child."""
        if self._batch:
            self.close()
        self._batch = list(batch)
        self._send(0)

    def collect(self) -> list[Extracted | NotExtracted]:
        """One result for each page submitted."""
        results: list[Extracted | NotExtracted] = []
        while len(results) < len(self._batch):
            assert self._child is not None and self._child.stdout is not None
            try:
                results.append(_result(marshal.load(self._child.stdout)))
            except (EOFError, ValueError, TypeError):
                results.append(self._death())
                if len(results) < len(self._batch):
                    self._send(len(results))
        self._batch = []
        return results

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # what was still buffered can't be sent any more
                        pipe.close()
            self._child = None

    def _send(self, start: int) -> None:
        if self._child is None:
            self._child = self._start()
        assert self._child.stdin is not None
        try:
            # the child reads the whole batch before it answers, so neither side can wait for the other
            marshal.dump([tuple(page) for page in self._batch[start:]], self._child.stdin)
            self._child.stdin.flush()
        except BrokenPipeError:
            pass  # it died; collect says of what

    def _start(self) -> subprocess.Popen[bytes]:
        options = self._options
        encoding = "" if options.encoding == "auto" else options.encoding
        child = subprocess.Popen(
            [
                *(sys.executable, "-c", _BOOT.format(path=sys.path)),
                *(
                    self._extractor,
                    "1" if options.main_content else "0",
                    options.errors,
                    encoding,
                    str(options.time_limit),
                ),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # what native code says when it fails; the message is in the result
        )
        assert child.stdout is not None
        with contextlib.suppress(
            OSError
        ):  # room for results while the parent does something else; not everyone may have it
            fcntl.fcntl(child.stdout.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        try:
            trouble = marshal.load(child.stdout)
        except (EOFError, ValueError, TypeError):
            child.kill()
            raise DataError(
                f"the extraction process ended at its start (status {child.wait()})", code="extractor-start"
            ) from None
        if trouble is not None:
            child.wait()
            kind, message = trouble
            extra = EXTRAS.get(options.extractor)
            if extra is not None and kind in ("ImportError", "ModuleNotFoundError"):
                raise MissingExtra(extra, extra, purpose=f"--extractor {options.extractor}")
            raise UsageError(
                f"the extractor {options.extractor!r} can't be loaded: {kind}: {message}", code="bad-extractor"
            )
        return child

    def _death(self) -> NotExtracted:
        assert self._child is not None
        child = self._child
        self.close()
        if child.returncode in (-signal.SIGPROF, -signal.SIGALRM):
            return NotExtracted("time-limit", f"the page took more than {self._options.time_limit} s")
        return NotExtracted("extractor-crashed", f"the extraction process ended with status {child.returncode}")


def _result(message: tuple[Any, ...]) -> Extracted | NotExtracted:
    status, *values = message
    if status == "ok":
        return Extracted(*values)
    if status == "undecodable":
        encoding, offset, found = values
        code = "invalid-utf8" if encoding == "utf-8" else "invalid-encoding"
        return NotExtracted(code, "", encoding, offset, found)
    return NotExtracted("extractor-failed", values[0])


_processes: dict[tuple[ReadOptions, int], ExtractionProcess] = {}


def shared_process(options: ReadOptions) -> ExtractionProcess:
    """This process's child for ``options``: pages of many files go to one. A forked process starts its own."""
    key = (options, os.getpid())
    if key not in _processes:
        if not _processes:
            atexit.register(close_processes)
        _processes[key] = ExtractionProcess(options)
    return _processes[key]


def close_processes() -> None:
    """End the children of this process."""
    for key in [key for key in _processes if key[1] == os.getpid()]:
        _processes.pop(key).close()
