"""Putting a fitted tokenizer together: which ids the specials, the bytes and the merges get.

``first``       specials, base tokens, merges. Fits of several sizes share every id of the smaller one.
``after-bytes`` base tokens, specials, merges. Likewise.
``last``        base tokens, merges, specials. The ids of the specials depend on the size.

The size is exact: specials + base tokens + merges = V.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tokctl.errors import UsageError
from tokctl.kernels._boundary import writable_view
from tokctl.tokenizer.added_tokens import AddedToken, check_spellings
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.models.bpe_characters import CharacterBPE, EndOfWord
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary

LAYOUTS = ("first", "after-bytes", "last")


@dataclass(frozen=True)
class Characters:
    """That base tokens are characters, with the marker of a word's end and the name of the unknown token, if any."""

    end_of_word: EndOfWord | None = None
    unknown: str | None = None


@dataclass(frozen=True)
class Arithmetic:
    """ids of an extended tokenizer + specials + bytes + characters + merges = vocab_size.

    ``n_alphabet`` are base symbols that are no bytes: characters, at the end of a word with their marker, and the marker.
    """

    n_specials: int
    n_bytes: int = 0
    n_alphabet: int = 0
    n_inherited: int = 0
    n_merges: int = 0

    @property
    def n_fixed(self) -> int:
        """The ids that there are before any merge."""
        return self.n_inherited + self.n_specials + self.n_bytes + self.n_alphabet

    @property
    def vocab_size(self) -> int:
        return self.n_fixed + self.n_merges

    def fixed(self) -> str:
        """What there is before any merge, for a person."""
        parts = [f"{self.n_inherited:,} of the base"] if self.n_inherited else []
        parts.append(f"{self.n_specials:,} specials")
        parts += [f"{self.n_bytes:,} bytes"] if self.n_bytes else []
        parts += [f"{self.n_alphabet:,} characters"] if self.n_alphabet else []
        return " + ".join(parts)

    def __str__(self) -> str:
        return f"{self.fixed()} + {self.n_merges:,} merges = {self.vocab_size:,}"

    def to_json(self) -> dict[str, int]:
        """For the manifest."""
        return {
            **({"inherited": self.n_inherited} if self.n_inherited else {}),
            "specials": self.n_specials,
            "bytes": self.n_bytes,
            "alphabet": self.n_alphabet,
            "merges": self.n_merges,
            "vocab_size": self.vocab_size,
        }

    def for_size(self, vocab_size: int) -> Arithmetic:
        """With the merges that a vocabulary of ``vocab_size`` has room for; UsageError when not even the rest fits."""
        if vocab_size < self.n_fixed:
            raise UsageError(
                f"a vocabulary of {vocab_size:,} can't hold {self.fixed()}",
                hint=f"ask for at least {self.n_fixed:,}",
                code="vocabulary-too-small",
            )
        return replace(self, n_merges=vocab_size - self.n_fixed)


def assemble(
    alphabet: Sequence[bytes],
    merges: np.ndarray,
    *,
    specials: Sequence[str] = (),
    special_layout: str = "first",
    pre_tokenizer: PreTokenizer,
    bos: str | None = None,
    eos: str | None = None,
    characters: Characters | None = None,
) -> tuple[Tokenizer, Arithmetic]:
    """The tokenizer of a fit, and its sizes.

    ``alphabet``: the base tokens in order: single bytes, or with ``characters`` the characters of an alphabet. ``merges
    int[m, 2]`` in a trainer's numbering: 0 .. n - 1 are the base tokens, merge k makes n + k. A fit to a smaller size is
    ``merges[:k]``. ``bos``, ``eos`` and the unknown token are names among the specials. Raises UsageError for a repeated
    or wrong base token, a special that is empty, comes twice or spells the same bytes as a token, and a merge that uses
    a later id or makes the bytes of an earlier token.
    """
    if special_layout not in LAYOUTS:
        raise UsageError(
            f"unknown special layout {special_layout!r}", hint=f"choose one of: {', '.join(LAYOUTS)}", code="layout"
        )
    check_spellings(specials)
    base, pairs = list(alphabet), np.asarray(merges, np.int64).reshape(-1, 2)
    tokens = _spell(base, pairs, of_bytes=characters is None)
    n_specials, n_base, n_merges = len(specials), len(base), len(pairs)
    first_special = {"first": 0, "after-bytes": n_base, "last": n_base + n_merges}[special_layout]

    def place(index: np.ndarray) -> np.ndarray:
        return index + n_specials * (index >= first_special)

    ids = place(np.arange(n_base + n_merges))
    by_bytes = {token: int(token_id) for token, token_id in zip(tokens, ids, strict=True)}
    for name in specials:
        if name.encode() in by_bytes:
            raise UsageError(
                f"the special token {name!r} spells the same bytes as token {by_bytes[name.encode()]}",
                hint="give it a spelling that text does not contain",
                code="special-is-token",
            )
    check_ends(specials, bos, eos, None if characters is None else characters.unknown)
    spelled: list[bytes | None] = [None] * (n_base + n_merges + n_specials)
    for token, token_id in zip(tokens, ids, strict=True):
        spelled[token_id] = token
    parts = (
        Vocabulary.from_tokens(spelled),
        writable_view(place(pairs).astype(np.int32)),
        ids[n_base:].astype(np.int32),
    )
    if characters is None:
        model, sizes = BPE(*parts), Arithmetic(n_specials, n_bytes=n_base, n_merges=n_merges)
    else:
        unknown = None if characters.unknown is None else first_special + list(specials).index(characters.unknown)
        model = CharacterBPE(*parts, end_of_word=characters.end_of_word, unknown_id=unknown)
        sizes = Arithmetic(n_specials, n_alphabet=n_base, n_merges=n_merges)
    added = tuple(AddedToken(first_special + k, name) for k, name in enumerate(specials))
    return Tokenizer(pre_tokenizer, model, added, bos, eos), sizes


def check_ends(specials: Sequence[str], bos: str | None, eos: str | None, unknown: str | None = None) -> None:
    """Refuse a ``bos``, ``eos`` or unknown token that is not among the specials."""
    for end, what in ((bos, "bos"), (eos, "eos"), (unknown, "unk")):
        if end is not None and end not in specials:
            raise UsageError(
                f"{what} is {end!r}, which is not among the specials",
                hint=f"name it as a special too; given are: {', '.join(map(repr, specials)) or 'none'}",
                code="unknown-special",
            )


def from_merges(
    alphabet: Any,
    merges: Iterable[Sequence[Any]],
    specials: Sequence[str] = (),
    pattern: str | None = None,
    *,
    special_layout: str = "last",
    bos: str | None = None,
    eos: str | None = None,
) -> Tokenizer:
    """A tokenizer from base tokens and merges written by hand.

    ``alphabet``: single bytes in id order, as ``bytes``, a string of ASCII characters, or a sequence of byte values,
    one-byte ``bytes`` or one-character strings. ``merges``: pairs in rank order, of ids (base tokens are 0 .. n - 1,
    merge k makes n + k, wherever the specials go) or of the two tokens' bytes or strings. ``pattern``: a pattern's
    name or a regular expression; None does not split. Specials come last unless ``special_layout`` says otherwise.
    Errors as in ``assemble``.
    """
    base = [_base_token(item) for item in alphabet]
    tokens = list(base)
    ids = {token: i for i, token in reversed(list(enumerate(base)))}
    pairs: list[tuple[int, int]] = []
    for rank, pair in enumerate(merges):
        if len(pair) != 2:
            raise UsageError(f"merge {rank} is not a pair: {pair!r}", code="merge")
        left, right = (_side(side, ids, rank, len(tokens)) for side in pair)
        pairs.append((left, right))
        tokens.append(tokens[left] + tokens[right])
        ids.setdefault(tokens[-1], len(tokens) - 1)
    pre_tokenizer = PreTokenizer.from_pattern("none" if pattern is None else pattern)
    tokenizer, _ = assemble(
        base,
        np.array(pairs, np.int64),
        specials=specials,
        special_layout=special_layout,
        pre_tokenizer=pre_tokenizer,
        bos=bos,
        eos=eos,
    )
    return tokenizer


def _spell(base: list[bytes], pairs: np.ndarray, *, of_bytes: bool) -> list[bytes]:
    """The bytes of the base tokens and of what each merge makes."""
    tokens: list[bytes] = []
    seen: dict[bytes, int] = {}
    for i, token in enumerate(base):
        if len(token) != 1 if of_bytes else not token:
            raise UsageError(
                f"the base token {token!r} is not one {'byte' if of_bytes else 'character'}", code="alphabet"
            )
        if token in seen:
            raise UsageError(f"the base token {token!r} is given twice", code="alphabet")
        seen[token] = i
        tokens.append(token)
    for rank, (left, right) in enumerate(pairs.tolist()):
        for side in (left, right):
            if not 0 <= side < len(tokens):
                raise UsageError(f"merge {rank} uses id {side}, but only {len(tokens)} exist before it", code="merge")
        made = tokens[left] + tokens[right]
        if made in seen:
            raise UsageError(
                f"merge {rank} ({left}, {right}) makes {made!r}, which is already token {seen[made]}", code="merge"
            )
        seen[made] = len(tokens)
        tokens.append(made)
    return tokens


def _base_token(item: int | str | bytes) -> bytes:
    if isinstance(item, str):
        item = item.encode()
    if isinstance(item, bytes):
        return item
    if not 0 <= int(item) < 256:
        raise UsageError(f"{item!r} is not a byte", code="alphabet")
    return bytes([int(item)])


def _side(side: int | str | bytes, ids: dict[bytes, int], rank: int, n_tokens: int) -> int:
    """The id that one side of a merge names."""
    if isinstance(side, (str, bytes)):
        token = side.encode() if isinstance(side, str) else side
        if token not in ids:
            raise UsageError(f"merge {rank} uses {token!r}, which is no token before it", code="merge")
        return ids[token]
    if not 0 <= int(side) < n_tokens:
        raise UsageError(f"merge {rank} uses id {side}, but only {n_tokens} exist before it", code="merge")
    return int(side)
