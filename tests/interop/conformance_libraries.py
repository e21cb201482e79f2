"""The libraries that encodings are compared with, each as one function over a batch of strings."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from interop import real_vocabularies as real

from tokctl.tokenizer.formats.json_reader import Reader, read_json
from tokctl.tokenizer.formats.tiktoken import read_ranks


@dataclass(frozen=True)
class Answer:
    """Ids of a batch one after another, how many each string has, where each token is, and the decoded strings.

    ``ids uint32[n]``, ``n_ids int64[m]``, ``starts`` and ``stops`` int64[n] in the library's unit.
    """

    ids: np.ndarray
    n_ids: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    decoded: list[str]


@dataclass(frozen=True)
class Library:
    """``encode(batch, add_special_tokens)``; ``unit`` is that of its offsets, as in ``encoding.UNITS``.

    ``finds_specials``: whether it makes control tokens of their names in text. ``has_template``: whether
    ``add_special_tokens`` means something to it.
    """

    name: str
    version: str
    unit: str
    encode: Callable[[list[str], bool], Answer]
    finds_specials: bool = True
    has_template: bool = False


def tokenizers_file(file: Path) -> Library:
    """``tokenizer.json`` through tokenizers."""
    import tokenizers

    theirs = tokenizers.Tokenizer.from_file(str(file))
    theirs.no_padding()
    theirs.no_truncation()

    def encode(batch: list[str], add_special_tokens: bool) -> Answer:
        found = theirs.encode_batch(batch, add_special_tokens=add_special_tokens)
        lists = [encoding.ids for encoding in found]
        ids, n_ids = _flat(lists)
        pairs = itertools.chain.from_iterable(itertools.chain.from_iterable(encoding.offsets for encoding in found))
        offsets = np.fromiter(pairs, np.int64, 2 * len(ids)).reshape(-1, 2)
        decoded = theirs.decode_batch(lists, skip_special_tokens=False)
        return Answer(ids, n_ids, offsets[:, 0], offsets[:, 1], decoded)

    return Library("tokenizers", tokenizers.__version__, "raw_codepoints", encode, has_template=True)


def tiktoken_encoding(name: str, pattern: str, ranks: dict[bytes, int], specials: dict[str, int]) -> Library:
    """The parts of an encoding through tiktoken. Its offsets are those of its tokens' bytes, which it loses none of."""
    import tiktoken

    theirs = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
    lengths = np.zeros(max(*ranks.values(), *specials.values(), 0) + 1, np.int64)
    for token_id in {*ranks.values(), *specials.values()}:
        lengths[token_id] = len(theirs.decode_single_token_bytes(token_id))

    def encode(batch: list[str], add_special_tokens: bool) -> Answer:
        # one by one: its batch functions make a task of each string
        lists = [theirs.encode(text, allowed_special="all") for text in batch]
        ids, n_ids = _flat(lists)
        starts, stops = _contiguous(lengths[ids], n_ids)
        return Answer(ids, n_ids, starts, stops, [theirs.decode(ids) for ids in lists])

    return Library("tiktoken", tiktoken.__version__, "raw_utf8_bytes", encode)


def tiktoken_file(file: Path) -> Library:
    """A ranks file with its pattern and specials beside it."""
    sibling = Reader(read_json(file.with_suffix(".json")), file)
    return tiktoken_encoding(file.stem, sibling.take("pattern", str), read_ranks(file), sibling.take("specials", dict))


def mistral_file(file: Path) -> Library:
    """``tekken.json`` through mistral-common, which is imported from its unpacked wheel."""
    root = str(real.wheel(*real.MISTRAL))
    if root not in sys.path:
        sys.path.append(root)
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    theirs = Tekkenizer.from_file(str(file))
    lengths = np.array(
        [len(theirs.id_to_byte_piece(i, SpecialTokenPolicy.KEEP)) for i in range(theirs.n_words)], np.int64
    )

    def encode(batch: list[str], add_special_tokens: bool) -> Answer:
        lists = [theirs.encode(text, add_special_tokens, add_special_tokens) for text in batch]
        ids, n_ids = _flat(lists)
        text_lengths = np.where(ids < theirs.num_special_tokens, 0, lengths[ids])
        starts, stops = _contiguous(text_lengths, n_ids)
        around = ids < theirs.num_special_tokens
        starts[around] = stops[around] = 0
        decoded = [theirs.decode(ids, SpecialTokenPolicy.KEEP) for ids in lists]
        return Answer(ids, n_ids, starts, stops, decoded)

    version = real.MISTRAL[1]
    return Library("mistral-common", version, "raw_utf8_bytes", encode, finds_specials=False, has_template=True)


def _flat(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    n_ids = np.fromiter(map(len, lists), np.int64, len(lists))
    return np.fromiter(itertools.chain.from_iterable(lists), np.uint32, int(n_ids.sum())), n_ids


def _contiguous(lengths: np.ndarray, n_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of tokens of these lengths, one after another from 0 in each string."""
    stops = np.cumsum(lengths)
    before = np.concatenate([[0], stops])[np.cumsum(n_ids) - n_ids]
    base = np.repeat(before, n_ids)
    return stops - lengths - base, stops - base


Compared = dict[str, Any]


def compare(ours: Any, library: Library, texts: Any, batch_size: int = 10_000) -> Compared:
    """Compare ids, offsets and decoded text of all strings; stop at the first that differs.

    Every other batch is encoded with what the file puts around a text. The result names the library, its version, the
    number of strings and ids, and the ``first_divergence`` or None.
    """
    result: Compared = {"consumer": library.name, "version": library.version, "n_strings": 0, "n_ids": 0}
    result["first_divergence"] = None
    for number, batch in enumerate(_batches(texts, batch_size)):
        around = library.has_template and number % 2 == 1
        theirs = library.encode(batch, around)
        options: dict[str, Any] = {"add_special_tokens": around}
        if library.name == "mistral-common":
            options = {"bos": around, "eos": around}
        options["allowed_special"] = "all" if library.finds_specials else ()
        found = ours.encode_flat_with_offsets(batch, library.unit, **options)
        bounds = np.concatenate([[0], np.cumsum(theirs.n_ids)])
        decoded = _decode_all(ours, found)
        result["n_ids"] += len(theirs.ids)
        if not (
            np.array_equal(bounds, found.offsets)
            and np.array_equal(theirs.ids, found.ids)
            and np.array_equal(theirs.starts, found.starts)
            and np.array_equal(theirs.stops, found.stops)
            and theirs.decoded == decoded
        ):
            result["first_divergence"] = _first(library, batch, theirs, bounds, found, decoded, result)
            return result
        result["n_strings"] += len(batch)
    return result


def _batches(texts: Any, size: int) -> Any:
    iterator = iter(texts)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def _decode_all(ours: Any, found: Any) -> list[str]:
    bounds = found.offsets.tolist()
    return [ours.decode(found.ids[start:stop]) for start, stop in itertools.pairwise(bounds)]


def _first(
    library: Library,
    batch: list[str],
    theirs: Answer,
    bounds: np.ndarray,
    found: Any,
    decoded: list[str],
    result: Compared,
) -> Compared:
    for i, text in enumerate(batch):
        part = slice(int(bounds[i]), int(bounds[i + 1]))
        offsets = list(zip(theirs.starts[part].tolist(), theirs.stops[part].tolist(), strict=True))
        got = found.text(i)
        for what, expected, answer in (
            ("ids", theirs.ids[part].tolist(), got.ids),
            ("offsets", offsets, got.offsets),
            ("decoded", theirs.decoded[i], decoded[i]),
        ):
            if expected != answer:
                result["n_strings"] += i + 1
                return {"text": text, "what": what, library.name: expected, "tokctl": answer}
    raise AssertionError("the batch differs, but none of its strings does")
