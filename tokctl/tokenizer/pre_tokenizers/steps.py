"""What a pre-tokenizer does before its split patterns: steps over the pieces of text, in turn.

The split patterns of ``PreTokenizer`` make words in one pass. What that can't say is a step here, which cuts the pieces
of text further, drops some, or writes into them; no word crosses the pieces that the last step leaves. A step is a
frozen value like a normalizer.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Protocol

from tokctl.errors import ArtifactError
from tokctl.tokenizer.aligned import AlignedPieces

STEPS: dict[str, str] = {
    "split": "tokctl.tokenizer.pre_tokenizers.split_by:SplitBy",
    "prefix-space": "tokctl.tokenizer.pre_tokenizers.prefix_space:PrefixSpace",
}
"""Name -> the class that is it."""


class Step(Protocol):
    """What a step is."""

    @property
    def type(self) -> str:
        """Its name in ``STEPS``."""

    def to_json(self) -> dict[str, Any]:
        """``{"type": ..., parameters}``: what decides its behaviour."""

    def apply(self, texts: AlignedPieces) -> AlignedPieces:
        """The text pieces after the step; what are added tokens stays."""


def from_json(value: Any) -> Step:
    """The inverse of ``to_json``; ArtifactError ``bad-pre-tokenizer`` for anything else."""
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in STEPS:
        raise ArtifactError(
            f"the pre-tokenizer step {kind!r} is not known",
            hint=f"known: {', '.join(STEPS)}",
            code="bad-pre-tokenizer",
        )
    module, _, name = STEPS[kind].partition(":")
    try:
        step: Step = getattr(import_module(module), name).from_json(value)
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"the pre-tokenizer step {value!r} is not valid: {error}", code="bad-pre-tokenizer"
        ) from None
    if step.to_json() != value:
        raise ArtifactError(
            f"the pre-tokenizer step {value!r} is not valid: expected {step.to_json()!r}", code="bad-pre-tokenizer"
        )
    return step


def apply_all(steps: Iterable[Step], texts: AlignedPieces) -> AlignedPieces:
    """The texts after all steps, in turn."""
    for step in steps:
        texts = step.apply(texts)
    return texts
