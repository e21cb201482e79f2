"""Where the tokens of encoded texts are, in declared units of the raw text or of the text as it was split."""

from __future__ import annotations

import numpy as np

from tokctl.tokenizer.aligned import AlignedPieces, raw_ranges
from tokctl.tokenizer.encoding import in_code_points, trim_spaces
from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints
from tokctl.tokenizer.template import Template


def locate(
    texts: AlignedPieces,
    data: np.ndarray,
    offsets: np.ndarray,
    n_ids: np.ndarray,
    lengths: np.ndarray,
    margins: tuple[np.ndarray, np.ndarray],
    spaces: CodePoints,
    template: Template,
    unit: str,
) -> tuple[np.ndarray, np.ndarray]:
    """``(starts, stops)`` int64[n] of the tokens, each within its own text, in ``unit`` (``encoding.UNITS``).

    ``texts`` are the pieces that were encoded, ``data`` and ``offsets`` the raw texts; piece i has ``n_ids[i]`` tokens, of
    ``lengths int64[n]`` bytes. For ``template.trim_offsets``: ``margins`` are the spaces at the start and the end of each
    token of the model, ``spaces`` the white space that is trimmed from what an added token was found as.
    """
    pieces = texts.pieces
    owner = np.repeat(np.arange(len(n_ids)), n_ids)
    documents = pieces.documents[owner]
    before = np.concatenate([[0], np.cumsum(lengths)])
    first_token = np.cumsum(n_ids) - n_ids
    starts = pieces.starts[owner] + before[:-1] - before[first_token][owner]
    stops = starts + lengths
    if unit == "normalized_codepoints":  # of what the pieces hold: what ``Tokenizer.normalize`` gives
        places, begins = texts.joined()
        data = texts.data[places]
        starts, stops = (place + (begins - pieces.starts)[owner] for place in (starts, stops))
        held = np.concatenate([[0], np.cumsum(pieces.stops - pieces.starts)])
        offsets = held[np.searchsorted(pieces.documents, np.arange(len(offsets)))]
    elif texts.is_rewritten:
        starts, stops = raw_ranges(data, texts.origins, starts, stops)
        # what is empty stands at the start of its text
        starts, stops = (np.where(lengths > 0, place, offsets[documents]) for place in (starts, stops))
    in_bytes = unit == "raw_utf8_bytes"
    if in_bytes and not template.trim_offsets:
        return starts - offsets[documents], stops - offsets[documents]
    first, last = in_code_points(data, offsets, documents, starts, stops)
    if not template.trim_offsets:
        return first, last
    leading, trailing = (margin.copy() for margin in margins)
    for token in np.flatnonzero(pieces.tokens[owner] >= 0).tolist():
        piece = owner[token]
        text = texts.data[pieces.starts[piece] : pieces.stops[piece]].tobytes().decode("utf-8", "surrogateescape")
        leading[token] = next((i for i, char in enumerate(text) if ord(char) not in spaces), len(text))
        trailing[token] = next((i for i, char in enumerate(reversed(text)) if ord(char) not in spaces), len(text))
    is_first = np.diff(documents, prepend=-1) != 0
    keeps_one = (is_first | (first == 0)) & template.trim_keeps_first
    trimmed_first, trimmed_last = trim_spaces(first, last, leading, trailing, keeps_one)
    if not in_bytes:
        return trimmed_first, trimmed_last
    first_byte, last_byte = _in_bytes(data, offsets, documents, trimmed_first, trimmed_last)
    starts = np.where(trimmed_first == first, starts, first_byte)
    stops = np.where(trimmed_last == last, stops, last_byte)
    return starts - offsets[documents], stops - offsets[documents]


def _in_bytes(
    data: np.ndarray, offsets: np.ndarray, documents: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Code point ranges of texts as byte ranges of ``data``."""
    from tokctl.kernels.code_points import number_code_points

    begins, n_points = [np.empty(0, np.int64)], []
    for low, high in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        numbers = np.empty(high - low, np.int64)
        number_code_points(data[low:high], numbers)
        begins.append(np.flatnonzero(np.diff(numbers, prepend=-1)) + low)
        n_points.append(len(begins[-1]))
    # where each code point begins, and behind the last one of all where it ends, which is where the next text begins
    places = np.append(np.concatenate(begins), offsets[-1])
    counts = np.array(n_points, np.int64)
    first = (np.cumsum(counts) - counts)[documents]
    return places[first + starts], places[first + stops]
