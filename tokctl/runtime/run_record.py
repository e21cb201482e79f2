"""``run.json``: host, times, workers, environment and memory of one run; outside every hash."""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tokctl.artifacts.durable import write_bytes
from tokctl.runtime.options import ExecutionOptions

FILE_NAME = "run.json"
_ENVIRONMENT = ("PYTHONHASHSEED", "NUMBA_NUM_THREADS", "NUMBA_DISABLE_JIT", "TOKCTL_CACHE_DIR", "LC_ALL", "LANG")


class RunClock:
    """Measures one run from its construction."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC)
        self._wall = time.perf_counter()
        self._cpu = _cpu_seconds()

    def write(self, directory: Path, options: ExecutionOptions, measurements: Mapping[str, Any]) -> None:
        """Write ``run.json`` into ``directory``; ``measurements`` are what the stage itself measured."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        record = {
            "host": platform.node(),
            "platform": platform.platform(),
            "python": sys.version.split()[0],
            "started": self._started.isoformat(timespec="milliseconds"),
            "finished": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "wall_seconds": round(time.perf_counter() - self._wall, 3),
            "cpu_seconds": round(_cpu_seconds() - self._cpu, 3),
            "workers": options.workers,
            "memory_limit": options.memory_limit,
            "process_peak_rss_bytes": _peak_rss_bytes(),
            "largest_child_peak_rss_bytes": children.ru_maxrss * 1024,
            "measurements": dict(measurements),
            "environment": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        }
        write_bytes(directory / FILE_NAME, json.dumps(record, indent=2).encode() + b"\n")


def _cpu_seconds() -> float:
    """Of this process and the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _peak_rss_bytes() -> int:
    """The largest resident memory of this process; ``ru_maxrss`` would also count the process that started it."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
