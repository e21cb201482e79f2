"""Normalizers: what is done to a text before it is split.

A normalizer is a frozen value with ``type`` (its name in ``NORMALIZERS``), ``to_json()`` (its parameters), a class method
``from_json`` and ``apply``. Several are applied in turn. They see the pieces between the added tokens that are found in
raw text, each piece by itself, as in tokenizers.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from tokctl.errors import ArtifactError
from tokctl.kernels._boundary import bytes_view
from tokctl.tokenizer.added_tokens import Pieces
from tokctl.tokenizer.aligned import AlignedPieces

NORMALIZERS: dict[str, str] = {
    "nfc": "tokctl.tokenizer.normalizers.unicode_form:UnicodeForm",
    "nfd": "tokctl.tokenizer.normalizers.unicode_form:UnicodeForm",
    "nfkc": "tokctl.tokenizer.normalizers.unicode_form:UnicodeForm",
    "nfkd": "tokctl.tokenizer.normalizers.unicode_form:UnicodeForm",
    "lowercase": "tokctl.tokenizer.normalizers.lowercase:Lowercase",
    "replace": "tokctl.tokenizer.normalizers.replace:Replace",
    "prepend": "tokctl.tokenizer.normalizers.prepend:Prepend",
    "strip": "tokctl.tokenizer.normalizers.strip:Strip",
}
"""Name -> the class that is it."""


class Normalizer(Protocol):
    """What a normalizer is."""

    @property
    def type(self) -> str:
        """Its name in ``NORMALIZERS``."""

    def to_json(self) -> dict[str, Any]:
        """``{"type": ..., parameters}``: what decides its behaviour."""

    def apply(self, texts: AlignedPieces) -> AlignedPieces:
        """The text pieces normalised; what are added tokens stays. Origins are followed where there are any.

        Returns ``texts`` itself where nothing changes.
        """


def from_json(value: Any) -> Normalizer:
    """The inverse of ``to_json``; ArtifactError ``bad-normalizer`` for anything else."""
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in NORMALIZERS:
        close = difflib.get_close_matches(str(kind), NORMALIZERS, n=1)
        raise ArtifactError(
            f"the normalizer {kind!r} is not known",
            hint=f"did you mean {close[0]!r}?" if close else f"known: {', '.join(NORMALIZERS)}",
            code="bad-normalizer",
        )
    module, _, name = NORMALIZERS[kind].partition(":")
    try:
        normalizer: Normalizer = getattr(import_module(module), name).from_json(value)
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"the normalizer {value!r} is not valid: {error}", code="bad-normalizer") from None
    if normalizer.to_json() != value:
        raise ArtifactError(
            f"the normalizer {value!r} is not valid: expected {normalizer.to_json()!r}", code="bad-normalizer"
        )
    return normalizer


def apply_all(normalizers: Iterable[Normalizer], texts: AlignedPieces) -> AlignedPieces:
    """The texts after all normalizers, in turn."""
    for normalizer in normalizers:
        texts = normalizer.apply(texts)
    return texts


def normalize_text(normalizers: Sequence[Normalizer], text: bytes) -> bytes:
    """One text after all normalizers."""
    if not normalizers:
        return text
    bounds = np.array([0, len(text)], np.int64)
    pieces = Pieces(bounds[:1].copy(), bounds[1:].copy(), np.full(1, -1, np.int64), np.zeros(1, np.int64))
    done = apply_all(normalizers, AlignedPieces(bytes_view(text), pieces))
    return done.data[done.pieces.starts[0] : done.pieces.stops[0]].tobytes()
