"""Counting words: bytes per second beside the peers that can, on one core and two; and streamed, under memory limits.

    python tests/benchmarks/bench_count.py [--corpus en20|en100|... | --text FILE] [--pattern NAME]... [--threads N]...
                                           [--repeats N] [--only beside|streamed] [--quick]

``count ...`` lines: text in memory (a file, where a peer takes nothing else) to all distinct words with their counts, each tool
in processes of its own, its imports and compiling not measured; see ``counters.py`` for how each is asked. The lines of two
threads have ``times_one_thread``. ``tokctl-scan`` finds the words and counts nothing; it is at most what a count can reach.

``streamed ...`` lines: the count as its stage runs it, from a Parquet file to a Parquet file, for several configurations.
``share`` has each phase's part of the processor time of one worker: scanning (timed apart, without a table), probing the table
(the difference), sorting and writing. The baseline of memory is before the input is opened.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness, text_input
from benchmarks.corpora import corpus
from benchmarks.counters import COUNTERS

from tokctl.corpus.word_counts import Batch, WordCounter
from tokctl.corpus.word_counts.text import flat_text
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

OURS = ("tokctl", "tokctl-scan")
PASSES = 3
GROUP_BYTES = 1 << 20
STREAMED: dict[str, dict[str, Any]] = {
    "gpt2": {"pattern": "gpt2"},
    "gpt2, 3 specials": {"pattern": "gpt2", "specials": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]},
    "gpt2, 2 workers": {"pattern": "gpt2", "workers": 2},
    "gpt2, 64 MiB": {"pattern": "gpt2", "memory_limit": 64 << 20},
    "gpt2, 256 MiB": {"pattern": "gpt2", "memory_limit": 256 << 20},
    "cl100k": {"pattern": "cl100k"},
    "o200k": {"pattern": "o200k"},
    "none": {"pattern": "none"},
}


# -- beside the peers


def measure_beside(tool: str, text: Path, pattern: str, threads: int) -> dict[str, Any]:
    """The first count with its memory, and the median time of some more, in this process."""
    counter = COUNTERS[tool]
    count, n_words = counter.open(pattern, threads)
    read = {"arrow": text_input.arrow, "strings": text_input.strings, "file": Path, "bytes": Path.read_bytes}
    with tempfile.TemporaryDirectory() as scratch:
        small = Path(scratch, "small.txt")
        small.write_bytes(text_input.beginning(text, 200_000))
        count(read[counter.input](small))
    documents = read[counter.input](text)
    counted, first = harness.measure(lambda: count(documents))
    found = n_words(counted)
    del counted
    walls, cpus = [first["wall_s"]], [first["cpu_s"]]
    for _ in range(PASSES - 1):
        wall, cpu = time.perf_counter(), harness.cpu_seconds()
        count(documents)
        walls.append(round(time.perf_counter() - wall, 4))
        cpus.append(round(harness.cpu_seconds() - cpu, 4))
    times = {"wall_s": statistics.median(walls), "cpu_s": statistics.median(cpus), "passes": walls}
    return {**first, **times, "n_words": found}


def beside(text: Path, label: str, pattern: str, threads: list[int], repeats: int) -> bool:
    """Print the lines of one pattern; whether all that say how many words there are say the same."""
    single: dict[str, float] = {}
    agree = True
    for n_threads in threads:
        benchmark = f"count {label} {pattern}, {n_threads} thread(s)"
        tools = {}
        for name, counter in COUNTERS.items():
            if not harness.is_installed(counter.package):
                harness.skip(benchmark, name, f"{counter.package} is not installed")
            elif pattern in counter.patterns and not (name == "tokctl-scan" and n_threads > 1):
                tools[name] = counter.package
        options = ["--text", text, "--pattern", pattern, "--threads", n_threads]
        found = harness.in_turn(benchmark, __file__, options, tools, repeats=repeats, threads=n_threads)
        lines = []
        for name, runs in found.items():
            counter = COUNTERS[name]
            stated = {"input": counter.input, "note": counter.note, "threads": n_threads}
            measured = {**stated, **harness.middle(runs)}
            if n_threads == 1:
                single[name] = measured["wall_s"]
            elif name in single:
                measured["times_one_thread"] = round(single[name] / measured["wall_s"], 2)
            lines.append(harness.result(benchmark, name, counter.package, text.stat().st_size, measured))
        harness.report(lines, ours=OURS)
        agree &= len({line["n_words"] for line in lines if line["n_words"] is not None}) <= 1
    return agree


# -- as the stage runs it


def write_input(path: Path, text: Path) -> None:
    """The documents of a text as a Parquet file, about a megabyte a row group."""
    texts = text_input.arrow(text)
    _, offsets = flat_text(texts)
    with pq.ParquetWriter(path, pa.schema([pa.field("text", pa.large_string())]), compression="zstd") as writer:
        start = 0
        while start < len(texts):
            stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + GROUP_BYTES)))
            writer.write_table(pa.table({"text": texts.slice(start, stop - start)}))
            start = stop


def batches_of(path: Path) -> Iterator[Batch]:
    file = pq.ParquetFile(path)
    for group in range(file.metadata.num_row_groups):
        yield Batch(file.read_row_group(group)["text"])


def scan_seconds(pre_tokenizer: PreTokenizer, path: Path) -> float | None:
    """CPU seconds that finding the words alone takes."""
    from tokctl.kernels.pattern_scan import scan

    if not pre_tokenizer.patterns or pre_tokenizer.automaton is None:
        return None
    ends = np.empty(1024, np.int64)
    total = 0.0
    for batch in batches_of(path):
        for chunk in batch.texts.chunks:
            data, offsets = flat_text(chunk)
            begin = time.thread_time()
            position, stop = int(offsets[0]), int(offsets[-1])  # as one document: no call for each short one
            while position < stop:
                _, position = scan(pre_tokenizer.automaton, data, position, stop, ends)
            total += time.thread_time() - begin
    return total


def count(pre_tokenizer: PreTokenizer, batches: Iterator[Batch], configuration: dict[str, Any]) -> dict[str, Any]:
    """One count, with its times."""
    with tempfile.TemporaryDirectory() as scratch:
        workers = configuration.get("workers", 1)
        counter = WordCounter(
            pre_tokenizer,
            configuration.get("specials", ()),
            memory_limit=configuration.get("memory_limit"),
            spill_dir=Path(scratch),
            workers=workers,
        )
        used, begin = harness.cpu_seconds(), time.perf_counter()
        adding = 0.0
        if workers == 1:
            for batch in batches:
                start = time.thread_time()
                counter.add_texts(*batch)
                adding += time.thread_time() - start
        else:
            counter.add_batches(batches)
            adding = time.perf_counter() - begin
        clock = time.process_time if workers == 1 else time.perf_counter
        start = clock()
        report = counter.finish(Path(scratch, "words.parquet"))
        return {
            "n_bytes": report.n_bytes,
            "n_words": report.n_words,
            "n_spills": report.n_spills,
            "count_s": adding,
            "finish_s": clock() - start,
            "wall_s": time.perf_counter() - begin,
            "cpu_s": harness.cpu_seconds() - used,
        }


def measure_streamed(name: str, path: Path, repeats: int) -> dict[str, Any]:
    """All about one configuration, in this process."""
    configuration = STREAMED[name]
    pre_tokenizer = PreTokenizer.from_pattern(configuration["pattern"])
    words = [f"word{i} supercalifragilistic{i}" for i in range(20_000)]
    for limit in (None, 8 << 20):  # the limit compiles the kernels that spill
        changed = {**configuration, "memory_limit": limit, "workers": 1}
        count(pre_tokenizer, iter([Batch(pa.array(words))]), changed)
    baseline = harness.restart_peak()
    runs = [count(pre_tokenizer, batches_of(path), configuration) for _ in range(repeats)]
    peak = harness.memory("VmHWM")
    middle = {key: statistics.median(run[key] for run in runs) for key in runs[0] if key.endswith("_s")}
    scan = None if configuration.get("workers", 1) > 1 else scan_seconds(pre_tokenizer, path)
    both = middle["count_s"] + middle["finish_s"]
    measured = {
        **harness.usage(middle["wall_s"], middle["cpu_s"], peak, baseline),
        **configuration,
        **{key: value for key, value in runs[0].items() if not key.endswith("_s")},
        "count_s": round(middle["count_s"], 4),
        "finish_s": round(middle["finish_s"], 4),
        "count_and_finish_mb_per_s": round(runs[0]["n_bytes"] / 1e6 / both, 1),
        "repeats": repeats,
    }
    if scan is not None:
        parts = {"scan": scan, "probe": middle["count_s"] - scan, "sort_and_write": middle["finish_s"]}
        measured["share"] = {part: round(seconds / both, 3) for part, seconds in parts.items()}
        measured["scan_mb_per_s"] = round(runs[0]["n_bytes"] / 1e6 / scan, 1)
    return measured


def streamed(text: Path, label: str, names: list[str], repeats: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "input.parquet")
        write_input(path, text)
        for name in names:
            options = ["--text", path, "--streamed", name, "--repeats", repeats]
            measured = harness.run_here(__file__, options, "tokctl")
            benchmark = f"count streamed {label}: {name}"
            harness.report([harness.result(benchmark, "tokctl", "tokctl", measured["n_bytes"], measured)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--corpus", default="en20", help="a text corpus of corpora.py: en20, en100, mixed20, mixed100, bundled"
    )
    parser.add_argument("--text", type=Path, help="a UTF-8 file instead of a corpus")
    parser.add_argument("--pattern", action="append", choices=("gpt2", "cl100k", "o200k"), help="default: all three")
    parser.add_argument("--threads", action="append", type=int, help="default: 1 and 2")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("beside", "streamed"))
    parser.add_argument("--quick", action="store_true", help="the bundled corpus, GPT-2's pattern, once")
    parser.add_argument("--streamed", choices=list(STREAMED), help=argparse.SUPPRESS)
    parser.add_argument("--here", choices=list(COUNTERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here and arguments.streamed:
        print(json.dumps(measure_streamed(arguments.streamed, arguments.text, arguments.repeats)))
        return 0
    if arguments.here:
        found = measure_beside(arguments.here, arguments.text, arguments.pattern[0], arguments.threads[0])
        print(json.dumps(found))
        return 0
    configurations = list(STREAMED)
    if arguments.quick:
        arguments.corpus, arguments.repeats, arguments.pattern = "bundled", 1, ["gpt2"]
        configurations = ["gpt2, 64 MiB"]
    text = arguments.text or corpus(arguments.corpus) / "text.txt"
    label = arguments.corpus if arguments.text is None else arguments.text.name
    agree = True
    if arguments.only != "streamed":
        for pattern in arguments.pattern or COUNTERS["tokctl"].patterns:
            agree &= beside(text, label, pattern, arguments.threads or [1, 2], arguments.repeats)
    if arguments.only != "beside":
        streamed(text, label, configurations, arguments.repeats)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
