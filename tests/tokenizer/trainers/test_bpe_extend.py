"""Extending a tokenizer: its ids and merges are a prefix, no new token is out of reach, what it encoded stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import bpe as recount
from oracles import bpe_extend as oracle

import tokctl
from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.trainers import bpe_start
from tokctl.tokenizer.trainers.bpe_sizes import fit_sizes
from tokctl.tokenizer.vocabulary import Vocabulary

NO_SPLIT = PreTokenizer.from_pattern("none")


def ragged(words):
    data = np.frombuffer(b"".join(word for word, _ in words), np.uint8)
    offsets = np.cumsum([0, *(len(word) for word, _ in words)]).astype(np.int64)
    return data, offsets, np.array([count for _, count in words], np.int64)


def extend(base, words, n_merges, *, specials=(), **options):
    start = bpe_start.begin(ragged(words), NO_SPLIT, bpe_start.StartOptions(extend=base, specials=tuple(specials)), 0)
    size = start.fixed.n_fixed + n_merges
    options = {"on_short": "warn", "replay_merges": "all"} | options
    return fit_sizes(start, vocab_sizes=[size], **options)


def the_only(fitted):
    (tokenizer,) = fitted.tokenizers.values()
    return tokenizer


def new_merges(base, tokenizer):
    return [tuple(pair) for pair in tokenizer.model.merges.tolist()[len(base.model.merges) :]]


def check_prefix(base, tokenizer):
    """Ids and merges of the base come first, unchanged."""
    n = base.vocab_size
    assert tokenizer.vocabulary.tokens()[:n] == base.vocabulary.tokens()
    assert tokenizer.special_ids.items() >= base.special_ids.items()
    assert tokenizer.pre_tokenizer == base.pre_tokenizer
    if base.model.merges is not None:
        assert tokenizer.model.merges[: len(base.model.merges)].tolist() == base.model.merges.tolist()
    new = [i for i in tokenizer.model.token_ids.tolist() if i >= n]
    assert tokenizer.model.encodes_to_itself[new].all()


# --- worked by hand -------------------------------------------------------------------------------------------------


def test_a_merge_of_the_base_comes_first_and_nothing_new_is_dead():
    base = Tokenizer.from_merges("abc", [("b", "c")], specials=["<s>"])
    # fitted alone: ab (9), then abc as ab c (8); appended as they are, abc would be dead, because b c comes first
    words = [(b"abc", 8), (b"ab", 1)]
    alone = tokctl.fit("bpe", dict(words), vocab_size=5, alphabet=[b"a", b"b", b"c"], pattern="none")
    assert alone.model.merges.tolist() == [[0, 1], [3, 2]]
    naive = Tokenizer.from_merges("abc", [("b", "c"), ("a", "b"), ("ab", "c")])
    assert naive.encode("abc") != [naive.vocab_size - 1]

    fitted = extend(base, words, 2, min_frequency=1)
    tokenizer = the_only(fitted)
    # abc is a bc (8), ab stays a b (1)
    assert [tokenizer.token_bytes(i) for i in range(5, tokenizer.vocab_size)] == [b"abc", b"ab"]
    assert new_merges(base, tokenizer) == [(0, 3), (0, 1)]
    assert tokenizer.encode("abc") == [5]
    assert tokenizer.special_ids == {"<s>": 4}
    assert fitted.facts["extension"] == {"passed_over": 0, "new_tokens": 2, "unreachable": 0}
    assert str(fitted.arithmetic[7]) == "5 of the base + 0 specials + 2 merges = 7"
    check_prefix(base, tokenizer)


def test_a_token_of_the_base_that_merges_do_not_reach_is_passed_over():
    # abcd is found as a whole word only; ab, then cd would join to it
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", b"d", b"abcd"])
    base = Tokenizer(NO_SPLIT, BPE(vocabulary, np.empty((0, 2), np.int32), np.empty(0, np.int32), whole_words=True))
    fitted = extend(base, [(b"xabcd".replace(b"x", b"a"), 9), (b"abcdab", 5)], 10)
    tokenizer = the_only(fitted)
    tokens = tokenizer.model.vocabulary.tokens()
    assert tokens.count(b"abcd") == 1
    assert fitted.facts["extension"]["passed_over"] > 0
    assert tokenizer.encode("abcd") == [4]
    check_prefix(base, tokenizer)


def test_where_ids_are_ranks_no_new_token_completes_an_unreachable_one():
    # ranks: once ab is a token, ab + cd would merge to abcd with its low rank; and abc + d, a + bcd
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", b"d", b"abcd", b"cd"])
    base = Tokenizer(NO_SPLIT, BPE(vocabulary, None, None, whole_words=True))
    assert base.model.unreachable == [4]
    fitted = extend(base, [(b"abx".replace(b"x", b"a"), 9), (b"aabcd", 5)], 10)
    tokenizer = the_only(fitted)
    assert tokenizer.model.form == "ranks"
    assert b"ab" not in tokenizer.model.vocabulary.tokens()
    assert tokenizer.model.unreachable == [4]
    check_prefix(base, tokenizer)


# --- against the oracle ---------------------------------------------------------------------------------------------

letters = st.sampled_from([b"a", b"b", b"c"])
word_bytes = st.lists(letters, min_size=1, max_size=10).map(b"".join) | st.integers(1, 14).map(lambda n: b"a" * n)
word_lists = st.lists(st.tuples(word_bytes, st.sampled_from([1, 1, 2, 3, 7])), min_size=1, max_size=8)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    first=word_lists,
    second=word_lists,
    n_base=st.sampled_from([0, 2, 5]),
    n_merges=st.sampled_from([1, 4, 30]),
    extra=st.lists(word_bytes.filter(lambda word: len(word) > 1), max_size=3, unique=True),
    whole_words=st.booleans(),
    with_special=st.booleans(),
)
def test_a_base_of_merges(first, second, n_base, n_merges, extra, whole_words, with_special):
    fitted = recount.fit(first, n_base, alphabet=[b"a", b"b", b"c"], min_frequency=1)
    tokens = [b"a", b"b", b"c"]
    merges = []
    for left, right in fitted.merges:
        merges.append((left, right, len(tokens)))
        tokens.append(tokens[left] + tokens[right])
    tokens += [token for token in extra if token not in tokens]  # no merge makes these
    added = (AddedToken(len(tokens), "ab"),) if with_special and b"ab" not in tokens else ()
    pairs = np.array([merge[:2] for merge in merges], np.int32).reshape(-1, 2)
    made = np.array([merge[2] for merge in merges], np.int32)
    base = Tokenizer(NO_SPLIT, BPE(Vocabulary.from_tokens(tokens), pairs, made, whole_words), added)
    expected, passed_over, model = oracle.extend(
        oracle.Model(tokens, merges, whole_words),
        second,
        n_merges,
        first_new=base.vocab_size,
        taken=[token.spelling for token in added],
    )
    fitted = extend(base, second, n_merges)
    tokenizer = the_only(fitted)
    assert new_merges(base, tokenizer) == expected
    assert fitted.facts["extension"]["passed_over"] == len(passed_over)
    check_prefix(base, tokenizer)
    table = model.table()
    for word, _ in [*first, *second]:
        assert tokenizer.encode(word) == model.encode(word, table)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    second=word_lists,
    n_merges=st.sampled_from([1, 4, 30]),
    longer=st.lists(word_bytes.filter(lambda word: len(word) > 1), max_size=6, unique=True),
    gap=st.sampled_from([0, 3]),
)
def test_a_base_in_which_ids_are_ranks(second, n_merges, longer, gap):
    tokens = [b"a", b"b", b"c", *[None] * gap, *longer]
    base = Tokenizer(NO_SPLIT, BPE(Vocabulary.from_tokens(tokens), None, None, whole_words=True))
    _, _, model = oracle.extend(oracle.Model(tokens, None, True), second, n_merges, first_new=base.vocab_size)
    fitted = extend(base, second, n_merges)
    tokenizer = the_only(fitted)
    check_prefix(base, tokenizer)
    reached = [base.model.encodes_to_itself[i] for i, token in enumerate(tokens) if token is not None]
    if all(reached):  # else completing an unreachable token is refused more strictly than need be
        table = model.table()
        assert tokenizer.model.vocabulary.tokens()[base.vocab_size :] == model.tokens[base.vocab_size :]
        for word, _ in second:
            assert tokenizer.encode(word) == model.encode(word, table)
    # the fit's own segmentation is what the grown tokenizer encodes to
    n_tokens = sum(len(tokenizer.encode(word)) * count for word, count in second)
    assert n_tokens == fitted.fit.n_tokens[-1]


# --- what stays and what is refused ---------------------------------------------------------------------------------

BASE_TEXT = {b"the": 9, b" cat": 5, b" hat": 5, b"hello": 3, b" sat": 4}
NEW_TEXT = {b"print": 9, b'("': 8, b" hello": 5, b'")': 8, b" cathat": 3}


@pytest.fixture
def base():
    return tokctl.fit("bpe", BASE_TEXT, vocab_size=270, specials=["<s>", "</s>"], bos="<s>")


def test_several_sizes_and_new_specials(base):
    fitted = tokctl.fit("bpe", NEW_TEXT, vocab_size=[273, 275, 278], extend=base, specials=["<code>"], eos="</s>")
    for small, large in [(273, 275), (275, 278)]:
        assert fitted[small].vocabulary.tokens() == fitted[large].vocabulary.tokens()[:small]
    for size, tokenizer in fitted.items():
        assert tokenizer.vocab_size == size
        check_prefix(base, tokenizer)
        assert tokenizer.special_ids == {"<s>": 0, "</s>": 1, "<code>": 270}
        assert (tokenizer.bos_token, tokenizer.eos_token) == ("<s>", "</s>")
    last = tokctl.fit("bpe", NEW_TEXT, vocab_size=278, extend=base, specials=["<code>"], special_layout="last")
    assert last.special_ids["<code>"] == 277
    assert last.model.merges.tolist() == [
        [side - (side > 270) for side in pair] for pair in fitted[278].model.merges.tolist()
    ]


def test_text_of_the_base_is_encoded_as_before(base):
    tokenizer = tokctl.fit("bpe", {"xyzzy": 10}, vocab_size=273, extend=base)
    for text in ["the cat sat hello", "the hat", "a quick brown fox"]:
        assert tokenizer.encode(text) == base.encode(text)
    assert tokenizer.encode("xyzzy") != base.encode("xyzzy")


def test_saving_and_loading_an_extension_and_extending_it_again(base, tmp_path):
    once = tokctl.fit("bpe", NEW_TEXT, vocab_size=277, extend=base)
    once.save(tmp_path / "once")
    loaded = tokctl.load(tmp_path / "once")
    assert loaded.semantic_hash == once.semantic_hash
    twice = tokctl.fit("bpe", {" again": 5}, vocab_size=280, extend=tmp_path / "once")
    check_prefix(once, twice)


def test_a_character_level_base_is_extended_too():
    base = tokctl.fit(
        "bpe", {"low": 5, "lower": 2}, vocab_size=10, unit="character", ties="subword-nmt", on_short="warn"
    )
    tokenizer = tokctl.fit("bpe", {"lowlow": 5, "  ": 3}, vocab_size=12, extend=base, on_short="warn", replay="all")
    check_prefix(base, tokenizer)
    assert tokenizer.decode(tokenizer.encode("lowlow low")) == "lowlow low"
    assert len(tokenizer.encode("lowlow")) < len(base.encode("lowlow"))
    with pytest.raises(DataError, match=r"'z' .*not in this tokenizer's alphabet"):
        tokctl.fit("bpe", {"zoo": 5}, vocab_size=12, extend=base)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"pattern": "cl100k"}, "pattern-differs"),
        ({"byte_order": "raw"}, "options-differ"),
        ({"unit": "character"}, "options-differ"),
        ({"specials": ["<s>"]}, "special-is-token"),
        ({"specials": ["the"]}, "special-is-token"),
        ({"bos": "<b>"}, "unknown-special"),
        ({"vocab_size": 269}, "vocabulary-too-small"),
        ({"special_layout": "middle"}, "layout"),
    ],
)
def test_what_contradicts_the_base_is_refused(base, options, code):
    with pytest.raises(UsageError) as caught:
        tokctl.fit("bpe", NEW_TEXT, **{"vocab_size": 275, "extend": base} | options)
    assert caught.value.code == code
    assert caught.value.hint


def test_the_pattern_of_the_base_may_be_named(base):
    assert tokctl.fit("bpe", NEW_TEXT, vocab_size=275, extend=base, pattern="gpt2").vocab_size == 275
