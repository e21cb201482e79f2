"""Split patterns against the libraries whose tokenizers use them: word for word, on all of Unicode."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracles import pattern as oracle

from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.pre_tokenizers import code_points as cp
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

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


def texts(seed: str, n: int) -> list[str]:
    edges = np.unique(np.concatenate([TABLE.category_starts, TABLE.category_starts[1:] - 1]))
    points = [point for point in edges.tolist() if not 0xD800 <= point < 0xE000]
    rng = random.Random(seed)
    out = [oracle.random_text(rng, points, rng.randrange(60)) for _ in range(n)]
    out.append("".join(f"a{c} {c}{c}1{c}\n{c}'{c}A" for c in map(chr, points)))
    out += [
        " " * 5000 + "x",
        "\r\n \n" * 500,
        "a" * 5000,
        "'s'S'\u017fx'll'LL'l",
        "\x00 \x00\x00a",
        "  \n\n  ",
        "a\n  ",
    ]
    return [text for text in out if text]


def ours(name: str, text: str) -> list[bytes]:
    data = text.encode()
    return [data[a:b] for a, b in pairwise([0, *PreTokenizer.from_pattern(name).split(data).tolist()])]


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


def byte_encoding(tiktoken: Any, pattern: str, extra: tuple[bytes, ...] = ()) -> Any:
    ranks = {bytes([byte]): byte for byte in range(256)}
    for token in extra:
        ranks.setdefault(token, len(ranks))
    return tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


@pytest.mark.parametrize("pattern", PROPERTIES)
def test_tiktoken_has_the_same_classes(pattern: str) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    # What a pattern doesn't match is dropped.
    encoding = byte_encoding(tiktoken, f"(?:{pattern})+")
    got = bytes(
        token for part in (EVERYTHING[:600_000], EVERYTHING[600_000:]) for token in encoding.encode_ordinary(part)
    )
    expected = "".join(EVERYTHING[index] for index in np.flatnonzero(members(pattern)))
    assert got.decode() == expected


def test_tiktoken_folds_case_alike() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    folds = TABLE.folds
    targets, sizes = np.unique(folds[:, 1], return_counts=True)
    cased = "".join(map(chr, np.unique(folds).tolist()))
    rng = random.Random("folds")
    chosen = [*targets[sizes > 1].tolist(), *rng.sample(targets.tolist(), 60), ord("i"), ord("ı"), ord("İ")]
    for point in chosen:
        got = bytes(byte_encoding(tiktoken, f"(?i:{chr(point)})").encode_ordinary(cased + "ıİ")).decode()
        points = cp.ignoring_case(TABLE, cp.CodePoints.of((point, point)))
        assert got == "".join(character for character in cased + "ıİ" if ord(character) in points), hex(point)


def huggingface(name: str) -> Any:
    """The pre-tokenizer that tokenizers runs for a name, without the mapping of bytes."""
    tokenizers = pytest.importorskip("tokenizers")
    steps = [tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated") for pattern in NAMED[name]]
    return tokenizers.pre_tokenizers.Sequence(steps)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_words_equal_those_of_tokenizers(name: str) -> None:
    pre_tokenizer = huggingface(name)
    for text in texts(f"hf-{name}", 1_500):
        assert ours(name, text) == [word.encode() for word, _ in pre_tokenizer.pre_tokenize_str(text)], text[:80]


def test_starcoder_and_gpt2_equal_the_built_in_pre_tokenizers() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    gpt2 = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    starcoder = tokenizers.pre_tokenizers.Sequence([tokenizers.pre_tokenizers.Digits(individual_digits=True), gpt2])
    for text in texts("built-in", 1_000):
        for name, pre_tokenizer in (("gpt2", gpt2), ("starcoder", starcoder)):
            got = [text[begin:end] for _, (begin, end) in pre_tokenizer.pre_tokenize_str(text)]
            assert ours(name, text) == [word.encode() for word in got], (name, text[:80])


@pytest.mark.parametrize(
    ("name", "module_name"),
    [("gpt2", "r50k_base"), ("gpt2", "p50k_base"), ("cl100k", "cl100k_base"), ("o200k", "o200k_base")],
)
def test_words_equal_those_of_tiktokens_own_patterns(
    name: str, module_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of our words is a token, and so is each pair of neighbours: a piece that is cut elsewhere gives other tokens.

    A piece that is a token becomes that token; one that is longer than our word holds a pair, so something merges.
    """
    tiktoken = pytest.importorskip("tiktoken")
    public = pytest.importorskip("tiktoken_ext.openai_public")
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda *_, **__: {})
    pattern = getattr(public, module_name)()["pat_str"]
    for chunk in np.array_split(np.array(texts(f"tiktoken-{module_name}", 1_500), object), 40):
        words = [ours(name, text) for text in chunk]
        tokens = [word for part in words for word in part]
        pairs = [a + b for part in words for a, b in pairwise(part)]
        encoding = byte_encoding(tiktoken, pattern, (*sorted(set(tokens)), *sorted(set(pairs))))
        for text, expected in zip(chunk, words, strict=True):
            got = encoding.decode_tokens_bytes(encoding.encode_ordinary(text))
            assert got == expected, text[:80]
