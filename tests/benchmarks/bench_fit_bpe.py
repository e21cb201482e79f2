"""Fitting byte-level BPE: time and memory beside tokenizers and rustbpe, on the same text, with the same merges.

    python tests/benchmarks/bench_fit_bpe.py [--corpus NAME | --text FILE] [--vocab-size N] [--pattern NAME]
                                             [--repeats N] [--fitter NAME]...

One JSON line a fitter. Each measurement is a process of its own on one thread: it reads the text, warms up on a small
part of it, and then counts words and fits. Imports, compiling and reading are not counted, neither in seconds nor in
the memory, which is the peak above what was resident before. tokctl's ``count_seconds`` and ``fit_seconds`` are stated
apart; the peers can't part them. Documents are the text's blocks between blank lines, one item each. ``merged_sha256``
is over the merged tokens in rank order: tokctl equals tokenizers, tokctl-raw (raw byte order) equals rustbpe.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.corpora import corpus

WARM_UP_DOCUMENTS = 200


def memory(name: str) -> int:
    """A field of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024


def tokctl_fitter(byte_order: str) -> Callable[[list[str], int, str], tuple[list[bytes], dict[str, float]]]:
    import pyarrow as pa

    from tokctl.corpus.word_counts.counter import WordCounter
    from tokctl.tokenizer.byte_order import byte_alphabet
    from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
    from tokctl.tokenizer.trainers.bpe import fit_bpe

    def fit(documents: list[str], vocab_size: int, pattern: str) -> tuple[list[bytes], dict[str, float]]:
        texts = pa.array(documents, pa.large_string())
        started = time.perf_counter()
        counter = WordCounter(PreTokenizer.from_pattern(pattern))
        counter.add_texts(texts)
        words = counter.finish_in_memory()[0]
        counted = time.perf_counter()
        alphabet = byte_alphabet(byte_order)
        result = fit_bpe(words.data, words.offsets, words.counts, n_merges=vocab_size - 256, alphabet=alphabet)
        done = time.perf_counter()
        strings = list(alphabet)
        for left, right in result.merges.tolist():
            strings.append(strings[left] + strings[right])
        n_symbols = int(words.offsets[-1])
        return strings[256:], {
            "seconds": done - started,
            "count_seconds": counted - started,
            "fit_seconds": done - counted,
            "n_words": words.n_words,
            "n_symbols": n_symbols,
        }

    return fit


def tokenizers_fitter() -> Callable[[list[str], int, str], tuple[list[bytes], dict[str, float]]]:
    import tokenizers
    from tokenizers import pre_tokenizers

    from tokctl.tokenizer.byte_order import unspell_bytes
    from tokctl.tokenizer.pre_tokenizers.patterns import NAMED

    def fit(documents: list[str], vocab_size: int, pattern: str) -> tuple[list[bytes], dict[str, float]]:
        started = time.perf_counter()
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        if pattern == "gpt2":
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        else:
            splits = [pre_tokenizers.Split(tokenizers.Regex(regex), "isolated") for regex in NAMED[pattern]]
            byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(iter(documents), trainer)
        seconds = time.perf_counter() - started
        merges = json.loads(tokenizer.to_str())["model"]["merges"]
        return [unspell_bytes(left + right) for left, right in merges], {"seconds": seconds}

    return fit


def rustbpe_fitter() -> Callable[[list[str], int, str], tuple[list[bytes], dict[str, float]]]:
    import rustbpe

    from tokctl.tokenizer.pre_tokenizers.patterns import NAMED

    def fit(documents: list[str], vocab_size: int, pattern: str) -> tuple[list[bytes], dict[str, float]]:
        (regex,) = NAMED[pattern]
        started = time.perf_counter()
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(iter(documents), vocab_size, pattern=regex)
        seconds = time.perf_counter() - started
        ranks = sorted(tokenizer.get_mergeable_ranks(), key=lambda item: item[1])
        return [bytes(token) for token, _ in ranks[256:]], {"seconds": seconds}

    return fit


FITTERS = {
    "tokctl": lambda: tokctl_fitter("gpt2"),
    "tokctl-raw": lambda: tokctl_fitter("raw"),
    "tokenizers": tokenizers_fitter,
    "rustbpe": rustbpe_fitter,
}


def measure(name: str, text: Path, vocab_size: int, pattern: str) -> dict[str, object]:
    """One measurement, in this process."""
    documents = text.read_text("utf-8").split("\n\n")
    fit = FITTERS[name]()
    fit(documents[:WARM_UP_DOCUMENTS], 4096, pattern)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is resident now
    resident = memory("VmRSS")
    tokens, seconds = fit(documents, vocab_size, pattern)
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(len(token).to_bytes(4, "big") + token)
    peak = memory("VmHWM") - resident
    return seconds | {"peak_bytes": peak, "n_merges": len(tokens), "merged_sha256": digest.hexdigest()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="en20", help="a text corpus of corpora.py (en20, en100, mixed20, mixed100)")
    parser.add_argument("--text", type=Path, help="a UTF-8 file instead of a corpus")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--pattern", default="gpt2")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--fitter", action="append", choices=list(FITTERS), help="default: all")
    parser.add_argument("--here", choices=list(FITTERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    text = arguments.text or corpus(arguments.corpus) / "text.txt"
    if arguments.here:
        print(json.dumps(measure(arguments.here, text, arguments.vocab_size, arguments.pattern)))
        return

    environment = os.environ | {"RAYON_NUM_THREADS": "1"}
    options = ["--text", str(text), "--vocab-size", str(arguments.vocab_size), "--pattern", arguments.pattern]
    for name in arguments.fitter or FITTERS:
        command = [sys.executable, __file__, *options, "--here", name]
        runs = []
        for _ in range(arguments.repeats):
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode:
                sys.exit(f"{name} failed:\n{done.stderr}")
            runs.append(json.loads(done.stdout))
        median = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
        n_bytes = text.stat().st_size
        row = {"fitter": name, "text": text.parent.name if arguments.text is None else text.name, "bytes": n_bytes}
        row |= {"pattern": arguments.pattern, "vocab_size": arguments.vocab_size, "repeats": len(runs)} | median
        row["megabytes_per_second"] = n_bytes / 1e6 / statistics.median(run["seconds"] for run in runs)
        row = {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
