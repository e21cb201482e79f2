import pyarrow as pa
import pytest

from tokctl.corpus.word_counts import count_words
from tokctl.corpus.word_counts.first_seen import first_seen_words
from tokctl.errors import DataError
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

GPT2 = PreTokenizer.from_pattern("gpt2")


def test_words_come_in_the_order_of_the_text() -> None:
    batches = [pa.array(["zeta<e> alpha", "", "beta zeta"]), pa.chunked_array([["alpha<e>"], ["zeta"]])]
    words, found = first_seen_words(batches, GPT2, ["<e>", "<f>"])
    spelled = [bytes(words.data[a:b]) for a, b in zip(words.offsets[:-1], words.offsets[1:], strict=True)]
    assert spelled == [b"zeta", b" alpha", b"beta", b" zeta", b"alpha"]
    assert words.total_counts().tolist() == [2, 1, 1, 1, 1]
    assert (words.n_words, words.total, found) == (5, 6, {"<e>": 2, "<f>": 0})


def test_same_counts_as_the_sorted_table() -> None:
    texts = ["the cat's 12 hats\n\n sat", "on é漢 the mat\0", " the", ""] * 3
    words, _ = first_seen_words([pa.array(texts)], GPT2)
    spelled = [bytes(words.data[a:b]) for a, b in zip(words.offsets[:-1], words.offsets[1:], strict=True)]
    assert sorted(zip(spelled, words.counts.tolist(), strict=True)) == list(count_words(texts).items())


def test_nothing_and_null() -> None:
    words, found = first_seen_words([], GPT2)
    assert (words.n_words, words.total, found) == (0, 0, {})
    with pytest.raises(DataError) as error:
        first_seen_words([pa.chunked_array([["a"], ["b", None]])], GPT2)
    assert error.value.where.row == 2
