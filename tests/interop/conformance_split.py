"""Split patterns against tokenizers and tiktoken: word for word, on random Unicode and on real text."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from interop import peer_fits
from interop.conformance_part import Check, Part
from oracles import pattern as oracle

from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

TIKTOKEN_PATTERNS = (("gpt2", "r50k_base"), ("gpt2", "p50k_base"), ("cl100k", "cl100k_base"), ("o200k", "o200k_base"))


def random_texts(seed: str, n: int) -> list[str]:
    """``n`` texts over the first and last code points of every run of one category, and some that are awkward."""
    table = unicode_tables.load()
    edges = np.unique(np.concatenate([table.category_starts, table.category_starts[1:] - 1]))
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


def tokctl_words(name: str, text: str) -> list[bytes]:
    """The words of a text under a named pattern."""
    data = text.encode()
    return [data[a:b] for a, b in pairwise([0, *PreTokenizer.from_pattern(name).split(data).tolist()])]


def tokenizers_splitter(name: str) -> Any:
    """The pre-tokenizer that tokenizers runs for a name, without the mapping of bytes."""
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in NAMED[name]])


def tiktoken_pattern(module_name: str) -> str:
    """The expression of one of tiktoken's own encodings, without fetching its ranks."""
    from unittest.mock import patch

    from tiktoken_ext import openai_public as public

    with patch.object(public, "load_tiktoken_bpe", lambda *_, **__: {}):
        return getattr(public, module_name)()["pat_str"]


def byte_encoding(pattern: str, extra: tuple[bytes, ...] = ()) -> Any:
    """A tiktoken encoding of the 256 bytes and ``extra``."""
    import tiktoken

    ranks = {bytes([byte]): byte for byte in range(256)}
    for token in extra:
        ranks.setdefault(token, len(ranks))
    return tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def tokenizers_differ(name: str, texts: list[str]) -> Any:
    """The first text that tokenizers cuts otherwise, or None."""
    theirs = tokenizers_splitter(name)
    for text in texts:
        found, expected = tokctl_words(name, text), [word.encode() for word, _ in theirs.pre_tokenize_str(text)]
        if found != expected:
            return _difference(text, found, expected)
    return None


def tiktoken_differ(name: str, pattern: str, texts: list[str]) -> Any:
    """The first text that tiktoken cuts otherwise, or None.

    Each of our words is a token, and so is each pair of neighbours: a piece that is cut elsewhere gives other tokens. A
    piece that is a token becomes that token; one that is longer than our word holds a pair, so something merges.
    """
    words = [tokctl_words(name, text) for text in texts]
    tokens = {word for part in words for word in part}
    pairs = {a + b for part in words for a, b in pairwise(part)}
    encoding = byte_encoding(pattern, (*sorted(tokens), *sorted(pairs)))
    for text, expected in zip(texts, words, strict=True):
        found = encoding.decode_tokens_bytes(encoding.encode_ordinary(text))
        if found != expected:
            return _difference(text, expected, found)
    return None


def _difference(text: str, ours: list[bytes], theirs: list[bytes]) -> dict[str, Any]:
    at = peer_fits.first_difference(ours, theirs)
    return {"text": text[:80], "word": at, "tokctl": ours[at : at + 2], "peer": theirs[at : at + 2]}


def _texts(quick: bool, seed: str) -> Iterator[tuple[str, list[str]]]:
    """(name, texts): random Unicode and real corpora."""
    yield "random Unicode", random_texts(seed, 200 if quick else 20_000)
    articles = peer_fits.documents("udhr")
    yield "udhr", random.Random(seed).sample(articles, 100) if quick else articles
    if not quick:
        for corpus in ("mixed20", "en20"):
            yield corpus, peer_fits.documents(corpus)


def _check(case: str, texts: list[str], differ: Callable[[list[str]], Any]) -> Check:
    size = 1_000
    parts = (texts[start : start + size] for start in range(0, len(texts), size))
    return Check(case, len(texts), next((found for part in parts if (found := differ(part)) is not None), None))


def against_tokenizers(quick: bool) -> Iterator[Check]:
    """Every named pattern."""
    for name in NAMED:
        for what, texts in _texts(quick, f"conformance-{name}"):
            yield _check(f"{name}: {what}", texts, lambda part, name=name: tokenizers_differ(name, part))


def against_tiktoken(quick: bool) -> Iterator[Check]:
    """The named patterns that are tiktoken's, against its own expressions."""
    for name, module_name in TIKTOKEN_PATTERNS:
        pattern = tiktoken_pattern(module_name)
        for what, texts in _texts(quick, f"conformance-{module_name}"):
            texts = [text for text in texts if text]
            yield _check(
                f"{name} ({module_name}): {what}",
                texts,
                lambda part, name=name, pattern=pattern: tiktoken_differ(name, pattern, part),
            )


PARTS = (
    Part("split-tokenizers", ("tokenizers",), "words of every named pattern equal tokenizers'", against_tokenizers),
    Part("split-tiktoken", ("tiktoken",), "words equal those of tiktoken's own patterns", against_tiktoken),
)
