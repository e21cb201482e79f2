"""What may be asked of an encoding, as one value for the methods of Tokenizer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tokctl.tokenizer.dropout import Dropout
from tokctl.tokenizer.split_policy import NO_POLICY


@dataclass(frozen=True)
class EncodeOptions:
    """The keywords of ``Tokenizer.encode`` and ``encode_flat``; ``samples`` name the texts for dropout, None: the texts do."""

    add_special_tokens: bool = False
    bos: bool = False
    eos: bool = False
    allowed_special: Iterable[str] | str = ()
    special_in_text: str = "ordinary"
    split_policy: str = NO_POLICY
    dropout: Dropout | None = None
    samples: Any = None
    workers: int = 1
