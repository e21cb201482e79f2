import random
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import pattern as oracle

from tokctl.errors import ArtifactError, UsageError
from tokctl.kernels._boundary import bytes_view
from tokctl.kernels.pattern_scan import scan
from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.pre_tokenizers.backtracking import Backtracker
from tokctl.tokenizer.pre_tokenizers.parse import parse
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

TABLE = unicode_tables.load()
NAMES = sorted(NAMED)


def words(pre_tokenizer: PreTokenizer, data: bytes) -> list[bytes]:
    ends = pre_tokenizer.split(data)
    assert ends.dtype == np.int64
    starts = [0, *ends.tolist()]
    assert starts == sorted(set(starts))
    assert starts[-1] == len(data)
    return [data[a:b] for a, b in pairwise(starts)]


@pytest.fixture(scope="module")
def agreeing() -> list[int]:
    """The code points that tokctl's tables and the regex module class alike."""
    codes = np.repeat(TABLE.category_values, np.diff(np.append(TABLE.category_starts, 0x110000)))
    names = list(unicode_tables.CATEGORIES)
    theirs = oracle.category_of()
    agree = [point for point, name in theirs.items() if names[codes[point]] == name]
    assert len(agree) > 1_090_000  # the rest came with later Unicode versions
    return agree


@pytest.fixture(scope="module")
def edges(agreeing: list[int]) -> list[int]:
    """The agreeing code points at the two sides of every change of category."""
    wanted = np.unique(np.concatenate([TABLE.category_starts, TABLE.category_starts[1:] - 1]))
    return sorted(set(wanted.tolist()) & set(agreeing))


@pytest.mark.parametrize("name", NAMES)
def test_named_patterns_equal_the_regex_module_on_random_text(name: str, edges: list[int]) -> None:
    pre_tokenizer = PreTokenizer.from_pattern(name)
    assert pre_tokenizer.automaton is not None
    assert pre_tokenizer.notice is None
    rng = random.Random(f"split-{name}")
    for _ in range(1_500):
        text = oracle.random_text(rng, edges, rng.randrange(40))
        expected = [word.encode() for word in oracle.split(NAMED[name], text)]
        assert words(pre_tokenizer, text.encode()) == expected, text


@pytest.mark.parametrize("name", NAMES)
def test_every_edge_of_a_category_in_context(name: str, edges: list[int]) -> None:
    text = "".join(f"a{c} {c}{c}1{c}\n{c}'{c}A" for c in map(chr, edges))
    expected = [word.encode() for word in oracle.split(NAMED[name], text)]
    assert words(PreTokenizer.from_pattern(name), text.encode()) == expected


@pytest.mark.parametrize("name", NAMES)
def test_hand_made_texts(name: str) -> None:
    texts = [
        "",
        " ",
        "\n",
        "a",
        "don't DON'T 'tis it's'll we'Ve x'ſ y'rx 'r",
        "two\r\nlines\r\n\r\n  end \r\n \r",
        "a\x00b\x00\x00c \x00",
        "1234567 12 3,141.59 ١٢٣ ½²",
        "  if x:\n\t\treturn\n\n\n    y  ",
        "HTTPServer fooBar ǅabc ʰʰ",
        "中文，日本語カタカナ・ひらがなゝ゛한국어",
        "e\u0301a\u0301 \u0301 \u200d👩\u200d👩\u200d👧",
        "a" * 1000 + " " * 1000 + "b",
        "\u2028\u2029\u0085\u00a0\u3000x",
    ]
    pre_tokenizer = PreTokenizer.from_pattern(name)
    for text in texts:
        assert words(pre_tokenizer, text.encode()) == [w.encode() for w in oracle.split(NAMED[name], text)], text


SUPPORTED = [
    r"\p{N}{1,3}",  # most text between matches
    r"a+?b|a",
    r"a{2,3}?|[^a]+",
    r"(?:ab|a)(?:bc|c)?",
    r"(?i:k+)|\w+",
    r"(?i)straße|s",
    r"[^\S\n]+|\n|\S+(?=\s)",
    r"\s+$|\S+|\s",
    r"(?:a|b)*?c",
    r"x*+y|x",
    r"x{1,3}+x?|y",
    r"(?>x+)y|x",
    r"(?s:.)",
    r".+\n?",
    r"(?!a)\w+",
    r"\d(?!\d)",
    r"a(?!b)|[ab]b",
    r"(?P<word>[A-Za-z]+)|(?<digit>[0-9])",
    r"[\]\-a^]+|[]x]|[^]x]",
    r"\x61\u0062\U00000063|\x{64}|\t",
    r"\pL+|\p{^L}",
    r"\p{Han}+|\p{script=Hiragana}+|\p{gc=Lu}+",
    r"a{,2}b|\{a}|{|a{x",
    r"\r?\n|\R",
]


@pytest.mark.parametrize("pattern", SUPPORTED)
def test_other_patterns_equal_the_regex_module(pattern: str, edges: list[int]) -> None:
    pre_tokenizer = PreTokenizer.from_pattern(pattern)
    if r"\R" not in pattern:
        assert pre_tokenizer.automaton is not None, pre_tokenizer.notice
    theirs = pattern.replace("(?<digit>", "(?P<digit>").replace("$", r"\Z").replace(r"\x{64}", "d")
    rng = random.Random(pattern)
    for round_ in range(300):
        if round_ % 2:
            text = "".join(rng.choice("aabbcxxyy12 \n\r{}]-^kKsS\u212a") for _ in range(rng.randrange(25)))
        else:
            text = oracle.random_text(rng, edges, rng.randrange(30))
        # İ and ı are case variants of i and I in the regex module alone, and \w differs between engines
        text = text.translate({0x130: None, 0x131: None})
        if r"\w" in pattern:
            text = "".join(character for character in text if ord(character) < 0x80 or character == "\u212a")
        assert words(pre_tokenizer, text.encode()) == [w.encode() for w in oracle.split((theirs,), text)], text


UNSUPPORTED = [
    (r"(?<=a)b|a", "behind"),
    (r"\bfoo\b|\w", "look-behind"),
    (r"^a|b", "start"),
    (r"(\w)\1+|\w", "back-reference"),
    (r"(a|b)(?:c|(o))\1|(?:\s|b)+", "back-reference"),
    (r"(?P<one>[a-c]\s?)(?P=one)|(?<=(?P<two>o))o", "back-reference"),
    (r"(?:(a)|b)+\1|é\n?", "back-reference"),
    (r"(?<!o)(?>a+|b)(?!c)", "atomic"),
    (r"(?=ab)a|b", "look-ahead"),
    (r"(?:ab)++a|b", "possessive"),
    (r"(?>ab|a)c|b", "atomic"),
    (r"a*", "empty"),
    (r"(?:a?)+b", "repeated"),
    (r"(?=(?:\d{3})+(?!\d))", "empty"),
    (r"(?:a|b){0,60}(?:ab){0,60}(?:b|a){0,60}[ab]c", "states"),
    (r"\d{6000}|a", "instructions"),
]


@pytest.mark.parametrize(("pattern", "why"), UNSUPPORTED)
def test_patterns_outside_the_subset_say_so_and_split_alike(pattern: str, why: str) -> None:
    pre_tokenizer = PreTokenizer.from_pattern(pattern)
    assert pre_tokenizer.automaton is None
    assert pre_tokenizer.notice is not None
    assert why in pre_tokenizer.notice
    rng = random.Random(pattern)
    for _ in range(200):
        text = "".join(rng.choice("aaabbbc foo1234567\néß中") for _ in range(rng.randrange(25)))
        assert words(pre_tokenizer, text.encode()) == [w.encode() for w in oracle.split((pattern,), text)], text


def test_a_back_reference_means_the_same_code_points_and_bytes() -> None:
    doubled = PreTokenizer.from_pattern(r"([^\s])\1")
    assert words(doubled, "aab中中文]]^^--".encode()) == [
        b"aa",
        b"b",
        *(w.encode() for w in ("中中", "文", "]]", "^^", "--")),
    ]
    assert words(doubled, b"\xff\xff\xfe\xff a") == [b"\xff\xff", b"\xfe\xff a"]
    assert words(PreTokenizer.from_pattern(r"(\p{Lu}|[]^-])\1"), b"AAB]]^^") == [b"AA", b"B", b"]]", b"^^"]
    assert words(PreTokenizer.from_patterns((r"\w+", r"(a)\1|b")), b"baa aa") == [b"b", b"aa", b" ", b"aa"]


@pytest.mark.parametrize("name", NAMES)
def test_the_backtracker_equals_the_automaton_on_any_bytes(name: str) -> None:
    pre_tokenizer = PreTokenizer.from_pattern(name)
    backtracker = Backtracker([parse(pattern, TABLE) for pattern in NAMED[name]])
    rng = random.Random(f"bytes-{name}")
    leads = [0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF]
    for _ in range(400):
        data = bytes(
            rng.choice(leads) if rng.random() < 0.6 else rng.choice(b"a 1'\n\x00") for _ in range(rng.randrange(24))
        )
        assert pre_tokenizer.split(data).tolist() == backtracker.split(data).tolist(), data


def test_an_invalid_byte_is_one_character_that_is_neither_letter_nor_space() -> None:
    gpt2 = PreTokenizer.from_pattern("gpt2")
    assert words(gpt2, b"ab\xff\xfe cd") == [b"ab", b"\xff\xfe", b" cd"]
    assert words(gpt2, b"ab\xe4\xb8 cd") == [b"ab", b"\xe4\xb8", b" cd"]  # a truncated letter
    assert words(gpt2, b"\xed\xa0\x80a") == [b"\xed\xa0\x80", b"a"]  # an encoded surrogate: three bytes
    one = PreTokenizer.from_pattern(r"\p{Cs}")
    assert words(one, b"\xed\xa0\x80a\xf5") == [b"\xed", b"\xa0", b"\x80", b"a", b"\xf5"]


_LEAVES = st.sampled_from(["a", "b", "c", "[ab]", "[^a]", r"\s", ".", "(?s:.)", "bc"])
_LOOKS = st.sampled_from(["(?!a)", "(?=b)", r"(?!\S)", "(?=a|c)", r"\Z", r"(?!\s)"])
_PATTERNS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, _LOOKS).map("".join),
        st.tuples(_LOOKS, inner).map("".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}", "{0,2}?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        st.tuples(st.sampled_from(["a", "[ab]", r"\s"]), st.sampled_from(["*+", "++", "?+", "{1,2}+"])).map("".join),
    ),
    max_leaves=7,
)


@given(_PATTERNS, st.lists(st.text(alphabet="abc \n", max_size=14), min_size=6, max_size=6))
@settings(derandomize=True, max_examples=400, deadline=None)
def test_random_patterns_equal_the_regex_module(pattern: str, texts: list[str]) -> None:
    pre_tokenizer = PreTokenizer.from_patterns((pattern,))
    for text in texts:
        expected = [word.encode() for word in oracle.split((pattern,), text)]
        assert words(pre_tokenizer, text.encode()) == expected


@given(
    st.lists(st.sampled_from(["[ab]+", "a", r"\d{1,2}", r"[bc]+", r"a+b", "c"]), min_size=1, max_size=2),
    _PATTERNS,
    st.lists(st.text(alphabet="abc 12", max_size=14), min_size=6, max_size=6),
)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_random_sequences_equal_the_regex_module(outer: list[str], last: str, texts: list[str]) -> None:
    patterns = (*outer, last)
    pre_tokenizer = PreTokenizer.from_patterns(patterns)
    for text in texts:
        assert words(pre_tokenizer, text.encode()) == [word.encode() for word in oracle.split(patterns, text)]


@pytest.mark.parametrize("pattern", [*NAMES, r"\p{N}{1,3}", r"a+b|a", r"(?:aa)+b|a", "none", r"[ab]{3}|b"])
def test_scanning_in_small_steps_equals_one_scan(pattern: str, edges: list[int]) -> None:
    pre_tokenizer = PreTokenizer.from_pattern(pattern)
    automaton = pre_tokenizer.automaton
    assert automaton is not None
    rng = random.Random(f"steps-{pattern}")
    for _ in range(60):
        text = oracle.random_text(rng, edges, rng.randrange(60)) + "ab" * rng.randrange(5) + "a" * rng.randrange(200)
        data = bytes_view(text.encode())
        start = rng.randrange(data.size + 1)
        stop = rng.randrange(start, data.size + 1)
        expected = (pre_tokenizer.split(bytes(data[start:stop])) + start).tolist()
        got: list[int] = []
        position = start
        while position < stop:
            ends = np.full(rng.randrange(1, 6), -1, np.int64)
            n, position = scan(automaton, data, position, stop, ends)
            assert n > 0
            assert position == ends[n - 1]
            assert (ends[n:] == -1).all() or position == stop
            got += ends[:n].tolist()
        assert got == expected


def test_a_scan_of_nothing_or_into_nothing() -> None:
    automaton = PreTokenizer.from_pattern("gpt2").automaton
    data = bytes_view(b"ab cd")
    assert scan(automaton, data, 3, 3, np.empty(4, np.int64)) == (0, 3)
    assert scan(automaton, data, 3, 5, np.empty(0, np.int64)) == (0, 3)
    assert scan(automaton, bytes_view(b""), 0, 0, np.empty(1, np.int64)) == (0, 0)


LONG = 300_000
LINEAR = {
    "spaces, then a word": (NAMES, lambda n: " " * n + "x"),
    "a line of spaces": (NAMES, lambda n: "\n" + " " * n + "x"),
    "spaces, then a line": (NAMES, lambda n: " " * n + "\nx"),
    "capitals": (NAMES, lambda n: "a" * n + "A" * n + "'"),
    "given up at the end": ([r"a+b|a", r"a+b", r"(?:aa)+b|a", r"(?:aaa)+b|(?:aa)+c|a"], lambda n: "a" * n),
    "two letters": ([r"[ab]+c|[ab]"], lambda n: "ab" * n),
    "two bytes": ([r"é+b|é"], lambda n: "é" * n),
    "found at the end": ([r"a+b|a", r"a+b"], lambda n: "a" * n + "b"),
    "newlines": (NAMES, lambda n: "\n" * n),
    "one letter": (NAMES, lambda n: "a" * n),
    "apostrophes": (NAMES, lambda n: "'" * n + "s"),
    "digits and capitals": (NAMES, lambda n: "1A" * n),
    "never closed": ([r"(?:a|ab)*c", r"(?:a|ab)*c|b", r"(?:ab?)+c|a"], lambda n: "ab" * n),
    "shared prefixes": ([r"aaaab|aaac|aad|ae|a", r"(?:aaaa|aaab|aac)+d|aa|a"], lambda n: "a" * n),
    "nested repeats": ([r"(?:(?:a+)+b)+c|a", r"(?:a*a)*b|a+?"], lambda n: "a" * n),
    "nothing to find": ([r"\p{N}{1,3}"], lambda n: "ab " * n),
}


@pytest.mark.parametrize(
    ("pattern", "case"), [(pattern, case) for case, (patterns, _) in LINEAR.items() for pattern in patterns]
)
def test_long_runs_take_linear_time(pattern: str, case: str) -> None:
    pre_tokenizer = PreTokenizer.from_pattern(pattern)
    make = LINEAR[case][1]
    text = make(300)
    assert words(pre_tokenizer, text.encode()) == [
        word.encode() for word in oracle.split(NAMED.get(pattern, (pattern,)), text)
    ]
    data = make(LONG).encode()
    begin = time.thread_time()
    ends = pre_tokenizer.split(data)
    assert time.thread_time() - begin < 3  # a quadratic scan would take hours
    assert ends[-1] == len(data)


def test_white_space_before_many_spaces() -> None:
    assert words(PreTokenizer.from_pattern("gpt2"), b" " * LONG + b"x") == [b" " * (LONG - 1), b" x"]
    assert words(PreTokenizer.from_pattern("cl100k"), b"\n" + b" " * LONG + b"x") == [b"\n", b" " * (LONG - 1), b" x"]
    assert words(PreTokenizer.from_pattern("cl100k"), b"\n" + b" " * LONG) == [b"\n" + b" " * LONG]
    assert words(PreTokenizer.from_pattern("llama3"), b"\n" + b" " * LONG) == [b"\n", b" " * LONG]
    assert words(PreTokenizer.from_pattern(r"a+b|a"), b"a" * LONG) == [b"a"] * LONG


def test_none_makes_one_word_of_each_text() -> None:
    none = PreTokenizer.from_pattern("none")
    assert none.name == "none"
    assert none.patterns == ()
    assert none.automaton is not None
    assert words(none, b"a b\n\x00\xff c") == [b"a b\n\x00\xff c"]
    assert words(none, b"") == []


def test_names_follow_from_patterns() -> None:
    assert PreTokenizer.from_pattern("gpt2") == PreTokenizer.from_pattern(NAMED["gpt2"][0])
    assert PreTokenizer.from_pattern(NAMED["o200k"][0]).name == "o200k"
    assert PreTokenizer.from_pattern("a+").name == "regex"


@pytest.mark.parametrize(
    ("word", "hint"),
    [("gtp2", "did you mean 'gpt2'?"), ("cl100k_base", "did you mean 'cl100k'?"), ("words", "known: none")],
)
def test_a_plain_word_is_a_misspelt_name_and_no_expression(word: str, hint: str) -> None:
    with pytest.raises(UsageError) as info:
        PreTokenizer.from_pattern(word)
    assert info.value.code == "unknown-pattern"
    assert hint in str(info.value.hint)
    assert words(PreTokenizer.from_pattern(f"(?:{word})"), f"a{word}b".encode()) == [b"a", word.encode(), b"b"]


def test_no_two_names_mean_the_same_patterns() -> None:
    assert len(set(NAMED.values())) == len(NAMED)


@pytest.mark.parametrize("pattern", [*NAMES, "none", r"(?<=a)b"])
def test_json_round_trip(pattern: str) -> None:
    pre_tokenizer = PreTokenizer.from_pattern(pattern)
    value = pre_tokenizer.to_json()
    assert PreTokenizer.from_json(value) == pre_tokenizer
    assert value["unicode_version"] == "16.0.0"


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"type": "split"},
        {"type": "split", "behavior": "removed", "patterns": [], "unicode_version": "16.0.0"},
    ],
)
def test_foreign_json_is_refused(value: object) -> None:
    with pytest.raises(ArtifactError) as info:
        PreTokenizer.from_json(value)
    assert info.value.code == "bad-pre-tokenizer"


def test_an_unknown_unicode_version_names_the_known_ones() -> None:
    with pytest.raises(UsageError) as info:
        PreTokenizer.from_pattern("gpt2", "3.0.0")
    assert info.value.code == "unknown-unicode-version"
    assert "16.0.0" in str(info.value.hint)


def test_the_kernel_has_one_signature() -> None:
    for pattern in ("gpt2", "deepseek-v3", "none", r"a+b|a"):
        pre_tokenizer = PreTokenizer.from_pattern(pattern)
        words(pre_tokenizer, b"aab 12")
        pre_tokenizer.split(np.frombuffer(b"aab 12", np.uint8))
    assert len(scan.signatures) == 1


@pytest.mark.parametrize("name", NAMES)
def test_bytes_in_fours_in_pairs_and_one_by_one_give_the_same_words(name: str) -> None:
    in_fours = PreTokenizer.from_pattern(name).automaton
    assert in_fours is not None and in_fours.pair_class.size > 0 and in_fours.quad_class.size > 0
    in_pairs = in_fours._replace(quad_class=np.empty(0, np.uint16), quad_step=np.empty(0, np.int32))
    one_by_one = in_pairs._replace(pair_class=np.empty(0, np.uint8), pair_step=np.empty(0, np.int32))
    rng = random.Random(name)
    for _ in range(300):
        text = "".join(rng.choice(" \n\t'sStTrRevlL019.-_é中🎉\x00") for _ in range(rng.randrange(40))).encode()
        data = bytes_view(text)
        found = []
        for automaton in (in_fours, in_pairs, one_by_one):
            ends = np.zeros(64, np.int64)
            n, position = scan(automaton, data, 0, len(text), ends)
            found.append((n, position, ends[:n].tolist()))
        assert found[0] == found[1] == found[2], text
