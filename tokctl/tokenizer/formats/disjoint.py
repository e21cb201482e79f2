"""The check that every loader makes: added tokens and the model's tokens don't contradict each other."""

from __future__ import annotations

from tokctl.errors import ArtifactError
from tokctl.tokenizer.tokenizer import Tokenizer


def check_disjoint(tokenizer: Tokenizer) -> None:
    """ArtifactError where a control token spells the bytes of a token with another id, or an id has two meanings.

    An added token that is not special may spell a token's bytes: it is found first, as in tokenizers.
    """
    tokens = tokenizer.model.vocabulary.tokens()
    by_bytes = {token: i for i, token in enumerate(tokens) if token is not None}
    for added in tokenizer.added_tokens:
        same = by_bytes.get(added.spelling)
        if (
            added.special
            and same is not None
            and same != added.id
            and tokens[added.id : added.id + 1] != [added.spelling]
        ):
            raise ArtifactError(
                f"the control token {added.content!r} (id {added.id}) spells the same bytes as token {same}",
                code="added-token-overlap",
            )
        if added.id < len(tokens) and tokens[added.id] not in (None, added.spelling):
            raise ArtifactError(
                f"id {added.id} is {tokens[added.id]!r} in the model and {added.content!r} among the added tokens",
                code="added-token-overlap",
            )
