"""Normalizers and pre-tokenizer steps of ``tokenizer.json`` against the tokenizers library: ids, offsets, normalised text."""

import copy
import json
import random

import pytest
from interop import conformance_encode as conformance
from tokenizer.normalizers.test_normalizers import awkward_text
from tokenizer.samples import small

from tokctl.tokenizer import normalization_tables
from tokctl.tokenizer.formats import huggingface, load
from tokctl.tokenizer.normalizers import normalize_text
from tokctl.tokenizer.normalizers.lowercase import Lowercase
from tokctl.tokenizer.normalizers.unicode_form import FORMS, UnicodeForm
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED

tokenizers = pytest.importorskip("tokenizers")

SCALARS = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]


def named(kind, **members):
    return {"type": kind, **members}


def replacing(content, **pattern):
    return named("Replace", pattern=pattern, content=content)


def sequence(*steps):
    return named("Sequence", normalizers=list(steps))


NORMALIZERS = [
    *(named(form.upper()) for form in FORMS),
    named("Lowercase"),
    sequence(named("NFD"), sequence(named("Lowercase")), named("NFC")),
    replacing(" ", Regex=r"\s+"),
    replacing("éé", String="a"),
    replacing("", Regex=r"[ab]c*|\d"),
    named("Strip", strip_left=True, strip_right=True),
    named("Prepend", prepend="▁é"),
    sequence(named("NFKC"), named("Strip", strip_left=True, strip_right=False), named("Prepend", prepend="x")),
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hf")
    huggingface.export(small("llama3"), directory)
    return json.loads((directory / "tokenizer.json").read_text())


@pytest.fixture(scope="module")
def texts():
    draw = random.Random(1)
    table = normalization_tables.load("9.0.0")
    lowered = normalization_tables.load("17.0.0").lowered_points.tolist()
    out = ["", " ", "a", "\u0301", "\u0301a", " a  b ", "İ \u3000x"]
    for _ in range(1200):
        parts = [awkward_text(draw, table)]
        for _ in range(draw.randint(0, 6)):
            parts.append(
                draw.choice(
                    [
                        "ab c",
                        " the ",
                        "é",
                        "\n",
                        " 12 ",
                        "Σ",
                        "  ",
                        " Dog",
                        "1,2;3",
                        "\t",
                        chr(draw.choice(lowered)),
                        draw.choice(SCALARS),
                        awkward_text(draw, table),
                    ]
                )
            )
        out.append("".join(parts))
    return out


def write(tmp_path, exported, **changes):
    value = copy.deepcopy(exported) | changes
    (tmp_path / "tokenizer.json").write_text(json.dumps(value))
    return load(tmp_path / "tokenizer.json")


def agree(ours, tmp_path, texts):
    result = conformance.compare_huggingface(ours, tmp_path / "tokenizer.json", iter(texts))
    assert result["first_divergence"] is None


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda value: json.dumps(value)[:60])
def test_normalizers_agree(tmp_path, exported, texts, normalizer):
    ours = write(tmp_path, exported, normalizer=normalizer)
    agree(ours, tmp_path, texts)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in texts[:300]:
        expected = theirs.normalizer.normalize_str(text)
        assert ours.normalize(text).decode() == expected == ours.decode(ours.encode(text))
    ours.save(tmp_path / "native")
    again = load(tmp_path / "native")
    assert again.semantic_hash == ours.semantic_hash
    huggingface.export(again, tmp_path / "out")
    assert load(tmp_path / "out").semantic_hash == ours.semantic_hash
    assert again.encode_batch(texts[:50]) == ours.encode_batch(texts[:50])


@pytest.mark.parametrize("kind", [*FORMS, "lowercase"])
def test_each_character_alone_is_that_of_the_library(kind):
    """This is what the Unicode versions in ``formats.huggingface_normalizer`` say."""
    text = "\n".join(SCALARS)
    ours = Lowercase("17.0.0") if kind == "lowercase" else UnicodeForm(kind, "9.0.0")
    normalizers = tokenizers.normalizers
    theirs = normalizers.Lowercase() if kind == "lowercase" else getattr(normalizers, kind.upper())()
    assert normalize_text([ours], text.encode()).decode() == theirs.normalize_str(text)


BYTE_LEVEL = named("ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=False)
GPT2 = BYTE_LEVEL | {"use_regex": True}
PREFIXED = BYTE_LEVEL | {"add_prefix_space": True}


def splitting(behavior, invert=False, **pattern):
    return named("Split", pattern=pattern, behavior=behavior, invert=invert)


BEHAVIORS = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
STEPS = [
    *(
        [splitting(b, i, **p)]
        for b in BEHAVIORS
        for i in (False, True)
        for p in ({"String": " "}, {"Regex": r"\d|ab|the"})
    ),
    *([splitting(behavior, True, Regex=NAMED["llama3"][0])] for behavior in BEHAVIORS),
    [named("Digits", individual_digits=True)],
    [named("Digits", individual_digits=False)],
    [named("Whitespace")],
    [named("WhitespaceSplit")],
    [named("CharDelimiterSplit", delimiter="a")],
    [
        splitting("Removed", Regex=r"\s+"),
        splitting("Isolated", Regex=r"\p{L}{1,3}"),
        splitting("MergedWithNext", String=","),
    ],
    [splitting("Isolated", Regex="(?i:dog)|é"), splitting("Contiguous", Regex=r"\p{N}")],
]


@pytest.mark.parametrize(
    "last",
    [BYTE_LEVEL, GPT2, PREFIXED, PREFIXED | GPT2 | {"add_prefix_space": True}],
    ids=["bytes", "gpt2", "prefixed", "prefixed-gpt2"],
)
def test_pre_tokenizers_agree(tmp_path, exported, texts, last):
    draw = random.Random(2)
    for number, steps in enumerate([[], *STEPS]):
        pre_tokenizer = named("Sequence", pretokenizers=[*steps, last]) if steps else last
        post = named(
            "ByteLevel", add_prefix_space=draw.random() < 0.5, trim_offsets=draw.random() < 0.5, use_regex=False
        )
        normalizer = named("NFC") if number % 3 == 0 else None
        changes = {"pre_tokenizer": pre_tokenizer, "post_processor": post, "normalizer": normalizer}
        ours = write(tmp_path, exported, **changes)
        agree(ours, tmp_path, draw.sample(texts, 200))
        ours.save(tmp_path / "native")
        assert load(tmp_path / "native").semantic_hash == ours.semantic_hash
        huggingface.export(ours, tmp_path / "out")
        again = load(tmp_path / "out")
        assert again.encode_batch(texts[:100]) == ours.encode_batch(texts[:100])


def test_digits_are_those_of_the_library(tmp_path, exported):
    ours = write(
        tmp_path,
        exported,
        pre_tokenizer=named("Sequence", pretokenizers=[named("Digits", individual_digits=True), BYTE_LEVEL]),
    )
    theirs = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    text = "".join(f"a{char}a" for char in SCALARS if not char.isascii())
    bounds = [stop for _, (_, stop) in theirs.pre_tokenize_str(text)]
    starts = [0]
    for char in text:
        starts.append(starts[-1] + len(char.encode()))
    assert ours.pre_tokenizer.split(text.encode()).tolist() == [starts[stop] for stop in bounds]


FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@pytest.mark.parametrize("seed", range(8))
def test_added_tokens_in_normalised_text_agree(tmp_path, exported, seed):
    """Random tokens with random flags under normalizers that change them and their surroundings."""
    draw = random.Random(seed)
    names = draw.sample(
        ["<DOC>", "yesterday", "Yes", "ÉЖ", "e\u0301ж", " The ", "ſt", "文", "ﬁ", "<|x|>", "ab", "aB"], 6
    )
    added = [
        {"id": 900 + k, "content": name, **{flag: draw.random() < 0.5 for flag in FLAGS}}
        for k, name in enumerate(names)
    ]
    normalizer = NORMALIZERS[[0, 2, 4, 5, 6, 8, 9, 11][seed]]
    ours = write(tmp_path, exported, normalizer=normalizer, added_tokens=added)
    forms = [form for name in names for form in (name, name.upper(), name.lower(), name.title())]
    contexts = ["{}", "a{}b", " {} ", "{0}{0}", "x \u3000{}\n\ty", "é{}é", "_{}_", "{}\u0301", "a {} {} b", "\u200d{}1"]
    texts = [context.format(form, form) for context in contexts for form in forms]
    texts += ["".join(draw.choices([*forms, " ", "a", "\n", "\u0301"], k=8)) for _ in range(300)]
    agree(ours, tmp_path, texts)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    theirs.encode_special_tokens = True
    for text in texts:
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids
    ours.save(tmp_path / "native")
    assert load(tmp_path / "native").encode_batch(texts) == ours.encode_batch(texts)
