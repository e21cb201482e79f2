"""How inner kernels are compiled: as LLVM code for the kernels that call them, never as machine code of their own.

numba optimises each function on its own, emits its machine code and then links it into every caller, where it is optimised
once more. For a function that only kernels call, the first optimisation and the machine code are for nothing: without
them a family of small kernels compiles in two thirds of the time, and the result in the caller is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _NoEngine:
    """In place of a code generator's engine: there is no machine code whose environment could be set."""

    @staticmethod
    def set_env(env_name: str, env: Any) -> None:
        pass


class _LinkedLibrary(JITCodeLibrary):
    """A function's LLVM code, to be linked into its callers. It has no address."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> type[_NoEngine]:
        return _NoEngine


class InnerCompiler(Compiler):
    """numba's compiler with a library that is only linked."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)
