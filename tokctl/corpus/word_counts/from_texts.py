"""``count_words``: from texts in Python to word counts in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from tokctl.corpus.word_counts.counter import Batch, WordCounter
from tokctl.corpus.word_counts.counts import WordCounts
from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer


def count_words(
    texts: Iterable[str | bytes], pattern: str | PreTokenizer = "gpt2", specials: Sequence[str | bytes] = ()
) -> WordCounts:
    """Count the words of texts, one document each, in memory.

    ``pattern``: a named pattern, a regex, ``none`` (each text is one word) or a :class:`PreTokenizer`. ``specials`` are
    spellings that are carved out and not counted. UsageError: a bad pattern or special. DataError: an item that is neither
    str nor bytes, or a str with a lone surrogate (``row`` says which).
    """
    if isinstance(texts, str | bytes):
        raise UsageError(
            "texts is one string, not several", hint="pass a list of texts: count_words([text], ...)", code="not-texts"
        )
    pre_tokenizer = pattern if isinstance(pattern, PreTokenizer) else PreTokenizer.from_pattern(pattern)
    counter = WordCounter(pre_tokenizer, specials)
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
