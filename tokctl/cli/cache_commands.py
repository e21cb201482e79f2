"""``tokctl cache``: where compiled kernels and file digests are kept."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Annotated

import typer

from tokctl.artifacts.digests import cache_directory
from tokctl.cli import envelope

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


def dir_command(as_json: _Json = False) -> int:
    """Print the cache directory ($TOKCTL_CACHE_DIR or the user's cache)."""
    directory = str(cache_directory())
    if as_json:
        envelope.emit("cache dir", {"directory": directory})
    else:
        envelope.say(directory)
    return 0


def warm_command(as_json: _Json = False) -> int:
    """Compile every kernel now, so that later commands start at once."""
    from tokctl.stages.warm import warm_kernels

    if not as_json:
        print(
            "compiling the kernels that this machine has not compiled yet: all of them take a minute or two",
            file=sys.stderr,
            flush=True,
        )
    started = time.perf_counter()
    warm_kernels()
    seconds = time.perf_counter() - started
    if as_json:
        envelope.emit("cache warm", {"directory": str(cache_directory()), "seconds": round(seconds, 3)})
    else:
        envelope.say(f"all kernels are compiled in {cache_directory()} ({seconds:.1f} s)")
    return 0


def clean_command(as_json: _Json = False) -> int:
    """Delete compiled kernels and remembered digests; both are made again when needed."""
    directory = cache_directory()
    removed = []
    for name in ("kernels", "digests.sqlite"):
        path = directory / name
        if path.is_dir():
            shutil.rmtree(path)
            removed.append(name)
        elif path.exists():
            path.unlink()
            removed.append(name)
    if as_json:
        envelope.emit("cache clean", {"directory": str(directory), "removed": removed})
    else:
        envelope.say(f"removed {', '.join(removed) or 'nothing'} from {directory}")
    return 0
