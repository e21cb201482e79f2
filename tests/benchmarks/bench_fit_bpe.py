"""Fitting byte-level BPE from text: time and memory beside tokenizers, rustbpe and sentencepiece, with the same merges.

    python tests/benchmarks/bench_fit_bpe.py [--corpus NAME | --text FILE] [--vocab-size N] [--pattern NAME]
                                             [--repeats N] [--fitter NAME]...

One JSON line a fitter, each measured in processes of its own on one thread: it reads the text, warms up on a small part of
it, and then counts words and fits (``tokctl.count_words`` and ``tokctl.fit``). Imports, compiling and reading are not
measured. tokctl's count_seconds and fit_seconds are stated apart; the peers can't part them. Documents are the text's blocks
between blank lines, one item each. ``merged_sha256`` is over the merged tokens in rank order: tokctl must equal tokenizers,
and tokctl-raw (raw byte order) rustbpe, else the exit code is 1. sentencepiece's BPE is another algorithm (characters, its
own words and lines as sentences), so that only its time can be compared. tokenizers runs GPT-2's pattern by its own
ByteLevel, the fastest way it has.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness
from benchmarks.corpora import corpus

WARM_UP_DOCUMENTS = 200
Fitter = Callable[[list[str], int, str], Callable[[], tuple[list[bytes], dict[str, float]]]]


def fit_tokctl(byte_order: str) -> Fitter:
    import tokctl

    def fit(documents: list[str], vocab_size: int, pattern: str) -> Callable[[], tuple[list[bytes], dict[str, float]]]:
        started = time.perf_counter()
        counts = tokctl.count_words(documents, pattern)
        counted = time.perf_counter()
        fitted = tokctl.fit("bpe", counts, vocab_size=vocab_size, pattern=pattern, byte_order=byte_order)
        done = time.perf_counter()
        figures = {"count_seconds": counted - started, "fit_seconds": done - counted, "n_words": counts.n_words}
        return lambda: ([fitted.token_bytes(number) for number in range(256, vocab_size)], figures)

    return fit


def fit_tokenizers() -> Fitter:
    import tokenizers  # noqa: F401  imported before the measurement
    from interop import peer_fits

    def fit(documents: list[str], vocab_size: int, pattern: str) -> Callable[[], tuple[list[bytes], dict[str, float]]]:
        words = peer_fits.built_in_gpt2() if pattern == "gpt2" else peer_fits.pre_tokenizer(pattern)
        fitted = peer_fits.fit_tokenizers(documents, vocab_size, words)
        return lambda: ([left + right for left, right in peer_fits.tokenizers_merges(fitted)], {})

    return fit


def fit_rustbpe() -> Fitter:
    import rustbpe  # noqa: F401  imported before the measurement
    from interop import peer_fits

    def fit(documents: list[str], vocab_size: int, pattern: str) -> Callable[[], tuple[list[bytes], dict[str, float]]]:
        tokens = peer_fits.fit_rustbpe(documents, vocab_size, pattern)
        return lambda: (tokens[256:], {})

    return fit


def fit_sentencepiece() -> Fitter:
    import sentencepiece

    def fit(documents: list[str], vocab_size: int, pattern: str) -> Callable[[], tuple[list[bytes], dict[str, float]]]:
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line for text in documents for line in text.split("\n")),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocab_size,
            character_coverage=1.0,
            byte_fallback=True,
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            max_sentence_length=1 << 24,
            num_threads=1,
            minloglevel=2,
        )
        size = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).get_piece_size()
        return lambda: ([], {"n_pieces": size})

    return fit


FITTERS: dict[str, tuple[str, Callable[[], Fitter]]] = {
    "tokctl": ("tokctl", lambda: fit_tokctl("gpt2")),
    "tokctl-raw": ("tokctl", lambda: fit_tokctl("raw")),
    "tokenizers": ("tokenizers", fit_tokenizers),
    "rustbpe": ("rustbpe", fit_rustbpe),
    "sentencepiece": ("sentencepiece", fit_sentencepiece),
}
SAME_MERGES = (("tokctl", "tokenizers"), ("tokctl-raw", "rustbpe"))


def measure(name: str, text: Path, vocab_size: int, pattern: str) -> dict[str, object]:
    """One measurement, in this process."""
    documents = text.read_text("utf-8").split("\n\n")
    fit = FITTERS[name][1]()
    fit(documents[:WARM_UP_DOCUMENTS], 1024, pattern)
    tokens_and_figures, usage = harness.measure(lambda: fit(documents, vocab_size, pattern))
    tokens, figures = tokens_and_figures()
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(len(token).to_bytes(4, "big") + token)
    sha256 = digest.hexdigest() if tokens else None
    rounded = {key: round(value, 4) for key, value in figures.items()}
    return {**usage, **rounded, "n_merges": len(tokens) or None, "merged_sha256": sha256}


def main() -> int:
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
        return 0

    label = arguments.corpus if arguments.text is None else arguments.text.name
    benchmark = f"fit bpe {label} {arguments.pattern} {arguments.vocab_size}"
    options = ["--text", text, "--vocab-size", arguments.vocab_size, "--pattern", arguments.pattern]
    lines = {}
    for name in arguments.fitter or FITTERS:
        package = FITTERS[name][0]
        measured = harness.here(__file__, options, name, repeats=arguments.repeats, peer=package != "tokctl")
        lines[name] = harness.result(benchmark, name, package, text.stat().st_size, measured)
    agree = True
    for ours, peer in SAME_MERGES:
        if ours in lines and peer in lines:
            same = lines[ours]["merged_sha256"] == lines[peer]["merged_sha256"]
            lines[ours]["same_merges_as"] = {peer: same}
            agree &= same
    harness.report([*lines.values()], ours=("tokctl", "tokctl-raw"))
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
