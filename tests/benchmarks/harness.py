"""What the benchmarks share: measuring in a process of its own, on one thread, and the line of a result.

A script measures each tool by starting itself again with ``--here TOOL``. In there it imports, reads its input and warms up
(compiling included), and then calls :func:`measure`. Memory is resident memory from the kernel's own account; the peak
begins at the baseline, which is what was resident just before the measured work. Linux only.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import psutil

T = TypeVar("T")
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
SLOW_SECONDS = 60.0
SAMPLE_SECONDS = 0.02


def memory(field: str) -> int:
    """Bytes from the kernel's account of this process: VmRSS now, VmHWM at its peak since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) << 10
    raise LookupError(field)


def restart_peak() -> int:
    """Let the peak begin again at what is resident now, which is returned in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def cpu_seconds() -> float:
    """Processor seconds of this process, all its threads, and its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(work: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """What ``work`` returns, and wall_s, cpu_s, peak_rss_mb and baseline_rss_mb of it."""
    baseline = restart_peak()
    wall, cpu = time.perf_counter(), cpu_seconds()
    value = work()
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return value, _usage(wall, cpu, memory("VmHWM"), baseline)


def _usage(wall: float, cpu: float, peak: int, baseline: int) -> dict[str, float]:
    return {
        "wall_s": round(wall, 4),
        "cpu_s": round(cpu, 4),
        "peak_rss_mb": round(peak / 1e6, 1),
        "baseline_rss_mb": round(baseline / 1e6, 1),
    }


def measure_command(command: Sequence[str]) -> dict[str, float]:
    """wall_s, cpu_s and peak_rss_mb of a command with all its processes, start-up included.

    Memory is the sum over the processes, sampled every 20 ms: pages that they share count more than once.
    """
    used, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peak, ended = 0, threading.Event()

    def sample() -> None:
        nonlocal peak
        tree = psutil.Process(process.pid)
        while not ended.wait(SAMPLE_SECONDS):
            total = 0
            with contextlib.suppress(psutil.NoSuchProcess):
                for member in (tree, *tree.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        total += member.memory_info().rss
            peak = max(peak, total)

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    _, said = process.communicate()
    wall = time.perf_counter() - started
    ended.set()
    sampler.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} exited with {process.returncode}:\n{said}")
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    usage = _usage(wall, cpu, peak, 0)
    del usage["baseline_rss_mb"]
    return usage


def here(script: str, options: Sequence[object], tool: str, *, repeats: int, peer: bool = False) -> dict[str, Any]:
    """Start ``script --here tool`` on one thread, ``repeats`` times; the line of the run with the median wall time.

    A peer that takes more than a minute is measured once. ``runs`` has all wall times.
    """
    command = [sys.executable, script, *map(str, options), "--here", tool]
    return median(lambda: _run(command, tool), repeats=repeats, peer=peer)


def median(run: Callable[[], dict[str, Any]], *, repeats: int, peer: bool = False) -> dict[str, Any]:
    """The measurement of median wall time of several, with all wall times as ``runs``."""
    runs: list[dict[str, Any]] = []
    while len(runs) < repeats and not (peer and runs and runs[0]["wall_s"] > SLOW_SECONDS):
        runs.append(run())
    middle = sorted(runs, key=lambda measured: measured["wall_s"])[len(runs) // 2]
    return {**middle, "runs": [measured["wall_s"] for measured in runs]}


def _run(command: list[str], tool: str) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ONE_THREAD)
    if done.returncode:
        raise SystemExit(f"{tool} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def result(benchmark: str, tool: str, package: str, input_bytes: int, measured: Mapping[str, Any]) -> dict[str, Any]:
    """A result's line: the fixed fields first, then what else was measured. MB/s is of the wall time."""
    return {
        "benchmark": benchmark,
        "tool": tool,
        "version": metadata.version(package),
        "input_bytes": input_bytes,
        **{name: measured.get(name) for name in ("wall_s", "cpu_s", "peak_rss_mb", "baseline_rss_mb")},
        "ratio_to": {},
        "mb_per_s": round(input_bytes / 1e6 / measured["wall_s"], 3),
        **{name: value for name, value in measured.items() if not name.endswith(("_s", "_rss_mb"))},
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def report(results: Sequence[dict[str, Any]], ours: Sequence[str] = ("tokctl",)) -> None:
    """Print the lines of one benchmark. ``ratio_to`` of tokctl's: peer -> how many times as long as tokctl it takes."""
    peers = [line for line in results if line["tool"] not in ours]
    for line in results:
        if line["tool"] in ours:
            line["ratio_to"] = {peer["tool"]: round(peer["wall_s"] / line["wall_s"], 2) for peer in peers}
        print(json.dumps(line), flush=True)
