"""What the benchmarks share: measuring in a process of its own, on so many threads, and the line of a result.

A script measures each tool by starting itself again with ``--here TOOL``. In there it imports, warms up (compiling
included) and reads its input, and then calls :func:`measure`. Memory is resident memory from the kernel's own account. The
peak begins at the baseline: what is resident just before the measured work, after memory that is only kept for later has
been given back, so that no tool's peak hides in pages that its warm-up has left. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
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
SLOW_SECONDS = 60.0
SAMPLE_SECONDS = 0.02


def thread_settings(threads: int) -> dict[str, str]:
    """Environment in which the thread pools of the peers have so many threads."""
    return {
        "RAYON_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false" if threads == 1 else "true",
        "OMP_NUM_THREADS": str(threads),
    }


ONE_THREAD = thread_settings(1)


def memory(field: str) -> int:
    """Bytes from the kernel's account of this process: VmRSS now, VmHWM at its peak since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) << 10
    raise LookupError(field)


def give_back() -> None:
    """Collect garbage and return memory that Arrow's and the C library's allocators keep for later."""
    gc.collect()
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError):  # other C libraries have no malloc_trim
        ctypes.CDLL(None).malloc_trim(0)


def restart_peak() -> int:
    """Give unused memory back and let the peak begin again at what is resident now, which is returned in bytes."""
    give_back()
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def cpu_seconds() -> float:
    """Processor seconds of this process, all its threads, and its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(work: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """What ``work`` returns, and its wall_s, cpu_s, peak_rss_mb, baseline_rss_mb and peak_above_baseline_mb."""
    baseline = restart_peak()
    wall, cpu = time.perf_counter(), cpu_seconds()
    value = work()
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return value, usage(wall, cpu, memory("VmHWM"), baseline)


def usage(wall: float, cpu: float, peak: int, baseline: int) -> dict[str, float]:
    """The fields of a measurement, of seconds and bytes."""
    return {
        "wall_s": round(wall, 4),
        "cpu_s": round(cpu, 4),
        "peak_rss_mb": round(peak / 1e6, 1),
        "baseline_rss_mb": round(baseline / 1e6, 1),
        "peak_above_baseline_mb": round((peak - baseline) / 1e6, 1),
    }


def measure_command(
    command: Sequence[str], timeout: float | None = None, env: Mapping[str, str] | None = None
) -> dict[str, float]:
    """wall_s, cpu_s and peak_rss_mb of a command with all its processes, start-up included.

    Memory is the sum over the processes, sampled every 20 ms: pages that they share count more than once.
    Raises subprocess.TimeoutExpired after ``timeout`` seconds, when the command has been killed.
    """
    used, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=None if env is None else {**env}
    )
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
    try:
        _, said = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    finally:
        wall = time.perf_counter() - started
        ended.set()
        sampler.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} exited with {process.returncode}:\n{said}")
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return {"wall_s": round(wall, 4), "cpu_s": round(cpu, 4), "peak_rss_mb": round(peak / 1e6, 1)}


def is_installed(package: str) -> bool:
    """Whether the distribution ``package`` is installed in this environment."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return bool(metadata.version(package))
    return False


def skip(benchmark: str, tool: str, reason: str) -> None:
    """Say in a line of its own that ``tool`` has not been measured."""
    print(json.dumps({"benchmark": benchmark, "tool": tool, "skipped": reason}), flush=True)


def here(script: str, options: Sequence[object], tool: str, *, repeats: int, peer: bool = False) -> dict[str, Any]:
    """Start ``script --here tool`` on one thread, ``repeats`` times; the line of the run with the median wall time.

    A peer that takes more than a minute is measured once. ``runs`` has all wall times.
    """
    return median(lambda: run_here(script, options, tool), repeats=repeats, peer=peer)


def in_turn(
    benchmark: str,
    script: str,
    options: Sequence[object],
    tools: Mapping[str, str],
    *,
    repeats: int,
    threads: int = 1,
) -> dict[str, list[dict[str, Any]]]:
    """Start ``script --here tool`` for each tool in turn, ``repeats`` rounds, so that what else the machine does meets all.

    ``tools``: name -> package. Each tool's measurements in order; a peer that takes more than a minute has one. A peer that
    fails is skipped, and a line says why; tokctl may not fail.
    """
    found: dict[str, list[dict[str, Any]]] = {tool: [] for tool in tools}
    done = set()
    for _ in range(repeats):
        for tool, package in tools.items():
            if tool in done:
                continue
            started = time.perf_counter()
            try:
                found[tool].append(run_here(script, options, tool, threads))
            except SystemExit as error:
                if package == "tokctl":
                    raise
                skip(benchmark, tool, str(error).strip().splitlines()[-1])
                done.add(tool)
            if package != "tokctl" and time.perf_counter() - started > SLOW_SECONDS:
                done.add(tool)
    return {tool: runs for tool, runs in found.items() if runs}


def median(run: Callable[[], dict[str, Any]], *, repeats: int, peer: bool = False) -> dict[str, Any]:
    """The measurement of median wall time of several, with all wall times as ``runs``."""
    runs: list[dict[str, Any]] = []
    while len(runs) < repeats and not (peer and runs and runs[0]["wall_s"] > SLOW_SECONDS):
        runs.append(run())
    return middle(runs)


def middle(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The measurement of median wall time, with all wall times as ``runs`` and the least processor time as least_cpu_s."""
    chosen = sorted(runs, key=lambda measured: measured["wall_s"])[(len(runs) - 1) // 2]
    least = {"least_cpu_s": min(run["cpu_s"] for run in runs)} if all("cpu_s" in run for run in runs) else {}
    return {**chosen, **least, "runs": [measured["wall_s"] for measured in runs]}


def run_here(script: str, options: Sequence[object], tool: str, threads: int = 1) -> dict[str, Any]:
    """One measurement of ``tool`` in a process of its own: the last line that ``script --here tool`` prints."""
    command = [sys.executable, script, *map(str, options), "--here", tool]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | thread_settings(threads))
    if done.returncode:
        raise SystemExit(f"{tool} failed:\n{done.stderr}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def result(benchmark: str, tool: str, package: str, input_bytes: int, measured: Mapping[str, Any]) -> dict[str, Any]:
    """A result's line: the fixed fields first, then what else was measured. MB/s is of the wall time."""
    fixed = ("wall_s", "cpu_s", "peak_rss_mb", "baseline_rss_mb")
    return {
        "benchmark": benchmark,
        "tool": tool,
        "version": metadata.version(package),
        "input_bytes": input_bytes,
        **{name: measured.get(name) for name in fixed},
        "ratio_to": {},
        "mb_per_s": round(input_bytes / 1e6 / measured["wall_s"], 3),
        **{name: value for name, value in measured.items() if name not in fixed},
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def report(results: Sequence[dict[str, Any]], ours: Sequence[str] = ("tokctl",)) -> None:
    """Print the lines of one benchmark. ``ratio_to`` of tokctl's: peer -> how many times as long as tokctl it takes.

    ``cpu_ratio_to`` is the same of the least processor seconds, which others' load on the machine disturbs less.
    """
    peers = [line for line in results if line["tool"] not in ours]
    for line in results:
        if line["tool"] in ours:
            line["ratio_to"] = {peer["tool"]: round(peer["wall_s"] / line["wall_s"], 2) for peer in peers}
            if line.get("least_cpu_s"):
                line["cpu_ratio_to"] = {
                    peer["tool"]: round(peer["least_cpu_s"] / line["least_cpu_s"], 2)
                    for peer in peers
                    if "least_cpu_s" in peer
                }
        print(json.dumps(line), flush=True)
