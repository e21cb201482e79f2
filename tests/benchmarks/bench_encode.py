"""Encoding and decoding with cl100k_base: tokctl beside tiktoken and tokenizers, one thread, the same ids.

    python tests/benchmarks/bench_encode.py [--corpus NAME] [--vocabulary NAME] [--bytes N] [--repeats N]

Two JSON lines a tool, encoding and decoding, each tool in processes of its own. The vocabulary is OpenAI's published one;
tokenizers reads tokctl's export of it. Documents are the text's blocks between blank lines, handed over in lists of 1,000.
tokctl is measured twice: as lists of Python integers, which is what the peers give, and as arrays (``tokctl-flat``).
``ids_sha256`` and the decoded text must be equal, else the exit code is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness
from benchmarks.corpora import corpus
from interop import real_vocabularies as real

BATCH = 1_000
Encode = Callable[[list[str]], Any]
Decode = Callable[[Any], list[str]]


def read_documents(name: str, n_bytes: int | None) -> list[str]:
    text = (corpus(name) / "text.txt").read_bytes()[:n_bytes].decode("utf-8", errors="ignore")
    return text.split("\n\n")


def use_tokctl(ranks: Path) -> tuple[Encode, Decode]:
    import tokctl

    tokenizer = tokctl.load(ranks)
    return tokenizer.encode_batch, lambda batch: [tokenizer.decode(ids) for ids in batch]


def use_tokctl_flat(ranks: Path) -> tuple[Encode, Decode]:
    import tokctl

    tokenizer = tokctl.load(ranks)

    def encode(texts: list[str]) -> Any:
        ids, offsets = tokenizer.encode_flat(texts)
        return [ids[begin:end] for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]

    return encode, lambda batch: [tokenizer.decode(ids) for ids in batch]


def use_tiktoken(ranks: Path) -> tuple[Encode, Decode]:
    import tiktoken

    from tokctl.tokenizer.formats.tiktoken import read_ranks

    sibling = json.loads(ranks.with_suffix(".json").read_text())
    encoding = tiktoken.Encoding(
        ranks.stem, pat_str=sibling["pattern"], mergeable_ranks=read_ranks(ranks), special_tokens=sibling["specials"]
    )
    encode, decode = encoding.encode_ordinary, encoding.decode
    return lambda texts: [encode(text) for text in texts], lambda batch: [decode(ids) for ids in batch]


def use_tokenizers(ranks: Path) -> tuple[Encode, Decode]:
    import tokenizers

    import tokctl
    from tokctl.tokenizer.formats.huggingface import export

    with tempfile.TemporaryDirectory() as directory:
        export(tokctl.load(ranks), Path(directory))
        tokenizer = tokenizers.Tokenizer.from_file(str(Path(directory, "tokenizer.json")))
    return (
        lambda texts: [found.ids for found in tokenizer.encode_batch_fast(texts, add_special_tokens=False)],
        lambda batch: tokenizer.decode_batch(batch, skip_special_tokens=False),
    )


TOOLS: dict[str, tuple[str, Callable[[Path], tuple[Encode, Decode]]]] = {
    "tokctl": ("tokctl", use_tokctl),
    "tokctl-flat": ("tokctl", use_tokctl_flat),
    "tiktoken": ("tiktoken", use_tiktoken),
    "tokenizers": ("tokenizers", use_tokenizers),
}


def measure(tool: str, ranks: Path, documents: list[str]) -> dict[str, Any]:
    """Both directions, in this process."""
    encode, decode = TOOLS[tool][1](ranks)
    batches = [documents[start : start + BATCH] for start in range(0, len(documents), BATCH)]
    decode(encode(documents[:50]))
    encoded, encoding = harness.measure(lambda: [encode(batch) for batch in batches])
    decoded, decoding = harness.measure(lambda: [decode(batch) for batch in encoded])
    ids, text, n_ids = hashlib.sha256(), hashlib.sha256(), 0
    for batch, texts in zip(encoded, decoded, strict=True):
        for found, back in zip(batch, texts, strict=True):
            ids.update(array("I", found).tobytes())
            text.update(back.encode())
            n_ids += len(found)
    return {
        "wall_s": encoding["wall_s"] + decoding["wall_s"],
        "encode": {**encoding, "n_ids": n_ids, "ids_sha256": ids.hexdigest()},
        "decode": {**decoding, "n_ids": n_ids, "text_sha256": text.hexdigest()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="en20", help="a text corpus of corpora.py (en20, en100, mixed20, mixed100)")
    parser.add_argument("--vocabulary", default="cl100k_base", choices=("r50k_base", "cl100k_base", "o200k_base"))
    parser.add_argument("--bytes", type=int, help="only the beginning of the text")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--here", choices=list(TOOLS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    ranks = real.tiktoken_ranks(arguments.vocabulary)
    documents = read_documents(arguments.corpus, arguments.bytes)
    if arguments.here:
        print(json.dumps(measure(arguments.here, ranks, documents)))
        return 0

    n_bytes = sum(len(text.encode()) for text in documents)
    options: list[object] = ["--corpus", arguments.corpus, "--vocabulary", arguments.vocabulary]
    if arguments.bytes is not None:
        options += ["--bytes", arguments.bytes]
    lines: dict[str, list[dict[str, Any]]] = {"encode": [], "decode": []}
    for tool, (package, _) in TOOLS.items():
        peer = package != "tokctl"
        found = harness.here(__file__, options, tool, repeats=arguments.repeats, peer=peer)
        for direction, results in lines.items():
            benchmark = f"{direction} {arguments.corpus} {arguments.vocabulary}"
            measured = {**found[direction], "repeats": len(found["runs"])}
            results.append(harness.result(benchmark, tool, package, n_bytes, measured))
    for results in lines.values():
        harness.report(results, ours=("tokctl", "tokctl-flat"))
    digests = {line["ids_sha256"] for line in lines["encode"]}, {line["text_sha256"] for line in lines["decode"]}
    return int(any(len(found) > 1 for found in digests))


if __name__ == "__main__":
    sys.exit(main())
