"""The command line: the only typer and rich code. ``main`` is the console script."""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``tokctl`` and exit with its documented code."""
    from tokctl.cli.entry import run

    gc.set_threshold(50_000)  # most of what a command makes lives until its end: looking through it often is in vain
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # whatever the locale: a document's text must always be writable
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))
