"""Added tokens: spellings that are one token wherever a text may name them, found before any pre-tokenizing.

The matching follows tokenizers: the tokens with ``normalized`` off are looked for first, in the whole text, the others
in what is left; of those that start at one place the longest wins; a match that its ``single_word`` flag refuses is
passed over whole; ``lstrip`` and ``rstrip`` extend a match over the white space beside it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokctl.errors import UsageError
from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints, white_space, word_characters

if TYPE_CHECKING:
    from tokctl.kernels.special_carve import Trie

_SLICE_BYTES = 1 << 24
_FOUND = 4096


@dataclass(frozen=True)
class AddedToken:
    """A token outside the model. ``special``: a control token, which text may only name when allowed to."""

    id: int
    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = True

    @property
    def spelling(self) -> bytes:
        """The content in UTF-8."""
        return self.content.encode()


@dataclass(frozen=True)
class Pieces:
    """Documents cut at their added tokens, in order; int64[n] arrays.

    ``tokens``: -1 for text, else the id of an added token. ``documents``: the document each piece belongs to.
    """

    starts: np.ndarray
    stops: np.ndarray
    tokens: np.ndarray
    documents: np.ndarray


def build_trie(spellings: Sequence[bytes]) -> Trie:
    """The trie of ``spellings`` (distinct, not empty), which ``match_special`` walks; spelling i is number i."""
    from tokctl.kernels.special_carve import Trie

    classes = np.zeros(256, np.int16)
    for n, byte in enumerate(sorted({byte for spelling in spellings for byte in spelling}), 1):
        classes[byte] = n
    n_classes = int(classes.max()) + 1
    rows: list[dict[int, int]] = [{}]
    ends: dict[int, int] = {}
    for number, spelling in enumerate(spellings):
        state = 0
        for byte in spelling:
            klass = int(classes[byte])
            if klass not in rows[state]:
                rows[state][klass] = len(rows)
                rows.append({})
            state = rows[state][klass]
        ends[state] = number
    table = np.zeros((len(rows), n_classes), np.int32)
    for state, row in enumerate(rows):
        for klass, following in row.items():
            table[state, klass] = following
    special = np.full(len(rows), -1, np.int32)
    for state, number in ends.items():
        special[state] = number
    return Trie(classes, table, special)


class AddedTokenMatcher:
    """Finds added tokens in text: those of one round, in raw or in normalised text.

    ``spellings`` are what the text is searched for, one a token. Of tokens with one spelling the special ones come first,
    then the one with the smallest id. A token with an empty spelling is never found.
    """

    def __init__(self, tokens: Sequence[AddedToken], spellings: Sequence[bytes], unicode_version: str) -> None:
        chosen: dict[bytes, AddedToken] = {}
        for token, spelling in sorted(zip(tokens, spellings, strict=True), key=lambda t: (not t[0].special, t[0].id)):
            if spelling:
                chosen.setdefault(spelling, token)
        self._tokens = list(chosen.values())
        self._trie = build_trie(list(chosen)) if chosen else None
        self._unicode_version = unicode_version

    def cut(self, data: np.ndarray, pieces: Pieces, skipped: Collection[int] = ()) -> Pieces:
        """Cut the text pieces of ``data uint8[]`` further, at the tokens found in them.

        The ids in ``skipped`` are found too, so that nothing inside them is, and stay text.
        """
        if self._trie is None:
            return pieces
        found = _find(self._trie, data, pieces)
        if len(found) == 0:
            return pieces
        owners, starts, stops, tokens = self._cut_at(data, pieces, found, skipped)
        whole = np.ones(len(pieces.starts), np.bool_)
        whole[owners] = False
        kept = np.flatnonzero(whole)
        order = np.argsort(np.concatenate([kept, owners]), kind="stable")
        return Pieces(
            np.concatenate([pieces.starts[kept], starts])[order],
            np.concatenate([pieces.stops[kept], stops])[order],
            np.concatenate([pieces.tokens[kept], tokens])[order],
            np.concatenate([pieces.documents[kept], pieces.documents[owners]])[order],
        )

    def _cut_at(
        self, data: np.ndarray, pieces: Pieces, found: np.ndarray, skipped: Collection[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """``(owners, starts, stops, tokens)``: what the pieces with the matches ``found int64[n, 4]`` are cut into."""
        version = self._unicode_version
        rows: list[tuple[int, int, int, int]] = []
        owners, firsts = np.unique(found[:, 0], return_index=True)
        for owner, matches in zip(owners.tolist(), np.split(found, firsts[1:]), strict=True):
            low, high = int(pieces.starts[owner]), int(pieces.stops[owner])
            done = low
            for _, start, stop, number in matches.tolist():
                added = self._tokens[number]
                if added.id in skipped:
                    continue
                if added.single_word and (
                    _is_word_before(data, low, start, version) or _is_word_after(data, stop, high, version)
                ):
                    continue
                if added.lstrip:
                    start = max(_space_start(data, low, start, version), done)
                start = max(start, done)
                if added.rstrip:
                    stop = _space_stop(data, stop, high, version)
                if done < start:
                    rows.append((owner, done, start, -1))
                rows.append((owner, start, max(stop, start), added.id))
                done = max(stop, start)
            if done < high:
                rows.append((owner, done, high, -1))
        table = np.array(rows, np.int64).reshape(-1, 4)
        return table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy(), table[:, 3].copy()


def first_spelling(trie: Trie, data: np.ndarray, pieces: Pieces) -> tuple[int, int, int] | None:
    """``(piece, start, number)`` of the first spelling in the text pieces, or None."""
    found = _find(trie, data, pieces, limit=1)
    return (int(found[0, 0]), int(found[0, 1]), int(found[0, 3])) if len(found) else None


def _find(trie: Trie, data: np.ndarray, pieces: Pieces, limit: int | None = None) -> np.ndarray:
    """Matches in the text pieces in order: ``int64[n, 4]`` of piece, start, stop, number of the spelling."""
    from tokctl.kernels.added_match import POSITION, SEGMENT, find_spellings

    parts: list[np.ndarray] = []
    n_pieces = len(pieces.starts)
    cursor = np.zeros(2, np.int64)
    cursor[POSITION] = pieces.starts[0] if n_pieces else 0
    buffer = np.empty((limit or _FOUND, 4), np.int64)
    while cursor[SEGMENT] < n_pieces:
        n = find_spellings(trie, data, pieces.starts, pieces.stops, pieces.tokens, cursor, buffer, _SLICE_BYTES)
        if n:
            parts.append(buffer[:n].copy())
        if limit is not None and n:
            break
    return np.concatenate(parts) if parts else np.empty((0, 4), np.int64)


def check_spellings(names: Sequence[str], *, of: str = "special token") -> None:
    """UsageError for a name that is empty, comes twice, or is no valid Unicode text."""
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"a {of} is a string, not {name!r}", code="special-not-text")
        if not name:
            raise UsageError(f"a {of} is empty", hint="give it a spelling", code="empty-special")
        if name in seen:
            raise UsageError(f"the {of} {name!r} is given twice", hint="name each one once", code="duplicate-special")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise UsageError(f"the {of} {name!r} holds a lone surrogate", code="special-not-text") from None
        seen.add(name)


@functools.lru_cache(maxsize=4)
def _word_and_space(unicode_version: str) -> tuple[CodePoints, CodePoints]:
    """What ``\\w`` and ``\\s`` match."""
    table = unicode_tables.load(unicode_version)
    return word_characters(table), white_space(table)


def _point_before(data: np.ndarray, low: int, position: int) -> tuple[int, int] | None:
    """``(code point, where it starts)`` of the character that ends at ``position``; None where there is none."""
    for start in range(position - 1, max(low, position - 4) - 1, -1):
        if data[start] & 0xC0 != 0x80:
            try:
                return ord(data[start:position].tobytes().decode()), start
            except (UnicodeDecodeError, TypeError):
                return None
    return None


def _point_after(data: np.ndarray, position: int, high: int) -> tuple[int, int] | None:
    """``(code point, where it stops)`` of the character that starts at ``position``; None where there is none."""
    if position >= high:
        return None
    lead = int(data[position])
    length = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    try:
        return ord(data[position : min(position + length, high)].tobytes().decode()), position + length
    except (UnicodeDecodeError, TypeError):
        return None


def _is_word_before(data: np.ndarray, low: int, position: int, version: str) -> bool:
    found = _point_before(data, low, position)
    return found is not None and found[0] in _word_and_space(version)[0]


def _is_word_after(data: np.ndarray, position: int, high: int, version: str) -> bool:
    found = _point_after(data, position, high)
    return found is not None and found[0] in _word_and_space(version)[0]


def _space_start(data: np.ndarray, low: int, position: int, version: str) -> int:
    """Where the white space that ends at ``position`` starts."""
    space = _word_and_space(version)[1]
    while (found := _point_before(data, low, position)) is not None and found[0] in space:
        position = found[1]
    return position


def _space_stop(data: np.ndarray, position: int, high: int, version: str) -> int:
    """Where the white space that starts at ``position`` stops."""
    space = _word_and_space(version)[1]
    while (found := _point_after(data, position, high)) is not None and found[0] in space:
        position = found[1]
    return position
