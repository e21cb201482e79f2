"""What this process compiles: who is told of it, and what it costs. Without numba, so that one can listen before it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class FamilyCost:
    """What the kernels of one file took: how many compilations, and processor seconds without those of other files."""

    n_compiled: int = 0
    seconds: float = 0.0


costs: dict[str, FamilyCost] = {}
"""File of kernels, without ``.py`` -> what it has cost in this process. What the cache holds costs nothing."""

on_compile: Callable[[], None] | None = None
"""Called before a kernel that Python has called is compiled, from the thread that waits for it; may not call kernels."""
