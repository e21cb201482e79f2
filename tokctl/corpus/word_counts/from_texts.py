"""``count_words``: from texts in memory to word counts in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from tokctl.corpus.word_counts.counter import Batch, WordCounter
from tokctl.corpus.word_counts.counts import WordCounts
from tokctl.corpus.word_counts.text import text_parts
from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

_PART_BYTES = 1 << 20  # of an Arrow array, for one worker: so little that all workers end at about the same time


def count_words(
    texts: Iterable[str | bytes] | pa.Array | pa.ChunkedArray,
    pattern: str | PreTokenizer = "gpt2",
    specials: Sequence[str | bytes] = (),
    *,
    workers: int = 1,
) -> WordCounts:
    """Count the words of texts, one document each, in memory.

    ``texts``: strings and bytes, or an Arrow array or chunked array of (large) strings or binaries, such as a column of a
    Parquet table, which is read where it is, without a copy. ``pattern``: a named pattern, a regex, ``none`` (each text
    is one word) or a :class:`PreTokenizer`. ``specials`` are spellings that are carved out and not counted. ``workers``:
    threads, of which each counts some documents; the result is the same.

    UsageError: a bad pattern or special, no texts, less than one worker. DataError (``row`` says which): an item that is
    neither str nor bytes, a str with a lone surrogate, a null; an Arrow array of another type.
    """
    if isinstance(texts, str | bytes):
        raise UsageError(
            "texts is one string, not several", hint="pass a list of texts: count_words([text], ...)", code="not-texts"
        )
    if workers < 1:
        raise UsageError(f"{workers} workers can't count", hint="give 1 or more", code="bad-workers")
    pre_tokenizer = pattern if isinstance(pattern, PreTokenizer) else PreTokenizer.from_pattern(pattern)
    counter = WordCounter(pre_tokenizer, specials, workers=workers)
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        counter.add_batches(map(Batch, text_parts(texts, _PART_BYTES)))
    else:
        counter.add_batches(_batched(texts, counter.batch_bytes))
    return counter.finish_in_memory()[0]


def _batched(texts: Iterable[str | bytes], batch_bytes: int) -> Iterator[Batch]:
    items: list[bytes] = []
    n_bytes = 0
    for row, text in enumerate(texts):
        if isinstance(text, str):
            try:
                text = text.encode()
            except UnicodeEncodeError as error:
                raise DataError(
                    f"text {row} has a lone surrogate at character {error.start}, which is no UTF-8",
                    hint="encode it yourself, for instance with errors='surrogatepass', and pass bytes",
                    code="lone-surrogate",
                    row=row,
                ) from error
        elif not isinstance(text, bytes):
            raise DataError(f"text {row} is {type(text).__name__}, not str or bytes", code="not-text", row=row)
        items.append(text)
        n_bytes += len(text)
        if n_bytes >= batch_bytes or len(items) >= 1 << 16:
            yield Batch(pa.array(items, pa.large_binary()))
            items, n_bytes = [], 0
    if items:
        yield Batch(pa.array(items, pa.large_binary()))
