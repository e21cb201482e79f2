"""Shingles of canonical texts: what MinHash and Jaccard similarity are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokctl.corpus.dedup.canonical import CanonicalTexts
from tokctl.corpus.dedup.minhash import hash_shingles
from tokctl.errors import UsageError
from tokctl.kernels._boundary import bytes_view, writable_view

UNITS = ("auto", "word", "character")
MAX_UNITS = 1000


@dataclass(frozen=True, slots=True)
class Shingling:
    """What a shingle is: ``n_words`` words joined by single spaces, or ``n_characters`` code points.

    ``unit`` ``auto`` chooses by document: characters where more than half of the letters belong to scripts that are
    written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese, ...), else words.
    """

    unit: str = "auto"
    n_words: int = 5
    n_characters: int = 4

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            hint = f"choose one of {', '.join(UNITS)}"
            raise UsageError(f"unknown shingle unit {self.unit!r}", hint=hint, code="unknown-choice")
        for size in (self.n_words, self.n_characters):
            if not 1 <= size <= MAX_UNITS:
                raise UsageError(f"shingles of {size} units", hint=f"give 1 to {MAX_UNITS}", code="bad-shingle")

    def to_json(self) -> dict[str, object]:
        """For a manifest."""
        return {name: getattr(self, name) for name in self.__slots__}


class ShingleSets(NamedTuple):
    """Sets of 64-bit shingle hashes.

    Set i is ``hashes[offsets[i]:offsets[i + 1]]`` (uint64, int64[n + 1]), without repeats, in order of appearance;
    ``digests uint64[n, 2]`` are equal for equal sets. Two different shingles of a pair of documents with m shingles in
    all have one hash with a probability of about m^2 / 2^65: 3 in 10^8 for a million shingles.
    """

    hashes: np.ndarray
    offsets: np.ndarray
    digests: np.ndarray


def shingle_sets(texts: CanonicalTexts, how: Shingling, hash: str) -> ShingleSets:  # noqa: A002
    """The shingle sets of canonical texts, whose words are separated by single spaces.

    A text of fewer units than a shingle has, or of which canonicalisation left nothing, has the empty set.
    """
    from tokctl.kernels.shingles import distinct, shingle_spans

    n = texts.offsets.size - 1
    by_character = texts.is_unspaced if how.unit == "auto" else np.full(n, how.unit == "character")
    n_bytes = int(texts.offsets[-1] - texts.offsets[0])
    starts, stops = np.empty(n_bytes, np.int64), np.empty(n_bytes, np.int64)
    offsets, set_offsets = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    data, text_offsets = bytes_view(texts.data), writable_view(texts.offsets)
    shingle_spans(
        data, text_offsets, by_character.astype(np.uint8), how.n_words, how.n_characters, starts, stops, offsets
    )
    if texts.is_empty.any():
        keep = np.repeat(~texts.is_empty, np.diff(offsets))
        starts, stops = starts[: offsets[-1]][keep], stops[: offsets[-1]][keep]
        offsets = np.append(0, np.cumsum(np.where(texts.is_empty, 0, np.diff(offsets))))
    hashes = hash_shingles(data, starts[: offsets[-1]], stops[: offsets[-1]], hash)
    sets, digests = np.empty(hashes.size, np.uint64), np.empty((n, 2), np.uint64)
    distinct(writable_view(hashes), offsets, sets, set_offsets, digests)
    return ShingleSets(sets[: set_offsets[-1]], set_offsets, digests)
