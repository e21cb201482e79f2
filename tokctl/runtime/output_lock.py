"""One writer for one output directory."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from tokctl.artifacts.durable import disk_errors
from tokctl.errors import ArtifactError


def lock_path(out: Path) -> Path:
    """The file that is locked while ``out`` is written; one that nobody holds was left by a process that died."""
    return out.with_name(f".{out.name}.lock")


@contextlib.contextmanager
def output_lock(out: Path) -> Iterator[None]:
    """Hold ``.<name>.lock`` beside ``out``; ArtifactError at once when another process holds it.

    The operating system drops the lock with the process, however it dies.
    """
    path = lock_path(out)
    descriptor = _open(path)
    try:
        while True:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.fstat(descriptor).st_ino == path.stat().st_ino:
                break
            os.close(descriptor)  # the holder finished and removed the file between our open and our lock
            descriptor = _open(path)
    except BlockingIOError:
        try:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise ArtifactError(
                f"another run{f' (process {holder})' if holder else ''} is writing {out}",
                hint="wait for it to end, or choose another output directory",
                code="output-in-use",
                file=str(out),
            ) from None
        finally:
            os.close(descriptor)
    try:
        try:
            with disk_errors(path):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    with disk_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError as error:  # a directory in which nothing can be made, such as /proc
            raise PermissionError(errno.EACCES, error.strerror, str(path)) from None
