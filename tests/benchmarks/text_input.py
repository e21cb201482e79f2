"""A benchmark's text in the forms that the tools take: a file, a list of strings, an Arrow array.

``text.txt`` of a corpus has its documents between blank lines. As strings and in Arrow each is one item, and the blank lines
are gone; a tool that takes files reads them with the rest. (A run of line breaks is no pair to merge under the GPT-2
pattern, so that the merges are the same.)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATOR = "\n\n"


def strings(path: Path) -> list[str]:
    """The documents as Python strings."""
    return path.read_text("utf-8").split(SEPARATOR)


def arrow(path: Path) -> pa.Array:
    """The documents as an Arrow array of large strings, made without a Python object a document."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = path.read_bytes()
    offsets = pa.py_buffer(np.array([0, len(text)], np.int64))
    whole = pa.LargeStringArray.from_buffers(1, offsets, pa.py_buffer(text))
    return pc.split_pattern(whole, SEPARATOR).flatten()


def beginning(path: Path, n_bytes: int) -> bytes:
    """About the first ``n_bytes`` of a text, up to the end of a document where there is one."""
    with path.open("rb") as file:
        text = file.read(n_bytes).decode("utf-8", errors="ignore").encode()
    end = text.rfind(SEPARATOR.encode())
    return text[:end] if end > 0 else text
