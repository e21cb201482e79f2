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

# Script -> options of each full run; options of the quick one. A script whose quick options are None has no quick form.
FULL: dict[str, list[list[str]]] = {
    "bench_count": [["--corpus", "en100"], ["--corpus", "mixed100"]],
    "bench_fit_bpe": [
        ["--corpus", "en100", "--vocab-size", "32000"],
        ["--corpus", "mixed20", "--vocab-size", "32000"],
        ["--corpus", "mixed20", "--vocab-size", "32000", "--pattern", "cl100k"],
    ],
    "bench_encode": [["--corpus", "en20"], ["--corpus", "mixed20"]],
    "bench_minhash": [[]],
    "bench_extract": [[]],
    "bench_pipeline": [[]],
}
QUICK: dict[str, list[str] | None] = {
    "bench_count": ["--corpus", "en20", "--repeats", "1", "--first", "2"],
    "bench_fit_bpe": [
        *("--corpus", "en20", "--vocab-size", "2000", "--repeats", "1"),
        *("--fitter", "tokctl", "--fitter", "tokenizers"),
    ],
    "bench_encode": ["--corpus", "en20", "--bytes", "1000000", "--repeats", "1"],
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
