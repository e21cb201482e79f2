"""Comparing an exported tokenizer with the library that will read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tokctl.errors import TokctlError
from tokctl.tokenizer.tokenizer import Tokenizer

Encode = Callable[[list[str]], list[list[int]]]
Decode = Callable[[list[int]], str]

_BATCH = 2000


def compare_with_consumer(
    consumer: str,
    load: Callable[[], tuple[str, Encode, Decode]],
    tokenizer: Tokenizer,
    texts: Sequence[str],
) -> dict[str, Any]:
    """Encode and decode ``texts``, every token that is text, and every control token's name through the consumer.

    ``load`` imports the library (ImportError: the result is ``unverified``) and returns its version, a function that
    encodes a batch in which control tokens are recognised, and one that decodes. The consumer's answer is compared with
    ours under ``allowed_special="all"``. What is returned is described at ``verify_huggingface``.
    """
    result: dict[str, Any] = {
        "consumer": consumer,
        "version": None,
        "status": "unverified",
        "n_strings": 0,
        "first_divergence": None,
        "unreachable": unreachable_tokens(tokenizer),
    }
    try:
        result["version"], encode, decode = load()
    except ImportError:
        return result
    except Exception as error:  # the library's own exception types are not ours to know
        result["status"] = "failed"
        result["first_divergence"] = {"text": None, "reason": f"{consumer} does not load the file: {error}"}
        return result
    strings = [*texts, *_own_tokens(tokenizer)]
    result["status"] = "verified"
    for first in range(0, len(strings), _BATCH):
        batch = strings[first : first + _BATCH]
        divergence = _first_divergence(consumer, encode, decode, tokenizer, batch)
        if divergence is not None:
            result["status"] = "failed"
            result["first_divergence"] = divergence
            result["n_strings"] = first + batch.index(divergence["text"]) + 1
            return result
        result["n_strings"] = first + len(batch)
    return result


def unreachable_tokens(tokenizer: Tokenizer) -> dict[str, Any]:
    """The tokens that encoding their own bytes as one word does not give.

    ``n``; ``ids`` (the first 20); ``n_by_merging``: how many merging alone does not give. Where this is more than
    ``n``, a library that doesn't look whole words up gives other ids than one that does.
    """
    by_merging = tokenizer.model.unreachable
    hidden = [i for i in by_merging if i in tokenizer.model.control_ids] if tokenizer.model.whole_words else by_merging
    return {"n": len(hidden), "ids": hidden[:20], "n_by_merging": len(by_merging)}


def _own_tokens(tokenizer: Tokenizer) -> list[str]:
    """Every token that is UTF-8 by itself, as a text."""
    texts = []
    for token in tokenizer.vocabulary.tokens():
        if token is not None:
            try:
                texts.append(token.decode())
            except UnicodeDecodeError:
                continue
    return texts


def _first_divergence(
    consumer: str, encode: Encode, decode: Decode, tokenizer: Tokenizer, batch: list[str]
) -> dict[str, Any] | None:
    try:
        theirs = encode(batch)
    except BaseException as error:  # a panic of a native library is a BaseException
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return {"text": batch[0], "reason": f"{consumer} fails to encode a batch that begins with this text: {error}"}
    try:
        ours = tokenizer.encode_batch(batch, allowed_special="all")
    except TokctlError as error:
        return {"text": batch[error.where.row or 0], "reason": f"tokctl fails to encode this text: {error.message}"}
    for text, expected, found in zip(batch, ours, theirs, strict=True):
        if expected != found:
            at = next((i for i, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]), None)
            return {
                "text": text,
                "reason": "other ids",
                "tokctl": expected,
                consumer: found,
                "position": min(len(expected), len(found)) if at is None else at,
            }
        back, own = decode(found), text if tokenizer.is_lossless else tokenizer.decode(expected)
        if back != own:
            return {"text": text, "reason": "decoded to another text", consumer: back, "tokctl": own}
    return None
