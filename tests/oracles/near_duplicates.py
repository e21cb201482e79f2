"""Near duplicates by comparing every document with every other: canonical text, shingles, Jaccard, components.

Characters come from ``unicodedata`` here (any version that knows the text will do), not from the tables of the package.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

_UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "BOPOMOFO ", "YI ", "THAI ", "LAO ", "KHMER ", "MYANMAR ", "TIBETAN ")
_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def canonical(text: str, options: Iterable[str]) -> str:
    """``options`` out of nfc, fold_case, collapse_space, zero_digits, drop_punctuation; nothing left: the text itself."""
    chosen = set(options)
    out = unicodedata.normalize("NFD", text) if "nfc" in chosen else text
    if "fold_case" in chosen:
        out = out.casefold()
    if "zero_digits" in chosen:
        out = "".join("0" if unicodedata.category(c) == "Nd" else c for c in out)
    if "drop_punctuation" in chosen:
        out = "".join(c for c in out if unicodedata.category(c)[0] != "P")
    if "collapse_space" in chosen:
        out = "".join(" " if c in _WHITE_SPACE else c for c in out)
        out = " ".join(word for word in out.split(" ") if word)
    if "nfc" in chosen:
        out = unicodedata.normalize("NFC", out)
    return out or text


def is_unspaced(text: str) -> bool:
    """Whether more than half of the letters and marks belong to scripts written without spaces."""
    letters = [c for c in text if unicodedata.category(c)[0] in "LM"]
    return 2 * sum(unicodedata.name(c, "").startswith(_UNSPACED) for c in letters) > len(letters)


def shingles(text: str, n_words: int | None, n_characters: int | None) -> set[str]:
    """Word shingles when ``n_words`` is given, else character shingles."""
    if n_words is not None:
        words = text.split(" ")
        return {" ".join(words[i : i + n_words]) for i in range(len(words) - n_words + 1) if words != [""]}
    assert n_characters is not None
    return {text[i : i + n_characters] for i in range(len(text) - n_characters + 1)}


def jaccard(left: set[str], right: set[str]) -> float:
    """Common shingles by all shingles; two empty sets are equal."""
    union = len(left | right)
    return len(left & right) / union if union else 1.0


def similar_pairs(sets: Sequence[set[str]], threshold: float) -> list[tuple[int, int]]:
    """Every pair i < j of non-empty sets with a similarity of at least ``threshold``."""
    order = sorted((i for i in range(len(sets)) if sets[i]), key=lambda i: len(sets[i]))
    pairs = []
    for place, small in enumerate(order):
        for large in order[place + 1 :]:
            if len(sets[small]) / len(sets[large]) < threshold:  # the similarity is at most this; larger ones follow
                break
            common = len(sets[small] & sets[large])
            if common / (len(sets[small]) + len(sets[large]) - common) >= threshold:
                pairs.append((min(small, large), max(small, large)))
    return sorted(pairs)


def components(n: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """For each of ``n`` items the lowest item that a chain of pairs connects it with."""
    label = list(range(n))
    changed = True
    pairs = list(pairs)
    while changed:
        changed = False
        for i, j in pairs:
            low = min(label[i], label[j])
            if label[i] != low or label[j] != low:
                label[i] = label[j] = low
                changed = True
    return label
