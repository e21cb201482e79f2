"""Every benchmark, one process at a time: one JSON line a result on stdout.

    python tests/benchmarks/run_all.py [--quick] [--only NAME]...

``--quick`` runs each on little text, once: whether it works, not how fast. The machine should be doing nothing else; each line
has the load averages. Exit code 1 when a benchmark fails or disagrees with its peer.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Of the larger texts, the tools that come near: the others take minutes, and no other share of the time than of 20 MB.
_FITTERS = [
    *("--fitter", "tokctl", "--fitter", "tokctl-file", "--fitter", "gigabpe", "--fitter", "gigatoken"),
    *("--fitter", "ffbpe", "--fitter", "rustbpe", "--fitter", "tokctl-raw"),
]
_ENCODERS = [
    *("--tool", "tokctl", "--tool", "gigatoken", "--tool", "gigatoken-arrow", "--tool", "gigatoken-file"),
    *("--tool", "snaptokens", "--tool", "fastokens", "--tool", "tiktoken"),
]

# Script -> options of each full run; options of the quick one. A script whose quick options are None has no quick form.
FULL: dict[str, list[list[str]]] = {
    "bench_fit_bpe": [
        ["--corpus", "en20"],
        ["--corpus", "en20", "--vocab-size", "64000"],
        ["--corpus", "en100"],
        ["--corpus", "en100", "--vocab-size", "64000", *_FITTERS],
        ["--corpus", "mixed20"],
        ["--corpus", "mixed100", *_FITTERS],
        ["--corpus", "mixed100", "--threads", "2", *_FITTERS],
        ["--corpus", "en100", "--threads", "2", *_FITTERS],
        ["--corpus", "en20", "--pattern", "cl100k"],
        ["--corpus", "mixed20", "--pattern", "cl100k"],
        ["--corpus", "en100", "--pattern", "cl100k", *_FITTERS],
        ["--corpus", "en20", "--pattern", "o200k"],
        ["--corpus", "mixed20", "--pattern", "o200k"],
    ],
    "bench_count": [["--corpus", "en100"], ["--corpus", "mixed100", "--only", "beside"]],
    "bench_encode": [
        ["--corpus", "en20"],
        ["--corpus", "mixed20"],
        ["--corpus", "en20", "--vocabulary", "o200k_base"],
        ["--corpus", "en20", "--vocabulary", "r50k_base"],
        ["--corpus", "en100", *_ENCODERS],
        ["--corpus", "en20", "--threads", "2", *_ENCODERS],
    ],
    "bench_worst_cases": [[]],
    "bench_startup": [[]],
    "bench_scaling": [[]],
    "bench_long_line": [[]],
    "bench_minhash": [[]],
    "bench_extract": [[]],
    "bench_pipeline": [[]],
}
QUICK: dict[str, list[str] | None] = {
    **{name: ["--quick"] for name in FULL},
    "bench_long_line": ["--size", "5000000"],
    "bench_minhash": ["--pages", "300", "--repeats", "1"],
    "bench_extract": ["--pages", "50", "--repeats", "1"],
    "bench_pipeline": None,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="little text, once")
    parser.add_argument("--only", action="append", choices=list(FULL), help="default: all")
    arguments = parser.parse_args()
    failed = []
    for name, runs in FULL.items():
        if arguments.only is not None and name not in arguments.only:
            continue
        quick = QUICK[name]
        for options in runs if not arguments.quick else [] if quick is None else [quick]:
            started = time.perf_counter()
            code = subprocess.run([sys.executable, str(HERE / f"{name}.py"), *options]).returncode
            seconds = round(time.perf_counter() - started)
            print(f"{name} {' '.join(options)}: {seconds} s, exit code {code}", file=sys.stderr, flush=True)
            if code:
                failed.append(" ".join([name, *options]))
    if failed:
        print(json.dumps({"failed": failed}), file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
