"""``WordCounts``: what a corpus is to a trainer. Unique words, sorted, with 64-bit counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tokctl.errors import ArtifactError, DataError
from tokctl.kernels._boundary import bytes_view, writable_view

_MAX_COUNT = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Words sorted bytewise (a prefix first), each once and none empty, with how often they occur.

    ``data uint8[]``, ``offsets int64[n_words + 1]``: word i is ``data[offsets[i]:offsets[i + 1]]`` (Arrow's large-binary
    layout). ``counts int64[n_words]``, or ``int64[n_words, n_slices]`` with the slices' names, sorted bytewise, in
    ``slices``. Counts are never negative. The constructor checks types and shapes; :meth:`check` reads every word.
    """

    data: np.ndarray
    offsets: np.ndarray
    counts: np.ndarray
    slices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, dtype in (("data", np.uint8), ("offsets", np.int64), ("counts", np.int64)):
            array = getattr(self, name)
            if array.dtype != dtype:
                raise TypeError(f"{name} is {array.dtype}, not {np.dtype(dtype)}")
        shape = (self.n_words, len(self.slices)) if self.slices else (self.n_words,)
        if self.data.ndim != 1 or self.offsets.ndim != 1 or self.offsets.size == 0 or self.counts.shape != shape:
            raise ValueError(
                f"counts of shape {self.counts.shape} do not fit {self.n_words} words, {shape} is expected"
            )

    @property
    def n_words(self) -> int:
        return int(self.offsets.size - 1)

    @property
    def n_slices(self) -> int:
        """How many slices there are; 0 when the words are counted as one."""
        return len(self.slices)

    @property
    def total(self) -> int:
        """Occurrences of all words in all slices; exact, whatever its size."""
        low = int((self.counts & 0xFFFFFFFF).sum())
        return (int((self.counts >> 32).sum()) << 32) + low

    def word(self, i: int) -> bytes:
        """The bytes of word ``i``, 0 <= i < n_words."""
        if not 0 <= i < self.n_words:
            raise IndexError(f"word {i} of {self.n_words}")
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def part(self, first: int, last: int) -> WordCounts:
        """Words ``first`` to ``last``; shares memory."""
        return WordCounts(self.data, self.offsets[first : last + 1], self.counts[first:last], self.slices)

    def find(self, word: bytes) -> int | None:
        """The index of a word, or None."""
        low, high = 0, self.n_words
        while low < high:
            middle = (low + high) // 2
            if self.word(middle) < word:
                low = middle + 1
            else:
                high = middle
        return low if low < self.n_words and self.word(low) == word else None

    def count(self, word: bytes) -> int:
        """How often a word occurs in all slices; 0 if it does not."""
        i = self.find(word)
        return 0 if i is None else sum(np.atleast_1d(self.counts[i]).tolist())

    def total_counts(self) -> np.ndarray:
        """``int64[n_words]``: each word's count over all slices. DataError: a sum passes 2**63 - 1."""
        if not self.slices:
            return self.counts
        total = np.zeros(self.n_words, np.int64)
        for column in self.counts.T:
            over = np.flatnonzero(total > _MAX_COUNT - column)
            if over.size:
                from tokctl.corpus.word_counts.merge import overflow_error

                raise overflow_error(self.word(int(over[0])))
            total += column
        return total

    def slice(self, name: str) -> WordCounts:
        """The words that occur in one slice, with their counts there. DataError: there is no such slice."""
        if name not in self.slices:
            raise DataError(
                f"there is no slice {name!r}",
                hint="slices are " + ", ".join(map(repr, self.slices)) if self.slices else "the words have no slices",
                code="unknown-slice",
            )
        column = self.counts[:, self.slices.index(name)]
        kept = np.flatnonzero(column)
        starts, stops = self.offsets[:-1][kept], self.offsets[1:][kept]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(stops - starts)])
        data = np.empty(int(offsets[-1]), np.uint8)

        from tokctl.kernels.word_merge import copy_words

        copy_words(bytes_view(self.data), starts, stops, data)
        return WordCounts(data, offsets, column[kept])

    def items(self) -> Iterator[tuple[bytes, int]]:
        """(word, count over all slices), in order."""
        for i, count in enumerate(self.total_counts().tolist()):
            yield self.word(i), count

    def __len__(self) -> int:
        return self.n_words

    def __eq__(self, other: object) -> bool:
        """Same words, same counts, same slices."""
        if not isinstance(other, WordCounts):
            return NotImplemented
        return (
            self.slices == other.slices
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(np.diff(self.offsets), np.diff(other.offsets))
            and np.array_equal(
                self.data[self.offsets[0] : self.offsets[-1]], other.data[other.offsets[0] : other.offsets[-1]]
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def check(self, file: str | None = None) -> None:
        """Read every word and count; ArtifactError (code ``bad-word-counts``, with ``file``) for the first wrong one."""
        from tokctl.kernels.word_merge import first_unordered

        def wrong(i: int, what: str) -> ArtifactError:
            return ArtifactError(
                f"word counts are broken: {what}",
                hint="count the corpus again; words are sorted bytewise, unique and not empty, counts not negative",
                code="bad-word-counts",
                file=file,
                row=i,
            )

        offsets = self.offsets
        if offsets[0] < 0 or offsets[-1] > self.data.size or bool((offsets[1:] < offsets[:-1]).any()):
            raise wrong(0, "offsets don't lie in order inside the data")
        i = int(first_unordered(bytes_view(self.data), writable_view(offsets)))
        if i < self.n_words:
            if offsets[i] == offsets[i + 1]:
                raise wrong(i, "an empty word")
            same = self.word(i) == self.word(i - 1)
            raise wrong(i, f"{self.word(i)[:40]!r} " + ("occurs twice" if same else "is not in order"))
        negative = np.argwhere(self.counts < 0)
        if len(negative):
            i = int(negative[0, 0])
            raise wrong(i, f"{self.word(i)[:40]!r} has a negative count")

    @classmethod
    def from_mapping(cls, counts: Mapping[bytes, int]) -> WordCounts:
        """From ``{word: count}``. DataError: a word that is not bytes or empty, a count outside 0 .. 2**63 - 1."""
        for word, count in counts.items():
            if not isinstance(word, bytes) or not word:
                raise DataError(f"{word!r} is no word: words are bytes, and not empty", code="bad-word")
            if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count <= _MAX_COUNT:
                raise DataError(
                    f"the count of {word[:40]!r} is {count!r}, not an integer from 0 to 2^63 - 1", code="bad-count"
                )
        words = sorted(counts)
        offsets = np.zeros(len(words) + 1, np.int64)
        np.cumsum([len(word) for word in words], out=offsets[1:])
        data = np.frombuffer(b"".join(words), np.uint8)
        return cls(data, offsets, np.array([int(counts[word]) for word in words], np.int64))

    @classmethod
    def merge(cls, tables: Sequence[WordCounts]) -> WordCounts:
        """The counts of all tables added up. Slices are kept by name, and all tables have them or none has.

        DataError: a count passes 2**63 - 1 (named), or only some tables have slices.
        """
        from tokctl.corpus.word_counts.combine import merge_tables

        return merge_tables(tables)

    def write_parquet(self, path: Path) -> None:
        """Write to one Parquet file; the same words and counts give the same bytes. See :mod:`.parquet`."""
        from tokctl.corpus.word_counts.parquet import WordCountsWriter

        with WordCountsWriter(path, self.slices) as writer:
            writer.append(self)

    @classmethod
    def read_parquet(cls, path: Path) -> WordCounts:
        """Read a file and check every word. ArtifactError: not a file of word counts, or a broken one."""
        from tokctl.corpus.word_counts.parquet import read_word_counts

        return read_word_counts(path)


NO_WORDS = WordCounts(np.empty(0, np.uint8), np.zeros(1, np.int64), np.empty(0, np.int64))


def concatenated(parts: Sequence[WordCounts]) -> WordCounts:
    """Tables of the same slices whose words follow each other, at least one, as one table; a single one is not copied."""
    if len(parts) == 1:
        return parts[0]
    offsets = [np.zeros(1, np.int64)]
    for part in parts:
        offsets.append(part.offsets[1:] + (offsets[-1][-1] - part.offsets[0]))
    return WordCounts(
        np.concatenate([part.data[part.offsets[0] : part.offsets[-1]] for part in parts]),
        np.concatenate(offsets),
        np.concatenate([part.counts for part in parts]),
        parts[0].slices,
    )
