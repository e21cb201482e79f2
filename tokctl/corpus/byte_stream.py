"""Files as streams of bytes, decompressed on the way, with limits: gzip, bzip2, xz and Zstandard.

Memory stays bounded whatever a file says about itself: at most the asked number of bytes comes out of a decoder at once
(Zstandard: what 1 KiB of input can hold, 32 MiB). A cut, broken or exploding stream raises ``BrokenStream`` after everything
before it has been read.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
import zlib
from collections.abc import Callable
from typing import BinaryIO, Protocol

import zstandard

from tokctl.corpus.read_options import ReadOptions
from tokctl.errors import DataError

MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
)
SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
RATIO_FROM = 16 << 20  # below this many bytes out, no ratio is suspicious
_CHUNK = 64 << 10
_PIECE = 1 << 20
_ZSTD_STEP = 1 << 10
_LZMA_MEMORY = 1 << 30


class BrokenStream(Exception):
    """A stream that can't be read further: ``reason`` is a slug, ``offset`` the place in the stored (compressed) file."""

    def __init__(self, reason: str, offset: int, evidence: str) -> None:
        super().__init__(evidence)
        self.reason = reason
        self.offset = offset
        self.evidence = evidence


class _Member(Protocol):
    """One compressed member or frame: ``pull`` takes from ``pending`` and gives at most about ``n`` bytes."""

    pending: bytes
    is_finished: bool

    @property
    def is_hungry(self) -> bool: ...

    def pull(self, n: int) -> bytes: ...


class _Gzip:
    def __init__(self, wbits: int = 31) -> None:
        self.pending = b""
        self.is_finished = False
        self._decoder = zlib.decompressobj(wbits)

    @property
    def is_hungry(self) -> bool:
        return not self.pending

    def pull(self, n: int) -> bytes:
        out = self._decoder.decompress(self.pending, n)
        self.is_finished = self._decoder.eof
        self.pending = self._decoder.unused_data if self.is_finished else self._decoder.unconsumed_tail
        return out


class _Buffering:
    """bzip2 and xz keep the input they haven't used."""

    def __init__(self, decoder: bz2.BZ2Decompressor | lzma.LZMADecompressor) -> None:
        self.pending = b""
        self.is_finished = False
        self._decoder = decoder

    @property
    def is_hungry(self) -> bool:
        return not self.pending and self._decoder.needs_input

    def pull(self, n: int) -> bytes:
        out = self._decoder.decompress(self.pending, n)
        self.is_finished = self._decoder.eof
        self.pending = self._decoder.unused_data if self.is_finished else b""
        return out


class _Zstd:
    def __init__(self) -> None:
        self.pending = b""
        self.is_finished = False
        self._decoder = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()

    @property
    def is_hungry(self) -> bool:
        return not self.pending

    def pull(self, n: int) -> bytes:
        pieces = []
        size = 0
        view = self.pending
        while view and size < n and not self.is_finished:
            piece = self._decoder.decompress(view[:_ZSTD_STEP])
            view = view[_ZSTD_STEP:]
            pieces.append(piece)
            size += len(piece)
            self.is_finished = self._decoder.eof
            if self.is_finished:
                view = self._decoder.unused_data + view
        self.pending = view
        return b"".join(pieces)


_MEMBERS: dict[str, Callable[[], _Member]] = {
    "gzip": _Gzip,
    "zstd": _Zstd,
    "bzip2": lambda: _Buffering(bz2.BZ2Decompressor()),
    "xz": lambda: _Buffering(lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_LZMA_MEMORY)),
    "zlib": lambda: _Gzip(15),
    "deflate": lambda: _Gzip(-15),
}
_DECODER_ERRORS = (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError, zstandard.ZstdError)


class ByteStream:
    """A readable stream over ``file``: decompressed as ``compression`` says, "" for none.

    ``read`` and ``tell`` speak of decompressed bytes, ``stored_offset`` of the file. Raises BrokenStream, or DataError (code
    ``unreadable``) when the operating system refuses.
    """

    def __init__(
        self, file: BinaryIO, name: str, compression: str, options: ReadOptions, first: bytes = b"", size: int = 0
    ) -> None:
        self.name = name
        self.compression = compression
        self._file = file
        self._first = first  # already read from the file
        self._size = size  # what the file's size was when it was opened
        self._max_ratio = options.max_ratio
        self._max_out = options.max_decompressed_bytes
        self._member: _Member | None = None
        self._member_starts: list[tuple[int, int]] = []  # (decompressed, stored) offsets of the members so far
        self._pending = b""
        self._taken = 0  # stored bytes taken from the file
        self._made = 0  # bytes that came out of the decoder
        self._ahead = b""
        self._position = 0
        self._broken: BrokenStream | None = None

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def tell(self) -> int:
        """The number of decompressed bytes read so far."""
        return self._position

    @property
    def expected(self) -> int:
        """How many bytes are probably still to come; 0 when nothing is known."""
        return 0 if self.compression else max(self._size - self._position, 0)

    def stored_offset(self, position: int) -> int:
        """Where in the stored file the data at decompressed ``position`` is: for a compressed file, where its member begins."""
        if not self.compression:
            return position
        return max((stored for made, stored in self._member_starts[-_RECENT:] if made <= position), default=0)

    def peek(self, n: int) -> bytes:
        """Up to ``n`` bytes that the next ``read`` will give. A break behind them is raised by the ``read`` that meets it."""
        try:
            while len(self._ahead) < n:
                piece = self._next(n - len(self._ahead))
                if not piece:
                    break
                self._ahead += piece
        except BrokenStream as error:
            if not self._ahead:
                raise
            self._broken = error
        return self._ahead[:n]

    def read(self, n: int = _CHUNK) -> bytes:
        """Between 1 and about ``n`` bytes; empty at the end."""
        if self._ahead:
            out, self._ahead = self._ahead[:n], self._ahead[n:]
        elif self._broken is not None:
            raise self._broken
        else:
            out = self._next(n)
        self._position += len(out)
        return out

    def _next(self, n: int) -> bytes:
        if not self.compression:
            return self._stored(n)
        while True:
            if self._member is None and not self._begin_member():
                return b""
            member = self._member
            assert member is not None
            if member.is_hungry:
                member.pending = self._stored(_CHUNK)
                if not member.pending:
                    out = self._pull(member, n)  # a decoder may hold output back
                    if out:
                        return out
                    raise BrokenStream(
                        f"truncated-{self.compression}", self._taken, f"the {self.compression} data ends in the middle"
                    )
            out = self._pull(member, n)
            if member.is_finished:
                self._pending = member.pending
                self._member = None
            if out:
                return out

    def _begin_member(self) -> bool:
        if not self._pending:
            self._pending = self._stored(_CHUNK)
        if self._member_starts and self.compression in _PADDED:
            self._skip_padding()
        if not self._pending:
            return False
        offset = self._taken - len(self._pending)
        if self._member_starts and not self._is_another():
            raise BrokenStream(f"corrupt-{self.compression}", offset, "data after the end of the compressed data")
        self._member = _MEMBERS[self.compression]()
        self._member.pending = self._pending
        self._pending = b""
        self._member_starts.append((self._made, offset))
        if len(self._member_starts) > 2 * _RECENT:
            del self._member_starts[:_RECENT]
        return True

    def _is_another(self) -> bool:
        """Whether what follows a member begins like one."""
        while len(self._pending) < 8 and (more := self._stored(_CHUNK)):
            self._pending += more
        if self.compression == "zstd" and self._pending[1:4] == b"\x2a\x4d\x18" and 0x50 <= self._pending[0] <= 0x5F:
            return True  # a frame to skip, as seekable files have
        magic = next((magic for magic, name in MAGIC if name == self.compression), None)
        if magic is not None and len(self._pending) < 8 and magic.startswith(self._pending[: len(magic)]):
            return True  # cut off right at its start
        return compression_of(self._pending[:8]) == self.compression

    def _skip_padding(self) -> None:
        """gzip and xz files may be padded with zeros, for instance on tapes."""
        while self._pending.startswith(b"\0"):
            self._pending = self._pending.lstrip(b"\0") or self._stored(_CHUNK)

    def _pull(self, member: _Member, n: int) -> bytes:
        try:
            out = member.pull(n)
        except MemoryError:
            raise
        except _DECODER_ERRORS as error:
            offset = self._member_starts[-1][1]
            raise BrokenStream(
                f"corrupt-{self.compression}",
                offset,
                f"broken {self.compression} data in the member at byte {offset}: {error}",
            ) from None
        self._made += len(out)
        if self._made > self._max_out:
            raise BrokenStream(
                "decompression-bomb",
                self._taken,
                f"decompresses to more than {self._max_out} bytes; see max_decompressed_bytes",
            )
        if self._made > RATIO_FROM and self._made > self._max_ratio * self._taken:
            raise BrokenStream(
                "decompression-bomb",
                self._taken,
                f"decompresses to more than {self._max_ratio} times its size; see max_ratio",
            )
        return out

    def _stored(self, n: int) -> bytes:
        if self._first:
            data, self._first = self._first[:n], self._first[n:]
        else:
            try:
                data = self._file.read(n)
            except OSError as error:
                raise unreadable(self.name, error) from None
        self._taken += len(data)
        return data


_RECENT = 4096  # members whose places are remembered: more than fit in what a reader buffers
_PADDED = ("gzip", "xz")


def open_stream(path: str, options: ReadOptions) -> ByteStream:
    """Open ``path``; the compression is told by the data, or by the name when a file named ``.gz`` isn't gzip.

    Raises DataError when it can't be opened.
    """
    try:
        file = open(path, "rb", buffering=0)  # noqa: PTH123, SIM115
        size = os.fstat(file.fileno()).st_size
        first = file.read(min(size, _CHUNK) or 1)
    except OSError as error:
        raise unreadable(path, error) from None
    compression = compression_of(first[:8])
    if not compression and first:
        compression = next((name for suffix, name in SUFFIXES.items() if path.lower().endswith(suffix)), "")
    return ByteStream(file, path, compression, options, first, size)


def open_bytes(data: bytes, name: str, compression: str, options: ReadOptions) -> ByteStream:
    """A stream over bytes in memory."""
    return ByteStream(io.BytesIO(data), name, compression, options)


def compression_of(head: bytes) -> str:
    """What the first 8 bytes of a file say about its compression, "" for none."""
    for magic, name in MAGIC:
        # "BZh" alone could begin a text: a level and the block magic follow it
        if head.startswith(magic) and (name != "bzip2" or (head[3:4].isdigit() and head[4:8] in (b"1AY&", b"\x17rE8"))):
            return name
    return ""


def unreadable(path: str, error: OSError) -> DataError:
    """The error for a file that the operating system doesn't let us read."""
    return DataError(
        f"can't read {path}: {error.strerror or error}",
        hint="was it removed or replaced while it was read, or may you not read it?",
        code="unreadable",
        file=path,
    )


def read_all(stream: ByteStream, limit: int) -> bytes | None:
    """The rest of the stream in one piece, or None when it is more than ``limit`` bytes."""
    pieces: list[bytes] = []
    size = 0
    while piece := stream.read(min(limit + 1 - size, stream.expected or _PIECE)):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            return None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
