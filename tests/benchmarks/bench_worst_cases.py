"""Inputs on which a quadratic algorithm or a backtracking pattern takes for ever: seconds beside the peers, with a time-out.

    python tests/benchmarks/bench_worst_cases.py [--case NAME]... [--tool NAME]... [--timeout SECONDS]
                                                 [--quick]

One JSON line a case and tool, each in a process of its own, with importing, loading and compiling not measured. A tool that
needs longer than ``--timeout`` is stopped: ``is_lower_bound`` is true then, and its seconds are the time-out. A tool that
crashes has a line that says how. The ids of tokctl must be tiktoken's, where tiktoken gives any, and must decode to the text;
merges must be those of tokenizers; else the exit code is 1. It is 1, too, when tokctl is stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness, text_input
from benchmarks.bench_fit_bpe import digest as merges_digest
from benchmarks.counters import COUNTERS
from benchmarks.encoders import ENCODERS
from benchmarks.fitters import FITTERS

ENCODING = ("tokctl", "gigatoken", "snaptokens", "fastokens", "quicktok", "splintr", "tiktoken", "tokenizers")
FITTING = ("tokctl", "gigabpe", "gigatoken", "ffbpe", "rustbpe", "tokenizers")
COUNTING = ("tokctl", "gigatoken-bytes", "gigabpe", "ffbpe", "rustbpe")
WARM_UP = "Hello, world! It's 2 o'clock.\n\n" * 20


@dataclass(frozen=True)
class Case:
    """``text`` makes the input of full size divided by its argument; ``about`` is the vocabulary or the pattern."""

    kind: str
    about: str
    text: Callable[[int], str]
    n_merges: int = 0


def letters(n: int) -> str:
    """One word of random letters."""
    return "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz", k=n))


CASES: dict[str, Case] = {
    "a x 1,000,000": Case("encode", "cl100k_base", lambda part: "a" * (1_000_000 // part)),
    "0-9 x 100,000": Case("encode", "cl100k_base", lambda part: "0123456789" * (100_000 // part)),
    "0-9 x 100,000, one word": Case("encode", "r50k_base", lambda part: "0123456789" * (100_000 // part)),
    "64 kB of one emoji": Case("encode", "cl100k_base", lambda part: "\U0001f600" * (16_000 // part)),
    "_ x 50,000": Case("encode", "cl100k_base", lambda part: "_" * (50_000 // part)),
    "1 MB of random letters": Case("encode", "cl100k_base", lambda part: letters(1_000_000 // part)),
    "1,000,000 spaces and x": Case("encode", "cl100k_base", lambda part: " " * (1_000_000 // part) + "x"),
    "1,000,000 spaces and x, counted": Case("count", "gpt2", lambda part: " " * (1_000_000 // part) + "x"),
    "1,000,000 line breaks and x, counted": Case("count", "cl100k", lambda part: "\n" * (1_000_000 // part) + "x"),
    "a word of 160,000 random letters": Case("fit", "gpt2", lambda part: letters(160_000 // part), 1_000),
    "a word of 160,000 times a": Case("fit", "gpt2", lambda part: "a" * (160_000 // part), 10),
}
KINDS = {"encode": (ENCODERS, ENCODING), "fit": (FITTERS, FITTING), "count": (COUNTERS, COUNTING)}


def work_of(
    case: Case, tool: str, part: int, scratch: Path
) -> tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]:
    """The work to measure, all made ready for it, and what a line says of its result."""
    text = case.text(part)
    form = KINDS[case.kind][0][tool].input
    texts, warm_up = as_input(form, text, scratch / "text"), as_input(form, WARM_UP, scratch / "warm-up")
    if case.kind == "encode":
        encode, ids_of, _, _ = ENCODERS[tool].open(case.about, 1)
        encode(warm_up)
        return lambda: encode(texts), lambda result: encoded(ids_of(result), tool, case.about, text)
    if case.kind == "fit":
        n_merges = max(10, case.n_merges // part)
        fit, tokens_of = FITTERS[tool].open(case.about, 1)
        fit(warm_up, 260)
        return lambda: fit(texts, 256 + n_merges), lambda result: fitted(tokens_of(result), n_merges)
    count, _ = COUNTERS[tool].open(case.about, 1)
    count(warm_up)
    return lambda: count(texts), lambda result: {}


def as_input(form: str, text: str, path: Path) -> Any:
    path.write_text(text, "utf-8")
    if form == "arrow":
        return text_input.arrow(path)
    return {"strings": [text], "file": path, "bytes": text.encode()}[form]


def fitted(tokens: list[bytes], n_merges: int) -> dict[str, Any]:
    return {"sha256": merges_digest(tokens[:n_merges]), "n_merges": len(tokens)}


def encoded(ids: Any, tool: str, vocabulary: str, text: str) -> dict[str, Any]:
    found = {"sha256": hashlib.sha256(ids.astype("uint32").tobytes()).hexdigest(), "n_ids": len(ids)}
    if tool == "tokctl":
        from interop import real_vocabularies as real

        import tokctl

        back = tokctl.load(real.tiktoken_ranks(vocabulary)).decode_bytes(ids)
        found["is_round_trip"] = back == text.encode()
    return found


def measure(case: Case, tool: str, part: int, timeout: float) -> dict[str, Any]:
    """One measurement, in this process, which the time-out kills."""
    with tempfile.TemporaryDirectory() as scratch:
        work, said_of = work_of(case, tool, part, Path(scratch))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, timeout)
        result, usage = harness.measure(work)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return {**usage, **said_of(result)}


def run(name: str, case: Case, tool: str, part: int, timeout: float) -> dict[str, Any] | None:
    """The measurement of one tool in a process of its own; None when it has crashed, which a line says."""
    command = [sys.executable, __file__, "--case", name, "--part", str(part), "--timeout", str(timeout), "--here", tool]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | harness.ONE_THREAD)
    if done.returncode == -signal.SIGALRM:
        return {"wall_s": timeout, "is_lower_bound": True}
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [""])[-1]
        if tool == "tokctl":
            raise SystemExit(f"tokctl failed at {name}:\n{done.stderr}")
        seconds = time.perf_counter() - started
        reason = f"crashed after {seconds:.1f} s (exit code {done.returncode}): {said[:200]}"
        harness.skip(f"worst case: {name}", tool, reason)
        return None
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured | {"is_lower_bound": False}


def compare(name: str, part: int, timeout: float, wanted: list[str] | None) -> bool:
    """Print the lines of one case; whether tokctl is as it must be."""
    case = CASES[name]
    table, tools = KINDS[case.kind]
    tools = tuple(tool for tool in tools if wanted is None or tool in wanted)
    benchmark = f"worst case: {case.kind} {case.about}: {name}" + (f" (a {part}th)" if part > 1 else "")
    n_bytes = len(case.text(part).encode())
    lines = []
    for tool in tools:
        known = table[tool]
        can = getattr(known, "vocabularies", None) or getattr(known, "patterns", ())
        if case.about not in can:
            continue
        if not harness.is_installed(known.package):
            harness.skip(benchmark, tool, f"{known.package} is not installed")
            continue
        measured = run(name, case, tool, part, timeout)
        if measured is not None:
            lines.append(harness.result(benchmark, tool, known.package, n_bytes, {"input": known.input, **measured}))
    (ours,) = [line for line in lines if line["tool"] == "tokctl"]
    right = not ours["is_lower_bound"] and ours.get("is_round_trip", True)
    for judge in ("tiktoken", "tokenizers"):
        theirs = next((line.get("sha256") for line in lines if line["tool"] == judge), None)
        if theirs is not None and not (case.kind == "encode" and judge == "tokenizers"):
            ours[f"same_as_{judge}"] = ours.get("sha256") == theirs
            right &= ours[f"same_as_{judge}"]
    harness.report(lines)
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all")
    parser.add_argument("--tool", action="append", help="default: all that can; tokctl must be one")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds a tool gets for one case")
    parser.add_argument("--quick", action="store_true", help="a 50th of each input, tiktoken and tokenizers")
    parser.add_argument("--part", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--here", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        case = CASES[arguments.case[0]]
        print(json.dumps(measure(case, arguments.here, arguments.part, arguments.timeout)))
        return 0
    if arguments.quick:
        arguments.part, arguments.timeout, arguments.tool = 50, 10.0, ["tokctl", "tiktoken", "tokenizers"]
    right = [compare(name, arguments.part, arguments.timeout, arguments.tool) for name in arguments.case or list(CASES)]
    return int(not all(right))


if __name__ == "__main__":
    sys.exit(main())
