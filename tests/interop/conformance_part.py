"""What a part of the conformance run is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any


@dataclass(frozen=True)
class Check:
    """One comparison: ``n`` things (merges and ids, strings, words) were compared; ``mismatch`` says what differs, or None."""

    case: str
    n: int
    mismatch: Any = None


@dataclass(frozen=True)
class Part:
    """``run(quick)`` yields the checks; ``quick`` takes a seeded sample. ``peers``: the packages compared with.

    ``fetch(quick)`` puts into the cache what has to be fetched first; it alone needs a network.
    """

    name: str
    peers: tuple[str, ...]
    about: str
    run: Callable[[bool], Iterator[Check]]
    fetch: Callable[[bool], None] = lambda quick: None

    def versions(self) -> dict[str, str]:
        """Package -> version of what is compared with."""
        return {name: version(name) for name in self.peers}
