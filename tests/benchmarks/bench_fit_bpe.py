"""Fitting byte-level BPE from text: time and memory beside every peer that can, with the same merges.

    python tests/benchmarks/bench_fit_bpe.py [--corpus NAME | --text FILE] [--vocab-size N] [--pattern NAME] [--threads N]
                                             [--repeats N] [--fitter NAME]... [--quick]

One JSON line a fitter, each measured in processes of its own: it imports, warms up on a small text, reads its input, gives
unused memory back, and then counts words and fits. Imports and compiling are not measured. ``input`` says what it took:
"arrow" and "strings" are in memory before the measurement, and so in the baseline of memory; a "file" is read during it,
from the page cache. tokctl counts from Arrow; ``tokctl-file`` is the command ``tokctl fit bpe FILE``, which also checks its
input and writes and digests its output. count_s and fit_s of tokctl are stated apart; the peers can't part them.

``merged_sha256`` is over the merged tokens in rank order, the first vocab_size - 256 of them (gigabpe leaves bytes out that
the text doesn't have, and merges a few more instead). A fitter whose ties are those of tokenizers must agree with tokctl,
rustbpe with tokctl in raw byte order (``tokctl-raw``, run once); ``same_merges`` says so, and the exit code is 1 when tokctl
differs from any of them. sentencepiece's BPE is another algorithm, so that only its time can be compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness, text_input
from benchmarks.corpora import corpus
from benchmarks.fitters import FITTERS

WARM_UP_BYTES = 200_000
WARM_UP_SIZE = 2_000
OURS = tuple(name for name, fitter in FITTERS.items() if fitter.package == "tokctl")


def measure(name: str, text: Path, vocab_size: int, pattern: str, threads: int) -> dict[str, Any]:
    """One measurement, in this process."""
    fitter = FITTERS[name]
    fit, tokens_of = fitter.open(pattern, threads)
    read = {"arrow": text_input.arrow, "strings": text_input.strings, "file": Path}[fitter.input]
    with tempfile.TemporaryDirectory() as scratch:
        small = Path(scratch, "small.txt")
        small.write_bytes(text_input.beginning(text, WARM_UP_BYTES))
        fit(read(small), WARM_UP_SIZE)
    documents = read(text)
    fitted, usage = harness.measure(lambda: fit(documents, vocab_size))
    figures = {}
    if fitter.input == "arrow":
        figures = {key: round(value, 4) for key, value in fitted[1].items()}
        figures["input_mb"] = round(documents.nbytes / 1e6, 1)
    tokens = tokens_of(fitted)
    return {**usage, **figures, "n_merges": len(tokens), "merged_sha256": digest(tokens[: vocab_size - 256])}


def digest(tokens: list[bytes]) -> str | None:
    """The sha256 of tokens, each behind its length; None of no tokens."""
    framed = hashlib.sha256()
    for token in tokens:
        framed.update(len(token).to_bytes(4, "big") + token)
    return framed.hexdigest() if tokens else None


def chosen(names: list[str] | None, pattern: str, benchmark: str) -> dict[str, str]:
    """The fitters to run: name -> package. Says which are skipped."""
    found = {}
    for name in names or FITTERS:
        fitter = FITTERS[name]
        if not harness.is_installed(fitter.package):
            harness.skip(benchmark, name, f"{fitter.package} is not installed")
        elif pattern not in fitter.patterns:
            harness.skip(benchmark, name, f"it can't fit with the pattern {pattern}")
        else:
            found[name] = fitter.package
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--corpus", default="en20", help="a text corpus of corpora.py: en20, en100, mixed20, mixed100, bundled"
    )
    parser.add_argument("--text", type=Path, help="a UTF-8 file instead of a corpus")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--pattern", default="gpt2", choices=("gpt2", "cl100k", "o200k"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--fitter", action="append", choices=list(FITTERS), help="default: all that can")
    parser.add_argument("--quick", action="store_true", help="the bundled corpus, 8,000 tokens, once")
    parser.add_argument("--here", choices=list(FITTERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.corpus, arguments.vocab_size, arguments.repeats = "bundled", 8_000, 1
    text = arguments.text or corpus(arguments.corpus) / "text.txt"
    if arguments.here:
        measured = measure(arguments.here, text, arguments.vocab_size, arguments.pattern, arguments.threads)
        print(json.dumps(measured))
        return 0

    label = arguments.corpus if arguments.text is None else arguments.text.name
    benchmark = f"fit bpe {label} {arguments.pattern} {arguments.vocab_size}, {arguments.threads} thread(s)"
    options = ["--text", text, "--vocab-size", arguments.vocab_size, "--pattern", arguments.pattern]
    options += ["--threads", arguments.threads]
    tools = chosen(arguments.fitter, arguments.pattern, benchmark)
    raw = tools.pop("tokctl-raw", None)
    found = harness.in_turn(benchmark, __file__, options, tools, repeats=arguments.repeats, threads=arguments.threads)
    if raw:
        found["tokctl-raw"] = [harness.run_here(__file__, options, "tokctl-raw", arguments.threads)]
    lines = []
    for name, runs in found.items():
        fitter = FITTERS[name]
        measured = {"input": fitter.input, "note": fitter.note, "threads": arguments.threads, **harness.middle(runs)}
        line = harness.result(benchmark, name, fitter.package, text.stat().st_size, measured)
        line["same_merges"] = same_merges(name, found)
        lines.append(line)
    harness.report(lines, ours=OURS)
    return int(any(line["same_merges"] is False for line in lines))


def same_merges(name: str, found: dict[str, list[dict[str, Any]]]) -> bool | None:
    """Whether a fitter's merges are tokctl's of the same ties, in every run; None where there is nothing to compare."""
    ours = {"gpt2": "tokctl", "raw": "tokctl-raw"}.get(FITTERS[name].merges)
    if ours not in found:
        return None
    wanted = found[ours][0]["merged_sha256"]
    return all(run["merged_sha256"] == wanted for run in found[name])


if __name__ == "__main__":
    sys.exit(main())
