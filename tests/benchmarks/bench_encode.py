"""Encoding and decoding with a published vocabulary beside every peer that has it, with the same ids.

    python tests/benchmarks/bench_encode.py [--corpus NAME | --text FILE] [--vocabulary NAME] [--bytes N] [--threads N]
                                            [--repeats N] [--tool NAME]... [--quick]

Each tool runs in processes of its own: it imports, loads the vocabulary, encodes a few short texts (kernels and thread pools
are ready then, and caches of words nearly empty), reads its input, and is measured at

- ``encode cold``: the first pass over the text, with the peak of memory;
- ``encode warm``: later passes over the same text (the median of three, or one that takes more than two seconds);
- ``encode one string``: the first 2 MB as one text, warm;
- ``decode``: all ids of the text to bytes at once, as the array or list that the tool takes; MB/s of the bytes.

All texts are handed over in one call. ``input`` says as what: "arrow" and "strings" are in memory before; a "file" is read
during the measurement. ``output`` says what the call gives. ``same_ids``: whether the ids are tiktoken's; the exit code is 1
only when tokctl's are not, or when its decoded text differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness, text_input
from benchmarks.corpora import corpus
from benchmarks.encoders import ENCODERS, Encoder

WARM_UP = ["Hello, world! It's 2 o'clock.", "naïve café — 東京 Привет \U0001f600", "\n\n  x = y[10];\n", ""]
ONE_STRING = 2_000_000
LONG = 2.0
PASSES = 3
OURS = tuple(name for name, encoder in ENCODERS.items() if encoder.package == "tokctl")
ROWS = ("encode cold", "encode warm", "encode one string", "decode")


def read(encoder: Encoder, path: Path) -> Any:
    return {"arrow": text_input.arrow, "strings": text_input.strings, "file": Path}[encoder.input](path)


def as_input(encoder: Encoder, texts: list[str], scratch: Path) -> Any:
    """Some texts in the form that the encoder takes."""
    if encoder.input == "strings":
        return texts
    if encoder.input == "arrow":
        import pyarrow as pa

        return pa.array(texts, pa.large_string())
    path = scratch / f"texts-{len(texts)}-{sum(map(len, texts))}.txt"
    path.write_text(text_input.SEPARATOR.join(texts), "utf-8")
    return path


def timed(work: Callable[[], Any], first: float | None = None) -> dict[str, float]:
    """Median wall and processor time of some passes; of one, when it (or the pass before, ``first``) takes long."""
    walls, cpus = [], []
    while len(walls) < (1 if max([*walls, first or 0.0]) > LONG else PASSES):
        wall, cpu = time.perf_counter(), harness.cpu_seconds()
        value = work()
        walls.append(time.perf_counter() - wall)
        cpus.append(harness.cpu_seconds() - cpu)
        del value
    return {
        "wall_s": round(statistics.median(walls), 4),
        "cpu_s": round(statistics.median(cpus), 4),
        "n_passes": len(walls),
    }


def measure(tool: str, vocabulary: str, text: Path, threads: int) -> dict[str, Any]:
    """All rows of one tool, in this process."""
    encoder = ENCODERS[tool]
    encode, ids_of, prepare, decode = encoder.open(vocabulary, threads)
    with tempfile.TemporaryDirectory() as scratch:
        found = ids_of(encode(as_input(encoder, WARM_UP, Path(scratch))))
        if decode and prepare:
            decode(prepare(found))
        texts = read(encoder, text)
        encoded, cold = harness.measure(lambda: encode(texts))
        ids = np.array(ids_of(encoded), np.uint32)  # a copy of their own: the result itself goes before the next pass
        del encoded
        rows: dict[str, Any] = {"encode cold": cold, "encode warm": timed(lambda: encode(texts), cold["wall_s"])}
        start = text.read_bytes()[:ONE_STRING].decode("utf-8", errors="ignore")
        if encoder.input != "file":
            one = as_input(encoder, [start], Path(scratch))
            rows["encode one string"] = timed(lambda: encode(one))
            rows["encode one string"]["ids_sha256"] = digest(ids_of(encode(one)))
    cold["ids_sha256"] = digest(ids)
    if decode and prepare and encoder.input != "file":
        ready = prepare(ids)
        rows["decode"] = timed(lambda: decode(ready))
        rows["decode"]["input"] = "list of ids" if isinstance(ready, list) else "array of ids"
        rows["decode"]["output"] = "bytes"
        rows["decode"]["text_sha256"] = hashlib.sha256(decode(ready)).hexdigest()
    return {"wall_s": cold["wall_s"], "n_ids": len(ids), "rows": rows}


def digest(ids: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(ids, np.uint32).tobytes()).hexdigest()


def chosen(names: list[str] | None, vocabulary: str, benchmark: str) -> dict[str, str]:
    """The tools to run: name -> package. Says which are skipped."""
    found = {}
    for name in names or ENCODERS:
        encoder = ENCODERS[name]
        if not harness.is_installed(encoder.package):
            harness.skip(benchmark, name, f"{encoder.package} is not installed")
        elif vocabulary not in encoder.vocabularies:
            harness.skip(benchmark, name, f"it has no {vocabulary}")
        else:
            found[name] = encoder.package
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--corpus", default="en20", help="a text corpus of corpora.py: en20, en100, mixed20, mixed100, bundled"
    )
    parser.add_argument("--text", type=Path, help="a UTF-8 file instead of a corpus")
    parser.add_argument("--vocabulary", default="cl100k_base", choices=("r50k_base", "cl100k_base", "o200k_base"))
    parser.add_argument("--bytes", type=int, help="only the beginning of the text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tool", action="append", choices=list(ENCODERS), help="default: all that can")
    parser.add_argument("--quick", action="store_true", help="the bundled corpus, once")
    parser.add_argument("--here", choices=list(ENCODERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.corpus, arguments.repeats = "bundled", 1
    text = arguments.text or corpus(arguments.corpus) / "text.txt"
    if arguments.here:
        print(json.dumps(measure(arguments.here, arguments.vocabulary, text, arguments.threads)))
        return 0

    with tempfile.TemporaryDirectory() as scratch:
        label = arguments.corpus if arguments.text is None else arguments.text.name
        if arguments.bytes is not None:
            label += f" (first {arguments.bytes} bytes)"
            beginning = text_input.beginning(text, arguments.bytes)
            text = Path(scratch, "beginning.txt")
            text.write_bytes(beginning)
        return compare(text, f"{label} {arguments.vocabulary}, {arguments.threads} thread(s)", arguments)


def compare(text: Path, label: str, arguments: argparse.Namespace) -> int:
    options = ["--text", text, "--vocabulary", arguments.vocabulary, "--threads", arguments.threads]
    tools = chosen(arguments.tool, arguments.vocabulary, f"encode {label}")
    found = harness.in_turn(
        f"encode {label}", __file__, options, tools, repeats=arguments.repeats, threads=arguments.threads
    )
    sizes = dict.fromkeys(ROWS, sum(len(document.encode()) for document in text_input.strings(text)))
    sizes["encode one string"] = min(ONE_STRING, text.stat().st_size)
    wrong = False
    for row in ROWS:
        lines = []
        key = "text_sha256" if row == "decode" else "ids_sha256"
        wanted = next((run["rows"][row].get(key) for run in found.get("tiktoken", []) if row in run["rows"]), None)
        for name, runs in found.items():
            measured = [run["rows"][row] for run in runs if row in run["rows"]]
            if not measured:
                continue
            encoder = ENCODERS[name]
            stated = {"input": encoder.input, "output": encoder.output, "threads": arguments.threads}
            line = harness.result(
                f"{row} {label}", name, encoder.package, sizes[row], {**stated, **harness.middle(measured)}
            )
            line["n_ids"] = runs[0]["n_ids"]
            if row != "encode warm":
                same = wanted and all(run[key] == wanted for run in measured)
                line["same_text" if row == "decode" else "same_ids"] = same
                wrong |= name in OURS and same is False
            lines.append(line)
        harness.report(lines, ours=OURS)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
