"""Extending a BPE tokenizer: new merges for a new corpus, behind those it has.

The base's ids and merges stay a prefix. Words begin as the base encodes them, so that a new token is made of tokens that
the grown tokenizer gives its bytes before the last merge: two neighbours of an encoded word are what their joined bytes
encode to (no merge crosses them, and those within happen as if they stood alone). What this does not cover is passed
over, and the next best pair is taken:

* a pair that spells a token which is there already (one that the base's merges don't reach, an added token);
* where ids are ranks, so that *every* split of a token makes it, a token that would complete such an unreachable one;
* whatever else the grown model does not encode to the new token. This last look is taken at every new token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tokctl.errors import CheckFailed, UsageError
from tokctl.kernels._boundary import bytes_view, writable_view
from tokctl.tokenizer.added_tokens import AddedToken, Pieces, check_spellings
from tokctl.tokenizer.layout import LAYOUTS, Arithmetic
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.trainers.bpe_start import Start, Words, without_space
from tokctl.tokenizer.trainers.segments import Segments, split_at
from tokctl.tokenizer.vocabulary import LITERAL, Vocabulary


def from_tokenizer(
    words: Words,
    base: Tokenizer,
    *,
    specials: Sequence[str] = (),
    special_layout: str = "first",
    bos: str | None = None,
    eos: str | None = None,
    workers: int = 1,
) -> Start:
    """Begin with the tokens of ``base``, as it encodes the words (which its own pre-tokenizer made).

    ``specials`` are new ones; with the layouts ``first`` and ``after-bytes`` they come right behind the base's ids, with
    ``last`` behind the new tokens. ``bos``, ``eos``: the base's unless given. UsageError for a special that is there
    already; DataError for a word that the base can't encode.
    """
    words, facts = without_space(words, base.pre_tokenizer)
    growth = Growth(base, tuple(specials), special_layout, bos, eos)
    fixed = Arithmetic(len(specials), n_inherited=base.vocab_size)
    return Start(
        words,
        growth.tokens,
        fixed,
        growth.assemble,
        _segments(words, base, growth, workers),
        {
            "unit": "byte",
            "base": {
                "semantic_hash": base.semantic_hash,
                "vocab_size": base.vocab_size,
                "form": base.model.form,
                "merges": None if base.model.merges is None else len(base.model.merges),
            },
            **facts,
        },
        growth,
    )


class Growth:
    """A base and what its extension by some merges is. Merges are in the trainer's numbering: the base's tokens by
    ascending id, then the new ones."""

    def __init__(
        self, base: Tokenizer, specials: tuple[str, ...], special_layout: str, bos: str | None, eos: str | None
    ) -> None:
        if special_layout not in LAYOUTS:
            raise UsageError(
                f"unknown special layout {special_layout!r}", hint=f"choose one of: {', '.join(LAYOUTS)}", code="layout"
            )
        check_spellings(specials)
        self._base = base
        self._model = base.model
        self._token_ids = base.model.token_ids
        self._specials = specials
        self._specials_last = special_layout == "last"
        self._ends = (bos or base.bos_token, eos or base.eos_token)
        self.tokens = tuple(base.model.vocabulary.token(i) for i in self._token_ids.tolist())
        names = {token.content for token in base.added_tokens}
        for name in specials:
            if name in names or name.encode() in self._taken:
                raise UsageError(
                    f"the base has the token {name!r} already", hint="leave it out", code="special-is-token"
                )
        for end, what in ((bos, "bos"), (eos, "eos")):
            if end is not None and end not in names | set(specials):
                raise UsageError(
                    f"{what} is {end!r}, which is not among the specials",
                    hint=f"the base has: {', '.join(map(repr, base.special_ids)) or 'none'}",
                    code="unknown-special",
                )

    @cached_property
    def _taken(self) -> frozenset[bytes]:
        """The bytes of all that has an id before the first new merge."""
        tokens = [token for token in self._model.vocabulary.tokens() if token is not None]
        return frozenset([*tokens, *(added.spelling for added in self._base.added_tokens)])

    @cached_property
    def _completions(self) -> list[bytes]:
        """Tokens of a base in which ids are ranks that its merges don't reach: two tokens beside each other would make them."""
        if self._model.form != "ranks":
            return []
        return [self._model.vocabulary.token(i) for i in self._model.unreachable]

    @cached_property
    def _spellings(self) -> frozenset[bytes]:
        return frozenset(self.tokens)

    def assemble(self, merges: np.ndarray) -> Tokenizer:
        """The base, extended by ``merges int[m, 2]``."""
        base, n_specials = self._base, len(self._specials)
        pairs = np.asarray(merges, np.int64).reshape(-1, 2)
        first_special = base.vocab_size + (len(pairs) if self._specials_last else 0)
        first_token = base.vocab_size + (0 if self._specials_last else n_specials)
        spelled = base.model.vocabulary.tokens()
        spelled += [None] * (first_token - len(spelled))
        spelled += self.new_tokens(pairs)
        made = np.arange(first_token, first_token + len(pairs), dtype=np.int32)
        ids = np.concatenate([self._token_ids, made]).astype(np.int32)
        literals = np.flatnonzero(base.model.vocabulary.kinds == LITERAL).tolist()
        more: dict[str, Any] = {"vocabulary": Vocabulary.from_tokens(spelled, literals), "control_ids": frozenset()}
        if base.model.merges is not None and base.model.merged is not None:
            more["merges"] = writable_view(np.concatenate([base.model.merges, ids[pairs]]).astype(np.int32))
            more["merged"] = np.concatenate([base.model.merged, made]).astype(np.int32)
        added = tuple(AddedToken(first_special + k, name) for k, name in enumerate(self._specials))
        bos, eos = self._ends
        return replace(
            base,
            model=replace(base.model, **more),
            added_tokens=base.added_tokens + added,
            bos_token=bos,
            eos_token=eos,
        )

    def new_tokens(self, pairs: np.ndarray) -> list[bytes]:
        """The bytes of the token that each merge makes."""
        n_base = len(self.tokens)
        new: list[bytes] = []
        for pair in pairs.tolist():
            left, right = (self.tokens[side] if side < n_base else new[side - n_base] for side in pair)
            new.append(left + right)
        return new

    def first_unfit(self, merges: np.ndarray) -> int | None:
        """The rank of the first merge whose token is there already, completes another, or can't be reached; None: all fit."""
        new = self.new_tokens(merges)
        seen: set[bytes] = set()
        for rank, token in enumerate(new):
            if token in self._taken or token in seen or token.decode("utf-8", "replace") in self._specials:
                return rank
            seen.add(token)
            if self._completes(token, seen):
                return rank
        model = self.assemble(merges).model
        self._check_base(model)
        new_ids = model.token_ids[len(self.tokens) :]
        dead = np.flatnonzero(~model.encodes_to_itself[new_ids])
        return int(dead[0]) if len(dead) else None

    def is_unfit(self, merges: np.ndarray, pair: tuple[int, int]) -> bool:
        """Whether ``pair``, merged next after ``merges`` (which fit), would make an unfit token: looked up from scratch."""
        return self.first_unfit(np.concatenate([merges, [pair]])) == len(merges)

    def prove(self, merges: np.ndarray) -> dict[str, Any]:
        """Check every new token once more by encoding its bytes; CheckFailed names one that is not reached."""
        tokenizer = self.assemble(merges)
        self._check_base(tokenizer.model)
        new_ids = tokenizer.model.token_ids[len(self.tokens) :]
        dead = new_ids[~tokenizer.model.encodes_to_itself[new_ids]].tolist()
        if dead:
            raise CheckFailed(
                f"{len(dead)} new tokens are not what their bytes encode to (first: {dead[0]}, "
                f"{tokenizer.token_bytes(dead[0])!r})",
                hint="this is a defect of tokctl: please report it with the base and the corpus",
                code="dead-token",
            )
        return {"new_tokens": len(new_ids), "unreachable": 0}

    def _completes(self, token: bytes, new: set[bytes]) -> bool:
        for whole in self._completions:
            for rest in ([whole[len(token) :]] if whole.startswith(token) else []) + (
                [whole[: -len(token)]] if whole.endswith(token) else []
            ):
                if rest in self._spellings or rest in new:
                    return True
        return False

    def _check_base(self, grown: BPE) -> None:
        """The base's tokens are as reachable in the grown model as they were."""
        before = self._model.encodes_to_itself
        changed = np.flatnonzero(grown.encodes_to_itself[: len(before)] != before)
        if len(changed):
            raise CheckFailed(
                f"the extension changes how token {changed[0]} of the base is reached",
                hint="this is a defect of tokctl: please report it with the base and the corpus",
                code="base-changed",
            )


def text_pieces(base: Tokenizer, data: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(data, starts, stops)``: the texts ``data[offsets[i]:offsets[i + 1]]`` as the base is about to split them.

    They are rewritten as it does, and cut at all its added tokens, which are left out.
    """
    prepared = base.prepare(data, offsets, "all")
    kept = prepared.is_text & (prepared.pieces.starts < prepared.pieces.stops)
    return prepared.data, prepared.pieces.starts[kept], prepared.pieces.stops[kept]


def _segments(words: Words, base: Tokenizer, growth: Growth, workers: int) -> Segments:
    """The words as the base encodes them; what it has no token for separates what stands beside it."""
    data, offsets, counts = bytes_view(words[0]), np.asarray(words[1], np.int64), np.asarray(words[2], np.int64)
    n_words = len(counts)
    pieces = Pieces(
        writable_view(offsets[:-1]), writable_view(offsets[1:]), np.full(n_words, -1, np.int64), np.arange(n_words)
    )
    ids, n_ids = base.model.encoder(PreTokenizer.from_pattern("none")).encode(data, pieces, workers)
    token_ids = base.model.token_ids
    numbers = np.searchsorted(token_ids, ids)
    is_gap = token_ids[np.minimum(numbers, len(token_ids) - 1)] != ids
    numbers[is_gap] = 0
    at = np.concatenate([np.zeros(1, np.int64), np.cumsum(n_ids)])
    return split_at(numbers.astype(np.int32), at, writable_view(counts), is_gap)
