"""What the parts of ``tokenizer.json`` have in common: sequences, patterns, and how a refusal reads."""

from __future__ import annotations

from typing import Any

from tokctl.errors import ArtifactError
from tokctl.tokenizer.formats import json_reader
from tokctl.tokenizer.formats.oniguruma import from_oniguruma
from tokctl.tokenizer.pre_tokenizers.matching import Pattern


def kind_of(value: Any) -> str:
    """The type that a step names."""
    if isinstance(value, dict):
        return str(value.get("type", "an object without a type"))
    return json_reader.kind_of(value)


def flatten(value: Any, where: str, members: str) -> list[tuple[Any, str]]:
    """The steps of a part with their places; those of ``Sequence`` (in ``members``) one after another."""
    if value is None:
        return []
    if kind_of(value) != "Sequence":
        return [(value, where)]
    inner = value.get(members)
    if not isinstance(inner, list):
        raise unsupported("the Sequence", where, f"{json_reader.kind_of(inner)} for {members!r}")
    return [step for i, part in enumerate(inner) for step in flatten(part, f"{where}.{members}[{i}]", members)]


def unsupported(what: str, where: str, found: Any) -> ArtifactError:
    """The error about something that tokctl doesn't follow."""
    return ArtifactError(
        f"{what} at {where} is not supported: found {found}",
        hint="tokctl reads byte-level BPE: normalizers NFC, NFD, NFKC, NFKD, Lowercase, Replace, Prepend and Strip; "
        "pre-tokenizers Split, Digits, Whitespace, WhitespaceSplit, CharDelimiterSplit, and ByteLevel at the end",
        code="unsupported",
    )


def read_pattern(value: Any, where: str) -> Pattern:
    """``{"Regex": ...}`` or ``{"String": ...}``; UsageError for an expression that isn't one."""
    if isinstance(value, dict) and len(value) == 1:
        if isinstance(value.get("Regex"), str) and value["Regex"]:
            return Pattern(from_oniguruma(value["Regex"]))
        if isinstance(value.get("String"), str) and value["String"]:
            return Pattern(value["String"], literal=True)
    raise unsupported("the pattern", where, f"{value!r}")


def pattern_json(pattern: Pattern) -> dict[str, str]:
    """The inverse of ``read_pattern``."""
    return {"String" if pattern.literal else "Regex": pattern.text}
