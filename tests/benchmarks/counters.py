"""How each library is asked to count words and no more, the fastest way it has. See ``fitters.py``, which this is like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fitters import EVERY, PUBLISHED, open_gigatoken, open_rustbpe

Count = Callable[[Any], Any]
NumberOfWords = Callable[[Any], int | None]


@dataclass(frozen=True)
class Counter:
    """``open`` gives two functions: one that counts (measured), one that says how many distinct words a result has."""

    package: str
    input: str
    open: Callable[[str, int], tuple[Count, NumberOfWords]]
    patterns: tuple[str, ...] = EVERY
    note: str = ""


def open_tokctl(pattern: str, threads: int) -> tuple[Count, NumberOfWords]:
    import tokctl

    pre_tokenizer = tokctl.PreTokenizer.from_pattern(pattern)
    return lambda documents: tokctl.count_words(
        documents, pre_tokenizer, workers=threads
    ), lambda counts: counts.n_words


def open_tokctl_scan(pattern: str, threads: int) -> tuple[Count, NumberOfWords]:
    import numpy as np

    import tokctl
    from tokctl.corpus.word_counts.text import flat_text
    from tokctl.kernels.pattern_scan import scan

    automaton = tokctl.PreTokenizer.from_pattern(pattern).automaton
    ends = np.empty(1024, np.int64)

    def count(documents: Any) -> Any:
        data, offsets = flat_text(documents)
        position, stop = int(offsets[0]), int(offsets[-1])  # as one document: no call for each short one
        while position < stop:
            _, position = scan(automaton, data, position, stop, ends)

    return count, lambda nothing: None


def open_gigatoken_bytes(pattern: str, threads: int) -> tuple[Count, NumberOfWords]:
    from gigatoken.gigatoken_rs import pretokenized_counts

    return pretokenized_counts, len


def open_gigatoken_file(pattern: str, threads: int) -> tuple[Count, NumberOfWords]:
    fit, _ = open_gigatoken(pattern, threads)
    return lambda path: fit(path, 256), lambda nothing: None


def open_gigabpe(pattern: str, threads: int) -> tuple[Count, NumberOfWords]:
    import gigabpe

    def count(path: Path) -> Any:
        return gigabpe.train_bpe([str(path)], vocab_size=1, pretokenizer="bytelevel", threads=threads, min_frequency=2)

    return count, lambda nothing: None


def open_ffbpe(pattern: str, threads: int) -> tuple[Count, NumberOfWords]:
    import ffbpe

    def count(documents: list[str]) -> Any:
        counter = ffbpe.PreTokenizer([], pat_str=PUBLISHED.get(pattern)).word_counter()
        counter.add_source(iter(documents), prefetch=threads - 1)
        return counter

    return count, lambda counter: counter.len


def open_rustbpe_counts(pattern: str, threads: int) -> tuple[Count, NumberOfWords]:
    fit, _ = open_rustbpe(pattern, threads)
    return lambda documents: fit(documents, 256), lambda nothing: None


COUNTERS: dict[str, Counter] = {
    "tokctl": Counter("tokctl", "arrow", open_tokctl, note="sorted word counts in memory"),
    "tokctl-scan": Counter(
        "tokctl", "arrow", open_tokctl_scan, note="the ends of words, the whole text as one document; no table"
    ),
    "gigatoken": Counter("gigatoken", "file", open_gigatoken_file, ("gpt2",), "a fit without merges"),
    "gigatoken-bytes": Counter("gigatoken", "bytes", open_gigatoken_bytes, ("gpt2",), "a list of words with counts"),
    "gigabpe": Counter("gigabpe", "file", open_gigabpe, ("gpt2",), "a fit without merges"),
    "ffbpe": Counter("ffbpe", "strings", open_ffbpe),
    "rustbpe": Counter("rustbpe", "strings", open_rustbpe_counts, note="a fit without merges"),
}
