"""Distinct, realistic text without an end, for scaling: the same bytes on every machine from the same two corpora.

    python tests/benchmarks/synthetic.py MEGABYTES      writes the shards and prints their paths

The text is resampled from 200 MB of real documentation, half English, half in many languages (``en100`` and ``mixed100``):

- The source is cut into units: white space and the letters up to the next; in Chinese and Japanese each character is one.
- A document begins at a random unit of the source and copies a run of units, 12 on average (geometric). Then it goes on
  behind another, random occurrence of the unit that it has just written. So each two neighbours have been neighbours in
  the source, and frequencies are the source's, but sentences are new. It is 100 to 900 units long.
- Real text never runs out of new words. Of the units that are a space and letters, 3 % are replaced by a rare word: number
  r of an endless list is drawn with probability proportional to r to the power of -1.25 (Zipf), so that the number of
  distinct rare words grows with the 0.8th power of the text (Heaps). How it is spelled comes from a hash of r: the
  beginning and the ending of two real words joined (half of them), with an underscore or a capital between them, or a
  number of up to nine digits.

A shard is a Parquet file of about 10 MB of text, columns ``id`` and ``text``. It depends on its number alone, so that the
text of a size is a prefix of a larger one.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.corpora import corpus, data_dir

SOURCES = ("en100", "mixed100")
SHARD_BYTES = 10_000_000
SEED = 20
DOCUMENTS = 4096
MEAN_RUN = 12
SHORTEST, LONGEST = 100, 900
RARE_SHARE = 0.03
ZIPF = 1.25
HEAD = 1000.0
_CHUNK = 1 << 20
_UNIT = re.compile(r"\s*(?:[\u3040-\u30ff\u4e00-\u9fff]|[^\s\u3040-\u30ff\u4e00-\u9fff]+)")
_PLAIN = r"^ [A-Za-z]+$"


@dataclass(frozen=True)
class Source:
    """Real text as units, and what rare words are spelled from.

    ``fragments``: bytes of every distinct unit, then of the parts of rare words. ``units`` int32[n]: the text. ``places``
    int32[n]: where each unit occurs, ``first`` int64[n_units + 1] delimits them. ``is_plain`` bool[n_units]: a space and
    letters. The ranges are of fragment numbers.
    """

    fragments: pa.LargeBinaryArray
    units: np.ndarray
    places: np.ndarray
    first: np.ndarray
    is_plain: np.ndarray
    beginnings: range
    endings: range
    capitals: range
    joints: range
    spaced_numbers: range
    numbers: range

    @classmethod
    def of(cls, paths: list[Path]) -> Source:
        """The source of some texts."""
        chunks = [pa.array(_UNIT.findall(text), pa.large_string()) for path in paths for text in _pieces(path)]
        coded = pa.chunked_array(chunks).dictionary_encode().unify_dictionaries()
        words = coded.chunk(0).dictionary
        units = np.concatenate([chunk.indices.to_numpy() for chunk in coded.chunks]).astype(np.int32)
        first = np.zeros(len(words) + 1, np.int64)
        np.cumsum(np.bincount(units, minlength=len(words)), out=first[1:])
        is_plain = pc.match_substring_regex(words, _PLAIN).to_numpy(zero_copy_only=False)
        parts = _parts(words.filter(pa.array(is_plain)))
        texts = [words.cast(pa.large_binary()), *(pa.array(part, pa.large_binary()) for part in parts)]
        bounds = np.cumsum([len(text) for text in texts]).tolist()
        ranges = [range(start, stop) for start, stop in itertools.pairwise(bounds)]
        places = np.argsort(units, kind="stable").astype(np.int32)
        return cls(pa.concat_arrays(texts), units, places, first, is_plain, *ranges)


def _pieces(path: Path) -> Iterator[str]:
    text = "\n\n" + path.read_text("utf-8")  # so that its first word stands apart wherever it comes
    start = 0
    while start < len(text):
        stop = start + _CHUNK
        if stop < len(text):
            stop = text.rfind("\n", start + 1, stop) if "\n" in text[start + 1 : stop] else stop
        yield text[start:stop]
        start = stop


def _parts(plain: pa.Array) -> list[list[bytes]]:
    """What rare words are spelled from, sorted: beginnings, endings, capitalised endings, joints, numbers."""
    words = sorted({word.strip().lower() for word in plain.to_pylist() if len(word) > 5})
    beginnings = sorted({f" {word[:4]}".encode() for word in words} | {f" {word[:3]}".encode() for word in words})
    endings = sorted({word[-4:].encode() for word in words} | {word[-3:].encode() for word in words})
    numbers = [str(i).encode() for i in range(1000)]
    return [
        beginnings,
        endings,
        [ending.capitalize() for ending in endings],
        [b"_", b"-", b"", b"."],
        [b" " + number for number in numbers],
        numbers,
    ]


def shard(source: Source, number: int) -> pa.Table:
    """Shard ``number``: columns ``id`` (unique over all shards) and ``text``, about ``SHARD_BYTES`` of it."""
    random = np.random.Generator(np.random.PCG64([SEED, number]))
    tables, n_bytes, n_documents = [], 0, 0
    while n_bytes < SHARD_BYTES:
        texts = _documents(source, random)
        _, offsets, _ = texts.buffers()
        ends = np.frombuffer(offsets, np.int64)[1 : len(texts) + 1]
        last = min(len(texts), int(np.searchsorted(ends, SHARD_BYTES - n_bytes)) + 1)
        names = [f"{number:06d}-{n_documents + i:06d}" for i in range(last)]
        tables.append(pa.table({"id": pa.array(names), "text": texts.slice(0, last)}))
        n_bytes += int(ends[last - 1])
        n_documents += last
    return pa.concat_tables(tables)


def _documents(source: Source, random: np.random.Generator) -> pa.LargeStringArray:
    """``DOCUMENTS`` new documents, all made at once: step k of each is its k-th run."""
    n_units = len(source.units)
    length = SHORTEST + (random.random(DOCUMENTS) * (LONGEST - SHORTEST)).astype(np.int64)
    starts, lengths = [], []
    at = (random.random(DOCUMENTS) * n_units).astype(np.int64)
    left = length.copy()
    while left.any():
        run = 1 + (np.log(1 - random.random(DOCUMENTS)) / np.log(1 - 1 / MEAN_RUN)).astype(np.int64)
        run = np.minimum(np.minimum(run, left), n_units - at)
        starts.append(at)
        lengths.append(run)
        left -= run
        unit = source.units[np.minimum(at + np.maximum(run, 1), n_units) - 1]
        begin, end = source.first[unit], source.first[unit + 1]
        again = source.places[begin + (random.random(DOCUMENTS) * (end - begin)).astype(np.int64)].astype(np.int64)
        at = np.where(again + 1 < n_units, again + 1, 0)
    places = _ranges(np.stack(starts, axis=1).ravel(), np.stack(lengths, axis=1).ravel())
    units = source.units[places]
    units, counts = _with_rare_words(source, units, random)
    ends = np.cumsum(counts)[np.cumsum(length) - 1]
    text = source.fragments.take(pa.array(units))
    _, offsets, data = text.buffers()
    cuts = np.frombuffer(offsets, np.int64)[np.concatenate([np.zeros(1, np.int64), ends])]
    return pa.LargeStringArray.from_buffers(DOCUMENTS, pa.py_buffer(np.ascontiguousarray(cuts)), data)


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """``starts[i], starts[i] + 1, ...``, ``lengths[i]`` of them, for each i in turn."""
    before = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)


def _with_rare_words(source: Source, units: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The units with some plain ones replaced by three fragments; and how many fragments each has become."""
    is_rare = source.is_plain[units] & (random.random(len(units)) < RARE_SHARE)
    n = int(is_rare.sum())
    rank = np.floor(HEAD * (1 - random.random(n)) ** (-1 / (ZIPF - 1)))
    mixed = _mixed(rank.view(np.uint64))
    counts = np.where(is_rare, 3, 1)
    at = np.cumsum(counts) - counts
    out = np.zeros(int(counts.sum()), np.int64)
    out[at] = units
    kind = mixed & np.uint64(7)
    is_number = kind >= 6
    parts = (
        np.where(
            is_number,
            _pick(source.spaced_numbers, mixed >> np.uint64(3)),
            _pick(source.beginnings, mixed >> np.uint64(3)),
        ),
        np.where(
            is_number,
            _pick(source.numbers, mixed >> np.uint64(21)),
            np.where(kind == 4, source.joints[0], source.joints[2]),
        ),
        np.where(
            is_number,
            _pick(source.numbers, mixed >> np.uint64(42)),
            np.where(
                kind == 5, _pick(source.capitals, mixed >> np.uint64(24)), _pick(source.endings, mixed >> np.uint64(24))
            ),
        ),
    )
    for i, part in enumerate(parts):
        out[at[is_rare] + i] = part
    return out, counts


def _pick(among: range, value: np.ndarray) -> np.ndarray:
    return among.start + (value % np.uint64(len(among))).astype(np.int64)


def _mixed(value: np.ndarray) -> np.ndarray:
    """Well mixed bits of uint64 values (the finalizer of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def shards(n_bytes: int, directory: Path | None = None, source: Source | None = None) -> list[Path]:
    """The first shards that together have ``n_bytes`` of text (rounded up to whole shards), made when missing."""
    directory = directory or data_dir() / "synthetic"
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"part-{number:05d}.parquet" for number in range(-(-n_bytes // SHARD_BYTES))]
    for number, path in enumerate(paths):
        if path.exists():
            continue
        source = source or Source.of([corpus(name) / "text.txt" for name in SOURCES])
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        table = shard(source, number)
        n_text = pc.sum(pc.binary_length(table["text"])).as_py()
        table = table.replace_schema_metadata({"text_bytes": str(n_text)})
        pq.write_table(table, partial, compression="zstd", compression_level=1, row_group_size=1 << 12)
        partial.rename(path)
    return paths


def text_bytes(path: Path) -> int:
    """The bytes of text in a shard."""
    return int(pq.read_schema(path).metadata[b"text_bytes"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megabytes", type=int)
    for path in shards(parser.parse_args().megabytes * 1_000_000):
        print(path)


if __name__ == "__main__":
    main()
