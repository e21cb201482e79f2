"""BPE whose base symbols are characters: Sennrich et al. 2016, with a marker where a word ends.

Two forms. As a *suffix* the marker is part of a word's last character (``l o w</w>``: subword-nmt, ``end_of_word_suffix`` of
tokenizers); as a *symbol* it stands behind it (``l o w </w>``: the paper). The vocabulary spells tokens with the marker.
A character outside the alphabet becomes the unknown token, or is refused by name where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tokctl.errors import ArtifactError
from tokctl.tokenizer.models.bpe import BPE, MergeStep
from tokctl.tokenizer.vocabulary import TOKEN

if TYPE_CHECKING:
    from tokctl.kernels.bpe_characters import CharacterIds
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer


@dataclass(frozen=True)
class EndOfWord:
    """The marker of a word's end and whether it is a suffix of the last character or a symbol of its own."""

    marker: str
    is_suffix: bool = True

    def is_end(self, token: bytes) -> bool:
        """Whether a token, spelled with the marker, ends a word."""
        return token.endswith(self.marker.encode())

    def text(self, token: bytes) -> bytes:
        """A token without its marker."""
        return token[: -len(self.marker.encode())] if self.is_end(token) else token


def point_of(character: bytes) -> int | None:
    """The code point of one character, U+DC00 + byte for a byte that is no part of UTF-8; None for anything else."""
    decoded = character.decode("utf-8", "surrogateescape")
    return ord(decoded) if len(decoded) == 1 else None


def character_of(point: int) -> bytes:
    """The inverse of :func:`point_of`."""
    return chr(point).encode("utf-8", "surrogateescape")


@dataclass(frozen=True, eq=False)
class CharacterBPE(BPE):
    """BPE over characters; ``merges`` and ``merged`` as in :class:`BPE`.

    ``end_of_word``: None where words carry no marker. ``unknown_id``: the id that a character outside the alphabet
    becomes, one for each; None where it is an error.
    """

    end_of_word: EndOfWord | None = None
    unknown_id: int | None = None

    def __post_init__(self) -> None:
        if self.merges is None or self.whole_words:
            raise ArtifactError(
                "character-level BPE has a list of merges, and looks no whole words up", code="not-expressible"
            )

    @cached_property
    def characters(self) -> tuple[dict[int, int], dict[int, int], int]:
        """Code point -> id inside a word, code point -> id at its end, and the id of the marker alone (-1: none)."""
        inner: dict[int, int] = {}
        final: dict[int, int] = {}
        end_id = -1
        end = self.end_of_word
        for token_id, token in enumerate(self.vocabulary.tokens()):
            if token is None or self.vocabulary.kinds[token_id] != TOKEN:
                continue
            if end is not None and token == end.marker.encode():
                end_id = token_id
                continue
            is_end = end is not None and end.is_end(token)
            point = point_of(end.text(token) if end is not None and is_end else token)
            if point is not None and (not is_end or (end is not None and end.is_suffix)):
                (final if is_end else inner)[point] = token_id
        if end is None or not end.is_suffix:
            final = inner
        return inner, final, -1 if end is None or end.is_suffix else end_id

    @cached_property
    def character_ids(self) -> CharacterIds:
        """The same as arrays for the kernels."""
        from tokctl.kernels.bpe_characters import character_table

        inner, final, end_id = self.characters
        return character_table(inner, final, end_id)

    @property
    def n_characters(self) -> int:
        """How many different characters the alphabet has."""
        inner, final, _ = self.characters
        return len(inner.keys() | final.keys())

    @cached_property
    def byte_ids(self) -> np.ndarray:
        """No byte is a base symbol."""
        return np.full(256, -1, np.int32)

    def spelled_tokens(self, separator: bytes) -> list[bytes | None]:
        """What each id decodes to: its text, and where it ends a word ``separator`` behind it."""
        tokens = super().spelled_tokens(separator)
        end = self.end_of_word
        if end is None:
            return tokens
        is_token = self.vocabulary.kinds == TOKEN
        return [
            end.text(token) + separator if token is not None and is_token[i] and end.is_end(token) else token
            for i, token in enumerate(tokens)
        ]

    @cached_property
    def ends_word(self) -> np.ndarray:
        """``bool[V]``: the tokens that end a word."""
        end, tokens = self.end_of_word, self.vocabulary.tokens()
        is_token = (self.vocabulary.kinds == TOKEN).tolist()
        return np.array(
            [end is not None and is_token[i] and end.is_end(token or b"") for i, token in enumerate(tokens)], np.bool_
        )

    @cached_property
    def text_lengths(self) -> np.ndarray:
        """``int64[V]``: how many bytes of a text each token stands for."""
        marker = 0 if self.end_of_word is None else len(self.end_of_word.marker.encode())
        return self.vocabulary.lengths - marker * self.ends_word

    def knows(self, text: bytes) -> bool:
        """Whether a text can be encoded: each of its characters has an id, inside and at the end of a word."""
        if self.unknown_id is not None:
            return True
        inner, final, _ = self.characters
        return all(ord(char) in inner and ord(char) in final for char in text.decode("utf-8", "surrogateescape"))

    @property
    def base_ids(self) -> np.ndarray:
        """``int32[n]``: the ids of the base symbols, ascending."""
        inner, final, end_id = self.characters
        return np.array(sorted({*inner.values(), *final.values()} | ({end_id} if end_id >= 0 else set())), np.int32)

    def encoder(self, pre_tokenizer: PreTokenizer) -> Any:
        """What encodes text with this model."""
        from tokctl.tokenizer.models.character_encoder import CharacterEncoder

        return CharacterEncoder(self, pre_tokenizer)

    def alphabet_text(self) -> bytes:
        """The characters that can stand anywhere, one after another."""
        inner, final, _ = self.characters
        return b"".join(character_of(point) for point in sorted(inner.keys() & final.keys()))

    @cached_property
    def encodes_to_itself(self) -> np.ndarray:
        """``bool[V]``: the tokens whose characters, merged, give that one token. False for ids that are no token."""
        from tokctl.tokenizer.models.character_encoder import merge_spelled, spell

        ids = self.token_ids
        starts = self.vocabulary.offsets[:-1][ids]
        is_whole = self.ends_word[ids].astype(np.uint8)
        symbols, offsets = spell(self, self.vocabulary.data, starts, starts + self.text_lengths[ids], is_whole)
        can_be_spelled = np.ones(len(ids), np.bool_)
        can_be_spelled[np.searchsorted(offsets, np.flatnonzero(symbols < 0), side="right") - 1] = False
        symbols[symbols < 0] = 0
        n_symbols = merge_spelled(self, symbols, offsets)
        is_one = can_be_spelled & (n_symbols == 1)
        result = np.zeros(len(self.vocabulary), np.bool_)
        found = ids[is_one]
        result[found] = symbols[offsets[:-1][is_one]] == found
        return result

    @cached_property
    def schedule_dependent(self) -> list[int]:
        """Ids of tokens that some merge makes before one that makes its part: only such can depend on the schedule."""
        pairs = self.pairs
        last_rank = np.full(len(self.vocabulary), -1, np.int32)
        np.maximum.at(last_rank, pairs.merged, pairs.ranks)
        is_early = np.maximum(last_rank[pairs.left], last_rank[pairs.right]) > pairs.ranks
        return [int(i) for i in np.unique(pairs.merged[is_early])]

    def encoded_token(self, token_id: int) -> list[int] | None:
        """What merging makes of a token's own characters; None where one of them is outside the alphabet."""
        token, end = self.vocabulary.token(token_id), self.end_of_word
        is_end = end is not None and end.is_end(token)
        try:
            return self._trace_from(self._symbols(end.text(token) if end is not None else token, is_whole=is_end))[0]
        except KeyError:
            return None

    def trace(self, word: bytes) -> tuple[list[int], list[MergeStep]]:
        """The ids of one word and every merge on the way, for showing; ``KeyError`` for a character without an id."""
        return self._trace_from(self._symbols(word, is_whole=True))

    def _symbols(self, word: bytes, *, is_whole: bool) -> list[int]:
        """The base symbols of a word, or of a part of one that doesn't reach its end."""
        inner, final, end_id = self.characters
        points = [ord(char) for char in word.decode("utf-8", "surrogateescape")]
        ids = []
        for i, point in enumerate(points):
            known = final if is_whole and i == len(points) - 1 else inner
            found = known.get(point, self.unknown_id)
            if found is None:
                raise KeyError(point)
            ids.append(found)
        return [*ids, end_id] if is_whole and end_id >= 0 else ids
