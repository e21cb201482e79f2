"""OpenAI's published encodings by name: what their ranks files don't hold.

The pattern is named as in ``pre_tokenizers.patterns``. ``o200k_harmony`` calls id 200018 both ``<|endofprompt|>`` and
``<|reserved_200018|>``; here it has the first name only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_END = "<|endoftext|>"
_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_HARMONY = {
    199998: "<|startoftext|>",
    199999: _END,
    200002: "<|return|>",
    200003: "<|constrain|>",
    200005: "<|channel|>",
    200006: "<|start|>",
    200007: "<|end|>",
    200008: "<|message|>",
    200012: "<|call|>",
    200018: "<|endofprompt|>",
}


@dataclass(frozen=True)
class NamedEncoding:
    """The ``pattern``, the ``specials`` (name -> id) and how many ranks the file has."""

    pattern: str
    specials: Mapping[str, int]
    n_ranks: int


ENCODINGS: dict[str, NamedEncoding] = {
    "r50k_base": NamedEncoding("gpt2", {_END: 50256}, 50256),
    "p50k_base": NamedEncoding("gpt2", {_END: 50256}, 50280),
    "p50k_edit": NamedEncoding("gpt2", {_END: 50256} | {name: 50281 + k for k, name in enumerate(_FIM)}, 50280),
    "cl100k_base": NamedEncoding(
        "cl100k",
        {_END: 100257} | {name: 100258 + k for k, name in enumerate(_FIM)} | {"<|endofprompt|>": 100276},
        100256,
    ),
    "o200k_base": NamedEncoding("o200k", {_END: 199999, "<|endofprompt|>": 200018}, 199998),
    "o200k_harmony": NamedEncoding(
        "o200k", {_HARMONY.get(i, f"<|reserved_{i}|>"): i for i in range(199998, 201088)}, 199998
    ),
}
