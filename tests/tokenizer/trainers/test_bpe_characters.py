"""Character-level BPE: the paper's example, the oracle, and the alphabet that says what it leaves out."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import bpe as recount
from oracles import subword_bpe as oracle

import tokctl
from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.models.bpe_characters import EndOfWord
from tokctl.tokenizer.trainers.character_alphabet import choose_alphabet

PAPER = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def merges_of(tokenizer):
    tokens = [None if token is None else token.decode() for token in tokenizer.model.vocabulary.tokens()]
    return [(tokens[left], tokens[right]) for left, right in tokenizer.model.merges.tolist()]


def fit(words, vocab_size=10_000, **options):
    options = {"unit": "character", "ties": "subword-nmt", "on_short": "warn", "replay": "all"} | options
    return tokctl.fit("bpe", words, vocab_size=vocab_size, **options)


# --- the paper's dictionary, by hand --------------------------------------------------------------------------------


def test_the_paper_with_the_marker_as_a_symbol():
    # est</w> x9: (t, </w>), (s, t</w>) and (e, st</w>) in turn, the larger left string first; then low x7.
    tokenizer = fit(PAPER, end_of_word_as="symbol")
    assert merges_of(tokenizer)[:10] == [
        ("t", "</w>"),
        ("s", "t</w>"),
        ("e", "st</w>"),
        ("o", "w"),
        ("l", "ow"),
        ("w", "est</w>"),
        ("n", "e"),
        ("ne", "west</w>"),
        ("low", "</w>"),
        ("w", "i"),
    ]
    # with ties by id ("</w>" has the last one) the order is that of the paper's listing: es, est, est</w>, lo, low
    ascending = fit(PAPER, end_of_word_as="symbol", ties="first-seen")
    assert merges_of(ascending)[:5] == [("e", "s"), ("es", "t"), ("est", "</w>"), ("l", "o"), ("lo", "w")]
    assert tokenizer.model.vocabulary.token(tokenizer.encode("low")[0]) == b"low</w>"


def test_the_paper_with_the_marker_as_a_suffix():
    tokenizer = fit(PAPER)
    assert merges_of(tokenizer) == [
        ("s", "t</w>"),
        ("e", "st</w>"),
        ("l", "o"),
        ("w", "est</w>"),
        ("n", "e"),
        ("ne", "west</w>"),
        ("lo", "w</w>"),
        ("w", "i"),
        ("wi", "d"),
        ("wid", "est</w>"),
        ("w", "e"),
        ("we", "r</w>"),
        ("lo", "wer</w>"),
    ]
    tokens = [tokenizer.token_bytes(i) for i in tokenizer.encode("lower  low\nnewest")]
    assert tokens == [b"lower ", b"low ", b"newest "]
    assert tokenizer.decode(tokenizer.encode("lower  low\nnewest")) == "lower low newest"


# --- against the oracles --------------------------------------------------------------------------------------------

letters = st.sampled_from("abcé漢🙂")
words = st.dictionaries(
    st.one_of(st.text(letters, min_size=1, max_size=9), st.integers(1, 30).map(lambda n: "a" * n)),
    st.sampled_from([1, 1, 2, 3, 7, 2**40]),
    min_size=1,
    max_size=9,
)


@pytest.mark.parametrize("form", ["suffix", "symbol"])
@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    words=words, n_merges=st.sampled_from([0, 1, 5, 100]), others=st.lists(st.text(letters, max_size=12), max_size=5)
)
def test_equals_the_oracle(form, words, n_merges, others):
    suffix = form == "suffix"
    expected = oracle.fit(words, n_merges, suffix=suffix)
    n_base = fit(words, 10**6, end_of_word_as=form, min_frequency=2**60).vocab_size
    tokenizer = fit(words, n_base + n_merges, end_of_word_as=form)
    assert merges_of(tokenizer) == expected
    assert not tokenizer.model.unreachable
    spelled = [token.decode() for token in tokenizer.model.vocabulary.tokens()]
    for text in [*words, *others]:
        if text and tokenizer.model.knows(text.encode()):
            ids = tokenizer.encode(text)
            assert tuple(spelled[i] for i in ids) == oracle.encode(text, expected, suffix=suffix)
            assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("ties", ["ascending", "descending", "sentencepiece", "subword-nmt"])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(words=words)
def test_without_a_marker_it_is_plain_bpe_over_characters(ties, words):
    tokenizer = fit(words, 60, end_of_word="", pattern="none", ties=ties)
    alphabet = sorted({char for word in words for char in word})
    rows = [([alphabet.index(char) for char in word], count) for word, count in words.items()]
    n_merges = 60 - len(alphabet)
    expected = recount.fit(rows, n_merges, alphabet=[char.encode() for char in alphabet], ties=ties)
    assert [tuple(pair) for pair in tokenizer.model.merges.tolist()] == expected.merges


# --- the alphabet ---------------------------------------------------------------------------------------------------


def ragged(words):
    data = np.frombuffer(b"".join(word for word, _ in words), np.uint8).copy()
    offsets = np.cumsum([0, *(len(word) for word, _ in words)]).astype(np.int64)
    return data, offsets, np.array([count for _, count in words], np.int64)


def test_what_a_limit_leaves_out_is_named_with_its_mass_and_fails_above_the_threshold():
    words = {"aaaa": 1, "bbb": 1, "c": 1}
    with pytest.raises(DataError) as caught:
        fit(words, limit_alphabet=2)
    assert caught.value.code == "alphabet-drops-too-much"
    assert "1 character, 12.5 %" in caught.value.message
    assert "'c' (U+0063) x 1 as in c" in caught.value.message
    assert "--max-dropped 0.125" in caught.value.hint
    tokenizer = fit(words, limit_alphabet=2, max_dropped="0.125", specials=["<unk>"], unk="<unk>")
    assert tokenizer.encode("c") == [0]
    assert tokenizer.decode(tokenizer.encode("aaaa bbb")) == "aaaa bbb"


def test_the_alphabet_is_ranked_by_count_then_code_point_and_reported():
    words = ragged([(b"ba", 3), (b"ab", 3), (b"zy", 1), (b"z", 1), ("é".encode(), 0)])
    chosen = choose_alphabet(*words, end_of_word=EndOfWord("</w>"), limit=3, max_dropped=Decimal(1))
    # a and b 6 each, z 2, y 1; a character that occurs never is none
    assert chosen.tokens == (b"a", b"b", b"z", b"a</w>", b"b</w>", b"z</w>")
    assert chosen.to_json() == {
        "characters": 3,
        "occurrences": "15",
        "dropped": 1,
        "dropped_occurrences": "1",
        "dropped_characters": [{"character": "'y' (U+0079)", "count": "1", "words": ["zy"]}],
    }
    whole = choose_alphabet(*words, end_of_word=EndOfWord("</w>", is_suffix=False))
    assert whole.tokens == (b"a", b"b", b"y", b"z", b"</w>")


def test_example_words_are_the_commonest():
    words = ragged([(b"ax", 1), (b"bx", 9), (b"cx", 9), (b"dxx", 5), (b"ex", 7), (b"abcde", 1000)])
    (dropped,) = choose_alphabet(*words, limit=5, max_dropped=Decimal(1)).left_out
    assert (dropped.point, dropped.count, dropped.words) == (ord("x"), 36, (b"bx", b"cx", b"ex"))


@pytest.mark.parametrize(
    ("coverage", "kept"), [("1", 3), ("0.875", 2), ("0.876", 3), ("0.5", 1), ("0.5000001", 2), ("0", 1)]
)
def test_coverage_keeps_the_fewest_characters_that_reach_it(coverage, kept):
    words = ragged([(b"aaaa", 1), (b"bbb", 1), (b"c", 1)])
    chosen = choose_alphabet(*words, coverage=Decimal(coverage), max_dropped=Decimal(1))
    assert len(chosen.inner) == kept


def test_a_vocabulary_below_the_alphabet_is_refused_naming_what_does_not_fit():
    words = dict.fromkeys(["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"], 1)
    with pytest.raises(UsageError) as caught:
        fit(words, 5)
    assert caught.value.code == "vocabulary-too-small"
    assert "room for 5 base tokens" in caught.value.message
    assert "23 characters don't fit" in caught.value.message
    assert "'u' (U+0075) x 2" in caught.value.message
    assert "75 % of all occurrences" in caught.value.message


def test_a_dropped_character_separates_its_neighbours():
    # axb: without x nothing stands beside a; a and b are never merged
    tokenizer = fit(
        {"axb": 5, "cb": 1}, limit_alphabet=3, max_dropped=1, end_of_word="", pattern="none", min_frequency=1
    )
    assert merges_of(tokenizer) == [] or ("a", "b") not in merges_of(tokenizer)


def test_the_marker_in_the_corpus_is_refused():
    with pytest.raises(DataError, match="'</w>', which marks") as caught:
        fit({"a</w>b": 1})
    assert caught.value.code == "marker-in-corpus"
    assert fit({"a</w>b": 1}, end_of_word="·").decode(fit({"a</w>b": 1}, end_of_word="·").encode("a</w>b")) == "a</w>b"
    # words that only meet each other at the marker's place don't hold it
    assert fit({"a</": 1, "w>": 1}).vocab_size > 0


def test_bytes_that_are_no_utf8_are_characters_of_their_own():
    tokenizer = fit({b"a\xff": 3, b"\xc3": 2})
    assert tokenizer.decode_bytes(tokenizer.encode(b"a\xff \xc3")) == b"a\xff \xc3"


def test_white_space_words_are_left_out():
    assert fit({" ": 100, "\n\u3000": 5, "low": 5}).semantic_hash == fit({"low": 5}).semantic_hash


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"end_of_word_as": "prefix"}, "end-of-word"),
        ({"end_of_word": ""}, "white-space-lost"),
        ({"limit_alphabet": 0}, "bad-limit"),
        ({"character_coverage": "1.5"}, "bad-share"),
        ({"max_dropped": "some"}, "bad-share"),
        ({"unit": "syllable"}, "unit"),
        ({"unk": "<unk>"}, "unknown-special"),
        ({"byte_order": "raw"}, "options-differ"),
        ({"unit": "byte", "pattern": "whitespace"}, "white-space-lost"),
    ],
)
def test_options_that_make_no_sense(options, code):
    with pytest.raises(UsageError) as caught:
        fit({"low": 5}, **options)
    assert caught.value.code == code
    assert caught.value.hint


def test_several_sizes_are_prefixes_of_one_another():
    tokenizers = fit(PAPER, [15, 20, 25], specials=["<unk>"], unk="<unk>")
    for small, large in [(15, 20), (20, 25)]:
        assert tokenizers[small].vocab_size == small
        assert tokenizers[small].vocabulary.tokens() == tokenizers[large].vocabulary.tokens()[:small]
