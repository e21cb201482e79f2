"""The whole pipeline over real documentation: wall time, processor time and memory of each stage of one ``tokctl run``.

    python tests/benchmarks/bench_pipeline.py [--workers N] [--memory-limit SIZE] [--work DIR] [--repeats N]

``configs/documentation.toml`` over LibreOffice's help in 14 languages, the kernel's documentation and the Debian handbook
(42,000 pages of HTML, about 150 MB of text). One JSON line a stage, one for the whole, one for a second run that has nothing
to do. Kernels are compiled before. Memory is resident memory, read from the kernel's own high-water mark, which is set
back at the end of each stage; ``tree`` is the sum over the process and its children, sampled every 20 ms (pages that they
share count more than once). ``baseline`` is a process that has imported numpy, pyarrow and numba and loaded one kernel.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.corpora import corpus

ROOT = Path(__file__).parents[2]
PIPELINE = ROOT / "configs/documentation.toml"
BASELINE = """
import numpy as np, pyarrow, pyarrow.parquet, psutil
from tokctl.kernels.code_points import number_code_points
number_code_points(np.zeros(1, np.uint8), np.zeros(1, np.int64))
print(psutil.Process().memory_info().rss)
"""


@dataclass
class TreeSampler:
    """The largest sum of resident memory over a process and its children since the last :meth:`take`."""

    process: psutil.Process
    peak: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def take(self) -> int:
        peak, self.peak = self.peak, 0
        return peak

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.02):
            total = 0
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in (self.process, *self.process.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        total += process.memory_info().rss
            self.peak = max(self.peak, total)


def own_peak(pid: int) -> int:
    """The process's high-water mark since the last call, which sets it back; 0 when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def tokctl(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "tokctl", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **options)


def baseline() -> int:
    """Resident bytes of a process that has loaded the libraries and one kernel."""
    return int(subprocess.run([sys.executable, "-c", BASELINE], check=True, capture_output=True, text=True).stdout)


def input_bytes(manifest: dict[str, Any], nodes: Path) -> int:
    """Bytes on disk of what a stage read: of raw files from its own manifest, of stage outputs from theirs."""
    total = 0
    for record in manifest["inputs"]:
        if "files" in record:
            total += sum(file["bytes"] for file in record["files"])
            continue
        for path in nodes.glob("*/manifest.json"):
            source = json.loads(path.read_text())
            if source["fingerprint"] == record["fingerprint"]:
                under = record["under"] + "/" if record["under"] else ""
                total += sum(file["bytes"] for file in source["outputs"] if file["path"].startswith(under))
    return total


def measure(pipeline: Path, out: Path, options: list[str], base: int) -> None:
    """Run the pipeline once from nothing and print its lines, then run it again with nothing to do."""
    started = time.perf_counter()
    process = tokctl("run", str(pipeline), "-o", str(out), *options)
    sampler = TreeSampler(psutil.Process(process.pid))
    peaks: list[int] = []
    trees: list[int] = []
    assert process.stdout is not None
    for line in process.stdout:
        wrote = re.match(r"([a-z ]+): wrote (.+)$", line)
        if wrote is None:
            continue
        peaks.append(own_peak(process.pid))
        trees.append(sampler.take())
        node = Path(wrote[2])
        record = json.loads((node / "run.json").read_text())
        manifest = json.loads((node / "manifest.json").read_text())
        report(
            stage=wrote[1],
            node=node.name,
            wall_seconds=record["wall_seconds"],
            cpu_seconds=record["cpu_seconds"],
            peak_mb=megabytes(peaks[-1]),
            above_baseline_mb=megabytes(peaks[-1] - base),
            tree_peak_mb=megabytes(trees[-1]),
            input_mb=megabytes(input_bytes(manifest, out)),
            counts=manifest["counts"],
        )
    sampler.close()
    if process.wait():
        raise SystemExit(f"tokctl run exited with {process.returncode}")
    split = json.loads((out / "split/manifest.json").read_text())["facts"]["roles"]
    report(
        stage="whole run",
        wall_seconds=round(time.perf_counter() - started, 2),
        peak_mb=megabytes(max(peaks)),
        above_baseline_mb=megabytes(max(peaks) - base),
        tree_peak_mb=megabytes(max(trees)),
        distinct_text_mb=megabytes(sum(role["bytes"] for role in split.values())),
    )
    started = time.perf_counter()
    second = tokctl("run", str(pipeline), "-o", str(out), *options, stderr=subprocess.DEVNULL)
    said = second.communicate()[0].splitlines()[-1]
    report(stage="second run", wall_seconds=round(time.perf_counter() - started, 2), said=said)


def megabytes(size: int) -> float:
    return round(size / 1e6, 1)


def report(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--memory-limit")
    parser.add_argument("--work", type=Path, help="keep the outputs here (default: a temporary directory)")
    parser.add_argument("--repeats", type=int, default=1)
    arguments = parser.parse_args()
    options = ["--workers", str(arguments.workers)]
    if arguments.memory_limit:
        options += ["--memory-limit", arguments.memory_limit]
    with tempfile.TemporaryDirectory(prefix="tokctl-bench-") as temporary:
        work = arguments.work or Path(temporary)
        (work / "configs").mkdir(parents=True, exist_ok=True)
        pipeline = Path(shutil.copy(PIPELINE, work / "configs"))
        for link, target in (("configs/documentation", corpus("pipeline")), ("examples", ROOT / "examples")):
            if not (work / link).exists():
                (work / link).symlink_to(target, target_is_directory=True)
        tokctl("cache", "warm").communicate()
        base = baseline()
        report(stage="baseline", workers=arguments.workers, peak_mb=megabytes(base))
        for _ in range(arguments.repeats):
            out = work / "documentation-out"
            shutil.rmtree(out, ignore_errors=True)
            measure(pipeline, out, options, base)


if __name__ == "__main__":
    main()
