"""A fit's progress as bytes, so that a run that was killed can be gone on from."""

from __future__ import annotations

import io
import zipfile

import numpy as np

from tokctl.tokenizer.trainers.bpe import BPEFit
from tokctl.tokenizer.trainers.bpe_resume import Progress

_ARRAYS = {"merges": np.int32, "pair_counts": np.int64, "ambiguous": np.bool_, "n_tokens": np.int64}


def to_bytes(progress: Progress) -> bytes:
    """The progress as the bytes of an ``.npz`` file."""
    buffer = io.BytesIO()
    arrays = {name: getattr(progress.fit, name) for name in _ARRAYS}
    np.savez(buffer, passed_over=np.array(progress.passed_over, np.int64).reshape(-1, 2), **arrays)
    return buffer.getvalue()


def from_bytes(data: bytes) -> Progress | None:
    """The inverse of ``to_bytes``; None for bytes that are no progress."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name].astype(dtype) for name, dtype in _ARRAYS.items()}
            passed_over = [(left, right) for left, right in file["passed_over"].tolist()]
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None
    n = len(arrays["merges"])
    if arrays["merges"].shape != (n, 2) or [len(arrays[name]) for name in _ARRAYS] != [n, n, n, n + 1]:
        return None
    return Progress(BPEFit(**arrays, stopped="reached", best_remaining=0), passed_over)
