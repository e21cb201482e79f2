"""The boundary where Python buffers become kernel arguments of one fixed type.

A read-only array has another numba type than a writable one and would compile every kernel a second time; these views
are writable and contiguous, and share memory with their source. Kernels never write to input data.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_make_bytes = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_char_p, ctypes.c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi)
)

_utf8_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.POINTER(ctypes.c_ssize_t))(
    ("PyUnicode_AsUTF8AndSize", ctypes.pythonapi)
)


class _Memory:
    """Somebody's memory as numpy takes it, writable; the array made of it holds this object, and so ``source``."""

    __slots__ = ("__array_interface__", "source")

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype, source: Any) -> None:
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": dtype.str}
        self.source = source


_UINT8 = np.dtype(np.uint8)


def writable_view(array: np.ndarray) -> np.ndarray:
    """A C-contiguous writable view of ``array`` (1-D or more), without copying where it already is contiguous."""
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        return array
    if array.size == 0:
        return np.empty(array.shape, array.dtype)
    return np.asarray(_Memory(array.__array_interface__["data"][0], array.shape, array.dtype, array))


def bytes_view(source: Any) -> np.ndarray:
    """``uint8[n]`` view of bytes, a memoryview, an Arrow buffer or a uint8 array; shares memory, writable type."""
    if isinstance(source, np.ndarray):
        return writable_view(source)
    return writable_view(np.frombuffer(source, dtype=np.uint8))


def new_bytes(n: int) -> tuple[bytes, np.ndarray]:
    """A bytes object of ``n`` arbitrary bytes and the ``uint8[n]`` view through which to fill it, before anyone else sees it."""
    made = _make_bytes(None, n)
    return made, writable_view(np.frombuffer(made, np.uint8))


def ascii_view(text: str) -> np.ndarray:
    """``uint8[n]`` view of a str of ASCII characters, which Python keeps as these bytes; shares memory with it."""
    if not text.isascii():
        raise ValueError("not ASCII")
    size = ctypes.c_ssize_t()
    pointer = _utf8_of(text, ctypes.byref(size))
    if size.value == 0:
        return np.empty(0, np.uint8)
    return np.asarray(_Memory(pointer, (size.value,), _UINT8, text))
