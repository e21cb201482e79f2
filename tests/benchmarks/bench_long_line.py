"""One line of text without an end: time and memory of the commands that have to hold it whole.

    python tests/benchmarks/bench_long_line.py [--size SIZE] [--work DIR]

A document is never cut, so its text is in memory once or a few times; no command may need much more than that. One JSON line
a command: seconds, and peak resident memory above that of the same command on one short line, as a multiple of the line.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

UNIT = "the cat sat on the mat, 12345 times; café naïve 文字列 ".encode()
COMMANDS = {
    "count --pattern none": ["count", "--pattern", "none"],
    "count --pattern gpt2": ["count", "--pattern", "gpt2"],
    "encode": ["encode", "--tokenizer", "{tokenizer}"],
    "extract": ["extract"],
}
_CHILD = """
import json, sys, time
from pathlib import Path
from tokctl.cli.entry import run

def peak():
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024

short, long = json.loads(sys.argv[1])
assert run(short) == 0
Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again from here
base, started = peak(), time.perf_counter()
assert run(long) == 0
print(json.dumps({"seconds": round(time.perf_counter() - started, 2), "peak_above_base": peak() - base}))
"""


def line(n_bytes: int) -> bytes:
    """Text of exactly ``n_bytes`` without a newline, valid UTF-8."""
    n_units = max(0, n_bytes - len(UNIT)) // len(UNIT)
    return UNIT * n_units + b"x" * (n_bytes - n_units * len(UNIT))


def measure(n_bytes: int, work: Path) -> Iterator[dict[str, Any]]:
    """A row for each command, run in a process of its own after it has met a short line; its output is ``work/<number>``."""
    from tokctl.cli.entry import run

    short, long, tokenizer = work / "short.txt", work / "long.txt", work / "tokenizer"
    short.write_bytes(UNIT * 8)
    long.write_bytes(line(n_bytes))
    assert run(["fit", "bpe", str(short), "-o", str(tokenizer), "--vocab-size", "290", "--on-short", "warn", "-q"]) == 0
    for number, (name, words) in enumerate(COMMANDS.items()):
        command = [word.format(tokenizer=tokenizer) for word in words] + ["--quiet"]
        both = [
            [*command, str(short), "-o", str(work / f"short-{number}")],
            [*command, str(long), "-o", str(work / str(number))],
        ]
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, json.dumps(both)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        times = round(found["peak_above_base"] / n_bytes, 2)
        yield {"benchmark": "long line", "command": name, "bytes": n_bytes, **found, "times_the_line": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=200_000_000)
    parser.add_argument("--work", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.work) as work:
        for row in measure(arguments.size, Path(work)):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
