"""Options that every stage shares and that can't change an output."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from tokctl.runtime.progress import Progress, Silent


@dataclass(frozen=True)
class ExecutionOptions:
    """How a stage is run: nothing here enters a fingerprint.

    ``memory_limit`` is the working memory in bytes that a stage may use above the process's baseline (None: no limit).
    """

    workers: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    memory_limit: int | None = None
    force: bool = False
    dry_run: bool = False
    progress: Progress = field(default_factory=Silent)
