"""Memory for tables that are read at random: in large pages where the system has them."""

from __future__ import annotations

import mmap

import numpy as np

_LARGE_PAGE = 1 << 21
_LINE = 64


def table_of_zeros(size: int) -> np.ndarray:
    """``uint64[size]`` of zeros that begins a cache line; a table of a megabyte or more begins a large page.

    With pages of 4 kB nearly every look-up in a table of some megabytes misses the processor's address cache as well.
    Memory is taken from the system page by page, when it is first touched.
    """
    n_bytes = 8 * size
    if n_bytes < _LARGE_PAGE // 2:
        room = np.zeros(size + _LINE // 8, np.uint64)
        first = -room.ctypes.data % _LINE // 8
        return room[first : first + size]
    n_pages = -(-n_bytes // _LARGE_PAGE)
    memory = _private_memory((n_pages + 1) * _LARGE_PAGE)
    room = np.frombuffer(memory, np.uint64)
    first = -room.ctypes.data % _LARGE_PAGE // 8
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE, 8 * first, n_pages * _LARGE_PAGE)
    return room[first : first + size]


def _private_memory(n_bytes: int) -> mmap.mmap:
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, n_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, n_bytes)
