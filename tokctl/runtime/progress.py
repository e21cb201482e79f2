"""The progress protocol: what a stage reports and what a display implements. The runtime never prints."""

from __future__ import annotations

from typing import Protocol


class Phase(Protocol):
    """One phase of a stage with a known total."""

    def update(self, done: int) -> None:
        """``done`` units are finished (an absolute figure, never above the total)."""

    def close(self) -> None:
        """The phase is over."""


class Progress(Protocol):
    """Where a stage reports to."""

    def phase(self, name: str, total: int | None, unit: str) -> Phase:
        """Begin a phase of ``total`` units (None: unknown, then only the count is shown)."""

    def log(self, level: str, message: str, **fields: object) -> None:
        """Say something worth keeping: ``level`` is ``info`` or ``warning``."""


class SilentPhase:
    """Reports nothing."""

    def update(self, done: int) -> None:
        pass

    def close(self) -> None:
        pass


class Silent:
    """The progress of library calls: nothing is shown."""

    def phase(self, name: str, total: int | None, unit: str) -> Phase:
        return SilentPhase()

    def log(self, level: str, message: str, **fields: object) -> None:
        pass
