"""Normalizers against plain Python, in slices, with what each byte stands for."""

from __future__ import annotations

import json
import random
import unicodedata

import numpy as np
import pytest
from oracles.rewrite_text import normalise

from tokctl.errors import ArtifactError
from tokctl.tokenizer import normalization_tables, normalizers
from tokctl.tokenizer.added_tokens import Pieces
from tokctl.tokenizer.aligned import AlignedPieces, raw_ranges
from tokctl.tokenizer.normalizers import rewriting
from tokctl.tokenizer.normalizers.lowercase import Lowercase
from tokctl.tokenizer.normalizers.prepend import Prepend
from tokctl.tokenizer.normalizers.replace import Replace
from tokctl.tokenizer.normalizers.strip import Strip
from tokctl.tokenizer.normalizers.unicode_form import FORMS, UnicodeForm
from tokctl.tokenizer.pre_tokenizers.matching import Pattern

EXAMPLES = [
    UnicodeForm("nfc", "9.0.0"),
    UnicodeForm("nfkd"),
    Lowercase("17.0.0"),
    Replace(Pattern(r"\s+"), " "),
    Replace(Pattern("ab", literal=True), "é"),
    Prepend("▁"),
    Strip(True, False),
]


def pieces_of(*texts: bytes, tokens: tuple[int, ...] | None = None) -> AlignedPieces:
    bounds = np.cumsum([0, *map(len, texts)])
    data = np.frombuffer(b"".join(texts) or b"\0", np.uint8)[: bounds[-1]].copy()
    ids = np.array(tokens or [-1] * len(texts), np.int64)
    pieces = Pieces(bounds[:-1].copy(), bounds[1:].copy(), ids, np.arange(len(texts)))
    return AlignedPieces(data, pieces, np.arange(len(data)))


def texts_of(texts: AlignedPieces) -> list[bytes]:
    bounds = zip(texts.pieces.starts.tolist(), texts.pieces.stops.tolist(), strict=True)
    return [texts.data[start:stop].tobytes() for start, stop in bounds]


def apply(normalizer, *texts: str | bytes) -> list[bytes]:
    return texts_of(normalizer.apply(pieces_of(*(t.encode() if isinstance(t, str) else t for t in texts))))


def awkward_text(draw: random.Random, table: normalization_tables.NormalizationTable) -> str:
    pools = [
        table.combining_points.tolist(),
        table.decomposed_points.tolist(),
        table.compatible_points.tolist(),
        [0x1100, 0x1161, 0x11A8, 0x11A7, 0xAC00, 0xAC01, 0xD7A3, 0x1175],
        [0x61, 0x20, 0x41, 0xE9, 0x301, 0x323, 0x4E00, 0x1F600],
    ]
    out = []
    for _ in range(draw.randint(0, 10)):
        if draw.random() < 0.3:
            first, second, _ = table.composites[draw.randrange(len(table.composites))].tolist()
            out += [chr(first), chr(second)]
        else:
            out.append(chr(draw.choice(draw.choice(pools))))
    return "".join(out)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", ["9.0.0", "16.0.0"])
def test_forms_equal_plain_python(form, version):
    draw = random.Random(form)
    table = normalization_tables.load(version)
    texts = [awkward_text(draw, table) for _ in range(1500)]
    raw = pieces_of(*(text.encode() for text in texts))
    done = UnicodeForm(form, version).apply(raw)
    starts, stops = np.arange(len(done.data)), np.arange(1, len(done.data) + 1)
    first, last = raw_ranges(raw.data, done.origins, starts, stops)
    for i, text in enumerate(texts):
        expected, sources = normalise(text, form, table.version)
        start, stop = int(done.pieces.starts[i]), int(done.pieces.stops[i])
        assert done.data[start:stop].tobytes().decode() == expected
        begin = int(raw.pieces.starts[i])
        at = start
        for char, source in zip(expected, sources, strict=True):
            low = begin + len(text[:source].encode())
            high = low + len(text[source].encode())
            for k in range(len(char.encode())):
                # the whole of another character, or the very byte of the same one
                exact = (low + k, low + k + 1) if char == text[source] else (low, high)
                assert (int(first[at]), int(last[at])) in ((low, high), exact)
                at += 1


def test_forms_are_those_of_this_python_where_it_knows_the_characters():
    draw = random.Random(5)
    known = normalization_tables.load("9.0.0")  # older than any Python that runs this
    for form in FORMS:
        texts = [awkward_text(draw, known) for _ in range(500)]
        expected = [unicodedata.normalize(form.upper(), text).encode() for text in texts]
        assert apply(UnicodeForm(form, "16.0.0"), *texts) == expected


@pytest.mark.parametrize("slice_bytes", [1, 7, 64, 100])
def test_slices_and_small_buffers_change_nothing(monkeypatch, slice_bytes):
    draw = random.Random(slice_bytes)
    table = normalization_tables.load()
    texts = [
        awkward_text(draw, table).encode() * draw.randint(1, 9) + b"ascii " * draw.randint(0, 40) for _ in range(60)
    ]
    texts += [
        "\ufdfa".encode() * 300,
        b"a" + "\u0316".encode() * 500 + "\u0327".encode(),
        b"\xff\xcc" + "\u0301".encode(),
    ]
    for normalizer in (UnicodeForm("nfkc"), UnicodeForm("nfd"), Lowercase()):
        expected = normalizer.apply(pieces_of(*texts))
        monkeypatch.setattr(rewriting, "_SLICE_BYTES", slice_bytes)
        found = normalizer.apply(pieces_of(*texts))
        monkeypatch.undo()
        assert texts_of(found) == texts_of(expected)
        assert np.array_equal(found.origins, expected.origins)
        assert texts_of(expected) == [part for text in texts for part in apply(normalizer, text)]


def test_text_that_stays_is_not_copied():
    hindi = "हिन्दी में लिखा, عَرَبِيّ, ภาษาไทย, tiếng Việt, 한국어, é".encode()
    for texts in (pieces_of(b"plain ascii", hindi, b""), pieces_of()):
        assert UnicodeForm("nfc").apply(texts) is texts
    assert Lowercase().apply(pieces_of(b"lower", "été".encode())).is_rewritten is False
    changed = UnicodeForm("nfc").apply(pieces_of(hindi, "e\u0301".encode()))
    assert texts_of(changed) == [hindi, "é".encode()]
    # what stays keeps the very byte that it comes from, whatever changes beside it
    assert changed.origins[: len(hindi)].tolist() == list(range(len(hindi)))
    assert changed.origins[len(hindi) :].tolist() == [~len(hindi)] * 2


def test_bytes_that_are_no_utf8_stay_and_part_the_text():
    assert apply(UnicodeForm("nfc"), b"e\xff\xcc\x81", b"e\xcc", b"\x81x") == [b"e\xff\xcc\x81", b"e\xcc", b"\x81x"]
    assert apply(Lowercase(), b"A\xffB") == [b"a\xffb"]


def test_no_run_of_marks_takes_quadratic_time():
    n = 300_000
    text = "a" + "\u0301\u0323" * n
    (found,) = apply(UnicodeForm("nfc"), text)
    assert found.decode() == "\u1ea1" + "\u0323" * (n - 1) + "\u0301" * n


def test_added_tokens_stay():
    texts = pieces_of(b"E\xcc\x81", b"E\xcc\x81", b" A ", tokens=(-1, 7, -1))
    for normalizer, expected in (
        (UnicodeForm("nfc"), ["É".encode(), b"E\xcc\x81", b" A "]),
        (Lowercase(), [b"e\xcc\x81", b"E\xcc\x81", b" a "]),
        (Strip(True, True), [b"E\xcc\x81", b"E\xcc\x81", b"A"]),
        (Prepend("x"), [b"xE\xcc\x81", b"E\xcc\x81", b"x A "]),
        (Replace(Pattern("E"), "uu"), [b"uu\xcc\x81", b"E\xcc\x81", b" A "]),
    ):
        assert texts_of(normalizer.apply(texts)) == expected


def test_small_normalizers():
    assert apply(Prepend("▁"), "ab", "", " ") == ["▁ab".encode(), b"", "▁ ".encode()]
    assert apply(Strip(True, True), " \u3000a b\u00a0\n", "\u2003", "") == [b"a b", b"", b""]
    assert apply(Strip(False, True), " a ", "a") == [b" a", b"a"]
    assert apply(Replace(Pattern(r"\s+"), "_"), " a  b", "c") == [b"_a_b", b"c"]
    assert apply(Replace(Pattern("aa", literal=True), "b"), "aaaaa", "xaa") == [b"bba", b"xb"]
    assert apply(Replace(Pattern(r"\d(?=x)|y"), ""), "12x3yy") == [b"1x3"]
    assert apply(Lowercase(), "ÀÉİΣ ΑΣ") == ["àéi\u0307σ ας".replace("ς", "σ").encode()]
    done = Replace(Pattern(r"\s+"), "__").apply(pieces_of("a \u3000b".encode()))
    assert raw_ranges(pieces_of("a \u3000b".encode()).data, done.origins, np.arange(4), np.arange(1, 5))[
        0
    ].tolist() == [0, 2, 2, 5]


def test_json_is_read_back():
    for normalizer in EXAMPLES:
        value = json.loads(json.dumps(normalizer.to_json()))
        assert normalizers.from_json(value) == normalizer
    for broken in (
        None,
        {"type": "nfx"},
        {"type": "nfc"},
        {"type": "nfc", "unicode_version": "1.0"},
        {"type": "nfc", "unicode_version": "9.0.0", "more": 1},
        {"type": "replace", "pattern": "a", "content": ""},
        {"type": "prepend", "content": "\ud800"},
        {"type": "strip", "left": 1, "right": "no"},
        {"type": "lowercase", "unicode_version": 9},
    ):
        with pytest.raises(ArtifactError) as caught:
            normalizers.from_json(broken)
        assert caught.value.code in ("bad-normalizer", "bad-pattern")


def test_every_name_resolves():
    for name, target in normalizers.NORMALIZERS.items():
        module, _, attribute = target.partition(":")
        assert hasattr(__import__(module, fromlist=[attribute]), attribute), name


def test_the_look_beforehand_is_never_wrong_about_nothing():
    draw = random.Random(3)
    table = normalization_tables.load()
    for form in FORMS:
        normalizer = UnicodeForm(form)
        for _ in range(400):
            text = awkward_text(draw, table)
            if normalizer.apply(texts := pieces_of(text.encode())) is texts:
                assert normalise(text, form, table.version)[0] == text
