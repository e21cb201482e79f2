"""``tokctl.fit``: from word counts, however they are held, to fitted tokenizers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from tokctl.artifacts.manifest import read_manifest
from tokctl.corpus.word_counts import WordCounts
from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.trainers.bpe_start import (
    MAX_DROPPED,
    CharacterOptions,
    StartOptions,
    base_pre_tokenizer,
    begin,
)

MODELS = ("bpe",)
Words = tuple[np.ndarray, np.ndarray, np.ndarray]


def fit(
    model: str,
    counts: WordCounts | Mapping[bytes, int] | str | Path,
    *,
    vocab_size: int | Sequence[int],
    pattern: str | None = None,
    byte_order: str | None = None,
    alphabet: Sequence[bytes] | None = None,
    unit: str = "byte",
    end_of_word: str = "</w>",
    end_of_word_as: str = "suffix",
    unk: str | None = None,
    limit_alphabet: int | None = None,
    character_coverage: Decimal | float | str | None = None,
    max_dropped: Decimal | float | str = MAX_DROPPED,
    extend: Tokenizer | str | Path | None = None,
    specials: Sequence[str] = (),
    special_layout: str = "first",
    bos: str | None = None,
    eos: str | None = None,
    ties: str = "ascending",
    min_frequency: int = 2,
    max_token_bytes: int | None = None,
    on_short: str = "error",
    replay: int | str | None = None,
    on_step: Callable[[int, int], None] | None = None,
    on_warning: Callable[[str], None] = lambda message: None,
) -> Tokenizer | dict[int, Tokenizer]:
    """Fit ``model`` ("bpe") to word counts; several sizes come from one fit, as a dict by size.

    ``counts``: a WordCounts, a mapping of words (bytes or str) to counts, or the path of a ``count`` output or of its
    Parquet file. ``pattern`` is the split pattern of the tokenizer (default: what the counts were made with, else gpt2).
    ``alphabet`` replaces the 256 bytes in ``byte_order`` by base tokens of one byte each, in id order.
    ``ties="first-seen"`` needs a mapping, in the order of first occurrence.

    ``unit="character"``: the base tokens are the characters of the words, with ``end_of_word`` (empty: nothing) at the end
    of each as a ``suffix`` of its last character or a ``symbol`` of its own; the pattern is ``whitespace`` unless given.
    ``limit_alphabet`` and ``character_coverage`` leave out rare characters, at most ``max_dropped`` of all occurrences;
    a character outside the alphabet becomes ``unk``, one of the specials, or is an error when a text holds it.

    ``extend``: a tokenizer, or the path of one, whose ids and merges the new ones come behind; its pattern stays.

    ``replay`` counts chosen merges again (a number, ``all`` or ``auto``); CheckFailed where one of them differs. The other
    parameters, the sizes' arithmetic and the errors are those of
    :func:`tokctl.tokenizer.trainers.bpe_sizes.fit_sizes`.
    """
    from tokctl.tokenizer.trainers.bpe_sizes import fit_sizes

    if model not in MODELS:
        raise UsageError(
            f"there is no model {model!r}", hint=f"choose one of: {', '.join(MODELS)}", code="unknown-model"
        )
    if ties == "first-seen" and not isinstance(counts, Mapping):
        raise UsageError(
            "first-seen ties need the words in their order, and sorted counts have lost it",
            hint="pass a mapping in the order of first occurrence",
            code="first-seen-needs-text",
        )
    words, counted_with = _words(counts)
    one_size = not isinstance(vocab_size, Iterable)
    sizes = [_whole(size, "vocab_size") for size in (vocab_size if isinstance(vocab_size, Iterable) else (vocab_size,))]
    if extend is not None and not isinstance(extend, Tokenizer):
        from tokctl.tokenizer.formats import load

        extend = load(extend)
    characters = CharacterOptions(
        end_of_word, end_of_word_as, unk, limit_alphabet, _share(character_coverage), _share(max_dropped) or Decimal(0)
    )
    options = StartOptions(
        unit,
        byte_order,
        None if alphabet is None else tuple(alphabet),
        characters if unit == "character" else None,
        extend,
        tuple(specials),
        special_layout,
        bos,
        eos,
    )
    start = begin(words, _pre_tokenizer(pattern, counted_with, options), options, min(sizes, default=1))
    fitted = fit_sizes(
        start,
        vocab_sizes=sizes,
        special_layout=special_layout,
        ties=ties,
        min_frequency=min_frequency,
        max_token_bytes=max_token_bytes,
        on_short=on_short,
        replay_merges=replay,
        on_step=on_step,
        on_warning=on_warning,
    )
    return fitted.tokenizers[sizes[0]] if one_size else fitted.tokenizers


def _share(value: Decimal | float | str | None) -> Decimal | None:
    try:
        return None if value is None else Decimal(str(value))
    except InvalidOperation:
        raise UsageError(f"{value!r} is no share", hint="a number from 0 to 1", code="bad-share") from None


def _whole(value: Any, name: str) -> int:
    """``value`` as an int, numpy's included; UsageError for what is no whole number."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise UsageError(
            f"{name} is {value!r}, not a whole number", hint=f"{name}=32_000", code="bad-parameter"
        ) from None


def _words(counts: WordCounts | Mapping[bytes, int] | str | Path) -> tuple[Words, PreTokenizer | None]:
    if isinstance(counts, WordCounts):
        return (counts.data, counts.offsets, counts.total_counts()), None
    if isinstance(counts, Mapping):
        return _mapped(counts), None
    path = Path(counts)
    counted_with = None
    if path.is_dir():
        counted_with = PreTokenizer.from_json(read_manifest(path).facts["pre_tokenizer"])
        path = path / "words.parquet"
    table = WordCounts.read_parquet(path)
    return (table.data, table.offsets, table.total_counts()), counted_with


def _mapped(counts: Mapping[Any, int]) -> Words:
    words = [word.encode() if isinstance(word, str) else bytes(word) for word in counts]
    for word, count in zip(words, counts.values(), strict=True):
        is_whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
        if not is_whole or not 0 <= count < 1 << 63:
            raise DataError(f"the count of {word!r} is {count!r}, not an integer in 0..2**63 - 1", code="bad-count")
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=offsets[1:])
    data = np.frombuffer(b"".join(words), np.uint8)
    return data, offsets, np.fromiter(counts.values(), np.int64, len(words))


def _pre_tokenizer(pattern: str | None, counted_with: PreTokenizer | None, options: StartOptions) -> PreTokenizer:
    """The pattern asked for, the words' own, the base's, or the default; UsageError where two of them differ."""
    if options.extend is not None:
        return base_pre_tokenizer(options.extend, pattern, counted_with)
    if pattern is None:
        return counted_with or PreTokenizer.from_pattern(options.default_pattern)
    wanted = PreTokenizer.from_pattern(pattern)
    if counted_with is not None and wanted != counted_with:
        raise UsageError(
            f"the pattern {pattern!r} differs from the one these words were counted with ({counted_with.name})",
            hint="leave pattern out, or count again with it",
            code="pattern-differs",
        )
    return wanted
