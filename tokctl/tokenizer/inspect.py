"""What happened to one text: its words, the merges inside them, ids, bytes and masks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tokctl.tokenizer.added_tokens import Pieces
from tokctl.tokenizer.aligned import raw_ranges
from tokctl.tokenizer.encoding import in_code_points
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.texts import flatten, utf8
from tokctl.tokenizer.tokenizer import Tokenizer

MAX_TRACED_BYTES = 1000
"""Words longer than this are shown without their merges."""


def inspect(
    tokenizer: Tokenizer, text: str | bytes, *, allowed_special: Iterable[str] | str = (), **options: Any
) -> dict[str, Any]:
    """Everything about ``text`` as a JSON value; ``options`` as in ``Tokenizer.encode``.

    ``tokens``: one entry an id with ``id``, ``hex``, ``text`` (None for a part of a character), ``bytes`` and
    ``code_points`` (half-open ranges), ``special`` and ``added``. ``spans``: one entry a word or added token with its
    ranges, ``hex``, ``text``, ``kind`` (``word``, ``added``, ``special``, or ``dropped`` white space), ``ids`` and
    ``merges`` in the order made: ``rank``, ``position`` (number of the left symbol among those left at that moment),
    ``left``, ``right``, ``merged`` as ids with their bytes. ``merges`` is None for a word of more than MAX_TRACED_BYTES bytes.
    """
    data = utf8(text)
    options["allowed_special"] = allowed_special
    in_bytes = tokenizer.encode_with_offsets(data, "raw_utf8_bytes", **options)
    in_points = tokenizer.encode_with_offsets(data, "raw_codepoints", **options)
    control = set(tokenizer.special_ids.values())
    tokens = []
    for i, token_id in enumerate(in_bytes.ids):
        token = tokenizer.token_bytes(token_id)
        tokens.append(
            {
                "id": token_id,
                **_shown(token),
                "bytes": list(in_bytes.offsets[i]),
                "code_points": list(in_points.offsets[i]),
                "special": bool(in_bytes.special_mask[i]),
                "added": in_bytes.sequence_ids[i] is None,
            }
        )
    return {
        "text": _shown(data),
        "normalized": _shown(tokenizer.normalize(data, allowed_special)),
        "spans": _spans(tokenizer, data, allowed_special, control),
        "tokens": tokens,
        "ids": in_bytes.ids,
        "special_mask": in_bytes.special_mask,
        "n_bytes": len(data),
        "n_tokens": len(in_bytes.ids),
        "notices": list(tokenizer.notices),
    }


def _spans(
    tokenizer: Tokenizer, data: bytes, allowed_special: Iterable[str] | str, control: set[int]
) -> list[dict[str, Any]]:
    array, offsets = flatten([data])
    prepared = tokenizer.prepare(array, offsets, allowed_special, follow=True)
    rewritten, pieces = prepared.data, prepared.pieces
    starts, stops, tokens, dropped = [], [], [], set()
    for start, stop, token in zip(pieces.starts.tolist(), pieces.stops.tolist(), pieces.tokens.tolist(), strict=True):
        ends = [stop - start] if token >= 0 else tokenizer.pre_tokenizer.split(rewritten[start:stop]).tolist()
        starts += [start + begin for begin in (0, *ends[:-1])] if ends else []
        stops += [start + end for end in ends]
        tokens += [token] * len(ends)
    columns = [np.array(column, np.int64) for column in (starts, stops, tokens, [0] * len(tokens))]
    if tokenizer.pre_tokenizer.drops_space:
        filled = tokenizer.pre_tokenizer.filled_words(rewritten, columns[0], columns[1]).tolist()
        dropped = {i for i, token in enumerate(tokens) if token < 0}.difference(filled)
    words = Pieces(*columns)
    kept = [i for i in range(len(tokens)) if i not in dropped]
    encoder = tokenizer.model.encoder(PreTokenizer.from_pattern("none"))
    flat, n_ids = encoder.encode(rewritten, Pieces(*(column[kept] for column in columns)))
    parts = np.split(flat, np.cumsum(n_ids)[:-1])
    ids: list[list[int]] = [[] for _ in tokens]
    for i, part in zip(kept, parts, strict=False):
        ids[i] = part.tolist()
    lows, highs = words.starts, words.stops
    if prepared.is_rewritten:
        lows, highs = raw_ranges(array, prepared.origins, lows, highs)
    first, last = in_code_points(array, offsets, words.documents, lows, highs)
    spans = []
    for i, (start, stop, token) in enumerate(zip(starts, stops, tokens, strict=True)):
        kind = "special" if token in control else "added" if token >= 0 else "dropped" if i in dropped else "word"
        spans.append(
            {
                "kind": kind,
                "bytes": [int(lows[i]), int(highs[i])],
                "code_points": [int(first[i]), int(last[i])],
                **_shown(rewritten[start:stop].tobytes()),
                "ids": ids[i],
                "merges": [] if token >= 0 or i in dropped else _merges(tokenizer, rewritten[start:stop].tobytes()),
            }
        )
    return spans


def _merges(tokenizer: Tokenizer, word: bytes) -> list[dict[str, Any]] | None:
    if len(word) > MAX_TRACED_BYTES:
        return None
    return [
        {
            "rank": step.rank,
            "position": step.position,
            "left": step.left,
            "right": step.right,
            "merged": step.merged,
            **_shown(tokenizer.token_bytes(step.merged)),
        }
        for step in tokenizer.model.trace(word)[1]
    ]


def _shown(data: bytes) -> dict[str, Any]:
    """Bytes for a JSON reader: in hexadecimal, and as text where they are UTF-8 by themselves."""
    try:
        return {"hex": data.hex(" "), "text": data.decode()}
    except UnicodeDecodeError:
        return {"hex": data.hex(" "), "text": None}
