"""The BPE model: which two tokens become which, and in what order.

Two forms of one thing. With ``merges`` each entry names a pair, and its place in the list is its rank (GPT-2's
``merges.txt``, ``tokenizer.json``). Without, ids are ranks and *every* split of a token into two tokens may make it
(tiktoken). Either way the pair of lowest rank is merged first, the leftmost of several, one occurrence at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tokctl.errors import ArtifactError
from tokctl.kernels._boundary import writable_view
from tokctl.tokenizer.vocabulary import TOKEN, Vocabulary

if TYPE_CHECKING:
    from tokctl.kernels.bpe_encode import Model
    from tokctl.kernels.merge_table import MergeTable
    from tokctl.kernels.word_table import TokenTable
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer


@dataclass(frozen=True)
class Pairs:
    """Every pair that merges, ``int32[n]`` each, in rank order; a later pair replaces an equal earlier one."""

    left: np.ndarray
    right: np.ndarray
    ranks: np.ndarray
    merged: np.ndarray


@dataclass(frozen=True)
class MergeStep:
    """One merge inside a word: symbols ``position`` and ``position + 1`` (of those left) became ``merged``."""

    rank: int
    position: int
    left: int
    right: int
    merged: int


@dataclass(frozen=True, eq=False)
class BPE:
    """Byte pair encoding over a vocabulary.

    ``merges int32[m, 2]`` are (left id, right id) in rank order and ``merged int32[m]`` the ids they make; both None
    for the form in which ids are ranks. ``whole_words``: a word whose bytes are a token is that token without merging
    (tiktoken; ``ignore_merges`` of tokenizers). ``control_ids`` are tokens that text must never become, although a file
    lists them in the model's vocabulary too: they are found by no look-up and made by no merge.
    """

    vocabulary: Vocabulary
    merges: np.ndarray | None
    merged: np.ndarray | None
    whole_words: bool = False
    control_ids: frozenset[int] = frozenset()

    @classmethod
    def from_merges(cls, vocabulary: Vocabulary, merges: Any, **options: Any) -> BPE:
        """Find what each pair makes by its bytes.

        Raises ArtifactError where a merge's bytes are no token, an id is no token, a pair comes twice, or two tokens
        have the same bytes.
        """
        pairs = np.asarray(merges, np.int64).reshape(-1, 2)
        tokens = vocabulary.tokens()
        by_bytes = unique_tokens(vocabulary)
        is_token = vocabulary.kinds == TOKEN
        merged = np.empty(len(pairs), np.int32)
        seen: dict[tuple[int, int], int] = {}
        for rank, (left, right) in enumerate(pairs.tolist()):
            for side in (left, right):
                if not 0 <= side < len(tokens) or not is_token[side]:
                    raise ArtifactError(f"merge {rank} uses id {side}, which is no token", code="merge-unknown-id")
            if (left, right) in seen:
                raise ArtifactError(
                    f"merge {rank} repeats merge {seen[left, right]}: ({left}, {right})", code="merge-repeated"
                )
            seen[left, right] = rank
            made = (tokens[left] or b"") + (tokens[right] or b"")
            if made not in by_bytes:
                raise ArtifactError(
                    f"merge {rank} ({left}, {right}) makes {made!r}, which is no token", code="merge-without-token"
                )
            merged[rank] = by_bytes[made]
        return cls(vocabulary, writable_view(pairs.astype(np.int32)), merged, **options)

    @property
    def form(self) -> str:
        """``merges`` or ``ranks``."""
        return "ranks" if self.merges is None else "merges"

    @cached_property
    def token_ids(self) -> np.ndarray:
        """``int32[n]``: the ids that are tokens of the model, ascending."""
        return np.flatnonzero(self.vocabulary.kinds == TOKEN).astype(np.int32)

    @cached_property
    def byte_ids(self) -> np.ndarray:
        """``int32[256]``: the id of each single byte, -1 where the alphabet lacks it."""
        ids = np.full(256, -1, np.int32)
        lengths = self.vocabulary.lengths
        single = self.token_ids[lengths[self.token_ids] == 1]
        ids[self.vocabulary.data[self.vocabulary.offsets[single]]] = single
        return ids

    @property
    def is_byte_complete(self) -> bool:
        """Whether every byte has an id, so that any text can be encoded."""
        return bool((self.byte_ids >= 0).all())

    @property
    def base_ids(self) -> np.ndarray:
        """``int32[n]``: the ids of the base symbols."""
        return self.byte_ids[self.byte_ids >= 0]

    def knows(self, text: bytes) -> bool:
        """Whether a text can be encoded: each of its bytes has an id."""
        return bool((self.byte_ids[np.frombuffer(text, np.uint8)] >= 0).all())

    def alphabet_text(self) -> bytes:
        """The bytes that can be encoded, one after another."""
        return bytes(np.flatnonzero(self.byte_ids >= 0).tolist())

    def spelled_tokens(self, separator: bytes) -> list[bytes | None]:
        """What each id decodes to; ``separator`` is what stands between words where a model marks their ends."""
        return self.vocabulary.tokens()

    def encoder(self, pre_tokenizer: PreTokenizer) -> Any:
        """What encodes text with this model."""
        from tokctl.tokenizer.models.bpe_encoder import BPEEncoder

        return BPEEncoder(self, pre_tokenizer)

    def token_table(self, token_ids: np.ndarray) -> TokenTable:
        """Word table of some tokens by their bytes; ArtifactError for equal bytes."""
        from tokctl.kernels.word_table import token_table

        table, twice = token_table(self.vocabulary.data, self.vocabulary.offsets, token_ids)
        if twice >= 0:
            raise ArtifactError(
                f"token {twice} has the bytes of another token: {self.vocabulary.token(twice)!r}",
                code="duplicate-token",
            )
        return table

    @cached_property
    def pairs(self) -> Pairs:
        """All pairs that merge."""
        control = np.array(sorted(self.control_ids), np.int32)
        if self.merges is not None and self.merged is not None:
            kept = np.flatnonzero(~np.isin(self.merged, control)).astype(np.int32)
            left, right = self.merges[kept, 0].copy(), self.merges[kept, 1].copy()
            return Pairs(left, right, kept, self.merged[kept])
        from tokctl.kernels.bpe_tokens import split_pairs

        ids = self.token_ids[~np.isin(self.token_ids, control)]
        table = self.token_table(ids)
        none = np.empty(0, np.int32)
        n = split_pairs(ids, table, none, none, none)
        left, right, merged = (np.empty(n, np.int32) for _ in range(3))
        split_pairs(ids, table, left, right, merged)
        return Pairs(left, right, merged, merged)

    @cached_property
    def merge_table(self) -> MergeTable:
        """The pairs as a table by their ids."""
        from tokctl.kernels.merge_table import merge_table

        pairs = self.pairs
        return merge_table(pairs.left, pairs.right, pairs.ranks, pairs.merged)

    @cached_property
    def byte_pairs(self) -> np.ndarray:
        """``uint64[65536]``: the pairs of two bytes, looked up directly (layout in ``kernels/bpe_merge_word.py``)."""
        from tokctl.kernels.bpe_merge_word import fill_byte_pairs

        table = np.empty(1 << 16, np.uint64)
        fill_byte_pairs(self.byte_ids, self.merge_table, table)
        return table

    @cached_property
    def encodes_to_itself(self) -> np.ndarray:
        """``bool[V]``: the tokens whose bytes, merged as a word, give that one token. False for ids that are no token."""
        from tokctl.kernels.bpe_merge_word import merge_space
        from tokctl.kernels.bpe_tokens import encodes_to_itself

        ids = self.token_ids
        result = np.zeros(len(ids), np.uint8)
        space = merge_space(max(64, int(self.vocabulary.lengths.max(initial=0))))
        encodes_to_itself(
            self.vocabulary.data,
            self.vocabulary.offsets,
            ids,
            self.byte_ids,
            self.byte_pairs,
            self.merge_table,
            space,
            result,
        )
        reachable = np.zeros(len(self.vocabulary), np.bool_)
        reachable[ids[result == 1]] = True
        return reachable

    @cached_property
    def unreachable(self) -> list[int]:
        """Ids of tokens that merging their own bytes does not give, ascending."""
        return [int(i) for i in self.token_ids[~self.encodes_to_itself[self.token_ids]]]

    @cached_property
    def schedule_dependent(self) -> list[int]:
        """Ids of the tokens whose own bytes merge otherwise under another schedule, ascending.

        Empty exactly where occurrence priority, rounds of one pair and one pass by rank give the same ids for every word:
        in the shortest text on which they part, a merge makes a neighbour of a pair that has a lower rank than it, and
        that pair's bytes alone are merged in the same way. So it is enough to look at the tokens that have such a pair.
        """
        pairs = self.pairs
        last_rank = np.full(len(self.vocabulary), -1, np.int32)
        np.maximum.at(last_rank, pairs.merged, pairs.ranks)
        is_early = np.maximum(last_rank[pairs.left], last_rank[pairs.right]) > pairs.ranks
        ids = np.unique(pairs.merged[is_early]).astype(np.int32)
        if len(ids) == 0:
            return []
        from tokctl.kernels.bpe_merge_word import merge_space
        from tokctl.kernels.bpe_schedule import find_rank_falls

        result = np.zeros(len(ids), np.uint8)
        space = merge_space(int(self.vocabulary.lengths[ids].max()))
        find_rank_falls(
            self.vocabulary.data, self.vocabulary.offsets, ids, self.byte_ids, self.merge_table, space, result
        )
        return [int(i) for i in ids[result == 1]]

    @cached_property
    def tables(self) -> Model:
        """What the kernels read."""
        from tokctl.kernels.bpe_encode import Model

        ids = self.token_ids
        if self.whole_words:
            words = ids[~np.isin(ids, np.array(sorted(self.control_ids), np.int32))]
        else:
            words = ids[self.encodes_to_itself[ids]]
        return Model(self.byte_ids, self.byte_pairs, self.merge_table, self.token_table(words))

    @cached_property
    def _pair_map(self) -> dict[tuple[int, int], tuple[int, int]]:
        pairs = self.pairs
        keys = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
        values = zip(pairs.ranks.tolist(), pairs.merged.tolist(), strict=True)
        return dict(zip(keys, values, strict=True))

    def encoded_token(self, token_id: int) -> list[int] | None:
        """What merging alone makes of a token's own bytes; None where one of them is outside the alphabet."""
        token = self.vocabulary.token(token_id)
        return (
            self._trace_from(self.byte_ids[np.frombuffer(token, np.uint8)].tolist())[0] if self.knows(token) else None
        )

    def trace(self, word: bytes) -> tuple[list[int], list[MergeStep]]:
        """The ids of one word and every merge on the way, for showing; ``KeyError`` for a byte outside the alphabet.

        A word taken whole from the vocabulary has no steps.
        """
        whole = self._words.get(word) if self.whole_words else None
        if whole is not None:
            return [whole], []
        ids = []
        for byte in word:
            if self.byte_ids[byte] < 0:
                raise KeyError(byte)
            ids.append(int(self.byte_ids[byte]))
        return self._trace_from(ids)

    def _trace_from(self, ids: list[int]) -> tuple[list[int], list[MergeStep]]:
        """What ``trace`` gives for a word of base symbols, which are merged in place."""
        steps: list[MergeStep] = []
        while True:
            candidates = [
                (*self._pair_map[pair], at) for at, pair in enumerate(pairwise(ids)) if pair in self._pair_map
            ]
            if not candidates:
                return ids, steps
            rank, merged, at = min(candidates, key=lambda found: (found[0], found[2]))
            steps.append(MergeStep(rank, at, ids[at], ids[at + 1], merged))
            ids[at : at + 2] = [merged]

    @cached_property
    def _words(self) -> dict[bytes, int]:
        return {token: i for token, i in unique_tokens(self.vocabulary).items() if i not in self.control_ids}


def unique_tokens(vocabulary: Vocabulary) -> dict[bytes, int]:
    """Bytes -> id of the tokens; ArtifactError where two ids have the same bytes or a token is empty."""
    by_bytes: dict[bytes, int] = {}
    kinds = vocabulary.kinds.tolist()
    for token_id, token in enumerate(vocabulary.tokens()):
        if kinds[token_id] != TOKEN or token is None:
            continue
        if not token:
            raise ArtifactError(f"token {token_id} is empty", code="empty-token")
        if token in by_bytes:
            raise ArtifactError(f"tokens {by_bytes[token]} and {token_id} are both {token!r}", code="duplicate-token")
        by_bytes[token] = token_id
    return by_bytes
