"""Group keys: what says that two documents must stay on the same side of a split.

A key is the value of a column (``group_id``, ``meta.article``) or what a regular expression finds in one
(``uri~^docs/([^/]+)/``). A document without a key is a group of its own, named by its ``doc_id``. Written as text the
two kinds can't meet: ``key:17`` and ``doc:17``.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokctl.errors import DataError, UsageError

HASH_DOMAIN = b"tokctl-split-v1\0"
MAX_SEED = 2**64 - 1
_KEY_COLUMNS = ("doc_id", "source", "uri", "language", "license", "group_id", "meta")


@dataclass(frozen=True)
class GroupBy:
    """Where the group key of a document is found.

    ``column`` is a column of the document schema other than ``text``; ``path`` the field names inside ``meta``;
    ``pattern`` a regular expression searched for in the value, whose first group (or whole match) is then the key.
    """

    column: str
    path: tuple[str, ...] = ()
    pattern: str | None = None

    @classmethod
    def parse(cls, spec: str) -> GroupBy:
        """``COLUMN``, ``meta.FIELD[.FIELD...]``, either followed by ``~REGEX``.

        ``\\w``, ``\\d``, ``\\s`` and case folding in REGEX are ASCII, so that no Unicode version affects a split. Raises
        UsageError for an unknown column, ``meta`` without a field, or a pattern that does not compile.
        """
        place, tilde, pattern = spec.partition("~")
        column, *path = place.split(".")
        if column not in _KEY_COLUMNS:
            near = difflib.get_close_matches(column, _KEY_COLUMNS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"columns: {', '.join(_KEY_COLUMNS)}"
            raise UsageError(f"documents have no column {column!r} to group by", hint=hint, code="unknown-column")
        if (column == "meta") != bool(path) or "" in path:
            raise UsageError(
                f"{place!r} does not name a value",
                hint="fields exist inside meta only: meta.FIELD or meta.FIELD.FIELD",
                code="bad-group-by",
            )
        if tilde:
            try:
                re.compile(pattern, re.ASCII)
            except re.error as error:
                raise UsageError(
                    f"the grouping pattern {pattern!r} does not compile: {error}",
                    hint="write for example 'uri~^([^/]+)/'",
                    code="bad-pattern",
                ) from None
        return cls(column, tuple(path), pattern if tilde else None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The document columns that ``group_keys`` reads."""
        return ("doc_id",) if self.column == "doc_id" else ("doc_id", self.column)


def column_values(batch: pa.RecordBatch | pa.Table, column: str, path: Sequence[str] = ()) -> list[str | None]:
    """The value of ``column`` (inside it, of the ``meta`` field ``path``) for each row, as text or None.

    A string is itself (lone surrogates escaped), any other JSON value its compact JSON with sorted keys (``3``,
    ``true``, ``["a"]``). Null, a missing field and the empty string are None. Raises DataError when a ``meta`` value is
    not a JSON object.
    """
    values = batch.column(column).to_pylist()
    if path:
        values = [_field(value, path, row) for row, value in enumerate(values)]
    return [value or None for value in values]


def _field(meta: str | None, path: Sequence[str], row: int) -> str | None:
    try:
        value = json.loads(meta or "{}")
        if not isinstance(value, dict):
            raise ValueError("not an object")
    except ValueError as error:
        raise DataError(
            f"meta is not a JSON object ({error}): {meta!r:.80}",
            hint="run tokctl verify on the shards; extract writes one JSON object a document",
            code="bad-meta",
            row=row,
        ) from None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return None
    if not isinstance(value, str):
        value = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return value.encode("utf-8", "backslashreplace").decode()


def group_keys(batch: pa.RecordBatch | pa.Table, group_by: GroupBy) -> tuple[pa.Array, np.ndarray]:
    """The group key of each row as large_string, and ``has_key bool[n]``: False where the document is its own group."""
    values = column_values(batch, group_by.column, group_by.path)
    if group_by.pattern is not None:
        values = [_search(re.compile(group_by.pattern, re.ASCII), value) for value in values]
    has_key = np.fromiter((value is not None for value in values), bool, len(values))
    doc_ids = batch.column("doc_id").to_pylist()
    keys = [f"doc:{d}" if v is None else f"key:{v}" for v, d in zip(values, doc_ids, strict=True)]
    return pa.array(keys, pa.large_string()), has_key


def _search(pattern: re.Pattern[str], value: str | None) -> str | None:
    match = pattern.search(value) if value is not None else None
    if match is None:
        return None
    return (match.group(1) if pattern.groups else match.group()) or None


def positions(keys: pa.Array, seed: int) -> np.ndarray:
    """``uint64[n]``: where each key stands on the line from 0 to 2**64, which is also the group's identity.

    The first 8 bytes, big-endian, of SHA-256 over ``tokctl-split-v1``, a zero byte, the seed (u64 big-endian) and the
    key. Two keys with one position are one group (about one chance in four million for ten million groups). Raises
    UsageError for a seed outside 0..2**64-1.
    """
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"the seed {seed} is not in 0..2**64-1", code="bad-seed")
    prefix = hashlib.sha256(HASH_DOMAIN + seed.to_bytes(8, "big"))
    digests = bytearray()
    for key in keys.to_pylist():
        digest = prefix.copy()
        digest.update(key.encode())
        digests += digest.digest()[:8]
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64)


def stratum_values(batch: pa.RecordBatch | pa.Table, column: str) -> pa.Array:
    """The stratum of each row as large_string; a null is the stratum ``""``. ``column`` as in ``GroupBy.parse``."""
    place = GroupBy.parse(column)
    if place.pattern is not None:
        raise UsageError(f"{column!r}: strata are values of a column, not of a pattern", code="bad-stratum")
    return pc.fill_null(pa.array(column_values(batch, place.column, place.path), pa.large_string()), "")
