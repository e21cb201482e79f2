"""Time and memory as the corpus grows: counting, fitting and encoding 10, 100 and 1,000 MB, and 5 GB in 1 GB of memory.

    python tests/benchmarks/bench_scaling.py [--megabytes N]... [--limited-megabytes N] [--memory-limit SIZE] [--workers N]
                                             [--vocab-size N] [--pattern NAME] [--quick] [--markdown [FILE]]

The commands ``tokctl count``, ``fit bpe --counts`` and ``encode`` as a user runs them: processes of their own, start-up, reading
and decompressing Parquet, digests of the input and writing included; kernels are compiled before. The text is synthetic.py's:
distinct, realistic, with new words at a natural rate, kept in the test cache; each size is the beginning of the next.
``above_start_s`` and ``above_start_mb`` are beyond the same command on almost no text, in the first rows. ``growth`` of a row:
its seconds above start per byte over those of the size before, 1.0 being linear; the exit code is 1 when a growth from 100 MB
on is above 1.3. The last size runs under ``--memory-limit``: ``n_spills`` says how often a sorted run went to disk, and the exit
code is 1 when a command's memory above its start passes the limit.

``--markdown``: the table of the README, from a run or from a file of its lines.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness, synthetic
from benchmarks.bench_startup import TOKCTL
from benchmarks.corpora import corpus

STEPS = ("count", "fit", "encode")
LINEAR = 1.3
MEASURABLE_MB = 100
TINY_BYTES = 100_000


def commands(files: list[Path], out: Path, options: argparse.Namespace, limit: str | None) -> dict[str, list[str]]:
    """The command of each step; its output is ``out / step``."""
    inputs = [str(path) for path in files]
    shared = ["--workers", str(options.workers), "--quiet", *(["--memory-limit", limit] if limit else [])]
    size = ["--vocab-size", str(options.vocab_size), "--on-short", "warn"]
    return {
        "count": ["count", *inputs, "-o", str(out / "count"), "--pattern", options.pattern, *shared],
        "fit": ["fit", "bpe", "--counts", str(out / "count"), "-o", str(out / "fit"), *size, *shared],
        "encode": ["encode", *inputs, "--tokenizer", str(out / "fit"), "-o", str(out / "encode"), *shared],
    }


def measure(files: list[Path], options: argparse.Namespace, limit: str | None) -> dict[str, dict[str, Any]]:
    """All steps on some files: step -> measurement, with what the manifests say."""
    found = {}
    with tempfile.TemporaryDirectory(dir=options.work) as scratch:
        out = Path(scratch)
        for step, command in commands(files, out, options, limit).items():
            measured = harness.measure_command([*TOKCTL, *command])
            manifest = json.loads((out / step / "manifest.json").read_text())
            ran = json.loads((out / step / "run.json").read_text())
            facts = {key: int(manifest["facts"][key]) for key in ("n_words", "n_tokens") if key in manifest["facts"]}
            measured["peak_rss_mb"] = round(ran["process_peak_rss_bytes"] / 1e6, 1)  # the kernel's own account
            spills = ran.get("measurements", {}).get("n_spills")
            measured["memory_limit_bytes"] = ran["memory_limit"]
            found[step] = measured | facts | ({} if spills is None else {"n_spills": spills})
    return found


def tiny_shard(directory: Path) -> Path:
    """Almost no text, for what a command costs by itself."""
    source = synthetic.Source.of([corpus("bundled") / "text.txt"])
    table = synthetic.shard(source, 0)
    n_rows = max(1, table.num_rows * TINY_BYTES // synthetic.SHARD_BYTES)
    path = directory / "tiny.parquet"
    pq.write_table(table.slice(0, n_rows), path)
    return path


def lines_of(
    label: str, found: dict[str, dict[str, Any]], n_bytes: int, start: dict[str, dict[str, Any]], about: dict[str, Any]
) -> list[dict[str, Any]]:
    """A result for each step."""
    lines = []
    for step, measured in found.items():
        above = {
            "above_start_s": round(measured["wall_s"] - start[step]["wall_s"], 3),
            "above_start_mb": round(measured["peak_rss_mb"] - start[step]["peak_rss_mb"], 1),
        }
        line = harness.result(f"scaling {label}: {step}", "tokctl", "tokctl", n_bytes, {**measured, **above, **about})
        del line["ratio_to"], line["baseline_rss_mb"]
        lines.append(line | {"step": step})
    return lines


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure all sizes, printing each line as soon as it is there."""
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=options.work) as scratch:
        tiny = tiny_shard(Path(scratch))
        measure([tiny], options, None)  # compiles
        start = measure([tiny], options, None)
    sizes = [(megabytes, None) for megabytes in options.megabytes]
    if options.limited_megabytes:
        sizes.append((options.limited_megabytes, options.memory_limit))
    before: dict[str, dict[str, Any]] = {}
    for megabytes, limit in [(0, None), *sizes]:
        if megabytes == 0:
            files, found, n_bytes = [], start, TINY_BYTES
        else:
            files = options.shards(megabytes * 1_000_000)
            found = measure(files, options, limit)
            n_bytes = sum(map(synthetic.text_bytes, files))
        label = f"{megabytes:,} MB" if megabytes else "almost no text"
        about = {"megabytes": megabytes, "memory_limit": limit, "workers": options.workers}
        for line in lines_of(label + (f" within {limit}" if limit else ""), found, n_bytes, start, about):
            last = before.get(line["step"])
            if last and last["above_start_s"] > 0:
                per_byte = line["above_start_s"] / line["input_bytes"]
                line["growth"] = round(per_byte / (last["above_start_s"] / last["input_bytes"]), 3)
            if megabytes:
                before[line["step"]] = line
            print(json.dumps(line), flush=True)
            lines.append(line)
    return lines


def is_linear(lines: list[dict[str, Any]]) -> bool:
    """Whether no step grows faster than its text, from sizes on that can be measured."""
    sizes = sorted({line["megabytes"] for line in lines})
    grown = [line for line in lines if "growth" in line and sizes.index(line["megabytes"]) > 1]
    return all(line["growth"] <= LINEAR for line in grown if line["megabytes"] > MEASURABLE_MB)


def keeps_limit(lines: list[dict[str, Any]]) -> bool:
    """Whether each limited step stayed within its limit beyond what it takes for almost no text."""
    limited = [line for line in lines if line["memory_limit_bytes"]]
    return all(line["above_start_mb"] * 1e6 <= line["memory_limit_bytes"] for line in limited)


def markdown(lines: list[dict[str, Any]]) -> str:
    """The table of the README."""
    rows = [
        "| text | distinct words | count, s | fit, s | encode, s | count, MB/s | encode, MB/s | peak memory of each, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for megabytes in dict.fromkeys(line["megabytes"] for line in lines):
        found = {line["step"]: line for line in lines if line["megabytes"] == megabytes}
        limit = found["count"]["memory_limit"]
        name = f"{megabytes:,} MB" if megabytes else "almost none"
        cells = [
            name + (f", `--memory-limit {limit}`" if limit else ""),
            f"{found['count']['n_words']:,}",
            *(f"{found[step]['wall_s']:.1f}" for step in STEPS),
            *(f"{found[step]['mb_per_s']:.0f}" if megabytes else "" for step in ("count", "encode")),
            ", ".join(f"{found[step]['peak_rss_mb']:.0f}" for step in STEPS),
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", action="append", type=int, help="default: 10, 100 and 1,000")
    parser.add_argument("--limited-megabytes", type=int, default=5_000, metavar="N", help="0: none (default: 5,000)")
    parser.add_argument("--memory-limit", default="1GB", metavar="SIZE")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--pattern", default="gpt2")
    parser.add_argument(
        "--work", type=Path, help="where outputs are written, and removed (default: the temporary directory)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="10 and 20 MB, resampled from the bundled corpus; nothing fails"
    )
    parser.add_argument(
        "--markdown", nargs="?", const="", metavar="FILE", help="print the table, of FILE's lines if given"
    )
    options = parser.parse_args()
    if options.markdown:
        lines = [json.loads(line) for line in Path(options.markdown).read_text().splitlines()]
        print(markdown([line for line in lines if line["benchmark"].startswith("scaling ")]))
        return 0
    options.megabytes = options.megabytes or [10, 100, 1_000]
    options.shards = synthetic.shards
    with tempfile.TemporaryDirectory(dir=options.work) as scratch:
        if options.quick:
            options.megabytes, options.limited_megabytes, options.memory_limit = [10], 20, "64MB"
            source = synthetic.Source.of([corpus("bundled") / "text.txt"])
            options.shards = lambda n_bytes: synthetic.shards(n_bytes, Path(scratch, "shards"), source)
        lines = run(options)
    if options.markdown is not None:
        print(markdown(lines))
    return int(not options.quick and not (is_linear(lines) and keeps_limit(lines)))


if __name__ == "__main__":
    sys.exit(main())
