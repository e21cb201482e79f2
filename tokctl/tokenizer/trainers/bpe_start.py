"""What a BPE fit begins from: the words as symbols, the tokens that these are, and the tokenizer that merges make of them.

Three beginnings: bytes, the characters of the corpus (Sennrich's form), and the tokens of another tokenizer, which the
fit extends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from tokctl.errors import DataError, UsageError
from tokctl.kernels._boundary import bytes_view, writable_view
from tokctl.tokenizer.byte_order import byte_alphabet
from tokctl.tokenizer.layout import Arithmetic, Characters, assemble
from tokctl.tokenizer.models.bpe_characters import CharacterBPE, EndOfWord
from tokctl.tokenizer.models.character_encoder import spell
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.trainers.character_alphabet import choose_alphabet
from tokctl.tokenizer.trainers.segments import Segments, byte_segments, split_at

if TYPE_CHECKING:
    from tokctl.tokenizer.trainers.bpe_extend import Growth

Words = tuple[np.ndarray, np.ndarray, np.ndarray]
"""``data uint8[]``, ``offsets int64[n + 1]``, ``counts int64[n]``."""

UNITS = ("byte", "character")
MAX_DROPPED = Decimal("0.001")


@dataclass(frozen=True, eq=False)
class Start:
    """A beginning.

    ``tokens`` are the symbols before the first merge, in the trainer's numbering. ``segments`` is None where the words
    are their bytes. ``fixed``: what the vocabulary has without merges. ``assemble`` makes the tokenizer of some merges
    (``int[m, 2]`` in the trainer's numbering). ``facts`` go to the manifest.
    """

    words: Words
    tokens: tuple[bytes, ...]
    fixed: Arithmetic
    assemble: Callable[[np.ndarray], Tokenizer]
    segments: Segments | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    growth: Growth | None = None
    """Of an extension: what says which merges may not be made."""

    @property
    def rows(self) -> Segments:
        """The words as symbols, in any case."""
        return self.segments or byte_segments(*self.words, self.tokens)


@dataclass(frozen=True)
class CharacterOptions:
    """Character-level BPE: the marker of a word's end (empty: none), its form, the unknown token, and the alphabet's limits."""

    end_of_word: str = "</w>"
    end_of_word_as: str = "suffix"
    unknown: str | None = None
    limit_alphabet: int | None = None
    character_coverage: Decimal | None = None
    max_dropped: Decimal = MAX_DROPPED

    def __post_init__(self) -> None:
        if self.end_of_word_as not in ("suffix", "symbol"):
            raise UsageError(
                f"the end of a word is marked as {self.end_of_word_as!r}", hint="suffix or symbol", code="end-of-word"
            )
        for name, share in (("character coverage", self.character_coverage), ("dropped share", self.max_dropped)):
            if share is not None and not 0 <= share <= 1:
                raise UsageError(
                    f"the {name} is {share}, not a share from 0 to 1", hint="such as 0.999", code="bad-share"
                )
        if self.limit_alphabet is not None and self.limit_alphabet < 1:
            raise UsageError(
                f"an alphabet of {self.limit_alphabet} characters is none", hint="1 or more", code="bad-limit"
            )

    @property
    def marker(self) -> EndOfWord | None:
        return EndOfWord(self.end_of_word, self.end_of_word_as == "suffix") if self.end_of_word else None


@dataclass(frozen=True)
class StartOptions:
    """What to begin with: bytes (``alphabet``, or all 256 in ``byte_order``), ``characters``, or the tokens of ``extend``."""

    unit: str = "byte"
    byte_order: str | None = None
    alphabet: tuple[bytes, ...] | None = None
    characters: CharacterOptions | None = None
    extend: Tokenizer | None = None
    specials: tuple[str, ...] = ()
    special_layout: str = "first"
    bos: str | None = None
    eos: str | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise UsageError(f"there is no unit {self.unit!r}", hint=f"choose one of: {', '.join(UNITS)}", code="unit")
        what = None
        if self.extend is not None and (self.byte_order, self.alphabet, self.characters) != (None, None, None):
            what = "an extension begins with the tokens of its base: unit, byte order and alphabet are the base's"
        elif self.unit == "character" and (self.byte_order, self.alphabet) != (None, None):
            what = "a byte order is for byte-level BPE; here the alphabet is the characters of the corpus"
        if what is not None:
            raise UsageError(what, hint="leave them out", code="options-differ")

    @property
    def default_pattern(self) -> str:
        return "whitespace" if self.unit == "character" else "gpt2"

    @property
    def fixed(self) -> Arithmetic:
        """What a vocabulary has without merges, as far as it is known before the words are."""
        n_specials = len(self.specials)
        if self.extend is not None:
            return Arithmetic(n_specials, n_inherited=self.extend.vocab_size)
        if self.unit == "character":
            return Arithmetic(n_specials)
        return Arithmetic(n_specials, n_bytes=256 if self.alphabet is None else len(self.alphabet))


def begin(
    words: Words, pre_tokenizer: PreTokenizer, options: StartOptions, vocab_size: int, *, workers: int = 1
) -> Start:
    """The beginning that ``options`` ask for; ``vocab_size`` is the smallest size that will be fitted."""
    if options.extend is not None:
        from tokctl.tokenizer.trainers.bpe_extend import from_tokenizer

        return from_tokenizer(
            words,
            options.extend,
            specials=options.specials,
            special_layout=options.special_layout,
            bos=options.bos,
            eos=options.eos,
            workers=workers,
        )
    parts = {
        "pre_tokenizer": pre_tokenizer,
        "specials": options.specials,
        "special_layout": options.special_layout,
        "bos": options.bos,
        "eos": options.eos,
    }
    if options.unit == "character":
        return from_characters(words, parts, options.characters or CharacterOptions(), vocab_size)
    return from_bytes(words, options.alphabet or byte_alphabet(options.byte_order or "gpt2"), parts)


def base_pre_tokenizer(base: Tokenizer, pattern: str | None, counted_with: PreTokenizer | None) -> PreTokenizer:
    """The base's pre-tokenizer; UsageError for another pattern, or for words that were counted with another."""
    own = base.pre_tokenizer
    if pattern is not None and PreTokenizer.from_pattern(pattern, own.unicode_version) != own:
        raise UsageError(
            f"the pattern {pattern!r} differs from the base's ({own.name}): its tokens would meet other words than those "
            "they were made for",
            hint="leave the pattern out: an extension keeps that of its base",
            code="pattern-differs",
        )
    if counted_with is not None and (base.normalizers or base.steps):
        raise UsageError(
            "the base rewrites text before it splits it (normalizers or steps), and these words were counted without that",
            hint="name the text itself instead of --counts",
            code="base-rewrites-text",
        )
    if counted_with is not None and counted_with != own:
        raise UsageError(
            f"these words were counted with {_named(counted_with)}, and the base splits with {_named(own)}",
            hint=f"count again with --pattern {own.name}, or name the text itself instead of --counts"
            if own.name != "regex"
            else "name the text itself instead of --counts",
            code="pattern-differs",
        )
    return own


def _named(pre_tokenizer: PreTokenizer) -> str:
    return f"{pre_tokenizer.name} of Unicode {pre_tokenizer.unicode_version}"


def from_bytes(words: Words, alphabet: Sequence[bytes], parts: Mapping[str, Any]) -> Start:
    """Begin with bytes: ``alphabet`` as in ``fit_bpe``, ``parts`` (what a tokenizer has besides) as in ``assemble``."""
    pre_tokenizer = parts["pre_tokenizer"]
    if pre_tokenizer.drops_space:
        raise UsageError(
            f"the pattern {pre_tokenizer.name} drops white space, which byte-level BPE keeps",
            hint=r"use another pattern, such as \s+ to keep white space as words of its own, or --unit character",
            code="white-space-lost",
        )
    base = tuple(alphabet)

    def make(merges: np.ndarray) -> Tokenizer:
        return assemble(base, merges, **parts)[0]

    return Start(words, base, Arithmetic(len(parts["specials"]), n_bytes=len(base)), make, facts={"unit": "byte"})


def from_characters(words: Words, parts: Mapping[str, Any], options: CharacterOptions, vocab_size: int) -> Start:
    """Begin with the characters of the words; a vocabulary of ``vocab_size``, the smallest asked for, has to hold them.

    White-space words are left out where the pre-tokenizer drops them. A character outside the alphabet separates what
    stands before it from what stands behind.
    """
    marker, pre_tokenizer = options.marker, parts["pre_tokenizer"]
    if pre_tokenizer.drops_space and marker is None:
        raise UsageError(
            "without a marker of word ends, decoding can't put back the spaces that the pattern drops",
            hint=r"--end-of-word '</w>', or a pattern that keeps white space, such as \s+ or gpt2",
            code="white-space-lost",
        )
    words, facts = without_space(words, pre_tokenizer)
    data, offsets, counts = words
    alphabet = choose_alphabet(
        data,
        offsets,
        counts,
        end_of_word=marker,
        limit=options.limit_alphabet,
        coverage=options.character_coverage,
        max_dropped=options.max_dropped,
        room=vocab_size - len(parts["specials"]),
    )
    tokens = alphabet.tokens
    if not tokens:
        raise DataError("the words have no characters to begin with", hint="give text", code="no-characters")
    characters = Characters(marker, options.unknown)

    def make(merges: np.ndarray) -> Tokenizer:
        return assemble(tokens, merges, characters=characters, **parts)[0]

    without_merges, fixed = assemble(tokens, np.empty((0, 2), np.int64), characters=characters, **parts)
    model = without_merges.model
    assert isinstance(model, CharacterBPE)
    symbols, at = spell(model, data, offsets[:-1], offsets[1:])
    is_gap = symbols < 0
    numbers = np.searchsorted(model.token_ids, np.where(is_gap, model.token_ids[0], symbols)).astype(np.int32)
    return Start(
        words,
        tokens,
        fixed,
        make,
        split_at(numbers, at, counts, is_gap),
        {
            "unit": "character",
            "end_of_word": options.end_of_word or None,
            "end_of_word_as": options.end_of_word_as if options.end_of_word else None,
            "alphabet": alphabet.to_json(),
            **facts,
        },
    )


def without_space(words: Words, pre_tokenizer: PreTokenizer) -> tuple[Words, dict[str, Any]]:
    """The words that the pre-tokenizer keeps, as contiguous arrays, and how often it dropped others."""
    data, offsets, counts = bytes_view(words[0]), np.asarray(words[1], np.int64), np.asarray(words[2], np.int64)
    if not pre_tokenizer.drops_space:
        return (data, writable_view(offsets), writable_view(counts)), {}
    starts, stops = writable_view(offsets[:-1]), writable_view(offsets[1:])
    kept = pre_tokenizer.filled_words(data, starts, stops)
    is_dropped = np.ones(len(counts), np.bool_)
    is_dropped[kept] = False
    n_dropped = sum(counts[is_dropped].tolist())
    lengths = (stops - starts)[kept]
    mask = np.zeros(len(data), np.bool_)
    mask[offsets[0] : offsets[-1]] = np.repeat(~is_dropped, stops - starts)
    new_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return (data[mask], new_offsets, writable_view(counts[kept])), {"white_space_dropped": str(n_dropped)}
