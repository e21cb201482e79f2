"""The one place that compiles: ``jit`` is ``numba.njit`` with the project's settings and cache directory.

The cache directory is keyed by numba's version and a digest of every kernel source, because numba's own cache
notices an edit of the file that holds a function but not of the files that hold the functions it calls.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import config
from platformdirs import user_cache_dir


def kernel_cache_dir() -> Path:
    """Directory of the compiled kernels: ``$TOKCTL_CACHE_DIR`` or the user's cache, then ``kernels/<key>``."""
    base = os.environ.get("TOKCTL_CACHE_DIR") or user_cache_dir("tokctl", appauthor=False)
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return Path(base) / "kernels" / digest.hexdigest()[:16]


_CACHE_DIR = str(kernel_cache_dir())


def jit(function: Callable[..., Any] | None = None, *, inline: str = "never") -> Any:
    """Compile ``function`` on first call: nogil, cached on disk, no fastmath, no automatic parallelism."""
    if function is None:
        return lambda f: jit(f, inline=inline)
    previous = config.CACHE_DIR
    config.CACHE_DIR = _CACHE_DIR
    try:
        return numba.njit(nogil=True, cache=True, inline=inline)(function)
    finally:
        config.CACHE_DIR = previous
