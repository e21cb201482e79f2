"""The two orders in which byte-level vocabularies number the 256 bytes, and GPT-2's printable spelling of bytes.

``raw``
    byte value = id (rustbpe, minbpe, llama-style byte tables).
``gpt2``
    ascending by the code point that GPT-2's ``bytes_to_unicode`` gives each byte. The 188 printable Latin-1 bytes keep
    their own code point (``!`` .. ``~``, ``¡`` .. ``¬``, ``®`` .. ``ÿ``); the other 68 get U+0100, U+0101, ... in byte
    order. So ``!`` is 0 and the space (``Ġ``, U+0120) is 220: the order of GPT-2's vocabulary and of tokenizers'
    trainer, which sorts its alphabet by code point.

Source: ``bytes_to_unicode`` of GPT-2's released encoder; ``ByteLevel.alphabet()`` of tokenizers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokctl.errors import UsageError


def _gpt2_code_points() -> tuple[int, ...]:
    """Code point of each byte value 0..255 in GPT-2's printable alphabet."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    stand_in = {byte: 0x100 + place for place, byte in enumerate(others)}
    return tuple(byte if byte in printable else stand_in[byte] for byte in range(256))


BYTE_TO_CHAR: tuple[str, ...] = tuple(map(chr, _gpt2_code_points()))
"""Byte value -> the character that stands for it in GPT-2-style files (``BYTE_TO_CHAR[0x20] == "Ġ"``)."""

CHAR_TO_BYTE: dict[str, int] = {char: byte for byte, char in enumerate(BYTE_TO_CHAR)}
"""The inverse of ``BYTE_TO_CHAR``."""

BYTE_ORDERS: dict[str, tuple[bytes, ...]] = {
    "gpt2": tuple(bytes([byte]) for byte in sorted(range(256), key=BYTE_TO_CHAR.__getitem__)),
    "raw": tuple(bytes([byte]) for byte in range(256)),
}
"""Name of the order -> the 256 single-byte tokens in id order."""


def byte_alphabet(order: str) -> Sequence[bytes]:
    """The 256 single-byte tokens in the id order called ``order``: ``gpt2`` or ``raw``, else ``UsageError``."""
    try:
        return BYTE_ORDERS[order]
    except KeyError:
        raise UsageError(
            f"unknown byte order {order!r}", hint=f"choose one of: {', '.join(BYTE_ORDERS)}", code="unknown-byte-order"
        ) from None


def spell_bytes(data: bytes) -> str:
    """``data`` in GPT-2's printable spelling, one character a byte (``b" a\\n"`` -> ``"Ġa\\u010a"``)."""
    return "".join([BYTE_TO_CHAR[byte] for byte in data])


def unspell_bytes(text: str) -> bytes:
    """The inverse of :func:`spell_bytes`; ``KeyError`` (with the character) for text that is not a spelling."""
    return bytes([CHAR_TO_BYTE[char] for char in text])
