"""The one place that compiles: ``jit`` is ``numba.njit`` with the project's settings and cache directory.

The cache directory is keyed by numba's version and a digest of every kernel source, because numba's own cache
notices an edit of the file that holds a function but not of the files that hold the functions it calls.
"""

from __future__ import annotations

import gc
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import config, types
from numba.core import event
from numba.core.registry import CPUDispatcher
from platformdirs import user_cache_dir

from tokctl.kernels import compiling
from tokctl.kernels._inner import InnerCompiler


def kernel_cache_dir() -> Path:
    """Directory of the compiled kernels: ``$TOKCTL_CACHE_DIR`` or the user's cache, then ``kernels/<key>``."""
    base = os.environ.get("TOKCTL_CACHE_DIR") or user_cache_dir("tokctl", appauthor=False)
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return Path(base) / "kernels" / digest.hexdigest()[:16]


_CACHE_DIR = str(kernel_cache_dir())


class _Kernel(CPUDispatcher):
    """A kernel of which other kernels' constants are arguments like any other: numba would compile it for each anew."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """See numba: what a call from another kernel with arguments of these types refers to."""
        return super().get_call_template(
            tuple(types.unliteral(kind) for kind in args), {name: types.unliteral(kind) for name, kind in kws.items()}
        )


class _InnerKernel(_Kernel):
    """A kernel without an entry point for Python, where a call would otherwise jump to nowhere."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is an inner kernel: only other kernels can call it")


def jit(
    function: Callable[..., Any] | None = None, *, inline: str = "never", inner: bool = False, borrows: bool = False
) -> Any:
    """Compile ``function`` on first call: nogil, cached on disk, no fastmath, no automatic parallelism.

    ``inner``: only other kernels call it. It has no entry point for Python (a call raises ``TypeError``) and no machine code
    of its own, and is in the cache as part of its callers; that saves a third of a family's compile time. It may be
    compiled for several signatures. Any other kernel has to have exactly one: two processes that compile and cache two
    signatures of one kernel at the same time may each get the other's.

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
            cache=not inner,
            inline=inline,
            no_cfunc_wrapper=True,
            no_cpython_wrapper=inner,
            _nrt=not borrows,
            **({"pipeline_class": InnerCompiler} if inner else {}),
        )(function)
        if isinstance(kernel, CPUDispatcher):  # a plain function while the JIT is switched off
            kernel.__class__ = _InnerKernel if inner else _Kernel
        return kernel
    finally:
        config.CACHE_DIR = previous


class _CompileWatch(event.Listener):
    """Keeps ``compiling.costs``, and the garbage collector out of the compiler, where it takes a sixth of the time.

    numba tells of a compilation with its global lock held, and of those of callees between start and end of the caller's.
    """

    def __init__(self) -> None:
        self._open: list[tuple[str, float, list[float]]] = []  # file, start, seconds of callees in other files
        self._collects = False

    def on_start(self, event: event.Event) -> None:
        if not self._open:
            if compiling.on_compile is not None:
                compiling.on_compile()
            self._collects = gc.isenabled()
            gc.disable()
        module = event.data["dispatcher"].py_func.__module__
        # what a kernel needs of numba's own functions is part of its cost
        family = module.rpartition(".")[2] if module.startswith("tokctl.") or not self._open else self._open[-1][0]
        self._open.append((family, time.thread_time(), [0.0]))

    def on_end(self, event: event.Event) -> None:
        family, start, elsewhere = self._open.pop()
        seconds = time.thread_time() - start
        cost = compiling.costs.setdefault(family, compiling.FamilyCost())
        cost.n_compiled += event.data["dispatcher"].py_func.__module__.startswith("tokctl.")
        cost.seconds += seconds - elsewhere[0]
        if self._open:
            self._open[-1][2][0] += seconds
        elif self._collects:
            gc.enable()


event.register("numba:compile", _CompileWatch())
