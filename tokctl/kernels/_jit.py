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
from numba.core.registry import CPUDispatcher
from platformdirs import user_cache_dir


def kernel_cache_dir() -> Path:
    """Directory of the compiled kernels: ``$TOKCTL_CACHE_DIR`` or the user's cache, then ``kernels/<key>``."""
    base = os.environ.get("TOKCTL_CACHE_DIR") or user_cache_dir("tokctl", appauthor=False)
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return Path(base) / "kernels" / digest.hexdigest()[:16]


_CACHE_DIR = str(kernel_cache_dir())


class _InnerKernel(CPUDispatcher):
    """A kernel without an entry point for Python, where a call would otherwise jump to nowhere."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is an inner kernel: only other kernels can call it")


def jit(
    function: Callable[..., Any] | None = None, *, inline: str = "never", inner: bool = False, borrows: bool = False
) -> Any:
    """Compile ``function`` on first call: nogil, cached on disk, no fastmath, no automatic parallelism.

    ``inner``: only other kernels call it. It gets no entry point for Python (a call raises ``TypeError``), which saves a
    quarter of the compile time of a family of small functions over a large state.

    ``borrows``: it neither makes arrays nor returns any, so that numba needn't count references to those it is given.
    Counting takes two atomic instructions for each array at each call, which is most of the time of a short one.
    """
    if function is None:
        return lambda f: jit(f, inline=inline, inner=inner, borrows=borrows)
    previous = config.CACHE_DIR
    config.CACHE_DIR = _CACHE_DIR
    try:
        kernel = numba.njit(
            nogil=True,
            cache=True,
            inline=inline,
            no_cfunc_wrapper=True,
            no_cpython_wrapper=inner,
            _nrt=not borrows,
        )(function)
        if inner and isinstance(kernel, CPUDispatcher):  # a plain function while the JIT is switched off
            kernel.__class__ = _InnerKernel
        return kernel
    finally:
        config.CACHE_DIR = previous
