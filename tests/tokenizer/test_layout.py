from itertools import pairwise

import numpy as np
import pytest
from tokenizer.samples import TEXT, small

from tokctl.errors import UsageError
from tokctl.tokenizer.byte_order import byte_alphabet
from tokctl.tokenizer.layout import LAYOUTS, Arithmetic, assemble, from_merges
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer

WHOLE = PreTokenizer.from_pattern("none")


def test_minbpes_published_example():
    """aaabdaaabac with three merges, bytes in raw order."""
    tokenizer = Tokenizer.from_merges(byte_alphabet("raw"), [(97, 97), (256, 97), (257, 98)])
    assert tokenizer.encode("aaabdaaabac") == [258, 100, 258, 97, 99]
    assert tokenizer.vocab_size == 259


@pytest.mark.parametrize(
    "alphabet", ["abcd", b"abcd", [97, 98, 99, 100], [b"a", b"b", b"c", b"d"], ["a", "b", "c", "d"]]
)
@pytest.mark.parametrize("merges", [[(0, 0), (0, 1), (4, 5)], [(b"a", b"a"), ("a", "b"), ("aa", b"ab")]])
def test_a_base_alphabet_of_four(alphabet, merges):
    tokenizer = Tokenizer.from_merges(alphabet, merges)
    assert tokenizer.encode("aaab") == [6]
    assert tokenizer.encode("daaabac") == [3, 6, 0, 2]
    assert [tokenizer.token_bytes(i) for i in range(7)] == [b"a", b"b", b"c", b"d", b"aa", b"ab", b"aaab"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_sizes_add_up_and_ids_are_dense(layout):
    base, merges = byte_alphabet("gpt2"), np.array([(66, 67), (256, 68)])
    tokenizer, sizes = assemble(
        base, merges, specials=("<s>", "<e>"), special_layout=layout, pre_tokenizer=WHOLE, bos="<s>"
    )
    assert sizes.to_json() == {"specials": 2, "bytes": 256, "alphabet": 0, "merges": 2, "vocab_size": 260}
    assert str(sizes) == "2 specials + 256 bytes + 2 merges = 260"
    assert tokenizer.vocab_size == 260
    assert tokenizer.unused_ids == []
    first = {"first": 0, "after-bytes": 256, "last": 258}[layout]
    assert tokenizer.special_ids == {"<s>": first, "<e>": first + 1}
    assert tokenizer.token_bytes({"first": 2, "after-bytes": 0, "last": 0}[layout]) == b"!"
    assert tokenizer.token_bytes({"first": 259, "after-bytes": 259, "last": 257}[layout]) == b"cde"
    assert tokenizer.encode("cde") == [{"first": 259, "after-bytes": 259, "last": 257}[layout]]
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<s>", None)


@pytest.mark.parametrize("layout", ["first", "after-bytes"])
def test_smaller_sizes_are_a_prefix(layout):
    sizes = [small("gpt2", n, special_layout=layout) for n in (20, 100, 250)]
    for smaller, larger in pairwise(sizes):
        n = smaller.vocab_size
        assert n < larger.vocab_size
        assert [smaller.token_bytes(i) for i in range(n)] == [larger.token_bytes(i) for i in range(n)]
        assert smaller.special_ids == larger.special_ids
        assert len(smaller.encode(TEXT)) > len(larger.encode(TEXT))


def test_layouts_differ_in_numbers_only():
    first, last = small(special_layout="first"), small(special_layout="last")
    n = len(first.special_ids)
    assert [i - n for i in first.encode(TEXT)] == last.encode(TEXT)
    assert first.semantic_hash != last.semantic_hash


def test_the_plan_says_what_fits():
    assert Arithmetic(3, n_bytes=256).for_size(300).n_merges == 41
    assert Arithmetic(3, n_bytes=256).for_size(259).n_merges == 0
    assert str(Arithmetic(3, n_alphabet=40, n_inherited=7).for_size(51)) == (
        "7 of the base + 3 specials + 40 characters + 1 merges = 51"
    )
    with pytest.raises(UsageError, match="5 can't hold 1 specials \\+ 256 bytes") as caught:
        Arithmetic(1, n_bytes=256).for_size(5)
    assert "257" in caught.value.hint


@pytest.mark.parametrize(
    ("specials", "code"),
    [
        (["<s>", "<s>"], "duplicate-special"),
        ([""], "empty-special"),
        (["\ud800"], "special-not-text"),
        ([7], "special-not-text"),
        (["a"], "special-is-token"),
        (["aa"], "special-is-token"),
    ],
)
def test_wrong_specials_are_refused(specials, code):
    with pytest.raises(UsageError) as caught:
        from_merges("ab", [(0, 0)], specials=specials)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("alphabet", "merges", "message"),
    [
        ("aa", [], "given twice"),
        (["ab"], [], "not one byte"),
        ("é", [], "not one byte"),
        ([256], [], "not a byte"),
        ("ab", [(0, 2)], "only 2 exist"),
        ("ab", [(0, -1)], "only 2 exist"),
        ("ab", [(0, 1, 0)], "not a pair"),
        ("ab", [("a", "c")], "no token before"),
        ("ab", [(0, 1), (0, 1)], "already token 2"),
        ("a", [(0, 0), (0, 1), (1, 0)], "already token 2"),
    ],
)
def test_wrong_merges_are_refused(alphabet, merges, message):
    with pytest.raises(UsageError, match=message):
        from_merges(alphabet, merges)


def test_other_wrong_arguments():
    with pytest.raises(UsageError, match="unknown special layout"):
        from_merges("ab", [], special_layout="middle")
    with pytest.raises(UsageError, match="not among the specials"):
        from_merges("ab", [], bos="<s>")
    with pytest.raises(UsageError):
        from_merges("ab", [], pattern="(")
