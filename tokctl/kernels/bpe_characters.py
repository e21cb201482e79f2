"""Words as characters: counting the characters of a corpus, spelling words in base symbols, and finding their places.

A character is a code point of well-formed UTF-8. A byte that is no part of any is a character of its own, with the
number U+DC00 + byte (a lone surrogate, which UTF-8 can't spell).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels.code_points import sequence_length

N_POINTS = 0x110000
BLOCK_BITS = 8


class CharacterIds(NamedTuple):
    """Ids of characters by code point, in blocks of 256; -1: not in the alphabet.

    ``block int32[0x1100]``: where the block of a code point's upper bits starts; ``inner``, ``final`` int32[]: ids inside
    and at the end of a word; ``end_id int32[1]``: the symbol that follows the last character of a word, or -1.
    """

    block: np.ndarray
    inner: np.ndarray
    final: np.ndarray
    end_id: np.ndarray


def character_table(inner, final, end_id):
    """CharacterIds from two mappings of code points to ids (plain Python)."""
    blocks = sorted({point >> BLOCK_BITS for point in (*inner, *final)})
    block = np.zeros(N_POINTS >> BLOCK_BITS, np.int32)
    block[blocks] = np.arange(1, len(blocks) + 1, dtype=np.int32) << BLOCK_BITS
    tables = []
    for ids in (inner, final):
        table = np.full((len(blocks) + 1) << BLOCK_BITS, -1, np.int32)
        for point, token_id in ids.items():
            table[block[point >> BLOCK_BITS] + (point & 255)] = token_id
        tables.append(table)
    return CharacterIds(block, *tables, np.array([end_id], np.int32))


@jit(inner=True, borrows=True)
def _read(data, at, stop):
    """The character at ``at`` and the place after it."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, at + 1
    length = sequence_length(data, at, stop)
    if length == 1:
        return 0xDC00 + lead, at + 1
    point = lead & (0xFF >> (length + 1))
    for i in range(at + 1, at + length):
        point = (point << 6) | (np.int64(data[i]) & 0x3F)
    return point, at + length


@jit(borrows=True)
def count_characters(data, offsets, counts, first, last, inner, final):
    """Add how often each character stands inside and at the end of words ``first`` to ``last - 1``.

    Word w is ``data[offsets[w]:offsets[w + 1]]`` and occurs ``counts[w]`` times; ``inner``, ``final`` int64[0x110000].
    """
    for word in range(first, last):
        at, stop = offsets[word], offsets[word + 1]
        while at < stop:
            point, at = _read(data, at, stop)
            if at < stop:
                inner[point] += counts[word]
            else:
                final[point] += counts[word]


@jit(borrows=True)
def spell_words(data, starts, stops, is_whole, ids, first, last, symbols, offsets):
    """Write the base symbols of words ``first`` to ``last - 1`` to ``symbols int32[]`` from ``offsets[first]`` on.

    ``is_whole uint8[n]``: whether the word's end is one (0: its last character stands inside). ``offsets int64[n + 1]`` is
    filled behind ``first``. A character outside the alphabet is written as -1 - its code point. An empty word has no
    symbols, unless it is whole: then it has the end's. A word takes at most its bytes and one symbol more.
    """
    at_symbol = offsets[first]
    for word in range(first, last):
        at, stop = starts[word], stops[word]
        while at < stop:
            point, at = _read(data, at, stop)
            place = ids.block[point >> BLOCK_BITS] + (point & 255)
            found = ids.final[place] if at == stop and is_whole[word] != 0 else ids.inner[place]
            symbols[at_symbol] = found if found >= 0 else np.int32(-1 - point)
            at_symbol += 1
        if is_whole[word] != 0 and ids.end_id[0] >= 0:
            symbols[at_symbol] = ids.end_id[0]
            at_symbol += 1
        offsets[word + 1] = at_symbol


@jit(borrows=True)
def keep_filled(data, starts, stops, spaces, kept):
    """Write the numbers of the words that are not white space all through to ``kept int64[]`` and return how many.

    ``spaces int64[k]``: the white-space code points, ascending.
    """
    n = 0
    highest = spaces[spaces.size - 1]
    for word in range(starts.size):
        at = starts[word]
        while at < stops[word]:
            point, at = _read(data, at, stops[word])
            if point > highest or spaces[np.searchsorted(spaces, point)] != point:
                kept[n] = word
                n += 1
                break
    return n


@jit(borrows=True)
def pack_symbols(symbols, offsets, n_symbols, tokens, out):
    """Write the symbols left of each word to ``out uint32[]``, or ``tokens[word]`` where that is not negative."""
    n_out = 0
    for word in range(n_symbols.size):
        if tokens[word] >= 0:
            out[n_out] = np.uint32(tokens[word])
            n_out += 1
            continue
        for i in range(offsets[word], offsets[word] + n_symbols[word]):
            out[n_out] = np.uint32(symbols[i])
            n_out += 1


@jit(borrows=True)
def measure_symbols(data, starts, stops, tokens, ids, n_ids, text_lengths, unknown, lengths):
    """Fill ``lengths int64[]``: how many bytes of ``data`` each of the words' ids stands for.

    That is ``text_lengths int64[]`` by id; the id ``unknown`` (-1: none) stands for the one character at its place, and
    where ``tokens[word]`` is not negative, one id for the whole word.
    """
    n = 0
    for word in range(starts.size):
        at = starts[word]
        for _ in range(n_ids[word]):
            symbol = np.int64(ids[n])
            if tokens[word] >= 0:
                length = stops[word] - at
            elif symbol == unknown:
                length = np.int64(sequence_length(data, at, stops[word]))
            else:
                length = text_lengths[symbol]
            lengths[n] = length
            at += length
            n += 1


@jit(borrows=True)
def words_with(data, offsets, counts, first, last, points, words):
    """Keep the commonest words of ``first`` to ``last - 1`` that hold each of ``points`` (``int64[k]``, ascending).

    ``words int64[k, m]``: the m best so far, -1 where there is none; an earlier word goes before a later one of its count.
    """
    n_best = words.shape[1]
    for word in range(first, last):
        if counts[word] == 0:
            continue
        at = offsets[word]
        while at < offsets[word + 1]:
            point, at = _read(data, at, offsets[word + 1])
            row = np.searchsorted(points, point)
            if row == points.size or points[row] != point:
                continue
            place = n_best
            is_listed = False
            for k in range(n_best - 1, -1, -1):
                if words[row, k] == word:
                    is_listed = True
                if words[row, k] < 0 or counts[words[row, k]] < counts[word]:
                    place = k
            if is_listed or place == n_best:
                continue
            for k in range(n_best - 1, place, -1):
                words[row, k] = words[row, k - 1]
            words[row, place] = word
