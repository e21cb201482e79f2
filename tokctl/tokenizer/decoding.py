"""From ids back to bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokctl.errors import DataError
from tokctl.kernels._boundary import new_bytes, writable_view
from tokctl.tokenizer.vocabulary import UNUSED, Vocabulary

_NO_ID = int(np.iinfo(np.uint32).max)


def join_tokens(vocabulary: Vocabulary, ids: Any) -> bytes:
    """The bytes of ``ids`` (a sequence or integer array) one after another; DataError for an id that stands for nothing."""
    from tokctl.kernels.token_bytes import decode_ids, measure_ids

    given = ids if isinstance(ids, (np.ndarray, list, tuple)) else list(ids)
    array = _uint32(np.asarray(given))
    n_bytes = measure_ids(array, vocabulary.offsets, vocabulary.rows)
    if n_bytes < 0:
        at = -1 - int(n_bytes)
        raise unknown_id(vocabulary, int(given[at]), at)
    joined, out = new_bytes(n_bytes)
    decode_ids(array, vocabulary.data, vocabulary.offsets, vocabulary.rows, out)
    return joined


def unknown_id(vocabulary: Vocabulary, token_id: int, at: int | None = None) -> DataError:
    """The error about an id that stands for nothing, number ``at`` of those given."""
    place = "" if at is None else f" (number {at} of the ids)"
    n_unused = int((vocabulary.kinds == UNUSED).sum())
    return DataError(
        f"the id {token_id}{place} is not in the vocabulary",
        hint=f"ids of this tokenizer are 0 to {len(vocabulary) - 1}"
        + (f", {n_unused} of them unused" if n_unused else ""),
        code="unknown-id",
    )


def _uint32(array: np.ndarray) -> np.ndarray:
    """Ids as ``uint32[n]``; a number that doesn't fit becomes one that no vocabulary has."""
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError("token ids are whole numbers in one sequence", code="not-an-id")
    if array.dtype != np.uint32:
        array = np.where((array >= 0) & (array <= _NO_ID), array, _NO_ID).astype(np.uint32)
    return writable_view(array)
