"""Progress on stderr: bars with totals and ETA on a terminal, plain lines elsewhere, JSON lines on request."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, TextIO

from tokctl.cli.envelope import set_log_format, visible
from tokctl.runtime.progress import Phase, Progress, Silent, SilentPhase

_PLAIN_INTERVAL = 5.0


def make_progress(*, quiet: bool, log_format: str, stream: TextIO | None = None) -> Progress:
    """The display for one command; ``quiet`` keeps warnings and errors only."""
    set_log_format(log_format)
    stream = sys.stderr if stream is None else stream
    if log_format == "json":
        return JsonLines(stream, quiet)
    if quiet:
        return WarningsOnly(stream)
    if stream.isatty():
        return Bars(stream)
    return PlainLines(stream)


class WarningsOnly(Silent):
    """``--quiet``: warnings still have to be seen."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def log(self, level: str, message: str, **fields: object) -> None:
        if level == "warning":
            print(visible(f"warning: {message}"), file=self._stream)


class PlainLines:
    """One line when a phase begins to take long, then one every few seconds, one at its end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def phase(self, name: str, total: int | None, unit: str) -> Phase:
        return _PlainPhase(self._stream, name, total, unit)

    def log(self, level: str, message: str, **fields: object) -> None:
        prefix = "warning: " if level == "warning" else ""
        print(visible(f"{prefix}{message}"), file=self._stream)


class _PlainPhase:
    def __init__(self, stream: TextIO, name: str, total: int | None, unit: str) -> None:
        self._stream, self._name, self._total, self._unit = stream, name, total, unit
        self._started = self._last = time.monotonic()
        self._done = 0

    def update(self, done: int) -> None:
        self._done = done
        now = time.monotonic()
        if now - self._last >= _PLAIN_INTERVAL:
            self._last = now
            print(f"{self._name}: {self._line(now)}", file=self._stream)

    def close(self) -> None:
        elapsed = time.monotonic() - self._started
        print(f"{self._name}: {quantity(self._done, self._unit)} in {elapsed:.1f} s", file=self._stream)

    def _line(self, now: float) -> str:
        if not self._total:
            return quantity(self._done, self._unit)
        text = f"{quantity(self._done, self._unit)} of {quantity(self._total, self._unit)}"
        if 50 * self._done >= self._total:  # earlier, the time left would mostly be the time to start
            left = (now - self._started) * (self._total - self._done) / self._done
            text += f", about {left:.0f} s left"
        return text


class JsonLines:
    """``--log-format json``: one object a line."""

    def __init__(self, stream: TextIO, quiet: bool) -> None:
        self._stream, self._quiet = stream, quiet

    def phase(self, name: str, total: int | None, unit: str) -> Phase:
        return SilentPhase() if self._quiet else _JsonPhase(self, name, total, unit)

    def log(self, level: str, message: str, **fields: object) -> None:
        if level == "warning" or not self._quiet:
            self.write({"level": level, "message": message, **fields})

    def write(self, record: dict[str, Any]) -> None:
        print(visible(json.dumps(record, ensure_ascii=False, default=str)), file=self._stream)


class _JsonPhase:
    def __init__(self, owner: JsonLines, name: str, total: int | None, unit: str) -> None:
        self._owner, self._name, self._total, self._unit = owner, name, total, unit
        self._started = self._last = time.monotonic()
        self._done = 0

    def update(self, done: int) -> None:
        self._done = done
        if time.monotonic() - self._last >= _PLAIN_INTERVAL:
            self._last = time.monotonic()
            self._report("progress")

    def close(self) -> None:
        self._report("done")

    def _report(self, event: str) -> None:
        self._owner.write(
            {
                "level": "info",
                "event": event,
                "phase": self._name,
                "done": self._done,
                "total": self._total,
                "unit": self._unit,
                "seconds": round(time.monotonic() - self._started, 3),
            }
        )


class Bars:
    """Rich bars, one a phase, with totals and the time left."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._console = Console(file=stream)
        self._columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._factory = Progress

    def phase(self, name: str, total: int | None, unit: str) -> Phase:
        display = self._factory(*self._columns, console=self._console, transient=False)
        return _BarPhase(display, name, total, unit)

    def log(self, level: str, message: str, **fields: object) -> None:
        self._console.print(f"warning: {message}" if level == "warning" else message, markup=False, highlight=False)


class _BarPhase:
    def __init__(self, display: Any, name: str, total: int | None, unit: str) -> None:
        self._display, self._total, self._unit, self._done = display, total, unit, 0
        display.start()
        self._task = display.add_task(name, total=total, amount=self._amount())

    def update(self, done: int) -> None:
        self._done = done if self._total is None else min(done, self._total)
        self._display.update(self._task, completed=self._done, amount=self._amount())

    def close(self) -> None:
        self._display.stop()

    def _amount(self) -> str:
        done = quantity(self._done, self._unit)
        return done if self._total is None else f"{self._done:,}/{quantity(self._total, self._unit)}"


def quantity(amount: int, unit: str) -> str:
    """``1,234 documents``, ``1 document``; bytes are shown in MB."""
    if unit == "bytes":
        return f"{amount / 1e6:,.1f} MB"
    return f"{amount:,} {unit.removesuffix('s') if amount == 1 else unit}"
