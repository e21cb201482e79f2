"""Writes that survive a crash: temporary name, fsync, one rename."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tokctl.errors import ArtifactError

_REFUSALS = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EIO, errno.EMFILE),
)
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def fault_point(name: str) -> None:
    """Die here, as by SIGKILL, when ``$TOKCTL_FAULT_POINT`` names this point: how the tests prove that nothing half-written counts."""
    if os.environ.get("TOKCTL_FAULT_POINT") == name:
        os.kill(os.getpid(), 9)


def fsync_path(path: Path) -> None:
    """Flush a file or a directory entry to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems can't sync a directory
            raise
    finally:
        os.close(descriptor)


def write_bytes(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` atomically: a reader sees the old bytes or the new ones, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk_errors(path):
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            fsync_path(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def replace_directory(new: Path, final: Path) -> None:
    """Move directory ``new`` to ``final`` in one rename; a directory already there is exchanged for it, then removed."""
    fsync_path(new)
    if not final.exists():
        new.rename(final)
    elif not _exchange(new, final):
        retired = final.with_name(f".{final.name}.retired-{os.getpid()}")
        final.rename(retired)
        new.rename(final)
        new = retired
    fsync_path(final.parent)
    fault_point("replaced")
    if new.exists():
        shutil.rmtree(new)


def _exchange(left: Path, right: Path) -> bool:
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    return renameat2(_AT_FDCWD, os.fsencode(left), _AT_FDCWD, os.fsencode(right), _RENAME_EXCHANGE) == 0


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals while writing ``path`` into errors that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise ArtifactError(
                f"no space left while writing {path}",
                hint="free some space and run the same command again: what is finished is kept",
                code="no-space",
                file=str(path),
            ) from None
        if error.errno in _REFUSALS:
            raise ArtifactError(
                f"can't write {path}: {error.strerror}",
                hint="choose an output path that you may write to",
                code="not-writable",
                file=str(path),
            ) from None
        raise
