"""Character-level BPE in ``tokenizer.json``: what differs from byte-level BPE there.

tokenizers has Sennrich's form with ``end_of_word_suffix``; it drops characters outside the vocabulary without a word
where there is no ``unk_token``, and knows no marker that is a symbol of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokctl.errors import ArtifactError
from tokctl.tokenizer.formats.huggingface_parts import pattern_json
from tokctl.tokenizer.models.bpe_characters import CharacterBPE
from tokctl.tokenizer.pre_tokenizers.matching import Pattern
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer


def spell_characters(model: CharacterBPE) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The vocabulary (spelling -> id) and the merges; ArtifactError for what the format can't carry."""
    if model.unknown_id is None:
        raise _not_expressible(
            "without an unknown token tokenizers would drop characters outside the alphabet silently",
            "fit with --special '<unk>' --unk '<unk>'",
        )
    if model.end_of_word is not None and not model.end_of_word.is_suffix:
        raise _not_expressible(
            "tokenizers has the end of a word as a suffix of its last character only, and here it is a symbol",
            "fit with --end-of-word-as suffix",
        )
    spelled: list[str] = []
    for token_id, token in enumerate(model.vocabulary.tokens()):
        try:
            spelled.append((token or b"").decode())
        except UnicodeDecodeError:
            raise _not_expressible(
                f"token {token_id} is {token!r}, which is not UTF-8", "fit on text that is UTF-8"
            ) from None
    vocab = {spelled[i]: i for i in model.token_ids.tolist()}
    assert model.merges is not None
    return vocab, [(spelled[left], spelled[right]) for left, right in model.merges.tolist()]


def model_options(tokenizer: Tokenizer, model: CharacterBPE) -> dict[str, Any]:
    """The members of ``model`` that are this form's."""
    names = {token.id: token.content for token in tokenizer.added_tokens}
    return {
        "unk_token": None if model.unknown_id is None else names[model.unknown_id],
        "end_of_word_suffix": None if model.end_of_word is None else model.end_of_word.marker,
    }


def pre_tokenizer_json(pre_tokenizer: PreTokenizer, steps: Sequence[Any]) -> dict[str, Any] | None:
    """The ``pre_tokenizer``: a split at white space, or splits that keep everything."""
    if steps:
        raise _not_expressible("the pre-tokenizer has steps before its patterns", None)
    if pre_tokenizer.drops_space:
        if pre_tokenizer.name != "whitespace":
            raise _not_expressible(f"the pattern {pre_tokenizer.name} drops white space", "use the pattern whitespace")
        return {"type": "WhitespaceSplit"}
    splits = [
        {"type": "Split", "pattern": pattern_json(Pattern(pattern)), "behavior": "Isolated", "invert": False}
        for pattern in pre_tokenizer.patterns
    ]
    if len(splits) < 2:
        return splits[0] if splits else None
    return {"type": "Sequence", "pretokenizers": splits}


def decoder_json(tokenizer: Tokenizer, model: CharacterBPE) -> dict[str, Any]:
    """The ``decoder``: the suffix becomes a space where white space was dropped, else nothing."""
    end = model.end_of_word
    if end is None:
        return {"type": "Fuse"}
    if tokenizer.pre_tokenizer.drops_space:
        return {"type": "BPEDecoder", "suffix": end.marker}
    replaced = {"type": "Replace", "pattern": {"String": end.marker}, "content": ""}
    return {"type": "Sequence", "decoders": [replaced, {"type": "Fuse"}]}


def _not_expressible(what: str, hint: str | None) -> ArtifactError:
    return ArtifactError(f"tokenizer.json can't express it: {what}", hint=hint, code="not-expressible")
