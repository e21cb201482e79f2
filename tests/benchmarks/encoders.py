"""How each library is asked to encode with a published vocabulary, the fastest way it has, and what it takes and gives.

An :class:`Encoder` has an ``open`` function, which imports the library and loads the vocabulary (neither is measured).
Libraries that read only ``tokenizer.json`` get one with the pattern in the words that they know, one merge a token and no
added tokens (:func:`tokenizer_json`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.corpora import _atomic, data_dir
from interop import real_vocabularies as real

PATTERN_OF = {"r50k_base": "gpt2", "cl100k_base": "llama3", "o200k_base": "o200k"}  # as tokenizer.json files write them


class Opened(NamedTuple):
    """``encode``: texts in the declared form -> the library's own result. ``ids``: that result -> uint32[n], all texts' ids in
    order. ``prepare``: uint32[n] -> what ``decode`` takes; ``decode``: that -> bytes. The last two are None where a library
    can't decode all ids at once."""

    encode: Callable[[Any], Any]
    ids: Callable[[Any], np.ndarray]
    prepare: Callable[[np.ndarray], Any] | None
    decode: Callable[[Any], bytes] | None


@dataclass(frozen=True)
class Encoder:
    """``input``: "arrow", "strings" or "file"; ``output``: what ``encode`` gives; ``vocabularies``: those it has."""

    package: str
    input: str
    output: str
    open: Callable[[str, int], Opened]
    vocabularies: tuple[str, ...] = tuple(PATTERN_OF)
    note: str = ""


def _ranks(vocabulary: str) -> Path:
    return real.tiktoken_ranks(vocabulary)


def _buffers(result: tuple[bytes, bytes]) -> np.ndarray:
    return np.frombuffer(result[0], np.uint32)


def _lists(results: Sequence[Sequence[int]]) -> np.ndarray:
    return np.concatenate([np.asarray(ids, np.uint32) for ids in results])


def _as_list(ids: np.ndarray) -> list[int]:
    found: list[int] = ids.tolist()
    return found


def open_tokctl(vocabulary: str, threads: int) -> Opened:
    import tokctl

    tokenizer = tokctl.load(_ranks(vocabulary))
    return Opened(
        lambda texts: tokenizer.encode_flat(texts, workers=threads),
        lambda result: result[0],
        lambda ids: ids,
        tokenizer.decode_bytes,
    )


def open_tokctl_lists(vocabulary: str, threads: int) -> Opened:
    import tokctl

    tokenizer = tokctl.load(_ranks(vocabulary))
    return Opened(
        lambda texts: tokenizer.encode_batch(texts, workers=threads), _lists, _as_list, tokenizer.decode_bytes
    )


def open_gigatoken(source: str) -> Callable[[str, int], Opened]:
    def opened(vocabulary: str, threads: int) -> Opened:
        import awkward
        import gigatoken

        tokenizer = gigatoken.Tokenizer.from_tiktoken(_ranks(vocabulary))
        parallel = threads > 1

        def encode(texts: Any) -> Any:
            if source == "file":
                return tokenizer.encode_files(gigatoken.TextFileSource([texts], b"\n\n"), parallel=parallel)
            if source == "arrow":
                texts = awkward.from_arrow(texts)
            return tokenizer.encode_batch(texts, parallel=parallel)

        def ids(result: Any) -> np.ndarray:
            return np.asarray(awkward.flatten(result), np.uint32)

        return Opened(encode, ids, lambda found: found, tokenizer.decode)

    return opened


def open_snaptokens(vocabulary: str, threads: int) -> Opened:
    import snaptokens

    tokenizer = snaptokens.Tokenizer.from_file(str(tokenizer_json(vocabulary)))
    return Opened(tokenizer.encode_batch_flat, _buffers, _as_list, lambda ids: tokenizer.decode(ids, False).encode())


def open_fastokens(vocabulary: str, threads: int) -> Opened:
    import fastokens

    tokenizer = fastokens.Tokenizer.from_file(str(tokenizer_json(vocabulary)))
    return Opened(tokenizer.encode_batch_flat, _buffers, _as_list, lambda ids: tokenizer.decode(ids, False).encode())


def open_quicktok(vocabulary: str, threads: int) -> Opened:
    import quicktok

    tokenizer = quicktok.get_encoding(vocabulary)
    return Opened(
        lambda texts: tokenizer.encode_batch(texts, threads),
        lambda result: result[0],
        _as_list,
        tokenizer.decode_bytes,
    )


def open_splintr(vocabulary: str, threads: int) -> Opened:
    import splintr

    tokenizer = splintr.Tokenizer.from_pretrained(vocabulary)
    return Opened(tokenizer.encode_batch_flat, _buffers, _as_list, tokenizer.decode_bytes)


def open_tiktoken(vocabulary: str, threads: int) -> Opened:
    encoding = tiktoken_encoding(vocabulary)
    if threads == 1:
        encode = encoding.encode_ordinary
        return Opened(lambda texts: [encode(text) for text in texts], _lists, _as_list, encoding.decode_bytes)
    return Opened(
        lambda texts: encoding.encode_ordinary_batch(texts, num_threads=threads),
        _lists,
        _as_list,
        encoding.decode_bytes,
    )


def open_tokenizers(vocabulary: str, threads: int) -> Opened:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_json(vocabulary)))
    return Opened(
        lambda texts: tokenizer.encode_batch_fast(texts, add_special_tokens=False),
        lambda result: _lists([found.ids for found in result]),
        _as_list,
        lambda ids: tokenizer.decode(ids, skip_special_tokens=False).encode(),
    )


ENCODERS: dict[str, Encoder] = {
    "tokctl": Encoder("tokctl", "arrow", "flat ids", open_tokctl),
    "tokctl-lists": Encoder("tokctl", "strings", "lists of ids", open_tokctl_lists),
    "gigatoken": Encoder("gigatoken", "strings", "flat ids", open_gigatoken("strings")),
    "gigatoken-arrow": Encoder("gigatoken", "arrow", "flat ids", open_gigatoken("arrow")),
    "gigatoken-file": Encoder("gigatoken", "file", "flat ids", open_gigatoken("file")),
    "snaptokens": Encoder("snaptokens", "strings", "flat ids", open_snaptokens),
    "fastokens": Encoder("fastokens", "strings", "flat ids", open_fastokens),
    "quicktok": Encoder("quicktok-v1", "strings", "flat ids", open_quicktok, ("cl100k_base", "o200k_base")),
    "splintr": Encoder("splintr-rs", "strings", "flat ids", open_splintr, ("cl100k_base", "o200k_base")),
    "tiktoken": Encoder("tiktoken", "strings", "lists of ids", open_tiktoken),
    "tokenizers": Encoder("tokenizers", "strings", "objects with lists of ids", open_tokenizers),
}


def tiktoken_encoding(vocabulary: str) -> Any:
    """tiktoken's own encoding: its cache is given the ranks, whose digest it checks."""
    url = f"https://openaipublic.blob.core.windows.net/encodings/{vocabulary}.tiktoken"
    name = hashlib.sha1(url.encode()).hexdigest()

    def build(directory: Path) -> dict[str, str]:
        (directory / name).write_bytes(_ranks(vocabulary).read_bytes())
        return {vocabulary: "js-tiktoken"}

    os.environ["TIKTOKEN_CACHE_DIR"] = str(_atomic(data_dir() / "tiktoken-cache" / vocabulary, build))
    import tiktoken

    return tiktoken.get_encoding(vocabulary)


def tokenizer_json(vocabulary: str) -> Path:
    """A ``tokenizer.json`` of the vocabulary for libraries that read nothing else; made once, in the test cache."""

    def build(directory: Path) -> dict[str, str]:
        from tokctl.tokenizer.byte_order import spell_bytes
        from tokctl.tokenizer.pre_tokenizers.patterns import NAMED

        lines = _ranks(vocabulary).read_bytes().splitlines()
        ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
        if PATTERN_OF[vocabulary] == "gpt2":
            splitting: dict[str, Any] = {**byte_level, "use_regex": True}
        else:
            (regex,) = NAMED[PATTERN_OF[vocabulary]]
            split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
            splitting = {"type": "Sequence", "pretokenizers": [split, {**byte_level, "use_regex": False}]}
        merges = [halves(token, ranks) for token in sorted(ranks, key=ranks.__getitem__) if len(token) > 1]
        model = {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {spell_bytes(token): rank for token, rank in ranks.items()},
            "merges": [[spell_bytes(left), spell_bytes(right)] for left, right in merges],
        }
        whole = {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": splitting,
            "post_processor": None,
            "decoder": {**byte_level, "use_regex": True},
            "model": model,
        }
        (directory / "tokenizer.json").write_text(json.dumps(whole), "utf-8")
        return {vocabulary: "js-tiktoken"}

    return _atomic(data_dir() / "peer-files" / vocabulary, build) / "tokenizer.json"


def halves(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two tokens that the last merge of ``token`` joins: what merging by rank leaves of it without the token itself."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        found = [(ranks.get(parts[i] + parts[i + 1], len(ranks)), i) for i in range(len(parts) - 1)]
        rank, at = min(found)
        if rank >= ranks[token]:
            raise ValueError(f"{token!r} is not reached by merging")
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]
