"""Weighted input: JSONL rows of a text and how often it stands in the corpus.

    {"text": "xy", "count": 10}
    {"hex": "ff00", "count": 2147483648}

A text is pre-tokenized like any document, and its words count ``count`` times; ``hex`` is for bytes that are not UTF-8.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tokctl.errors import DataError

_BATCH_BYTES = 4 << 20
_MAX_COUNT = (1 << 63) - 1


def read_weighted(path: Path, batch_bytes: int = _BATCH_BYTES) -> Iterator[tuple[pa.Array, np.ndarray]]:
    """``(texts large_binary[n], counts int64[n])``, in the file's order, about ``batch_bytes`` of text at a time.

    Empty lines are passed over. DataError (code ``bad-weighted-row``) with file and row (zero-based line): not UTF-8, not
    one JSON object, neither or both of ``text`` and ``hex``, a count that is not an integer from 0 to 2**63 - 1.
    """
    texts: list[bytes] = []
    counts: list[int] = []
    n_bytes = 0
    with path.open("rb") as file:
        for row, line in enumerate(file):
            if row == 0:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            text, count = _parse(line, str(path), row)
            texts.append(text)
            counts.append(count)
            n_bytes += len(text)
            if n_bytes >= batch_bytes or len(texts) >= 1 << 16:
                yield pa.array(texts, pa.large_binary()), np.array(counts, np.int64)
                texts, counts, n_bytes = [], [], 0
    if texts:
        yield pa.array(texts, pa.large_binary()), np.array(counts, np.int64)


def _parse(line: bytes, file: str, row: int) -> tuple[bytes, int]:
    def wrong(what: str, offset: int | None = None) -> DataError:
        return DataError(
            f"row {row} of the weighted file {file} {what}",
            hint='expected is {"text": "...", "count": N} or {"hex": "...", "count": N}, one to a line',
            code="bad-weighted-row",
            file=file,
            row=row,
            offset=offset,
        )

    try:
        value: Any = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise wrong(f"is not UTF-8 (byte {error.start})", error.start) from error
    except json.JSONDecodeError as error:
        raise wrong(f"is not JSON ({error.msg} at character {error.pos})") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; nesting that is too deep
        raise wrong(f"can't be read ({error})") from error
    if not isinstance(value, dict):
        raise wrong("is not a JSON object")
    if ("text" in value) == ("hex" in value):
        raise wrong('has both "text" and "hex"' if "text" in value else 'has neither "text" nor "hex"')
    count = value.get("count")
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MAX_COUNT:
        found = repr(count)[:40] if "count" in value else "missing"
        raise wrong(f'has the "count" {found}, not an integer from 0 to 2^63 - 1')
    key = "text" if "text" in value else "hex"
    text = value[key]
    if not isinstance(text, str):
        raise wrong(f'has a "{key}" that is not a string')
    try:
        return (text.encode() if key == "text" else binascii.unhexlify(text)), count
    except UnicodeEncodeError as error:
        raise wrong(f'has a lone surrogate in "text" (character {error.start}), which is no UTF-8') from error
    except ValueError as error:
        raise wrong(f'has a "hex" that is not pairs of hexadecimal digits ({error})') from error
