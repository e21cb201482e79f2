"""The ``pre_tokenizer`` of ``tokenizer.json``, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokctl.errors import ArtifactError, UsageError
from tokctl.tokenizer.formats.huggingface_parts import flatten, kind_of, pattern_json, read_pattern, unsupported
from tokctl.tokenizer.pre_tokenizers.matching import Pattern
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.pre_tokenizers.prefix_space import PrefixSpace
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.pre_tokenizers.split_by import SplitBy
from tokctl.tokenizer.pre_tokenizers.steps import Step

BEHAVIORS = {
    "Isolated": "isolated",
    "Removed": "removed",
    "MergedWithPrevious": "merged-with-previous",
    "MergedWithNext": "merged-with-next",
    "Contiguous": "contiguous",
}
_NAMES = {behavior: name for name, behavior in BEHAVIORS.items()}

# Digits asks Rust's char::is_numeric, whose Unicode version is 17.0.0: these are the numbers that 16.0.0 lacks.
_NUMBER = r"[\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}]"


def read_pre_tokenizer(value: Any) -> tuple[PreTokenizer, tuple[Step, ...]]:
    """The split patterns and the steps before them; ArtifactError names the place of what is not supported.

    It must end in ``ByteLevel``. Splits that make a piece of each match and of each stretch between become patterns,
    which run in one pass, from the last other step on.
    """
    found = flatten(value, "$.pre_tokenizer", "pretokenizers")
    kinds = [kind_of(step) for step, _ in found]
    if kinds.count("ByteLevel") != 1 or kinds[-1] != "ByteLevel":
        names = ", ".join(kinds) or "none"
        raise unsupported("the pre-tokenizer (it must end in the one ByteLevel)", "$.pre_tokenizer", names)
    steps: list[Step] = []
    for step, where in found:
        try:
            steps += _steps(step, where)
        except UsageError as error:  # a pattern that isn't one
            raise ArtifactError(f"{where}: {error.message}", hint=error.hint, code=error.code) from None
    n_kept = max((i + 1 for i, step in enumerate(steps) if _as_pattern(step) is None), default=0)
    patterns = [pattern for step in steps[n_kept:] if (pattern := _as_pattern(step)) is not None]
    kept = steps[:n_kept]
    while len(patterns) > 1 and PreTokenizer.from_patterns(tuple(patterns)).notice is not None:
        # one automaton can't do them all: the first one makes pieces for the rest
        kept.append(_isolated(patterns.pop(0)))
    return PreTokenizer.from_patterns(tuple(patterns)), tuple(kept)


def _steps(step: Any, where: str) -> list[Step]:
    kind = kind_of(step)
    if kind == "ByteLevel":
        steps: list[Step] = [PrefixSpace()] if step.get("add_prefix_space", True) else []
        return [*steps, _isolated(NAMED["gpt2"][0])] if step.get("use_regex", True) else steps
    if kind == "Split":
        behavior, invert = step.get("behavior"), step.get("invert", False)
        if behavior not in BEHAVIORS or not isinstance(invert, bool):
            raise unsupported("the pre-tokenizer", where, f"Split with behavior {behavior!r} and invert {invert!r}")
        return [SplitBy(read_pattern(step.get("pattern"), f"{where}.pattern"), BEHAVIORS[behavior], invert)]
    if kind == "Digits":
        return [_isolated(_NUMBER if step.get("individual_digits", False) else f"{_NUMBER}+")]
    if kind == "Whitespace":
        return [SplitBy(Pattern(r"\s+"), "removed"), _isolated(r"\w+")]
    if kind == "WhitespaceSplit":
        return [SplitBy(Pattern(r"\s+"), "removed")]
    if kind == "CharDelimiterSplit":
        delimiter = step.get("delimiter")
        if not isinstance(delimiter, str) or len(delimiter) != 1:
            raise unsupported("the pre-tokenizer", where, f"CharDelimiterSplit with the delimiter {delimiter!r}")
        return [SplitBy(Pattern(delimiter, literal=True), "removed")]
    raise unsupported("the pre-tokenizer", where, kind)


def _isolated(regex: str) -> SplitBy:
    return SplitBy(Pattern(regex), "isolated")


def _as_pattern(step: Step) -> str | None:
    """The pattern that does the same as the step, where there is one."""
    if not isinstance(step, SplitBy):
        return None
    # Dropping what lies between the matches drops nothing where nothing can.
    keeps_all = step.behavior == "removed" and step.invert and step.pattern.matches_everything
    return step.pattern.regex if step.behavior == "isolated" or keeps_all else None


def pre_tokenizer_json(pre_tokenizer: PreTokenizer, steps: Sequence[Step] = ()) -> dict[str, Any]:
    """The inverse of ``read_pre_tokenizer``; ArtifactError for what tokenizers has no name for.

    ``ByteLevel`` itself splits (the gpt2 pattern) and puts the space before, or only spells the bytes.
    """
    patterns = pre_tokenizer.patterns
    use_regex = patterns[-1:] == NAMED["gpt2"]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}
    rest = [_split_json(Pattern(pattern), "isolated", False) for pattern in (patterns[:-1] if use_regex else patterns)]
    splits = []
    for i, step in enumerate(steps):
        match step:
            case SplitBy(pattern, behavior, invert):
                splits.append(_split_json(pattern, behavior, invert))
            case PrefixSpace() if i == len(steps) - 1 and not rest:
                byte_level["add_prefix_space"] = True
            case _:
                raise ArtifactError(
                    f"tokenizer.json can't express the pre-tokenizer step {step.to_json()!r} in this place",
                    code="not-expressible",
                )
    splits += rest
    return {"type": "Sequence", "pretokenizers": [*splits, byte_level]} if splits else byte_level


def _split_json(pattern: Pattern, behavior: str, invert: bool) -> dict[str, Any]:
    return {"type": "Split", "pattern": pattern_json(pattern), "behavior": _NAMES[behavior], "invert": invert}
