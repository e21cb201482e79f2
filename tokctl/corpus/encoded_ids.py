"""Ids on disk: their type, and a flat form that any language can map into memory.

The flat form is a directory::

    ids.bin         the ids of all documents one after another: uint16 or uint32, little-endian, nothing else in the file
    offsets.bin     int64[n + 1], little-endian: document i has ids[offsets[i]:offsets[i + 1]]
    documents/      Parquet parts, a row a document in the same order: doc_id, source, license, split, n_tokens, truncated
    flat.json       {"format", "version", "dtype", "n_ids", "n_documents", "vocab_size", "tokenizer"}
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tokctl.artifacts.canonical import canonical_json
from tokctl.artifacts.durable import disk_errors
from tokctl.corpus.shards import read_shards
from tokctl.errors import ArtifactError, UsageError
from tokctl.tokenizer.formats.json_reader import read_json

IDS_NAME, OFFSETS_NAME, HEADER_NAME, DOCUMENTS_NAME = "ids.bin", "offsets.bin", "flat.json", "documents"
FORMAT = "tokctl-flat-ids"
VERSION = 1
IDS_TYPES = ("uint16", "uint32")
_COPY_BYTES = 1 << 22


def ids_type(vocab_size: int, wanted: str = "auto") -> str:
    """The smallest of IDS_TYPES that holds each id below ``vocab_size``, or ``wanted`` if it does; else UsageError."""
    smallest = "uint16" if vocab_size <= 1 << 16 else "uint32"
    if wanted == "uint16" and smallest == "uint32":
        raise UsageError(
            f"uint16 holds ids below 65536, and this vocabulary has {vocab_size}",
            hint="--ids-type auto or uint32",
            code="ids-type",
        )
    return smallest if wanted == "auto" else wanted


def document_fields() -> list[pa.Field]:
    """The columns beside the ids, in their order around it: doc_id, source, license, split; n_tokens, truncated."""
    return [
        pa.field("doc_id", pa.large_string(), nullable=False),
        pa.field("source", pa.large_string(), nullable=False),
        pa.field("license", pa.large_string()),
        pa.field("split", pa.large_string()),
        pa.field("n_tokens", pa.int64(), nullable=False),
        pa.field("truncated", pa.bool_(), nullable=False),
    ]


def encoded_schema(kind: str, with_offsets: bool) -> pa.Schema:
    """Schema of encoded shards; ``kind`` is the type of the ids."""
    fields = document_fields()
    fields.insert(4, pa.field("ids", pa.large_list(pa.type_for_alias(kind)), nullable=False))
    if with_offsets:
        fields += [pa.field(name, pa.large_list(pa.int64()), nullable=False) for name in ("starts", "stops")]
    return pa.schema(fields)


class WrittenFile(NamedTuple):
    """A file that was written and hashed on the way."""

    name: str
    rows: int
    sha256: str


def write_flat(
    directory: Path, ids: Iterable[Path], lengths: Sequence[np.ndarray], kind: str, *, vocab_size: int, tokenizer: str
) -> list[WrittenFile]:
    """Put ``ids.bin``, ``offsets.bin`` and ``flat.json`` together from files of ids and the documents' ``lengths int64[]``.

    ``tokenizer`` is its semantic hash. Raises ArtifactError when the disk is full.
    """
    n_documents = sum(map(len, lengths))
    n_ids = sum(int(part.sum()) for part in lengths)
    with disk_errors(directory):
        digest = hashlib.sha256()
        with (directory / IDS_NAME).open("wb") as out:
            for path in ids:
                with path.open("rb") as source:
                    while data := source.read(_COPY_BYTES):
                        digest.update(data)
                        out.write(data)
        files = [WrittenFile(IDS_NAME, n_ids, digest.hexdigest())]
        digest = hashlib.sha256()
        with (directory / OFFSETS_NAME).open("wb") as out:
            at = 0
            for part in (np.zeros(1, np.int64), *lengths):
                block = (np.cumsum(part) + at).astype("<i8")
                at = int(block[-1]) if len(block) else at
                digest.update(block.tobytes())
                out.write(block.tobytes())
        files.append(WrittenFile(OFFSETS_NAME, n_documents + 1, digest.hexdigest()))
        header = {
            "format": FORMAT,
            "version": VERSION,
            "dtype": np.dtype(kind).newbyteorder("<").str,
            "n_ids": n_ids,
            "n_documents": n_documents,
            "vocab_size": vocab_size,
            "tokenizer": tokenizer,
        }
        body = canonical_json(header)
        (directory / HEADER_NAME).write_bytes(body)
        files.append(WrittenFile(HEADER_NAME, 1, hashlib.sha256(body).hexdigest()))
    return files


@dataclass(frozen=True)
class FlatIds:
    """Encoded documents, mapped from disk: ``ids uint16[] or uint32[]``, ``offsets int64[n + 1]``; read-only.

    ``tokenizer`` is the semantic hash of the tokenizer that made the ids.
    """

    directory: Path
    ids: np.ndarray
    offsets: np.ndarray
    vocab_size: int
    tokenizer: str

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.offsets) - 1

    def document(self, i: int) -> np.ndarray:
        """The ids of document ``i``, still on disk."""
        if not 0 <= i < len(self):
            raise IndexError(f"document {i} of {len(self)}")
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def doc_ids(self) -> Iterator[str]:
        """The documents' ids in order."""
        for batch in read_shards(self.directory / DOCUMENTS_NAME, ["doc_id"]):
            yield from batch.column("doc_id").to_pylist()


def load_ids(path: str | Path) -> FlatIds:
    """Map the output of ``tokctl encode --output-format flat``; nothing is read before it is used.

    ArtifactError for another kind of directory, or where the files' sizes are not what ``flat.json`` says.
    """
    directory = Path(path)
    file = directory / HEADER_NAME
    if not file.is_file():
        raise ArtifactError(
            f"{directory} has no {HEADER_NAME}: it isn't a flat output of encode",
            hint="write one with 'tokctl encode --output-format flat'",
            code="not-flat-ids",
            file=str(path),
        )
    header = _header(file)
    dtype = np.dtype(header["dtype"])
    ids = _mapped(directory / IDS_NAME, dtype, header["n_ids"])
    offsets = _mapped(directory / OFFSETS_NAME, np.dtype("<i8"), header["n_documents"] + 1)
    if offsets[0] != 0 or offsets[-1] != len(ids):
        raise _damaged(directory / OFFSETS_NAME, f"its ends are {offsets[0]} and {offsets[-1]}, for {len(ids)} ids")
    return FlatIds(directory, ids, offsets, header["vocab_size"], header["tokenizer"])


def _header(file: Path) -> dict[str, Any]:
    header = read_json(file)
    if not isinstance(header, dict) or (header.get("format"), header.get("version")) != (FORMAT, VERSION):
        raise _damaged(file, f"it is not {FORMAT} of version {VERSION}")
    for name in ("n_ids", "n_documents", "vocab_size"):
        if type(header.get(name)) is not int or header[name] < 0:
            raise _damaged(file, f"{name!r} is {header.get(name)!r}")
    if header.get("dtype") not in ("<u2", "<u4") or not isinstance(header.get("tokenizer"), str):
        raise _damaged(file, "'dtype' is '<u2' or '<u4', and 'tokenizer' a hash")
    return header


def _mapped(file: Path, dtype: np.dtype, n: int) -> np.ndarray:
    try:
        size = file.stat().st_size
        if size != n * dtype.itemsize:
            raise _damaged(file, f"it has {size} bytes, not {n * dtype.itemsize}")
        return np.memmap(file, dtype, "r") if n else np.empty(0, dtype)
    except OSError as error:
        raise _damaged(file, str(error.strerror)) from None


def _damaged(file: Path, why: str) -> ArtifactError:
    return ArtifactError(
        f"{file} is damaged: {why}", hint="run 'tokctl verify' on its directory", code="damaged-ids", file=str(file)
    )
