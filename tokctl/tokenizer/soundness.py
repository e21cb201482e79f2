"""Is a tokenizer what its file claims? The checks that loaders make, and what they let pass, as one list of findings."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokctl.artifacts.verify import Finding
from tokctl.errors import ArtifactError
from tokctl.tokenizer.formats.disjoint import check_disjoint
from tokctl.tokenizer.formats.schedules import schedule_notice
from tokctl.tokenizer.models.bpe_characters import CharacterBPE
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import LITERAL

_SHOWN = 20


def check_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """``{"findings": [...], "unreachable": {...}, "n_tokens", "n_merges", "n_added"}`` as a JSON value.

    Findings (``Finding.to_json``): ``merge-ancestry`` (a merge makes other bytes than its parts have) and
    ``added-token-overlap`` are errors; ``schedule-dependent`` (the ids depend on the order of merging) is a warning;
    ``unreachable-tokens``, ``unused-ids``, ``literal-tokens`` and ``bytes-missing`` are notes. ``unreachable`` says why
    tokens don't encode to themselves: see ``unreachable_tokens``.
    """
    model = tokenizer.model
    findings = [*_ancestry(tokenizer), *_overlap(tokenizer)]
    if model.schedule_dependent:
        fix = "let schedules='refuse' refuse it, or use the library whose file it is"
        findings.append(_finding("schedule-dependent", "warning", schedule_notice(tokenizer), fix))
    unreachable = unreachable_tokens(tokenizer)
    if unreachable["n"]:
        reasons = ", ".join(f"{n} {reason}" for reason, n in unreachable["by_reason"].items())
        evidence = f"{unreachable['n']} tokens are not what their own bytes encode to ({reasons})"
        findings.append(
            _finding("unreachable-tokens", "note", evidence, "nothing to mend: text never yields these ids")
        )
    unused = tokenizer.unused_ids
    if unused:
        evidence = f"{len(unused)} ids below {tokenizer.vocab_size} stand for nothing, first {unused[0]}"
        findings.append(_finding("unused-ids", "note", evidence, "nothing to mend: decoding refuses them"))
    n_literals = int((model.vocabulary.kinds == LITERAL).sum())
    if n_literals:
        evidence = f"{n_literals} tokens are spelled with characters that stand for no byte"
        findings.append(_finding("literal-tokens", "note", evidence, "nothing to mend: they are only decoded"))
    n_missing = 0 if isinstance(model, CharacterBPE) else int((model.byte_ids < 0).sum())
    if n_missing:
        evidence = f"{n_missing} of the 256 bytes are not in the alphabet; text with them is refused"
        findings.append(_finding("bytes-missing", "note", evidence, "fit with all 256 bytes"))
    return {
        "semantic": tokenizer.semantic_hash,
        "n_tokens": len(model.token_ids),
        "n_merges": len(model.pairs.left),
        "n_added": len(tokenizer.added_tokens),
        "merge_schedule": "occurrence-priority",
        "findings": [finding.to_json() for finding in findings],
        "unreachable": unreachable,
        "notices": list(tokenizer.notices),
    }


def unreachable_tokens(tokenizer: Tokenizer) -> dict[str, Any]:
    """The tokens of the model that merging their own bytes does not give, and why.

    ``n``; ``by_reason``; ``tokens``, the first 20: ``id``, ``hex``, ``reason`` and ``encoded_as``, what their bytes merge to.
    Reasons: ``control`` (text must never become it), ``outside the alphabet`` (it has a byte without an id), ``whole word
    only`` (found by look-up, by no merge), ``no merge makes it``, ``other merges come first``.
    """
    model = tokenizer.model
    made = np.zeros(len(model.vocabulary), bool)
    made[model.pairs.merged] = True
    by_reason: dict[str, int] = {}
    tokens: list[dict[str, Any]] = []
    for token_id in model.unreachable:
        encoded = model.encoded_token(token_id)
        if token_id in model.control_ids:
            reason = "control"
        elif encoded is None:
            reason = "outside the alphabet"
        elif model.whole_words:
            reason = "whole word only"
        else:
            reason = "other merges come first" if made[token_id] else "no merge makes it"
        by_reason[reason] = by_reason.get(reason, 0) + 1
        if len(tokens) < _SHOWN:
            data = model.vocabulary.token(token_id)
            tokens.append({"id": token_id, "hex": data.hex(" "), "reason": reason, "encoded_as": encoded})
    return {"n": len(model.unreachable), "by_reason": dict(sorted(by_reason.items())), "tokens": tokens}


def _ancestry(tokenizer: Tokenizer) -> list[Finding]:
    """Merges whose result has not the bytes of its two parts."""
    pairs = tokenizer.model.pairs
    tokens = tokenizer.model.vocabulary.tokens()
    columns = zip(pairs.left.tolist(), pairs.right.tolist(), pairs.merged.tolist(), pairs.ranks.tolist(), strict=True)
    wrong = [
        (rank, left, right, merged)
        for left, right, merged, rank in columns
        if (tokens[left] or b"") + (tokens[right] or b"") != tokens[merged] or not tokens[left] or not tokens[right]
    ]
    if not wrong:
        return []
    rank, left, right, merged = wrong[0]
    evidence = (
        f"{len(wrong)} merges, first that of rank {rank}: {tokens[left]!r} + {tokens[right]!r} -> {tokens[merged]!r}"
    )
    return [_finding("merge-ancestry", "error", evidence, "write the file again from its source")]


def _overlap(tokenizer: Tokenizer) -> list[Finding]:
    try:
        check_disjoint(tokenizer)
    except ArtifactError as error:
        return [_finding(error.code, "error", error.message, error.hint or "give the added token bytes of its own")]
    return []


def _finding(code: str, severity: str, evidence: str, fix: str) -> Finding:
    return Finding(code, severity, "tokenizer", None, None, evidence, fix)
