"""Canonical text against Python's own Unicode functions and the oracle."""

from __future__ import annotations

import itertools
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import near_duplicates as oracle

from tokctl.corpus.dedup.canonical import NOTHING, Canonicalisation, canonical_text, canonicalise
from tokctl.kernels import canonical_text as kernel

OPTIONS = ("nfc", "fold_case", "collapse_space", "zero_digits", "drop_punctuation")
# Both this Python and the package's tables must know a code point for the two to be comparable, and a code point that
# this Python doesn't know may have properties in newer tables.
KNOWN = [point for point in range(0x110000) if unicodedata.category(chr(point)) not in ("Cn", "Cs")]
JOINING = [point for point in KNOWN if unicodedata.combining(chr(point)) or unicodedata.decomposition(chr(point))]
HANGUL = [*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A7, 0x11C3), *range(0xAC00, 0xAC40)]

_hot = st.sampled_from([*JOINING, *HANGUL, *map(ord, " \t.,!?09aAßéµ")])
_texts = st.lists(st.one_of(_hot, st.sampled_from(KNOWN)), max_size=12).map(lambda points: "".join(map(chr, points)))


def _differ(how: Canonicalisation, expected: list[str], texts: list[str]) -> list[str]:
    raw = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, raw)]).astype(np.int64)
    out = canonicalise(np.frombuffer(b"".join(raw), np.uint8), offsets, how)
    found = [out.data[a:b].tobytes().decode() for a, b in itertools.pairwise(out.offsets.tolist())]
    return [text for text, a, b in zip(texts, found, expected, strict=True) if a != b]


def test_every_code_point_alone() -> None:
    alone = [chr(point) for point in KNOWN]
    assert not _differ(Canonicalisation(nfc=True), [unicodedata.normalize("NFC", c) for c in alone], alone)
    assert not _differ(Canonicalisation(fold_case=True), [c.casefold() for c in alone], alone)
    caseless = [unicodedata.normalize("NFC", unicodedata.normalize("NFD", c).casefold()) for c in alone]
    assert not _differ(Canonicalisation(nfc=True, fold_case=True), caseless, alone)


def test_every_pair_that_composes_or_orders() -> None:
    seconds = [point for point in JOINING if unicodedata.combining(chr(point))][::11] + HANGUL[::9]
    texts = [chr(a) + chr(b) for a in [*JOINING[::7], *HANGUL[::5]] for b in seconds]
    assert not _differ(Canonicalisation(nfc=True), [unicodedata.normalize("NFC", text) for text in texts], texts)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(_texts, st.sets(st.sampled_from(OPTIONS)))
def test_equals_the_oracle(text: str, options: set[str]) -> None:
    how = Canonicalisation(**dict.fromkeys(options, True))
    once = canonical_text(text, how)
    assert once.decode() == oracle.canonical(text, options)
    if once != text.encode():
        assert canonical_text(once, how) == once


def test_options_one_by_one() -> None:
    assert canonical_text("cafe\u0301", Canonicalisation(nfc=True)) == "café".encode()
    assert canonical_text("Straße ΣΊΣΥΦΟΣ", Canonicalisation(fold_case=True)) == "strasse σίσυφοσ".encode()
    assert canonical_text(" a\r\n\t b\u3000c ", Canonicalisation(collapse_space=True)) == b"a b c"
    assert canonical_text("12 ٣४", Canonicalisation(zero_digits=True)) == b"00 00"
    assert canonical_text("«Hi», it's $5+1。", Canonicalisation(drop_punctuation=True)) == b"Hi its $5+1"
    assert canonical_text("A\u0301 b", NOTHING) == "A\u0301 b".encode()


def test_dropping_between_a_letter_and_its_mark_composes() -> None:
    how = Canonicalisation(nfc=True, drop_punctuation=True)
    assert canonical_text("e.\u0301!", how) == "é".encode()


def test_a_text_of_which_nothing_is_left_stays_itself() -> None:
    how = Canonicalisation(collapse_space=True, drop_punctuation=True)
    raw = [b"!!!", b"???", b" \n", b"", b"a"]
    offsets = np.cumsum([0, *map(len, raw)]).astype(np.int64)
    out = canonicalise(np.frombuffer(b"".join(raw), np.uint8), offsets, how)
    assert out.is_empty.tolist() == [True, True, True, True, False]
    assert [out.data[a:b].tobytes() for a, b in itertools.pairwise(out.offsets.tolist())] == raw


def test_stray_bytes_stay_apart_and_never_become_text() -> None:
    how = Canonicalisation(nfc=True, fold_case=True, drop_punctuation=True)
    strays = [
        b"\xc3.\xa9",
        b"\xc3\xa9",
        b"\xc3",
        b"\xa9",
        b"\xff",
        b"a\xcc",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\x80",
    ]
    canonical = [canonical_text(raw, how) for raw in strays]
    assert len(set(canonical)) == len(strays)
    assert canonical[1] == "é".encode()
    assert canonical_text(b"A\xffB", how).decode("utf-8", "surrogatepass") == "a\udcffb"


def test_a_long_run_of_marks_is_ordered_in_linear_time() -> None:
    for n in (30, 100_000):  # Python's own takes minutes for the longer one
        ordered = "\u1ea1" + "\u0334" * n + "\u0323" * (n - 1) + "\u0301" * n
        text = "a" + "\u0301\u0323\u0334" * n
        assert canonical_text(text, Canonicalisation(nfc=True)).decode() == ordered
        assert n > 30 or unicodedata.normalize("NFC", text) == ordered


@pytest.mark.parametrize("options", [("nfc",), ("fold_case",), ("nfc", "fold_case")])
def test_growth_stays_inside_the_buffer(options: tuple[str, ...]) -> None:
    how = Canonicalisation(**dict.fromkeys(options, True))
    for point in KNOWN:
        raw = chr(point).encode()
        if len(raw) > 1:
            decomposed = unicodedata.normalize("NFD", chr(point)) if how.nfc else chr(point)
            decomposed = decomposed.casefold() if how.fold_case else decomposed
            assert len(decomposed.encode()) <= kernel.MAX_GROWTH * len(raw), hex(point)


def test_scripts_without_spaces() -> None:
    texts = [
        "人人生而自由 abc",
        "すべての人間は",
        "มนุษย์ทั้งหลาย",
        "ມະນຸດທຸກຄົນ",
        "មនុស្សទាំងអស់",
        "လူတိုင်းသည်",
        "All people",
        "한국어 낱말",
        "12 + 3",
    ]
    raw = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, raw)]).astype(np.int64)
    out = canonicalise(np.frombuffer(b"".join(raw), np.uint8), offsets, NOTHING, needs_scripts=True)
    assert out.is_unspaced.tolist() == [True] * 6 + [False] * 3
    assert out.is_unspaced.tolist() == [oracle.is_unspaced(text) for text in texts]


def test_a_manifest_names_the_tables_only_when_they_matter() -> None:
    assert "unicode_version" not in NOTHING.to_json()
    assert Canonicalisation(nfc=True).to_json()["unicode_version"] == "16.0.0"


def test_one_signature() -> None:
    canonical_text("x", Canonicalisation(nfc=True))
    canonical_text(b"y", Canonicalisation(fold_case=True))
    assert len(kernel.canonicalise.signatures) == 1
