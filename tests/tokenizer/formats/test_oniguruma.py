"""Expressions of tokenizer.json mean what the tokenizers library makes of them."""

import pytest

from tokctl.tokenizer.formats.oniguruma import from_oniguruma
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

TEXT = "ab12345 aab\nb.$x\n\n12\u0660a|[b] \r\nx-y  \n"
SAME = [
    *(pattern for patterns in NAMED.values() for pattern in patterns),
    r"\p{L}++| ?+[^\s]*+",
    r"(?i:'s)|[^\r\n\p{L}]?\d",
    r"a{2}|\x{61}b",
    r"[\]$.^]+",
    r".{2}",
    "",
]
DIFFERENT = [
    (r"\p{N}{1,3}+", r"(?:\p{N}{1,3})+"),
    (r"\d{2}+", r"(?:\d{2})+"),
    (r"(?:a|b){1,2}+x?", r"(?:(?:a|b){1,2})+x?"),
    (r"[ab]{2,}+|\x{62}{,2}+", r"(?:[ab]{2,})+|(?:\x{62}{,2})+"),
    (r"b$|^x", r"b(?m:$)|(?m:^)x"),
    (r"\s\Z", r"\s(?=\n?\z)"),
    (r"(?m:b.)", r"(?s:b.)"),
    (r"(?mi:B)b.|(?im:x)", r"(?si:B)b.|(?is:x)"),
    (r"[^\s|[.,$]]+", r"[^\s|[\.,$]]+"),
    (r"(?m)b.", r"(?s)b."),
]


@pytest.mark.parametrize("regex", SAME)
def test_what_all_engines_read_alike_stays(regex):
    assert from_oniguruma(regex) == regex


@pytest.mark.parametrize(("regex", "expected"), DIFFERENT)
def test_what_is_read_differently_is_spelled_out(regex, expected):
    assert from_oniguruma(regex) == expected


@pytest.mark.parametrize("regex", [*SAME[:-1], *(regex for regex, _ in DIFFERENT)])
def test_the_library_cuts_the_same_words(regex):
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.pre_tokenizers.Split(tokenizers.Regex(regex), "isolated")
    ours = PreTokenizer.from_patterns((from_oniguruma(regex),))
    for text in (TEXT, TEXT.strip(), TEXT * 2):
        bounds = [stop for _, (_, stop) in theirs.pre_tokenize_str(text)]
        expected = [len(text[:stop].encode()) for stop in bounds]
        assert ours.split(text.encode()).tolist() == expected, regex


@pytest.mark.parametrize("regex", ["(", "[a", ")", "a{", "[[a]", "\\", "(?", "{1,2}+", "(?z:a)", "*"])
def test_broken_expressions_pass_through_to_the_parser(regex):
    assert isinstance(from_oniguruma(regex), str)
