"""SHA-256 of files, remembered by (size, mtime_ns, inode) so that an unchanged file is hashed once.

The memory is a convenience, never evidence: ``verify`` passes ``fresh=True`` and hashes again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from pathlib import Path

from tokctl.errors import DataError

_BLOCK = 1 << 20
# A file whose mtime is this young may change again without a new mtime, so its digest isn't remembered.
_SETTLE_NS = 2_000_000_000


def cache_directory() -> Path:
    """``$TOKCTL_CACHE_DIR``, or the user's cache directory for tokctl."""
    configured = os.environ.get("TOKCTL_CACHE_DIR")
    if configured:
        return Path(configured)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("tokctl", appauthor=False))


def sha256_file(path: Path) -> str:
    """Lower-case hexadecimal SHA-256 of the file's bytes; DataError when it can't be read or changes meanwhile."""
    try:
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            digest = hashlib.sha256()
            while block := file.read(_BLOCK):
                digest.update(block)
            after = os.fstat(file.fileno())
    except OSError as error:
        raise DataError(
            f"can't read {path}: {error.strerror}",
            code="unreadable",
            file=str(path),
            hint="check the path and its rights",
        ) from None
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise DataError(
            f"{path} changed while it was being read",
            code="changed-while-read",
            file=str(path),
            hint="wait until the file is complete, then run again",
        )
    return digest.hexdigest()


class DigestCache:
    """Digests of files by path and identity, kept in one SQLite file in the cache directory.

    A cache that can't be opened or is damaged is ignored: digests are then computed each time.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._rows: dict[str, tuple[int, int, int, str]] = {}
        self._new: dict[str, tuple[int, int, int, str]] = {}
        self._loaded: set[str] = set()
        self._file = (directory or cache_directory()) / "digests.sqlite"
        self._database: sqlite3.Connection | None = None
        with contextlib.suppress(sqlite3.Error, OSError):
            self._database = self._open()

    def sha256(self, path: Path, *, fresh: bool = False) -> tuple[str, int]:
        """``(digest, size in bytes)`` of a file, from memory unless ``fresh`` or changed."""
        key = _absolute(path)
        try:
            status = os.stat(path)  # noqa: PTH116 (this and _absolute run once for each of a corpus's files)
        except OSError as error:
            raise DataError(
                f"can't read {path}: {error.strerror}", code="unreadable", file=str(path), hint="check the path"
            ) from None
        identity = (status.st_size, status.st_mtime_ns, status.st_ino)
        known = self._new.get(key) or self._known(key)
        if not fresh and known is not None and known[:3] == identity:
            return known[3], status.st_size
        digest = sha256_file(path)
        if time.time_ns() - status.st_mtime_ns > _SETTLE_NS:
            self._new[key] = (*identity, digest)
        return digest, status.st_size

    def remember(self, path: Path, digest: str) -> None:
        """Record the digest of a file that this process has just written and closed."""
        status = path.stat()
        self._new[_absolute(path)] = (status.st_size, status.st_mtime_ns, status.st_ino, digest)

    def save(self) -> None:
        """Write what was learnt; silently does nothing where the cache can't be written."""
        if self._new and self._database is not None:
            rows = [(path, *row) for path, row in sorted(self._new.items())]
            with contextlib.suppress(sqlite3.Error), self._database:
                self._database.executemany("insert or replace into digest values (?, ?, ?, ?, ?)", rows)
            self._new.clear()

    def _known(self, key: str) -> tuple[int, int, int, str] | None:
        """What the file's row says; rows are read directory by directory, so that a large memory costs little."""
        directory = key.rpartition("/")[0]
        if directory not in self._loaded:
            self._load(directory)
        return self._rows.get(key)

    def _load(self, directory: str) -> None:
        """Read the rows of all files below ``directory``, unless they were read with a directory above it."""
        above = directory
        while above and above not in self._loaded:
            above = above.rpartition("/")[0]
        self._loaded.add(directory)
        if above or self._database is None:
            return
        query = "select path, size, mtime_ns, inode, sha256 from digest where path > ? and path < ?"
        below = (directory + "/", directory + chr(ord("/") + 1))
        with contextlib.suppress(sqlite3.Error):
            for path, size, mtime_ns, inode, digest in self._database.execute(query, below):
                self._rows[path] = (size, mtime_ns, inode, digest)

    def _open(self) -> sqlite3.Connection:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._file, timeout=10)
        try:
            connection.execute(
                "create table if not exists digest"
                "(path text primary key, size integer, mtime_ns integer, inode integer, sha256 text)"
            )
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _absolute(path: Path) -> str:
    """The file's key: its absolute path, bytes that aren't UTF-8 spelled with escapes."""
    text = os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118
    return text if text.isascii() else os.fsencode(text).decode("utf-8", "backslashreplace")
