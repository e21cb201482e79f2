"""fit_bpe against the recount oracle, worked examples by hand, and inputs that other trainers get wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import bpe as oracle

from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.byte_order import byte_alphabet
from tokctl.tokenizer.trainers.bpe import TIES, BPEFit, fit_bpe

RAW = byte_alphabet("raw")


def ragged(words: list[tuple[bytes, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = np.frombuffer(b"".join(word for word, _ in words), np.uint8)
    offsets = np.cumsum([0, *(len(word) for word, _ in words)]).astype(np.int64)
    return data, offsets, np.array([count for _, count in words], np.int64)


def fit(words, n_merges, *, alphabet=RAW, **options) -> BPEFit:
    return fit_bpe(*ragged(words), n_merges=n_merges, alphabet=alphabet, **options)


def as_oracle(result: BPEFit) -> oracle.Fit:
    return oracle.Fit(
        [tuple(pair) for pair in result.merges.tolist()],
        result.pair_counts.tolist(),
        result.ambiguous.tolist(),
        result.n_tokens.tolist(),
        result.stopped,
        result.best_remaining,
    )


def spellings(result: BPEFit, alphabet=RAW) -> list[bytes]:
    strings = list(alphabet)
    for left, right in result.merges.tolist():
        strings.append(strings[left] + strings[right])
    return strings[len(alphabet) :]


# --- against the oracle ---------------------------------------------------------------------------------------------

letters = st.sampled_from([b"a", b"b", b"c", b"\xc3", b"\xa9", b"\x80", b"\xff"])
runs = st.tuples(letters, st.integers(1, 9)).map(lambda run: run[0] * run[1])
word_bytes = st.one_of(
    st.lists(letters, max_size=12).map(b"".join),
    st.lists(runs, max_size=5).map(b"".join),
    st.integers(1, 40).map(lambda n: b"a" * n),
    st.integers(1, 12).map(lambda n: b"ab" * n),
)
word_lists = st.lists(st.tuples(word_bytes, st.sampled_from([0, 1, 1, 1, 2, 3, 7, 2**31 + 1, 2**42])), max_size=10)


@pytest.mark.parametrize("ties", TIES)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    words=word_lists,
    n_merges=st.sampled_from([0, 1, 3, 10, 100]),
    min_frequency=st.sampled_from([0, 1, 2, 2, 3, 8]),
    max_token_bytes=st.sampled_from([None, None, 1, 2, 3, 8]),
)
def test_equals_the_oracle(ties, words, n_merges, min_frequency, max_token_bytes):
    options = {"ties": ties, "min_frequency": min_frequency, "max_token_bytes": max_token_bytes}
    assert as_oracle(fit(words, n_merges, **options)) == oracle.fit(words, n_merges, **options)


STRINGS = (b"a", b"b", b"ab", b"abc", "é".encode(), b"bca", b"\xa9", b"</w>", b"a</w>")
rows = st.lists(
    st.tuples(
        st.lists(st.sampled_from(range(len(STRINGS))), max_size=12)
        | st.tuples(st.sampled_from(range(len(STRINGS))), st.integers(1, 30)).map(lambda run: [run[0]] * run[1]),
        st.sampled_from([0, 1, 1, 2, 3, 2**42]),
    ),
    max_size=10,
)


@pytest.mark.parametrize("ties", TIES)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    rows=rows,
    n_merges=st.sampled_from([0, 1, 3, 10, 100]),
    min_frequency=st.sampled_from([1, 2, 3]),
    max_token_bytes=st.sampled_from([None, None, 4, 8]),
    passed_over=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=8),
)
def test_rows_of_any_tokens_and_pairs_that_are_passed_over(
    ties, rows, n_merges, min_frequency, max_token_bytes, passed_over
):
    options = {"ties": ties, "min_frequency": min_frequency, "max_token_bytes": max_token_bytes}
    options["passed_over"] = passed_over
    symbols = np.array([symbol for row, _ in rows for symbol in row], np.int32)
    offsets = np.cumsum([0, *(len(row) for row, _ in rows)])
    found = fit_bpe(
        np.empty(0, np.uint8),
        np.zeros(1, np.int64),
        np.array([count for _, count in rows], np.int64),
        n_merges=n_merges,
        alphabet=STRINGS,
        segments=(symbols, offsets),
        **options,
    )
    assert as_oracle(found) == oracle.fit(rows, n_merges, alphabet=STRINGS, **options)


def test_rows_of_a_symbol_that_is_no_token():
    with pytest.raises(DataError, match="not among the 2 base tokens"):
        fit_bpe(
            np.empty(0, np.uint8),
            np.zeros(1, np.int64),
            np.ones(1, np.int64),
            n_merges=1,
            alphabet=[b"a", b"bc"],
            segments=(np.array([0, 2]), np.array([0, 2])),
        )


@pytest.mark.parametrize("ties", TIES)
def test_equals_the_oracle_where_the_pair_table_grows(ties):
    # Ten thousand distinct pairs of the first rounds: several tables, and heaps refilled under new thresholds.
    rng = np.random.default_rng(5)
    words = [(rng.integers(0, 256, 60, dtype=np.uint8).tobytes(), int(rng.integers(1, 5))) for _ in range(400)]
    words += [(b"abcabcabd" * 4, 3), (b"x" * 101, 2)]
    assert as_oracle(fit(words, 60, ties=ties)) == oracle.fit(words, 60, ties=ties)


@pytest.mark.parametrize("ties", TIES)
def test_equals_the_oracle_to_the_last_pair(ties):
    rng = np.random.default_rng(6)
    words = [(rng.integers(97, 100, 30, dtype=np.uint8).tobytes(), 1) for _ in range(15)]
    assert as_oracle(fit(words, 10_000, ties=ties, min_frequency=1)) == oracle.fit(
        words, 10_000, ties=ties, min_frequency=1
    )


def test_positions_of_64_bits_change_nothing():
    from tokctl.tokenizer.trainers import bpe, bpe_state

    rng = np.random.default_rng(7)
    words = [(rng.integers(97, 101, 20, dtype=np.uint8).tobytes(), int(rng.integers(1, 9))) for _ in range(50)]
    options = {"n_merges": 80, "alphabet": RAW, "ties": "first-seen", "min_frequency": 2, "max_token_bytes": 9}
    wide = bpe._run(bpe_state.prepare(*ragged(words), wide=True, **options), 80, None)
    assert as_oracle(wide) == as_oracle(fit_bpe(*ragged(words), **options))


# --- worked by hand -------------------------------------------------------------------------------------------------


def test_three_rounds_over_a_base_of_four_letters():
    # aaab x2, daaabac x1: (a,a) has two windows in each word: 2*2 + 2 = 6. Then aa|a|b and d|aa|a|b|a|c: (aa,a) and (a,b)
    # have 3, and (0,1) is the smaller. Then aa|ab and d|aa|ab|a|c: (4,5) has 3. All that is left occurs once.
    words = [(b"aaab", 2), (b"daaabac", 1)]
    result = fit(words, 100, alphabet=[b"a", b"b", b"c", b"d"])
    assert result.merges.tolist() == [[0, 0], [0, 1], [4, 5]]
    assert result.pair_counts.tolist() == [6, 3, 3]
    assert result.ambiguous.tolist() == [False, True, False]
    assert result.n_tokens.tolist() == [15, 12, 9, 6]
    assert (result.stopped, result.best_remaining) == ("min-frequency", 1)
    assert result.merges.dtype == np.int32
    assert result.pair_counts.dtype == result.n_tokens.dtype == np.int64


def test_minbpe_published_example():
    # Round 1: (a,a) 4 windows. XabdXabac: (X,a) and (a,b) 2 each, (X,a) is met first. YbdYbac: (Y,b).
    result = fit([(b"aaabdaaabac", 1)], 3, ties="first-seen")
    assert result.merges.tolist() == [[97, 97], [256, 97], [257, 98]]
    assert oracle.encode(b"aaabdaaabac", result.merges.tolist(), RAW) == [258, 100, 258, 97, 99]


def test_one_word_of_four_equal_letters_and_too_large_a_vocabulary():
    # aaaa: 3 windows -> aa|aa: 1 window, below the minimum of 2.
    result = fit([(b"aaaa", 1)], 50)
    assert (result.merges.tolist(), result.pair_counts.tolist()) == ([[97, 97]], [3])
    assert (result.stopped, result.best_remaining) == ("min-frequency", 1)
    # With a minimum of 1 the word becomes one token, and no pair is left.
    result = fit([(b"aaaa", 1)], 50, min_frequency=1)
    assert result.merges.tolist() == [[97, 97], [256, 256]]
    assert (result.stopped, result.best_remaining) == ("no-pairs", 0)


@pytest.mark.parametrize(
    ("ties", "first"),
    [("ascending", b"ab"), ("descending", b"zy"), ("first-seen", b"zy"), ("sentencepiece", b"ab")],
)
def test_ties_are_broken_as_named(ties, first):
    result = fit([(b"zy", 2), (b"ab", 2)], 1, ties=ties)
    assert spellings(result) == [first]
    assert result.ambiguous.tolist() == [True]


def test_sentencepiece_prefers_fewer_characters_before_the_smaller_string():
    # é is one character of two bytes, ab is two characters: é first, although "ab" < "é" bytewise.
    result = fit([(b"ab", 2), ("é".encode(), 2), (b"aa", 2)], 3, ties="sentencepiece")
    assert spellings(result) == ["é".encode(), b"aa", b"ab"]
    # Two continuation bytes have no character at all, a broken lead byte counts as one.
    result = fit([("é".encode(), 2), (b"\x80\x80", 2), (b"\xff\xfe", 2)], 3, ties="sentencepiece")
    assert spellings(result) == [b"\x80\x80", "é".encode(), b"\xff\xfe"]


def test_first_seen_depends_on_the_order_of_the_words():
    words = [(b"abc", 1), (b"cd", 2), (b"ab", 1)]
    assert spellings(fit(words, 3, ties="first-seen")) == [b"ab", b"cd"]
    assert spellings(fit(words[1:] + words[:1], 3, ties="first-seen")) == [b"cd", b"ab"]


def test_first_seen_looks_at_the_current_text():
    # (b,a) is first met inside abab; once ab is merged, its first window is later than that of (c,d).
    words = [(b"abab", 3), (b"cd", 2), (b"ba", 2)]
    result = fit(words, 4, ties="first-seen", min_frequency=1)
    assert as_oracle(result) == oracle.fit(words, 4, ties="first-seen", min_frequency=1)
    assert spellings(result)[:3] == [b"ab", b"abab", b"cd"]


# --- options --------------------------------------------------------------------------------------------------------


def test_longest_token_is_inclusive():
    words = [(b"abcdabcd", 5), (b"abc", 5)]
    assert max(map(len, spellings(fit(words, 50, max_token_bytes=3)))) == 3
    assert max(map(len, spellings(fit(words, 50, max_token_bytes=4)))) == 4
    result = fit(words, 50, max_token_bytes=1)
    assert (len(result.merges), result.stopped, result.best_remaining) == (0, "no-pairs", 0)


def test_a_long_pair_does_not_hide_a_short_one():
    # (ab,ab) has the highest count but 4 bytes; xy is merged although it is rarer.
    result = fit([(b"abab", 9), (b"xy", 2)], 10, max_token_bytes=3)
    assert spellings(result) == [b"ab", b"xy"]
    assert (result.stopped, result.best_remaining) == ("no-pairs", 0)


@pytest.mark.parametrize("min_frequency", [3, 5, 9])
def test_the_best_pair_below_the_minimum_is_reported(min_frequency):
    result = fit([(b"ab", 9), (b"cd", 2), (b"ef", 1)], 10, min_frequency=min_frequency)
    assert spellings(result) == [b"ab"]
    assert (result.stopped, result.best_remaining) == ("min-frequency", 2)


def test_smaller_vocabularies_are_prefixes():
    rng = np.random.default_rng(8)
    words = [(rng.integers(97, 110, 12, dtype=np.uint8).tobytes(), int(rng.integers(1, 99))) for _ in range(300)]
    large = fit(words, 500)
    for n_merges in (0, 1, 17, 256):
        small = fit(words, n_merges)
        assert small.stopped == "reached"
        assert small.merges.tolist() == large.merges[:n_merges].tolist()
        assert small.best_remaining == large.pair_counts[n_merges]


@pytest.mark.parametrize("ties", ["ascending", "descending", "sentencepiece"])
def test_the_order_of_the_words_does_not_matter(ties):
    words = [(bytes([letter]) * 2, 1) for letter in b"jhgfedcba"] + [(b"xa", 1), (b"by", 1), (b"cz", 1)]
    results = [fit(order, 9, ties=ties, min_frequency=1).merges.tolist() for order in (words, words[::-1])]
    assert results[0] == results[1]


def test_alphabet_order_decides_the_ids_and_so_the_ties():
    words = [(b" a", 2), (b"!!", 2)]
    assert spellings(fit(words, 1, alphabet=RAW)) == [b" a"]
    gpt2 = byte_alphabet("gpt2")
    assert spellings(fit(words, 1, alphabet=gpt2), gpt2) == [b"!!"]


# --- counts ---------------------------------------------------------------------------------------------------------


def test_counts_beyond_32_bits():
    result = fit([(b"ss", 2**31), (b"xy", 10)], 2)
    assert spellings(result) == [b"ss", b"xy"]
    assert result.pair_counts.tolist() == [2**31, 10]


def test_counts_beyond_40_bits():
    result = fit([(b"ss", 2**45), (b"sst", 2**45 + 1), (b"xyz", 2**46)], 9)
    assert spellings(result)[:2] == [b"ss", b"xy"]
    assert result.pair_counts.tolist()[:2] == [2**46 + 1, 2**46]
    assert result.n_tokens.tolist()[0] == 2 * 2**45 + 3 * (2**45 + 1) + 3 * 2**46


def test_a_total_beyond_63_bits_is_refused_before_the_start():
    assert fit([(b"ab", 2**62 - 1)], 1).pair_counts.tolist() == [2**62 - 1]
    with pytest.raises(DataError, match="9223372036854775808") as caught:
        fit([(b"ab", 2**62)], 1)
    assert caught.value.code == "count-overflow"


def test_words_with_count_zero_are_as_if_they_were_not_there():
    words = [(b"qq", 0), (b"ab", 3), (b"qqab", 0), (b"ab", 0)]
    assert as_oracle(fit(words, 5, ties="first-seen")) == as_oracle(fit([(b"ab", 3)], 5, ties="first-seen"))


# --- degenerate and large inputs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [[], [(b"", 5)], [(b"a", 5), (b"", 1), (b"b", 1)]])
def test_nothing_to_merge(words):
    result = fit(words, 10)
    assert (len(result.merges), result.stopped, result.best_remaining) == (0, "no-pairs", 0)
    assert result.n_tokens.tolist() == [sum(len(word) * count for word, count in words)]
    assert fit(words, 0).stopped == "reached"


def test_one_word_of_160_000_bytes():
    data = np.random.default_rng(9).integers(0, 256, 160_000, dtype=np.uint8)
    words = data, np.array([0, len(data)]), np.array([1])
    result = fit_bpe(*words, n_merges=50_000, alphabet=RAW)
    assert result.stopped == "min-frequency"
    # Merging until nothing repeats: the tokens' bytes are the word, and no pair of neighbours occurs twice.
    assert result.n_tokens[0] - result.n_tokens[-1] >= len(result.merges)
    assert (np.diff(result.pair_counts) <= 0).all()


def test_a_million_equal_letters():
    data = np.full(1_000_000, 97, np.uint8)
    result = fit_bpe(data, np.array([0, len(data)]), np.array([1]), n_merges=100, alphabet=RAW, min_frequency=1)
    # The run halves in each round; what an odd run leaves over are the binary digits of 1,000,000.
    assert result.n_tokens.tolist()[:4] == [1_000_000, 500_000, 250_000, 125_000]
    assert result.pair_counts.tolist()[:3] == [999_999, 499_999, 249_999]
    assert (result.stopped, int(result.n_tokens[-1])) == ("no-pairs", 1)


def test_two_hundred_thousand_distinct_words_that_nearly_all_tie():
    n_words = 200_000
    data = np.random.default_rng(10).integers(0, 256, 6 * n_words, dtype=np.uint8)
    result = fit_bpe(data, np.arange(n_words + 1) * 6, np.ones(n_words, int), n_merges=2_000, alphabet=RAW)
    assert result.stopped == "reached"
    assert result.ambiguous.sum() > 1_900


def test_every_pair_once():
    pairs = np.array([[left, right] for left in range(256) for right in range(256)], np.uint8)
    result = fit_bpe(pairs.ravel(), np.arange(65_537) * 2, np.full(65_536, 5), n_merges=65_536, alphabet=RAW)
    assert result.merges.tolist() == pairs.astype(int).tolist()
    assert result.stopped == "reached"
    assert result.ambiguous.tolist() == [True] * 65_535 + [False]


# --- the boundary ---------------------------------------------------------------------------------------------------


def test_a_slice_of_a_larger_table_is_fitted_alone():
    data, offsets, counts = ragged([(b"xxxx", 9), (b"abab", 3), (b"ab", 1), (b"yy", 9)])
    part = fit_bpe(data, offsets[1:4], counts[1:3], n_merges=5, alphabet=RAW)
    assert as_oracle(part) == oracle.fit([(b"abab", 3), (b"ab", 1)], 5)


def test_inputs_are_not_changed_and_may_be_read_only():
    data, offsets, counts = ragged([(b"abab", 3), (b"ab", 1)])
    for array in (data, offsets, counts):
        array.flags.writeable = False
    before = data.tobytes(), offsets.tobytes(), counts.tobytes()
    columns = np.repeat(counts[:, None], 2, axis=1)
    assert as_oracle(fit_bpe(data, offsets, columns[:, 1], n_merges=5, alphabet=RAW)) == as_oracle(
        fit_bpe(data, offsets.astype(np.int32), counts, n_merges=5, alphabet=RAW)
    )
    assert (data.tobytes(), offsets.tobytes(), counts.tobytes()) == before


def test_progress_is_told_and_may_stop_the_fit():
    words = [(bytes([left, right]), 2) for left in range(100) for right in range(100)]
    told = []
    fit(words, 5_000, on_step=lambda done, total: told.append((done, total)))
    assert told[-1] == (5_000, 5_000)
    assert told == sorted(told)
    assert len(told) > 1

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(words, 5_000, on_step=interrupt)


# --- errors ---------------------------------------------------------------------------------------------------------


def test_a_byte_outside_the_alphabet_is_named_with_its_place():
    with pytest.raises(DataError, match="0x7a of word 1") as caught:
        fit([(b"ab", 2), (b"abzb", 2)], 1, alphabet=[b"a", b"b"])
    assert (caught.value.where.row, caught.value.where.offset) == (1, 2)
    with pytest.raises(DataError) as caught:
        fit([(b"ab", 2), (b"", 1), (b"zb", 2)], 1, alphabet=[b"a", b"b"])
    assert (caught.value.where.row, caught.value.where.offset) == (2, 0)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"ties": "random"}, "unknown-ties"),
        ({"n_merges": -1}, "bad-size"),
        ({"n_merges": 2**31}, "bad-size"),
        ({"min_frequency": -1}, "bad-min-frequency"),
        ({"max_token_bytes": 0}, "bad-max-token-bytes"),
        ({"alphabet": [b"a", b"b", b"a"]}, "bad-alphabet"),
        ({"alphabet": [b"a", b"bc"]}, "bad-alphabet"),
    ],
)
def test_options_that_make_no_sense(options, code):
    with pytest.raises(UsageError) as caught:
        fit_bpe(*ragged([(b"ab", 2)]), **({"n_merges": 1, "alphabet": RAW} | options))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("offsets", "counts", "code"),
    [
        ([0, 2], [1, 1], "bad-words"),
        ([0, 2, 1], [1, 1], "bad-words"),
        ([0, 2, 9], [1, 1], "bad-words"),
        ([-1, 2, 4], [1, 1], "bad-words"),
        ([0, 2, 4], [1, -1], "negative-count"),
        ([], np.empty(0, np.int64), "bad-words"),
        ([0, 2, 4], [1, 1.5], "bad-words"),
        ([0, 2, 4], [1, 2**64 - 1], "bad-words"),
    ],
)
def test_words_that_make_no_sense(offsets, counts, code):
    data = np.frombuffer(b"abab", np.uint8)
    with pytest.raises(DataError) as caught:
        fit_bpe(data, np.array(offsets, np.int64), np.array(counts), n_merges=1, alphabet=RAW)
    assert caught.value.code == code


def test_data_that_is_not_bytes():
    with pytest.raises(DataError, match="int16"):
        fit_bpe(np.zeros(4, np.int16), np.array([0, 4]), np.array([1]), n_merges=1, alphabet=RAW)
