"""tokctl: prepare a corpus, fit, compare and ship a tokenizer.

Public names are resolved on first use, so that ``import tokctl`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC: dict[str, str] = {
    "load": "tokctl.tokenizer.formats:load",
    "Tokenizer": "tokctl.tokenizer.tokenizer:Tokenizer",
    "Encoding": "tokctl.tokenizer.encoding:Encoding",
    "Dropout": "tokctl.tokenizer.dropout:Dropout",
    "PreTokenizer": "tokctl.tokenizer.pre_tokenizers.split:PreTokenizer",
    "fit": "tokctl.corpus.fitting:fit",
    "count_words": "tokctl.corpus.word_counts:count_words",
    "WordCounts": "tokctl.corpus.word_counts:WordCounts",
    "compare": "tokctl.metrics.compare:compare",
    "load_ids": "tokctl.corpus.encoded_ids:load_ids",
    "FlatIds": "tokctl.corpus.encoded_ids:FlatIds",
    "minhash_signature": "tokctl.corpus.dedup.minhash:minhash_signature",
    "TokctlError": "tokctl.errors:TokctlError",
    "CheckFailed": "tokctl.errors:CheckFailed",
    "UsageError": "tokctl.errors:UsageError",
    "DataError": "tokctl.errors:DataError",
    "ArtifactError": "tokctl.errors:ArtifactError",
    "MissingExtra": "tokctl.errors:MissingExtra",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'tokctl' has no attribute {name!r}")
    module, _, attribute = _PUBLIC[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
