"""How a counter divides its memory limit, so that what it says it keeps under is what it keeps under."""

from __future__ import annotations

from dataclasses import dataclass

from tokctl.errors import UsageError

SLOT_BYTES = 32 + 16  # a slot of either table
_FIRST_SLOTS = 1 << 14
_FIRST_ARENA = 1 << 16
_LEAST = 8 << 20


@dataclass(frozen=True)
class Budget:
    """Bytes and slots a counter may use; ``None`` is unbounded.

    ``max_slots``, ``max_arena``: of one worker's hash table (a table is full at half its slots) and of its long words.
    ``batch_bytes``: of text in one input batch. ``merge_bytes``: of all the buffers of one merge.
    """

    max_slots: int | None = None
    max_arena: int | None = None
    batch_bytes: int = 8 << 20
    merge_bytes: int = 64 << 20

    @property
    def first_slots(self) -> int:
        """Slots a table starts with."""
        return min(_FIRST_SLOTS, self.max_slots or _FIRST_SLOTS)

    @property
    def first_arena(self) -> int:
        """Bytes an arena starts with."""
        return min(_FIRST_ARENA, self.max_arena or _FIRST_ARENA)

    @classmethod
    def divide(cls, memory_limit: int | None, workers: int = 1) -> Budget:
        """The budget of ``workers`` threads that together, with their input, stay below ``memory_limit`` bytes.

        One half is for input: each worker's batch of text, the next one waiting, and what its reader needs to decode it
        (about four times the text). The other half, divided by the workers:

            1/8   hash table, with the smaller one it grows from (which is half of it)
            1/8   arena of the words longer than 16 bytes, with the smaller one
            1/2   sorting a full table and the sorted copy of it, while a run is written
            1/4   what allocators and the Parquet writer hold on top

        When all is counted the input and the tables are gone, and a quarter of the limit is for the merge's buffers. One
        document or word larger than its share is still counted, and then needs its own size on top, a few times.

        UsageError (code ``memory-limit-too-small``): less than 8 MiB a worker.
        """
        if memory_limit is None:
            return cls()
        if memory_limit < _LEAST * workers:
            raise UsageError(
                f"a memory limit of {memory_limit:,} bytes is too small for counting with {workers} worker(s)",
                hint=f"give at least {_LEAST * workers >> 20}MiB, or fewer workers",
                code="memory-limit-too-small",
            )
        share = memory_limit // 2 // workers // 8
        slots = 1
        while slots * 2 * SLOT_BYTES * 3 // 2 <= share:
            slots *= 2
        return cls(
            max_slots=slots,
            max_arena=share * 2 // 3,
            batch_bytes=memory_limit // 2 // (workers + 1) // 5,
            merge_bytes=memory_limit // 4,
        )
