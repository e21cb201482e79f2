import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokctl.errors import UsageError
from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.pre_tokenizers import code_points as cp
from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints
from tokctl.tokenizer.pre_tokenizers.parse import parse
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.pre_tokenizers.syntax import Chars

TABLE = unicode_tables.load()

BAD = [
    ("a(b", 1, "not closed"),
    ("ab)", 2, "closes no group"),
    ("a[bc", 1, "not closed"),
    ("*a", 0, "nothing to repeat"),
    ("a|+", 2, "nothing to repeat"),
    ("a**", 2, "follows a quantifier"),
    ("a{2}{3}", 4, "follows a quantifier"),
    ("a{3,2}", 1, "at least 3 but at most 2"),
    ("a{1,70000}", 1, "repetitions"),
    ("(?=a)*", 0, "can't be repeated"),
    ("$+", 0, "can't be repeated"),
    (r"a\p{Foo}", 1, "not known"),
    (r"a\p{L", 1, "not closed"),
    (r"\1", 0, "no group"),
    (r"(a)\k<x>", 3, "no group"),
    (r"(a)\12", 3, "no group"),
    (r"(a\1)", 2, "inside the group"),
    (r"(a)(?<b>b)\1", 10, "different engines"),
    (r"(?<b>a)(?<b>b)(?P=b)", 14, "several groups"),
    (r"(?i:(a)\1)", 7, "inside (?i)"),
    (r"[(a)\1]", 4, "not supported"),
    (r"(a)\k<", 3, "no valid name"),
    (r"\q", 0, "not supported"),
    (r"\h", 0, "not supported"),
    (r"\X", 0, "not supported"),
    (r"\x4", 0, "hexadecimal"),
    (r"\u{110000}", 0, "hexadecimal"),
    (r"[z-a]", 1, "ends before it begins"),
    (r"[a-\d]", 1, "ends in a class"),
    (r"[a--b]", 2, "different engines"),
    (r"[[:alpha:]]", 1, "different engines"),
    (r"(?P=x)", 0, "no group"),
    (r"(?R)", 0, "kind of group"),
    (r"(?x)a", 2, "flag"),
    (r"(?i", 3, "not followed"),
    (r"(?<1>a)", 0, "no valid name"),
    ("a\\", 2, "ends too early"),
    ("(" * 200, 101, "nested"),
]


@pytest.mark.parametrize(("pattern", "position", "what"), BAD)
def test_a_bad_pattern_is_refused_with_position_and_hint(pattern: str, position: int, what: str) -> None:
    with pytest.raises(UsageError) as info:
        PreTokenizer.from_pattern(pattern)
    assert info.value.code == "bad-pattern"
    assert f"position {position}:" in info.value.message
    assert what in info.value.message
    assert info.value.hint
    assert info.value.where.offset == position


def test_the_offset_is_in_bytes_and_the_position_in_characters() -> None:
    with pytest.raises(UsageError) as info:
        PreTokenizer.from_pattern("é中(")
    assert "position 2:" in info.value.message
    assert info.value.where.offset == 5


@given(st.text(alphabet=r"ab()[]{}|\*+?.^$-&:=!<>,12pPLsdi" + "é\n", max_size=14))
@settings(derandomize=True, max_examples=400, deadline=None)
def test_any_text_is_a_pattern_or_a_usage_error(pattern: str) -> None:
    data = "ab(1é\n) \\ pL".encode() + b"\xff"
    try:
        pre_tokenizer = PreTokenizer.from_pattern(pattern)
        ends = pre_tokenizer.split(data)
    except UsageError as error:
        assert error.hint
        return
    assert ends.tolist() == sorted(set(ends.tolist()))
    assert ends[-1] == len(data)


def points(pattern: str) -> CodePoints:
    node = parse(pattern, TABLE)
    assert isinstance(node, Chars)
    return node.points


def test_sets() -> None:
    assert points("[a-c&&b-z]").bounds.tolist() == [0x62, 0x64]
    assert points("[a[bc]d]").bounds.tolist() == [0x61, 0x65]
    assert points("[^^]").bounds.tolist() == [0, 0x5E, 0x5F, 0x110000]
    assert points(r"[\w&&[^\p{L}\p{N}_]]").bounds.tolist() == (
        (cp.word_characters(TABLE) & ~(points(r"\p{L}") | points(r"\p{N}") | points("_"))).bounds.tolist()
    )
    assert points("[a-]").bounds.tolist() == [0x2D, 0x2E, 0x61, 0x62]
    assert points(r"[\d-]").bounds.tolist() == points(r"\d|-".replace(r"\d|-", r"[-\d]")).bounds.tolist()
    assert points(r"[\b]").bounds.tolist() == [8, 9]
    assert not points(r"[^\s\S]")


def test_case_is_simple_folding_without_turkic_letters() -> None:
    assert points("(?i:s)").bounds.tolist() == [0x53, 0x54, 0x73, 0x74, 0x17F, 0x180]
    assert points("(?i:i)").bounds.tolist() == [0x49, 0x4A, 0x69, 0x6A]
    assert points("(?i:ß)").bounds.tolist() == [0xDF, 0xE0, 0x1E9E, 0x1E9F]
    assert points("(?i:ς)").bounds.tolist() == [0x3A3, 0x3A4, 0x3C2, 0x3C4]
    assert ord("K") not in points("(?i:[^k])")
    assert points("(?i:(?-i:s))").bounds.tolist() == [0x73, 0x74]


def test_end_of_text_and_of_lines() -> None:
    split = PreTokenizer.from_pattern(r"a$|a\n|[ab]").split
    assert split(b"ba\n").tolist() == [1, 3]  # Python's $ would also match before the final line feed
    split = PreTokenizer.from_pattern(r"(?m)a$|[ab]+|\n").split
    assert split(b"a\nab").tolist() == [1, 2, 4]
    assert PreTokenizer.from_pattern(r"(?m)^a|[ab]+|\n").split(b"aab\naa").tolist() == [1, 3, 4, 5, 6]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8)), max_size=6),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8)), max_size=6),
)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_set_algebra_equals_that_of_sets(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    def members(ranges: list[tuple[int, int]]) -> set[int]:
        return {point for first, more in ranges for point in range(first, first + more + 1)}

    def listed(found: CodePoints) -> set[int]:
        return {point for point in range(60) if point in found}

    a = CodePoints.of(*((first, first + more) for first, more in left))
    b = CodePoints.of_points(members(right))
    assert listed(a) == members(left)
    assert listed(b) == members(right)
    assert listed(a | b) == members(left) | members(right)
    assert listed(a & b) == members(left) & members(right)
    assert listed(~a) == set(range(60)) - members(left)
    assert (~~a).bounds.tolist() == a.bounds.tolist()
    assert bool(a) == bool(members(left))
