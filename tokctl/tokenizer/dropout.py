"""BPE-dropout (Provilkov et al. 2020): another segmentation of the same text for each epoch, for training more robust models.

Which merges are dropped is a pure function of (seed, epoch, view, sample, number of the word in the sample): the order of
the samples, batches, workers and restarts can't change it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokctl.errors import UsageError

_DOMAIN = b"tokctl-bpe-dropout-v1\0"
_END = 1 << 64


@dataclass(frozen=True)
class Dropout:
    """Each possible merge is dropped with probability ``p`` at each step; p = 0 is plain BPE, p = 1 leaves bytes.

    ``p`` counts in units of 2**-32. ``view`` numbers the segmentations of one sample in one epoch. UsageError for a number
    out of range (seed, epoch and view have 64 bits).
    """

    p: float
    seed: int = 0
    epoch: int = 0
    view: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.p, bool) or not 0 <= self.p <= 1:
            raise UsageError(f"the dropout probability is from 0 to 1, not {self.p!r}", code="dropout")
        for name in ("seed", "epoch", "view"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value < _END:
                raise UsageError(
                    f"the dropout's {name} is a whole number from 0 to 2**64 - 1, not {value!r}", code="dropout"
                )

    @property
    def threshold(self) -> int:
        """A 32-bit draw below this drops its merge."""
        return round(float(self.p) * 2**32)

    def key(self, sample: str | bytes) -> int:
        """The 64-bit key of a sample: the start of SHA-256 over the domain, seed, epoch, view (u64 little-endian) and its name."""
        name = sample.encode("utf-8", "surrogatepass") if isinstance(sample, str) else bytes(sample)
        payload = _DOMAIN + struct.pack("<QQQ", self.seed, self.epoch, self.view) + name
        return int.from_bytes(hashlib.sha256(payload).digest()[:8], "little")

    def keys(self, samples: Iterable[str | bytes]) -> np.ndarray:
        """``uint64[n]``: the key of each sample."""
        return np.array([self.key(sample) for sample in samples], np.uint64)

    def describe(self) -> dict[str, Any]:
        """All that another implementation needs, as a canonical-JSON value for manifests."""
        return {
            "method": "bpe-dropout",
            "version": 1,
            "p": repr(float(self.p)),
            "seed": str(self.seed),
            "epoch": str(self.epoch),
            "view": str(self.view),
            "generator": "philox-4x32-10",
            "key": "sha256('tokctl-bpe-dropout-v1\\0', u64 seed, epoch, view, sample)[:8], little-endian",
            "counter": "u64 block of four draws, u64 number of the word in the sample",
            "scope": ["seed", "epoch", "sample", "view", "occurrence"],
            "draw_order": "at each step by rank, then position, up to the first that is not dropped",
            "dropped": "draw < round(p * 2**32)",
        }
