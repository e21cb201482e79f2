"""What happens to a text before its words are found: added tokens, normalizers, the steps before the split patterns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np

from tokctl.errors import DataError
from tokctl.tokenizer import normalizers as normal
from tokctl.tokenizer.added_tokens import AddedToken, AddedTokenMatcher, Pieces, build_trie, first_spelling
from tokctl.tokenizer.aligned import AlignedPieces, raw_ranges
from tokctl.tokenizer.normalizers import Normalizer
from tokctl.tokenizer.pre_tokenizers import steps as stepping
from tokctl.tokenizer.pre_tokenizers.steps import Step


class Preparer:
    """Prepares texts in the order of tokenizers.

    Added tokens with ``normalized`` off are found in the raw text; the text between them is normalised, each piece by
    itself; the other added tokens are found in that, by their normalised spelling; then come the steps.
    """

    def __init__(
        self,
        added_tokens: Sequence[AddedToken],
        normalizers: Sequence[Normalizer],
        steps: Sequence[Step],
        unicode_version: str,
    ) -> None:
        self._added_tokens = tuple(added_tokens)
        self._normalizers = tuple(normalizers)
        self._steps = tuple(steps)
        self._unicode_version = unicode_version

    def prepare(
        self,
        data: np.ndarray,
        offsets: np.ndarray,
        pieces: Pieces,
        allowed: Collection[str],
        *,
        follow: bool,
        refuse: bool = False,
    ) -> AlignedPieces:
        """Text pieces of the texts ``data[offsets[i]:offsets[i + 1]]`` as pieces in which words can be found.

        ``allowed``: the control tokens that text may name. ``follow``: fill ``origins`` where the text is rewritten.
        ``refuse``: DataError where a text spells another control token.
        """
        texts = AlignedPieces(data, pieces)
        skipped = frozenset(t.id for t in self._added_tokens if t.special and t.content not in allowed)
        texts = self._find(texts, False, skipped)
        if refuse:
            self._refuse(texts, data, offsets, skipped, in_normalized=False)
        if follow and (self._normalizers or self._steps):
            texts = AlignedPieces(texts.data, texts.pieces, np.arange(len(data)))
        texts = normal.apply_all(self._normalizers, texts)
        texts = self._find(texts, True, skipped)
        if refuse and texts.is_rewritten:
            self._refuse(texts, data, offsets, skipped, in_normalized=True)
        return stepping.apply_all(self._steps, texts)

    def _find(self, texts: AlignedPieces, normalized: bool, skipped: Collection[int]) -> AlignedPieces:
        if all(t.id in skipped for t in self._added_tokens if t.normalized == normalized):
            return texts
        matcher = self._normalized if normalized else self._raw
        pieces = matcher.cut(texts.data, texts.pieces, skipped)
        return AlignedPieces(texts.data, pieces, texts.origins, texts.is_rewritten)

    @cached_property
    def _raw(self) -> AddedTokenMatcher:
        tokens = [token for token in self._added_tokens if not token.normalized]
        return AddedTokenMatcher(tokens, [token.spelling for token in tokens], self._unicode_version)

    @cached_property
    def _normalized(self) -> AddedTokenMatcher:
        tokens = [token for token in self._added_tokens if token.normalized]
        return AddedTokenMatcher(tokens, [self.spelling(token) for token in tokens], self._unicode_version)

    def spelling(self, token: AddedToken) -> bytes:
        """What a text is searched for: the content, normalised where the token's flag says so."""
        return normal.normalize_text(self._normalizers, token.spelling) if token.normalized else token.spelling

    def _refuse(
        self, texts: AlignedPieces, data: np.ndarray, offsets: np.ndarray, skipped: Collection[int], in_normalized: bool
    ) -> None:
        tokens = [t for t in self._added_tokens if t.id in skipped and (t.normalized or not in_normalized)]
        spelled = {(self.spelling(t) if in_normalized else t.spelling): t for t in tokens}
        spelled.pop(b"", None)
        found = first_spelling(build_trie(list(spelled)), texts.data, texts.pieces) if spelled else None
        if found is None:
            return
        piece, start, number = found
        row = int(texts.pieces.documents[piece])
        at = np.array([start], np.int64)
        if len(texts.origins):
            at = raw_ranges(data, texts.origins, at, at + 1)[0]
        raise DataError(
            f"the text spells the control token {list(spelled.values())[number].content!r}",
            hint='allow it by name, or encode it as ordinary text with special_in_text="ordinary"',
            code="special-in-text",
            row=row,
            offset=int(at[0]) - int(offsets[row]) if len(texts.origins) or not texts.is_rewritten else None,
        )
