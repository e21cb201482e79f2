"""Byte-level BPE as vocabularies spell it: each byte one printable character (GPT-2), merges as pairs of spellings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from tokctl.errors import ArtifactError
from tokctl.kernels._boundary import writable_view
from tokctl.tokenizer.byte_order import CHAR_TO_BYTE, spell_bytes
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.vocabulary import LITERAL, Vocabulary

MAX_ID = 1 << 24  # an id above this is a broken file, not a vocabulary


def read_model(
    vocab: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    *,
    whole_words: bool,
    added: Mapping[str, bool] | None = None,
) -> BPE:
    """The model of spelled tokens (spelling -> id) and spelled merges in rank order.

    ``added``: spellings that are added tokens -> whether they are special. Such a one is left out of the model, unless
    it takes part in a merge, is one byte, or is an ordinary one that whole-word look-up may find. Another token with a
    character that spells no byte is text that is only decoded. Of a merge that comes twice the last place counts, as in
    tokenizers. Raises ArtifactError for an id that comes twice or is out of range, a merge of unknown tokens, and one
    whose result is no token.
    """
    added = added or {}
    lefts, rights = [left for left, _ in merges], [right for _, right in merges]
    results = [left + right for left, right in merges]
    merged = set(lefts).union(rights, results) if added else set[str]()
    outside = {s: special or not whole_words for s, special in added.items() if s not in merged and len(s) > 1}
    tokens, literals = _spelled_tokens(vocab, outside)
    vocabulary = Vocabulary.from_tokens(tokens, literals)
    ids = np.empty((3, len(merges)), np.int64)
    for row, spellings in zip(ids, (lefts, rights, results), strict=True):
        row[:] = np.fromiter((vocab.get(spelling, -1) for spelling in spellings), np.int64, len(merges))
    wrong = np.flatnonzero((ids < 0).any(axis=0) | np.isin(ids, literals).any(axis=0))
    if len(wrong):
        rank = int(wrong[0])
        _refuse_merge(rank, lefts[rank], rights[rank], vocab)
    keys = (ids[0] << 32) | ids[1]
    _, last = np.unique(keys[::-1], return_index=True)  # of equal ones the last, which is the first from behind
    kept = np.sort(len(keys) - 1 - last)
    pairs = np.ascontiguousarray(ids[:2, kept].T).astype(np.int32)
    return BPE(vocabulary, writable_view(pairs), ids[2, kept].astype(np.int32), whole_words)


def _refuse_merge(rank: int, left: str, right: str, vocab: Mapping[str, int]) -> NoReturn:
    """The ArtifactError about a merge that can't be."""
    for side in (left, right):
        if side not in vocab:
            raise ArtifactError(
                f"merge {rank} ({left!r} {right!r}) uses {side!r}, which is not in the vocabulary",
                code="merge-unknown-token",
            )
    if left + right not in vocab:
        raise ArtifactError(
            f"merge {rank} ({left!r} {right!r}) makes {left + right!r}, which is not in the vocabulary",
            code="merge-without-token",
        )
    raise ArtifactError(f"merge {rank} ({left!r} {right!r}) is not of bytes", code="merge-not-bytes")


def _spelled_tokens(vocab: Mapping[str, int], added: Mapping[str, bool]) -> tuple[list[bytes | None], list[int]]:
    """The bytes of each id, and the ids that are only decoded."""
    size = 0
    for spelling, token_id in vocab.items():
        if type(token_id) is not int or not 0 <= token_id < MAX_ID:
            raise ArtifactError(f"the token {spelling!r} has the id {token_id!r}", code="bad-id")
        size = max(size, token_id + 1)
    tokens: list[bytes | None] = [None] * size
    literals: list[int] = []
    owners: list[str | None] = [None] * size
    for spelling, token_id in vocab.items():
        if owners[token_id] is not None:
            raise ArtifactError(f"{owners[token_id]!r} and {spelling!r} have the id {token_id}", code="duplicate-id")
        owners[token_id] = spelling
        if added.get(spelling, False):
            continue
        tokens[token_id], is_text = _token_bytes(spelling)
        if is_text:
            if spelling in added:
                tokens[token_id] = None
            else:
                literals.append(token_id)
    return tokens, sorted(literals)


def _token_bytes(spelling: str) -> tuple[bytes, bool]:
    """The bytes of a token, and whether it is text that spells no bytes."""
    if not spelling:
        raise ArtifactError("the vocabulary holds an empty token", code="empty-token")
    try:
        return bytes([CHAR_TO_BYTE[char] for char in spelling]), False
    except KeyError:
        pass
    try:
        return spelling.encode(), True
    except UnicodeEncodeError:
        raise ArtifactError(f"the token {spelling!r} holds a lone surrogate", code="bad-token") from None


def spell_model(model: BPE) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The vocabulary (spelling -> id) and merges in rank order of a model, for files of this kind.

    The form in which ids are ranks has a merge for every split of a token; those of one token are in the order of
    their left parts' ids. ArtifactError for a token that is only decoded and spells another one.
    """
    tokens = model.vocabulary.tokens()
    literals = set(np.flatnonzero(model.vocabulary.kinds == LITERAL).tolist())
    spelled = [
        "" if token is None else token.decode() if i in literals else spell_bytes(token)
        for i, token in enumerate(tokens)
    ]
    vocab: dict[str, int] = {}
    for token_id, spelling in enumerate(spelled):
        if tokens[token_id] is not None and vocab.setdefault(spelling, token_id) != token_id:
            raise ArtifactError(
                f"ids {vocab[spelling]} and {token_id} would both be spelled {spelling!r}", code="spelling-clash"
            )
    if model.merges is not None:
        pairs = model.merges.tolist()
    else:
        found = model.pairs
        order = np.lexsort((found.left, found.ranks))
        pairs = list(zip(found.left[order].tolist(), found.right[order].tolist(), strict=True))
    return vocab, [(spelled[left], spelled[right]) for left, right in pairs]
