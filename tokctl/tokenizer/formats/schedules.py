"""What a loader does with a file whose ids depend on the order in which merges are applied."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tokctl.errors import ArtifactError, UsageError
from tokctl.tokenizer.tokenizer import Tokenizer

SCHEDULE = "occurrence-priority"
"""The one merge schedule: the occurrence of lowest rank first, the leftmost of several, one at a time."""

POLICIES = ("follow", "refuse")


def settle_schedule(tokenizer: Tokenizer, policy: str, path: Path) -> Tokenizer:
    """``tokenizer``, with a notice where merge schedules give other ids, or under ``refuse`` an ArtifactError.

    tokenizers and tiktoken both merge by occurrence priority, so that following the file's own library is to do so too.
    """
    if policy not in POLICIES:
        raise UsageError(f"schedules is 'follow' or 'refuse', not {policy!r}", code="policy")
    dependent = tokenizer.model.schedule_dependent
    if not dependent:
        return tokenizer
    notice = schedule_notice(tokenizer)
    if policy == "refuse":
        raise ArtifactError(
            notice, hint="load it with schedules='follow'; no other library may read the file", code="schedules",
            file=str(path),
        )  # fmt: skip
    return replace(tokenizer, notices=(*tokenizer.notices, notice))


def schedule_notice(tokenizer: Tokenizer) -> str:
    """The sentence about tokens whose ids depend on the merge schedule; only for a tokenizer that has some."""
    dependent = tokenizer.model.schedule_dependent
    first = tokenizer.model.vocabulary.token(dependent[0])
    some = f"{len(dependent)} tokens depend" if len(dependent) > 1 else "one token depends"
    return (
        f"{some} on the order of merging (first: {dependent[0]}, {first!r}): a merge comes before one that makes its part; "
        "as in tokenizers and tiktoken the occurrence of lowest rank is merged first, the leftmost of several"
    )
