"""Bytes to UTF-8 text: byte-order marks, checking, and what ``--errors`` does to bytes that don't fit.

Policy: a UTF-8 byte-order mark at the start of a file is not text; it is dropped, and ``meta`` says so. A UTF-16 or UTF-32
mark declares the encoding. Line ends, NUL and all other characters are kept as they are.
"""

from __future__ import annotations

import codecs
from typing import NamedTuple

BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16-LE, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SLICE = 1 << 18
_REPLACEMENT = "\ufffd".encode()


class Undecodable(Exception):
    """Bytes that aren't valid in ``encoding`` where ``errors`` is ``error`` or ``skip``; ``offset`` is the first one's place."""

    def __init__(self, encoding: str, offset: int, found: bytes) -> None:
        super().__init__(encoding, offset, found)
        self.encoding = encoding
        self.offset = offset
        self.found = found

    @property
    def code(self) -> str:
        return "invalid-utf8" if self.encoding == "utf-8" else "invalid-encoding"

    def __str__(self) -> str:
        return f"byte {self.found.hex()} at offset {self.offset} is not valid {self.encoding}"


class Decoded(NamedTuple):
    """``text`` in UTF-8 (raw bytes under ``errors="bytes"``), how many ill-formed sequences it had, and the first one's offset."""

    text: bytes
    n_invalid: int
    first_invalid: int | None = None


def split_bom(data: bytes) -> tuple[str | None, int]:
    """The encoding that a byte-order mark at the start of ``data`` declares, and the mark's length."""
    for mark, encoding in BOMS:
        if data.startswith(mark):
            return encoding, len(mark)
    return None, 0


def first_invalid(data: bytes) -> int | None:
    """Offset of the first byte that is not part of valid UTF-8, or None. Memory doesn't grow with ``data``."""
    if data.isascii():
        return None
    view = memoryview(data)
    at = 0
    while at < len(data):
        is_last = at + _SLICE >= len(data)
        try:
            _, consumed = codecs.utf_8_decode(view[at : at + _SLICE], "strict", is_last)
        except UnicodeDecodeError as error:
            return at + error.start
        at += consumed
    return None


def check_utf8(data: bytes, errors: str) -> Decoded:
    """``data`` as UTF-8 under the policy ``errors``. Raises Undecodable."""
    at = first_invalid(data)
    if at is None:
        return Decoded(data, 0)
    if errors in ("error", "skip"):
        raise Undecodable("utf-8", at, data[at : at + 1])
    repaired = data[at:].decode("utf-8", "replace").encode()
    n_invalid = repaired.count(_REPLACEMENT) - data.count(_REPLACEMENT, at)
    return Decoded(data if errors == "bytes" else data[:at] + repaired, n_invalid, at)


def decode(data: bytes, encoding: str, errors: str) -> Decoded:
    """``data`` in any encoding as UTF-8. Raises Undecodable.

    Raw bytes of another encoding in a column of UTF-8 would mislead, so ``bytes`` replaces here.
    """
    if codecs.lookup(encoding).name == "utf-8":
        return check_utf8(data, errors)
    try:
        return Decoded(data.decode(encoding).encode(), 0)
    except UnicodeDecodeError as error:
        at = error.start
    except UnicodeError as error:  # UTF-16 without a mark, a surrogate from a lenient codec
        at = getattr(error, "start", 0)
    if errors in ("error", "skip"):
        raise Undecodable(encoding, at, data[at : at + 1])
    text = data.decode(encoding, "replace").encode("utf-8", "replace")
    return Decoded(text, max(1, text.count(_REPLACEMENT)), at)
