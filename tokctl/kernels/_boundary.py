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


def writable_view(array: np.ndarray) -> np.ndarray:
    """A C-contiguous writable view of ``array`` (1-D or more), without copying where it already is contiguous."""
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        return array
    if array.size == 0:
        return np.empty(array.shape, array.dtype)
    pointer = ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_uint8 * array.nbytes))
    view = np.frombuffer(memoryview(pointer.contents), dtype=array.dtype).reshape(array.shape)
    _keep_alive(view, array)
    return view


def _keep_alive(view: np.ndarray, source: Any) -> None:
    """Tie the lifetime of ``source`` to the ctypes object that ``view`` is based on."""
    base: Any = view
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    base._tokctl_source = source


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
    memory: Any = (ctypes.c_uint8 * size.value).from_address(pointer)
    memory._tokctl_source = text  # keeps it alive
    return np.frombuffer(memory, np.uint8)
