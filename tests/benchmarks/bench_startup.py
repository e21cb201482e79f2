"""What starting costs: ``--help``, the first result of a later process, and compiling every kernel into an empty cache.

    python tests/benchmarks/bench_startup.py [--repeats N] [--quick]

One JSON line a measurement, each of whole processes, start of the interpreter included; the median of ``--repeats``. The cache
of compiled kernels is one of its own in a temporary directory: empty for ``cache warm`` (measured once), and filled by it for
what follows. ``kernels`` says how many kernels were compiled, and ``family_s`` the seconds that each family of them (a file of
``tokctl/kernels``) took by itself, slowest first; they are measured in a second process with an empty cache, in which numba
tells of each compilation.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness

TOKCTL = [sys.executable, "-c", "import sys; from tokctl.cli import main; sys.exit(main())"]
TEXT = "the cat sat on the mat, the cat sat on the hat; naïve café 東京\n" * 20
PYTHON = (
    "import tokctl; t = tokctl.fit('bpe', tokctl.count_words(['the cat sat', 'the hat'] * 9), vocab_size=262);"
    "print(t.encode('the cat'))"
)


def compile_times() -> dict[str, Any]:
    """Compile all kernels in this process, whose cache must be empty: their number and the seconds of each family."""
    from numba.core import event

    from tokctl.stages.warm import warm_kernels

    listener = _Compilations(event)
    started = time.perf_counter()
    with event.install_listener("numba:compile", listener):
        warm_kernels()
    families = sorted(listener.seconds.items(), key=lambda item: -item[1])
    return {
        "wall_s": round(time.perf_counter() - started, 2),
        "kernels": len(listener.kernels),
        "compile_s": round(sum(listener.seconds.values()), 2),
        "family_s": {family: round(seconds, 2) for family, seconds in families},
    }


def _Compilations(event: Any) -> Any:
    """A listener for numba's compilations, which nest: the time of an inner one is not the outer one's."""

    class Compilations(event.Listener):
        def __init__(self) -> None:
            self.seconds: dict[str, float] = defaultdict(float)
            self.kernels: set[str] = set()
            self._stack: list[tuple[str, float, float]] = []  # family, begin, seconds of inner ones

        def on_start(self, happened: Any) -> None:
            function = happened.data["dispatcher"].py_func
            self.kernels.add(f"{function.__module__}.{function.__qualname__}")
            self._stack.append((function.__module__.rpartition(".")[2], time.perf_counter(), 0.0))

        def on_end(self, happened: Any) -> None:
            family, begin, inner = self._stack.pop()
            whole = time.perf_counter() - begin
            self.seconds[family] += whole - inner
            if self._stack:
                outer, since, seconds = self._stack[-1]
                self._stack[-1] = outer, since, seconds + whole

    return Compilations()


def line(name: str, measured: dict[str, Any]) -> None:
    """Print a result, which is of no input."""
    full = harness.result(f"startup: {name}", "tokctl", "tokctl", 0, measured)
    del full["mb_per_s"], full["ratio_to"], full["baseline_rss_mb"]
    print(json.dumps(full), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="with the kernels that are compiled already, once")
    parser.add_argument("--compile-times", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compile_times:
        print(json.dumps(compile_times()))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        env = dict(os.environ)
        if not arguments.quick:
            env["TOKCTL_CACHE_DIR"] = str(Path(scratch, "cache"))
            line("cache warm, empty cache", harness.measure_command([*TOKCTL, "cache", "warm"], env=env))
            other = env | {"TOKCTL_CACHE_DIR": str(Path(scratch, "other"))}
            command = [sys.executable, __file__, "--compile-times"]
            said = subprocess.run(command, env=other, check=True, capture_output=True, text=True).stdout
            line("compiling, by family", json.loads(said.splitlines()[-1]))
        text, tokenizer = Path(scratch, "text.txt"), Path(scratch, "tokenizer")
        text.write_text(TEXT, "utf-8")
        fit = ["fit", "bpe", str(text), "-o", str(tokenizer), "--vocab-size", "280", "--force", "--quiet"]
        commands = {
            "python": [sys.executable, "-c", "pass"],
            "--help": [*TOKCTL, "--help"],
            "fit --help": [*TOKCTL, "fit", "bpe", "--help"],
            "cache warm, nothing to do": [*TOKCTL, "cache", "warm"],
            "fit of a tiny text": [*TOKCTL, *fit],
            "encode of a tiny text": [*TOKCTL, "encode", "--tokenizer", str(tokenizer), str(text)],
            "fit and encode from Python": [sys.executable, "-c", PYTHON],
        }
        for name, command in commands.items():
            repeats = 1 if arguments.quick else arguments.repeats
            line(
                name, harness.median(lambda command=command: harness.measure_command(command, env=env), repeats=repeats)
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
