"""Split patterns against the libraries whose tokenizers use them: word for word, on all of Unicode."""

from __future__ import annotations

import random

import numpy as np
import pytest
from interop.conformance_split import (
    TIKTOKEN_PATTERNS,
    byte_encoding,
    random_texts,
    tiktoken_differ,
    tiktoken_pattern,
    tokctl_words,
    tokenizers_differ,
)

from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.pre_tokenizers import code_points as cp
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED

TABLE = unicode_tables.load()
EVERYTHING = "".join(chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000)
POINTS = np.array([point for point in range(0x110000) if not 0xD800 <= point < 0xE000])

# What patterns are made of, and the rest of the categories by their groups.
PROPERTIES = [r"\p{L}", r"\p{M}", r"\p{N}", r"\p{P}", r"\p{S}", r"\p{Z}", r"\p{C}", r"\s", r"\d"]
PROPERTIES += [
    rf"\p{{{name}}}" for name in ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Nd", "Cn", "Han", "Hiragana", "Katakana")
]


def members(pattern: str) -> np.ndarray:
    """bool[n]: which of POINTS tokctl takes for members of a class."""
    if pattern == r"\s":
        points = cp.white_space(TABLE)
    elif pattern == r"\d":
        points = cp.category(TABLE, "Nd")
    else:
        found = cp.named_property(TABLE, pattern[3:-1])
        assert found is not None
        points = found
    return points.contains(POINTS)


def test_tokenizers_has_the_same_categories() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    names = [name for name in unicode_tables.CATEGORIES if name != "Cs"]
    every_run = "|".join(rf"\p{{{name}}}+" for name in names)
    spans = tokenizers.pre_tokenizers.Split(tokenizers.Regex(every_run), "isolated").pre_tokenize_str(EVERYTHING)
    codes = np.repeat(TABLE.category_values, np.diff(np.append(TABLE.category_starts, 0x110000)))[POINTS]
    starts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist()]
    assert [begin for _, (begin, _) in spans] == starts


@pytest.mark.parametrize("pattern", [r"\p{L}", r"\p{N}", r"\p{Lu}", r"\p{Lm}", r"\s"])
def test_tokenizers_has_the_same_classes(pattern: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(f"(?:{pattern})+"), "removed", invert=True)
    got = np.zeros(POINTS.size, bool)
    for _, (begin, end) in split.pre_tokenize_str(EVERYTHING):
        got[begin:end] = True
    assert [hex(point) for point in POINTS[got != members(pattern)]] == []


@pytest.mark.parametrize("pattern", PROPERTIES)
def test_tiktoken_has_the_same_classes(pattern: str) -> None:
    pytest.importorskip("tiktoken")
    # What a pattern doesn't match is dropped.
    encoding = byte_encoding(f"(?:{pattern})+")
    got = bytes(
        token for part in (EVERYTHING[:600_000], EVERYTHING[600_000:]) for token in encoding.encode_ordinary(part)
    )
    expected = "".join(EVERYTHING[index] for index in np.flatnonzero(members(pattern)))
    assert got.decode() == expected


def test_tiktoken_folds_case_alike() -> None:
    pytest.importorskip("tiktoken")
    folds = TABLE.folds
    targets, sizes = np.unique(folds[:, 1], return_counts=True)
    cased = "".join(map(chr, np.unique(folds).tolist()))
    rng = random.Random("folds")
    chosen = [*targets[sizes > 1].tolist(), *rng.sample(targets.tolist(), 60), ord("i"), ord("ı"), ord("İ")]
    for point in chosen:
        got = bytes(byte_encoding(f"(?i:{chr(point)})").encode_ordinary(cased + "ıİ")).decode()
        points = cp.ignoring_case(TABLE, cp.CodePoints.of((point, point)))
        assert got == "".join(character for character in cased + "ıİ" if ord(character) in points), hex(point)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_words_equal_those_of_tokenizers(name: str) -> None:
    pytest.importorskip("tokenizers")
    assert tokenizers_differ(name, random_texts(f"hf-{name}", 1_500)) is None


def test_starcoder_and_gpt2_equal_the_built_in_pre_tokenizers() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    gpt2 = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    starcoder = tokenizers.pre_tokenizers.Sequence([tokenizers.pre_tokenizers.Digits(individual_digits=True), gpt2])
    for text in random_texts("built-in", 1_000):
        for name, pre_tokenizer in (("gpt2", gpt2), ("starcoder", starcoder)):
            got = [text[begin:end] for _, (begin, end) in pre_tokenizer.pre_tokenize_str(text)]
            assert tokctl_words(name, text) == [word.encode() for word in got], (name, text[:80])


@pytest.mark.parametrize(("name", "module_name"), TIKTOKEN_PATTERNS)
def test_words_equal_those_of_tiktokens_own_patterns(name: str, module_name: str) -> None:
    pytest.importorskip("tiktoken")
    pattern = tiktoken_pattern(module_name)
    texts = random_texts(f"tiktoken-{module_name}", 1_500)
    for start in range(0, len(texts), 40):
        assert tiktoken_differ(name, pattern, texts[start : start + 40]) is None
