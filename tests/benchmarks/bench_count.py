"""Counting words: bytes per second on one core and more, the share of each phase, and memory above the baseline.

    python tests/benchmarks/bench_count.py [--corpus en20|en100|...] [--repeats N]

One JSON line a measurement, the median of ``--repeats`` runs. Text is streamed from a Parquet file, as the count stage reads
it; documents are paragraphs of ``text.txt`` or pages, ``--documents`` groups paragraphs so that each has about so many
bytes. Every configuration runs in a process of its own. The baseline is its memory after imports and the compiling of all
kernels on a small text, before the input is opened; compiling is not counted. ``scan`` and ``count`` are timed apart: the
first without the table, the second with it, so that ``probe`` is the difference. All times are CPU seconds of the
counting thread where there is one worker, else wall; wall_s is from opening the input to the committed file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness
from benchmarks.corpora import corpus

from tokctl.corpus.word_counts import Batch, WordCounter
from tokctl.corpus.word_counts.text import flat_text
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

CONFIGURATIONS: list[dict[str, object]] = [
    {"pattern": "gpt2"},
    {"pattern": "gpt2", "specials": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]},
    {"pattern": "gpt2", "workers": 2},
    {"pattern": "gpt2", "memory_limit": 64 << 20},
    {"pattern": "gpt2", "memory_limit": 256 << 20},
    {"pattern": "cl100k"},
    {"pattern": "o200k"},
    {"pattern": "none"},
]


def documents_of(name: str, size: int) -> Iterator[str]:
    """Texts of about ``size`` bytes: the paragraphs of ``text.txt``, or of all pages, in order."""
    root = corpus(name)
    paths = [root / "text.txt"] if (root / "text.txt").is_file() else sorted(root.rglob("*.txt"))
    for path in paths:
        lines: list[str] = []
        n_bytes = 0
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            lines.append(line)
            n_bytes += len(line)
            if n_bytes >= size:
                yield "".join(lines)
                lines, n_bytes = [], 0
        if lines:
            yield "".join(lines)


def write_input(path: Path, name: str, size: int) -> None:
    schema = pa.schema([pa.field("text", pa.large_string())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        batch: list[str] = []
        n_bytes = 0
        for text in documents_of(name, size):
            batch.append(text)
            n_bytes += len(text)
            if n_bytes > 1 << 20:
                writer.write_table(pa.table({"text": pa.array(batch, pa.large_string())}))
                batch, n_bytes = [], 0
        if batch:
            writer.write_table(pa.table({"text": pa.array(batch, pa.large_string())}))


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
            bounds = offsets.tolist()
            begin = time.thread_time()
            for position, stop in itertools.pairwise(bounds):
                while position < stop:
                    _, position = scan(pre_tokenizer.automaton, data, position, stop, ends)
            total += time.thread_time() - begin
    return total


def count(pre_tokenizer: PreTokenizer, batches: list[Batch] | Iterator[Batch], configuration: dict) -> dict:
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
        used = resource.getrusage(resource.RUSAGE_SELF)
        begin = time.perf_counter()
        adding = 0.0
        if workers == 1:
            for batch in batches:
                start = time.thread_time()
                counter.add_texts(*batch)
                adding += time.thread_time() - start
        else:
            start = time.perf_counter()
            counter.add_batches(batches)
            adding = time.perf_counter() - start
        clock = time.process_time if workers == 1 else time.perf_counter
        start = clock()
        report = counter.finish(Path(scratch, "words.parquet"))
        finishing = clock() - start
        end = time.perf_counter()
        now = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "input_bytes": report.n_bytes,
        "n_documents": report.n_documents,
        "n_words": report.n_words,
        "total_words": report.total,
        "n_spills": report.n_spills,
        "count_seconds": adding,
        "finish_seconds": finishing,
        "wall_seconds": end - begin,
        "cpu_seconds": now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime,
    }


def measure(configuration: dict, path: Path, repeats: int) -> dict:
    """All about one configuration; runs in a process of its own."""
    pre_tokenizer = PreTokenizer.from_pattern(configuration["pattern"])
    words = [f"word{i} supercalifragilistic{i}" for i in range(20_000)]
    # memory_limit None: the warm-up compiles the spilling kernels by a second, limited count.
    for limit in (None, 8 << 20):
        count(pre_tokenizer, [Batch(pa.array(words))], {**configuration, "memory_limit": limit, "workers": 1})
    baseline = harness.restart_peak()
    runs = [count(pre_tokenizer, batches_of(path), configuration) for _ in range(repeats)]
    peak = harness.memory("VmHWM")
    middle = {key: statistics.median(run[key] for run in runs) for key in runs[0] if key.endswith("seconds")}
    n_bytes = runs[0]["input_bytes"]
    scan = None if configuration.get("workers", 1) > 1 else scan_seconds(pre_tokenizer, path)
    both = middle["count_seconds"] + middle["finish_seconds"]
    return {
        "wall_s": round(middle.pop("wall_seconds"), 4),
        "cpu_s": round(middle.pop("cpu_seconds"), 4),
        "peak_rss_mb": round(peak / 1e6, 1),
        "baseline_rss_mb": round(baseline / 1e6, 1),
        **configuration,
        **{key: value for key, value in runs[0].items() if not key.endswith("seconds")},
        **{key: round(value, 4) for key, value in middle.items()},
        "count_mb_per_second": round(n_bytes / 1e6 / middle["count_seconds"], 1),
        "count_and_finish_mb_per_second": round(n_bytes / 1e6 / both, 1),
        "scan_mb_per_second": scan and round(n_bytes / 1e6 / scan, 1),
        "share": scan
        and {
            name: round(seconds / both, 3)
            for name, seconds in [
                ("scan", scan),
                ("probe", middle["count_seconds"] - scan),
                ("sort_and_write", middle["finish_seconds"]),
            ]
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="en20")
    parser.add_argument("--documents", type=int, default=4096, metavar="BYTES")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--first", type=int, help="only the first so many configurations")
    parser.add_argument("--input", type=Path, help="a Parquet file with a text column, instead of --corpus")
    parser.add_argument("--configuration", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.configuration:
        configuration = json.loads(arguments.configuration)
        print(json.dumps(measure(configuration, arguments.input, arguments.repeats)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        path = arguments.input
        if path is None:
            path = Path(scratch, "input.parquet")
            write_input(path, arguments.corpus, arguments.documents)
        for configuration in CONFIGURATIONS[: arguments.first]:
            command = [sys.executable, __file__, "--input", str(path), "--repeats", str(arguments.repeats)]
            done = subprocess.run(
                [*command, "--configuration", json.dumps(configuration)], check=True, capture_output=True, text=True
            )
            measured = json.loads(done.stdout) | {"repeats": arguments.repeats}
            label = arguments.corpus if arguments.input is None else arguments.input.name
            options = ", ".join(f"{name} {value}" for name, value in configuration.items())
            harness.report(
                [harness.result(f"count {label}: {options}", "tokctl", "tokctl", measured["input_bytes"], measured)]
            )


if __name__ == "__main__":
    main()
