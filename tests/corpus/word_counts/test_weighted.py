import json

import pytest

from tokctl.corpus.word_counts import WordCounter, WordCounts
from tokctl.corpus.word_counts.weighted import read_weighted
from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer


def counted(path, pattern: str = "gpt2", **options) -> WordCounts:
    counter = WordCounter(PreTokenizer.from_pattern(pattern), **options)
    counter.add_weighted(path)
    return counter.finish_in_memory()[0]


def test_texts_are_pre_tokenized_and_weighted(tmp_path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text(
        '\ufeff{"text": "xy", "count": 10}\n\n{"count": 2147483648, "text": "ss"}\r\n'
        '{"hex": "FF00", "count": 1099511627777}\n{"text": "the cat the cat", "count": 3}\n'
        '{"text": "never", "count": 0}\n{"text": "", "count": 5}'
    )
    counts = {b"xy": 10, b"ss": 2**31, b"the": 3, b" cat": 6, b" the": 3, b"\xff\x00": 2**40 + 1}
    assert counted(path) == WordCounts.from_mapping(counts)
    assert counted(path, "none").count(b"the cat the cat") == 3


def test_batches_follow_the_file(tmp_path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text("".join(json.dumps({"text": f"w{i} " * 10, "count": i}) + "\n" for i in range(1000)))
    batches = list(read_weighted(path, 500))
    assert len(batches) > 20
    assert [n for _, counts in batches for n in counts.tolist()] == list(range(1000))
    assert counted(path, workers=3).count(b"999") == 10 * 999


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (b"[1]", "not a JSON object"),
        (b'{"text": "a"', "not JSON"),
        (b'{"text": "\xff", "count": 1}', "not UTF-8"),
        (b'{"text": "a"}', "missing"),
        (b'{"text": "a", "count": -1}', "-1"),
        (b'{"text": "a", "count": 9223372036854775808}', "9223372036854775808"),
        (b'{"text": "a", "count": 1.0}', r"1\.0"),
        (b'{"text": "a", "count": true}', "True"),
        (b'{"text": "a", "count": "1"}', "'1'"),
        (b'{"text": "a", "count": ' + b"1" * 5000 + b"}", "can't be read"),
        (b'{"text": "a", "hex": "61", "count": 1}', "both"),
        (b'{"count": 1}', "neither"),
        (b'{"text": null, "count": 1}', "not a string"),
        (b'{"hex": "6", "count": 1}', "hexadecimal"),
        (b'{"hex": "zz", "count": 1}', "hexadecimal"),
        (b'{"text": "\\ud800", "count": 1}', "surrogate"),
    ],
)
def test_errors_name_file_row_and_what_is_expected(tmp_path, row: bytes, what: str) -> None:
    path = tmp_path / "w.jsonl"
    path.write_bytes(b'{"text": "fine", "count": 1}\n' + row + b"\n")
    with pytest.raises(DataError, match=what) as error:
        list(read_weighted(path))
    assert (error.value.where.file, error.value.where.row) == (str(path), 1)
    assert error.value.code == "bad-weighted-row" and '"count": N' in str(error.value.hint)


def test_a_sliced_counter_needs_a_slice_name(tmp_path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text('{"text": "a", "count": 2}\n')
    with pytest.raises(UsageError):
        counted(path, is_sliced=True)
    counter = WordCounter(PreTokenizer.from_pattern("none"), is_sliced=True)
    counter.add_weighted(path, "mine")
    assert counter.finish_in_memory()[0].slice("mine").count(b"a") == 2
