"""Special spellings in a corpus: carved out before pre-tokenization and counted, never part of a word.

At each place the longest spelling wins, and the leftmost place first. The text left and right of a special is split on its
own, as Hugging Face does around added tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tokctl.corpus.word_counts.merge import overflow_error
from tokctl.errors import UsageError

if TYPE_CHECKING:
    from tokctl.kernels.word_count import Pieces

_PIECES = 1 << 14  # cut at a time
_BYTES = 16 << 20


class Specials:
    """Spellings to carve out, compiled once. UsageError: an empty or repeated spelling."""

    def __init__(self, spellings: Sequence[str | bytes]) -> None:
        self.spellings = tuple(s.encode() if isinstance(s, str) else bytes(s) for s in spellings)
        for i, spelling in enumerate(self.spellings):
            if not spelling:
                raise UsageError("a special token has no spelling", hint="name it", code="empty-special")
            if spelling in self.spellings[:i]:
                raise UsageError(
                    f"the special token {spelling.decode('utf-8', 'backslashreplace')!r} is given twice",
                    hint="name each special token once",
                    code="repeated-special",
                )
        self._trie: Any = None

    def __bool__(self) -> bool:
        return bool(self.spellings)

    @property
    def trie(self) -> Any:
        """``kernels.special_carve.Trie`` of the spellings."""
        if self._trie is None:
            self._trie = _build_trie(self.spellings)
        return self._trie

    def carve(self, data: np.ndarray, documents: Pieces, found: np.ndarray) -> Iterator[Pieces]:
        """The pieces between the specials of ``documents``, some thousand at a time.

        ``found int64[n_specials]`` is increased by each special's weight. DataError: it would pass 2**63 - 1.
        """
        from tokctl.kernels import special_carve as kernel
        from tokctl.kernels.word_count import Pieces

        cursor = np.zeros(4, np.int64)
        if documents.starts.size:
            cursor[kernel.START] = cursor[kernel.POSITION] = documents.starts[0]
        pieces = Pieces(*(np.empty(_PIECES, np.int64) for _ in range(4)))
        status = kernel.PAUSED
        while status != kernel.DONE:
            status = kernel.carve(self.trie, data, documents, cursor, pieces, found, _BYTES)
            n = int(cursor[kernel.N_PIECES])
            if n:
                yield Pieces(*(column[:n] for column in pieces))
            if status == kernel.OVERFLOW:
                position = int(cursor[kernel.POSITION])
                stop = int(documents.stops[cursor[kernel.DOCUMENT]])
                special, _ = kernel.match_special(self.trie, data, position, stop)
                raise overflow_error(self.spellings[special])


def _build_trie(spellings: Sequence[bytes]) -> Any:
    from tokctl.kernels.special_carve import Trie

    classes = np.zeros(256, np.int16)
    used = sorted({byte for spelling in spellings for byte in spelling})
    classes[used] = np.arange(1, len(used) + 1)
    rows: list[dict[int, int]] = [{}]
    ends = {}
    for number, spelling in enumerate(spellings):
        state = 0
        for byte in spelling:
            if byte not in rows[state]:
                rows[state][byte] = len(rows)
                rows.append({})
            state = rows[state][byte]
        ends[state] = number
    following = np.zeros((len(rows), len(used) + 1), np.int32)
    special = np.full(len(rows), -1, np.int32)
    for state, row in enumerate(rows):
        for byte, to in row.items():
            following[state, classes[byte]] = to
        special[state] = ends.get(state, -1)
    return Trie(classes, following, special)
