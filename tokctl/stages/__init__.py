"""The stages: what can be run. Each is thin: parameters and one run().

``STAGES`` maps a stage's name to its summary and "module:object"; listing it imports nothing.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING

from tokctl.errors import UsageError

if TYPE_CHECKING:
    from tokctl.runtime.stage import Stage

STAGES: dict[str, tuple[str, str]] = {
    "extract": ("Read pages, archives, code and text into document shards.", "tokctl.stages.extract:STAGE"),
    "dedup exact": ("Remove documents whose canonical text is the same.", "tokctl.stages.dedup_exact:STAGE"),
    "dedup minhash": ("Remove near-duplicate documents, verified exactly.", "tokctl.stages.dedup_minhash:STAGE"),
    "split": ("Assign documents to train, validation and test by group.", "tokctl.stages.split:STAGE"),
    "count": ("Count the distinct words of a corpus once per pre-tokenizer.", "tokctl.stages.count:STAGE"),
    "fit bpe": ("Fit a byte-level BPE tokenizer.", "tokctl.stages.fit_bpe:STAGE"),
    "encode": ("Text to token ids.", "tokctl.stages.encode:STAGE"),
    "compare": ("Compare candidate tokenizers on validation text.", "tokctl.stages.compare:STAGE"),
    "export huggingface": ("Write tokenizer.json and tokenizer_config.json.", "tokctl.stages.export:HUGGINGFACE"),
    "export tiktoken": ("Write a .tiktoken ranks file and its JSON.", "tokctl.stages.export:TIKTOKEN"),
}


def load_stage(name: str) -> Stage:
    """The stage called ``name``; UsageError naming the nearest one when there is none."""
    if name not in STAGES:
        close = difflib.get_close_matches(name, list(STAGES), n=1)
        raise UsageError(
            f"there is no stage {name!r}",
            hint=f"did you mean {close[0]!r}?" if close else f"known: {', '.join(STAGES)}",
            code="unknown-stage",
        )
    module, _, attribute = STAGES[name][1].partition(":")
    stage: Stage = getattr(importlib.import_module(module), attribute)
    return stage
