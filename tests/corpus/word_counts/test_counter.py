import random
import threading
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import word_counts as oracle

from tokctl.corpus.word_counts import Batch, Budget, CountReport, WordCounter, WordCounts, count_words
from tokctl.corpus.word_counts.text import flat_text, text_parts
from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer

MOST = 2**63 - 1
GPT2 = PreTokenizer.from_pattern("gpt2")
NONE = PreTokenizer.from_pattern("none")
TINY = Budget(max_slots=32, max_arena=64, batch_bytes=512, merge_bytes=2048)


def split_with(pre_tokenizer: PreTokenizer) -> oracle.Split:
    def split(text: bytes) -> list[bytes]:
        ends = pre_tokenizer.split(text).tolist()
        return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    return split


def count(
    documents: list[bytes], pre_tokenizer: PreTokenizer = GPT2, specials: tuple[bytes, ...] = (), **options
) -> tuple[WordCounts, CountReport]:
    counter = WordCounter(pre_tokenizer, specials, **options)
    counter.add_texts(pa.array(documents, pa.large_binary()))
    return counter.finish_in_memory()


def check_with_oracle(
    documents: list[bytes],
    pre_tokenizer: PreTokenizer = GPT2,
    specials: tuple[bytes, ...] = (),
    weights: list[int] | None = None,
    slices: list[str] | None = None,
    **options,
) -> CountReport:
    counter = WordCounter(pre_tokenizer, specials, is_sliced=slices is not None, **options)
    counter.add_texts(
        pa.array(documents, pa.large_binary()),
        None if slices is None else pa.array(slices, pa.string()),
        None if weights is None else np.array(weights, np.int64),
    )
    counts, report = counter.finish_in_memory()
    rows = zip(documents, slices or [""] * len(documents), weights or [1] * len(documents), strict=True)
    words, found = oracle.count_words(list(rows), split_with(pre_tokenizer), specials)
    names = sorted(set(slices or [""]), key=str.encode)
    expected = oracle.dense(words, names)
    assert [counts.word(i) for i in range(counts.n_words)] == [word for word, _ in expected]
    assert counts.counts.reshape(counts.n_words, len(names)).tolist() == [row for _, row in expected]
    assert counts.slices == (tuple(names) if slices else ())
    assert dict(report.specials) == found
    assert report.total == counts.total == sum(words.values())
    assert (report.n_documents, report.n_bytes) == (len(documents), sum(map(len, documents)))
    counts.check()
    return report


def words_of_all_lengths(rng: random.Random, n: int) -> list[bytes]:
    """Words around the inline limit that share prefixes, have NULs and high bytes, and repeat."""
    alphabet = [b"a", b"b", b"\0", b"\xff", "漢".encode()]
    lengths = [1, 2, 7, 8, 9, 15, 16, 17, 24, 25, 100]
    return [b"".join(rng.choices(alphabet, [20, 1, 1, 1, 1], k=rng.choice(lengths))) for _ in range(n)]


@pytest.mark.parametrize("pre_tokenizer", [GPT2, NONE, PreTokenizer.from_pattern(r"a+|b|(?<=a)c")])
@pytest.mark.parametrize("specials", [(), (b"<|end|>", b"<|", b"<|end|><|end|>", b"|>")])
def test_equals_the_oracle(pre_tokenizer: PreTokenizer, specials: tuple[bytes, ...]) -> None:
    rng = random.Random(5)
    parts = [b"<|end|>", b"<|", b"|>", b"<", b" the", b"'s", b"\n", b"ab12", b"\xc3", "é漢".encode(), b"a" * 30]
    documents = [b"".join(rng.choices(parts, k=rng.randrange(20))) for _ in range(60)]
    weights = [rng.choice([0, 1, 2, 2**40]) for _ in documents]
    slices = [rng.choice(["de", "en", "", "漢"]) for _ in documents]
    check_with_oracle(documents, pre_tokenizer, specials)
    check_with_oracle(documents, pre_tokenizer, specials, weights, slices)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.lists(st.sampled_from([b"a", b"b", b" ", b"<", b"<a", b"a" * 17, b"\xff", b"\n"])).map(b"".join)),
    st.sampled_from([(), (b"<a",), (b"a", b"<a<"), (b" ", b"a b", b" a")]),
    st.integers(0, 3),
)
def test_random_documents_equal_the_oracle(tmp_path_factory, documents, specials, weight) -> None:
    weights = [weight] * len(documents)
    slices = [("de", "en")[len(text) % 2] for text in documents]
    spill_dir = tmp_path_factory.mktemp("spill")
    check_with_oracle(documents, GPT2, specials, weights, slices or None)
    check_with_oracle(documents, NONE, specials, budget=TINY, spill_dir=spill_dir)
    assert not list(spill_dir.iterdir())


def test_nothing_to_count(tmp_path) -> None:
    for documents in ([], [b""], [b"", b""]):
        report = check_with_oracle(documents)
        assert report.n_words == 0
    counter = WordCounter(GPT2)
    assert counter.finish(tmp_path / "empty.parquet").n_words == 0
    assert WordCounts.read_parquet(tmp_path / "empty.parquet").n_words == 0


def test_documents_are_never_joined() -> None:
    assert count_words(["rain", "bow"], "gpt2") == WordCounts.from_mapping({b"rain": 1, b"bow": 1})
    assert count_words(["ra", "in<e>bow"], "gpt2", ["<e>"]) == WordCounts.from_mapping({b"ra": 1, b"in": 1, b"bow": 1})


def test_specials_never_become_words() -> None:
    counts, report = count([b"x <|end|> y <|end|> z"], specials=(b"<|end|>", b"<|other|>"))
    assert dict(counts.items()) == {b"x": 1, b" ": 2, b" y": 1, b" z": 1}
    assert report.specials == ((b"<|end|>", 2), (b"<|other|>", 0))


def test_the_longest_special_wins_at_the_leftmost_place() -> None:
    counts, report = count([b"abcd bcd ab"], NONE, (b"ab", b"abc", b"bcd"))
    assert dict(counts.items()) == {b"d ": 1, b" ": 1}
    assert report.specials == ((b"ab", 1), (b"abc", 1), (b"bcd", 1))


def test_many_specials_in_a_long_document() -> None:
    specials = tuple(b"<|%d|>" % i for i in range(1000))
    text = b"".join(b"w%d<|%d|>" % (i % 3, i % 1000) for i in range(40_000)) + b"<|" * 100_000
    counts, report = count([text], NONE, specials)
    assert [n for _, n in report.specials] == [40] * 1000
    assert counts.total == 40_001 and counts.n_words == 4


@pytest.mark.parametrize(("specials", "code"), [((b"",), "empty-special"), (("a", b"a"), "repeated-special")])
def test_bad_specials(specials: tuple, code: str) -> None:
    with pytest.raises(UsageError) as error:
        WordCounter(GPT2, specials)
    assert error.value.code == code


def test_words_of_all_lengths_grow_the_table() -> None:
    rng = random.Random(1)
    words = words_of_all_lengths(rng, 30_000)
    report = check_with_oracle(words, NONE)
    assert report.n_words > 9000 and report.n_spills == 0


def equal_hashes(n: int) -> list[bytes]:
    """Different words of 24 bytes with the same 64-bit hash: the second block undoes what the first one did."""
    mask, mix_1, mix_2 = 2**64 - 1, 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
    words = []
    for i in range(n):
        state = ((24 * mix_1 & mask) ^ i) * mix_2 & mask
        state ^= state >> 32
        words.append(i.to_bytes(8, "little") + (state ^ 0x1234567890ABCDEF).to_bytes(8, "little") + b"the same")
    return words


def test_words_with_the_same_hash_stay_apart(tmp_path) -> None:
    from tokctl.kernels._boundary import bytes_view
    from tokctl.kernels.word_count import hash_long

    words = equal_hashes(300)
    assert len({int(hash_long(bytes_view(word), 0, 24)) for word in words}) == 1
    check_with_oracle(words + words[:100], NONE)
    check_with_oracle(words + words[:100], NONE, budget=TINY, spill_dir=tmp_path)


def test_long_words_with_one_prefix_sort_in_order() -> None:
    words = [b"x" * 2000 + b"%d" % (i * 7919 % 1000) for i in range(1000)]
    check_with_oracle(words, NONE)


def test_one_word_many_times() -> None:
    counts, _ = count([b"the " * 300_000], PreTokenizer.from_pattern("gpt2"))
    assert dict(counts.items()) == {b"the": 1, b" the": 299_999, b" ": 1}


def test_one_huge_word(tmp_path) -> None:
    words = [b"ab" * (20 << 19), b"small", b"ab" * (20 << 19), b"cd" * (5 << 19)]
    free = Budget.divide(None)
    limited = Budget.divide(16 << 20)
    for budget in (free, limited):
        counter = WordCounter(NONE, budget=budget, spill_dir=tmp_path)
        for word in words:
            counter.add_texts(pa.array([word], pa.large_binary()))
        counts, report = counter.finish_in_memory()
        assert dict(counts.items()) == {words[0]: 2, b"small": 1, words[3]: 1}
        assert (report.n_spills > 0) == (budget is limited)


def test_counts_beyond_40_and_up_to_63_bits() -> None:
    counts = {b"ss": 2**31, b"xy": 10, b"big": 2**41, b"most": MOST}
    counter = WordCounter(GPT2)
    counter.add_texts(pa.array(list(counts), pa.large_binary()), weights=np.array(list(counts.values())))
    table, report = counter.finish_in_memory()
    assert dict(table.items()) == counts
    assert report.total == sum(counts.values()) > MOST


@pytest.mark.parametrize("word", [b"most", b"a word of many bytes"])
def test_overflow_names_the_word(word: bytes) -> None:
    counter = WordCounter(NONE)
    with pytest.raises(DataError, match=word.decode()) as error:
        counter.add_texts(pa.array([b"x", word, word], pa.large_binary()), weights=np.array([1, MOST, 1]))
    assert error.value.code == "count-overflow"
    with pytest.raises(RuntimeError):
        counter.finish_in_memory()


def test_overflow_in_the_merge_and_of_a_special(tmp_path) -> None:
    counter = WordCounter(NONE, budget=TINY, spill_dir=tmp_path)
    others = [b"%d" % i for i in range(20)]
    for _ in range(2):
        counter.add_texts(pa.array([b"most", *others], pa.binary()), weights=np.array([MOST] + [1] * 20))
    with pytest.raises(DataError, match="most"):
        counter.finish_in_memory()
    counter = WordCounter(NONE, ["<e>"])
    with pytest.raises(DataError, match="<e>"):
        counter.add_texts(pa.array(["<e>", "a<e>"]), weights=np.array([MOST, 1]))


def test_arrow_types_slices_and_chunks() -> None:
    texts = ["the cat", "", "é sat", "the cat sat"]
    expected = count([text.encode() for text in texts])[0]
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        padded = pa.array(["unseen", *texts, "unseen"], kind)
        counter = WordCounter(GPT2)
        counter.add_texts(padded[1:5])
        assert counter.finish_in_memory()[0] == expected
        counter = WordCounter(GPT2)
        counter.add_texts(pa.chunked_array([padded[1:3], padded[:0], padded[3:5]]))
        assert counter.finish_in_memory()[0] == expected
    with pytest.raises(DataError, match="int64"):
        WordCounter(GPT2).add_texts(pa.array([1, 2]))


def test_nulls_are_named() -> None:
    with pytest.raises(DataError) as error:
        WordCounter(GPT2).add_texts(pa.chunked_array([["a", "b"], ["c", None]]))
    assert (error.value.code, error.value.where.row) == ("null-text", 3)
    with pytest.raises(DataError) as error:
        WordCounter(GPT2, is_sliced=True).add_texts(pa.array(["a", "b"]), pa.array(["de", None]))
    assert (error.value.code, error.value.where.row) == ("null-slice", 1)


def test_slices_come_as_dictionaries_too() -> None:
    texts = pa.array(["a b", "b", "a"])
    names = pa.array(["de", "en", "de"])
    tables = []
    for slices in (names, names.dictionary_encode(), pa.chunked_array([names[:1], names[1:]])):
        counter = WordCounter(GPT2, is_sliced=True)
        counter.add_texts(texts, slices)
        tables.append(counter.finish_in_memory()[0])
    assert tables[0] == tables[1] == tables[2]
    assert tables[0].slice("de") == count([b"a b", b"a"])[0]
    unused = pa.DictionaryArray.from_arrays(pa.array([1, 1, 1]), pa.array(["never", "en"]))
    counter = WordCounter(GPT2, is_sliced=True)
    counter.add_texts(texts, unused)
    assert counter.finish_in_memory()[0].slices == ("en",)


def test_same_bytes_whatever_the_batches_workers_order_and_memory(tmp_path) -> None:
    rng = random.Random(7)
    documents = [b" ".join(words_of_all_lengths(rng, 30)) for _ in range(200)]
    slices = [rng.choice(["de", "en", "fr"]) for _ in documents]
    weights = [rng.randrange(1, 2**33) for _ in documents]
    outputs = set()
    spills = []
    small = Budget(max_slots=512, max_arena=3000, batch_bytes=512, merge_bytes=20_000)
    for workers, budget, size, is_shuffled in [
        (1, Budget(), 200, False),
        (1, Budget(), 7, True),
        (4, Budget(), 3, True),
        (1, small, 50, False),
        (3, small, 3, True),
        (1, TINY, 50, True),
    ]:
        rows = list(zip(documents, slices, weights, strict=True))
        if is_shuffled:
            rng.shuffle(rows)
        batches = []
        for i in range(0, len(rows), size):
            texts, names, numbers = zip(*rows[i : i + size], strict=True)
            batches.append(Batch(pa.array(texts, pa.binary()), pa.array(names), np.array(numbers)))
        counter = WordCounter(GPT2, [b"\xff\xff"], is_sliced=True, budget=budget, workers=workers, spill_dir=tmp_path)
        counter.add_batches(batches)
        report = counter.finish(tmp_path / "words.parquet")
        spills.append(report.n_spills)
        outputs.add(((tmp_path / "words.parquet").read_bytes(), report.specials, report.total, report.n_words))
        assert [path.name for path in tmp_path.iterdir()] == ["words.parquet"]
    assert len(outputs) == 1
    assert spills[:3] == [0, 0, 0] and min(spills[3:]) >= 3


def test_merge_equals_counting_all_at_once() -> None:
    rng = random.Random(3)
    documents = [b" ".join(words_of_all_lengths(rng, 20)) for _ in range(60)]
    parts = [count(documents[i::3])[0] for i in range(3)]
    assert WordCounts.merge(parts) == count(documents)[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_200_000_words_spill_under_64_megabytes(tmp_path, workers: int) -> None:
    rng = random.Random(11)
    words = {"".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=12)) for _ in range(200_010)}
    text = pa.array([" ".join(sorted(words)[:200_000])], pa.large_string())
    counter = WordCounter(GPT2, memory_limit=64 << 20, spill_dir=tmp_path, workers=workers)
    counter.add_batches([Batch(text)])
    report = counter.finish(tmp_path / "limited.parquet")
    assert report.n_spills >= 3 and report.n_words == 200_000
    counter = WordCounter(GPT2)
    counter.add_texts(text)
    counter.finish(tmp_path / "unbounded.parquet")
    assert (tmp_path / "limited.parquet").read_bytes() == (tmp_path / "unbounded.parquet").read_bytes()


def test_budget_keeps_its_parts_below_the_limit() -> None:
    for limit in (8 << 20, 64_000_000, 64 << 20, 1 << 30, 10 << 30):
        for workers in (1, 2, 7):
            if limit < workers * (8 << 20):
                with pytest.raises(UsageError) as error:
                    Budget.divide(limit, workers)
                assert error.value.code == "memory-limit-too-small"
                continue
            budget = Budget.divide(limit, workers)
            n_words = budget.max_slots  # half of the slots of either table
            tables = 1.5 * (budget.max_slots * (32 + 16) + budget.max_arena)
            sorting = n_words * (4 * 8 + 4 * 8 + 16) + budget.max_arena
            assert workers * (tables + sorting) + (workers + 1) * 4 * budget.batch_bytes <= limit
            assert budget.merge_bytes <= limit // 2
    assert Budget.divide(None).max_slots is None
    with pytest.raises(ValueError, match="spill_dir"):
        WordCounter(GPT2, memory_limit=64 << 20)


def test_many_threads_may_add_at_once() -> None:
    documents = [b"the cat sat %d" % (i % 50) for i in range(400)]
    counter = WordCounter(GPT2, workers=8)
    threads = [
        threading.Thread(target=counter.add_texts, args=(pa.array(documents[i::8], pa.binary()),)) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.finish_in_memory()[0] == count(documents)[0]


_WORDS = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=3),
        st.text(alphabet="ab\x00", min_size=1, max_size=40).map(str.encode),
        st.tuples(
            st.sampled_from([b"prefix__", b"prefix__suffix__", b"prefix__\x00", b"prefix\x00\x00"]),
            st.binary(max_size=12),
        ).map(b"".join),
    ),
    max_size=120,
)


@given(_WORDS, st.integers(1, 4), st.booleans())
@settings(derandomize=True, max_examples=150, deadline=None)
def test_any_words_are_sorted_by_any_number_of_threads(words: list[bytes], workers: int, is_sliced: bool) -> None:
    counter = WordCounter(NONE, workers=workers, is_sliced=is_sliced)
    slices = ["a" if word[0] % 3 else "b" for word in words]
    counter.add_batches(
        Batch(
            pa.array(words[k : k + 10], pa.binary()),
            pa.array(slices[k : k + 10], pa.string()) if is_sliced else None,
        )
        for k in range(0, len(words), 10)
    )
    counts, report = counter.finish_in_memory()
    assert [(counts.word(i), count) for i, (_, count) in enumerate(counts.items())] == sorted(Counter(words).items())
    assert report.total == len(words)
    if is_sliced:
        for name in counts.slices:
            expected = Counter(word for word, chosen in zip(words, slices, strict=True) if chosen == name)
            assert dict(counts.slice(name).items()) == expected


@pytest.mark.parametrize("word", [b"short", b"of middling size"[:12], b"quite a long word, longer than sixteen bytes"])
def test_a_sum_over_threads_that_passes_the_most_is_told(word: bytes) -> None:
    counter = WordCounter(NONE, workers=2)
    for _ in counter._tables:
        counter.add_texts(pa.array([b"x", word, b"y"]), weights=np.array([1, 2**62, 1]))
    assert [table.n_words for table in counter._tables] == [3, 3]
    with pytest.raises(DataError) as error:
        counter.finish_in_memory()
    assert error.value.code == "count-overflow"
    assert word.decode() in str(error.value)


def test_tables_of_several_threads_are_added_up() -> None:
    """More words than a table starts with room for, so that the first one grows while it takes in the others."""
    documents = [b"%d word-number-%d and-a-long-word-number-%d" % (i, i, i) for i in range(40_000)]
    counter = WordCounter(GPT2, workers=3)
    counter.add_batches(Batch(pa.array(documents[k::30], pa.binary())) for k in range(30))
    counted, report = counter.finish_in_memory()
    assert report.n_spills == 0
    assert counted == count(documents)[0]


def test_an_error_in_one_thread_ends_all() -> None:
    batches = [Batch(pa.array(["a b c"])), Batch(pa.array(["a", None])), *[Batch(pa.array(["d"]))] * 20]
    counter = WordCounter(GPT2, workers=3)
    with pytest.raises(DataError, match="null"):
        counter.add_batches(batches)
    with pytest.raises(RuntimeError):
        counter.finish_in_memory()


def test_steps_of_one_block_equal_one_step() -> None:
    """The kernel stopped after every block gives what it gives in one call."""
    from tokctl.kernels import word_count as kernel
    from tokctl.kernels._boundary import bytes_view

    text = b"the cat's 12 hats\n\n  sat on a very long supercalifragilisticexpialidocious mat " * 200
    data = bytes_view(text)
    pieces = kernel.Pieces(
        np.array([0, 5, 5000]), np.array([5, 5000, len(text)]), np.array([1, 2, 3]), np.array([0, 0, 1])
    )
    results = []
    for max_words, block_words in [(1 << 40, 1024), (1, 1024), (1, 64)]:
        short, slots = np.zeros(2 * 4096, np.uint64), np.zeros(4 * 4096, np.uint64)
        block = kernel.Block(
            ends=np.empty(block_words, np.int64),
            starts=np.empty(block_words, np.int64),
            short=np.empty(3 * (block_words + 1), np.uint64),
            keys=np.empty(4 * block_words, np.uint64),
            places=np.empty(block_words + 1, np.int64),
        )
        table = kernel.Table(short, slots, np.empty(4096, np.uint8), np.array([0, 2048, 0, 2048, 0, 0]))
        cursor = np.zeros(3, np.int64)
        n_calls = 1
        while kernel.count_scanned(GPT2.automaton, data, pieces, block, table, cursor, max_words) == kernel.PAUSED:
            n_calls += 1
        results.append(np.concatenate([short, slots]))
        assert (n_calls == 1) == (max_words > 1)
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


def test_each_kernel_has_one_signature() -> None:
    from tokctl.kernels import special_carve, word_absorb, word_count, word_merge, word_order

    n_compiled = 0
    for module in (special_carve, word_absorb, word_count, word_merge, word_order):
        for name, kernel in vars(module).items():
            if getattr(kernel, "py_func", None) is not None and kernel.py_func.__module__ == module.__name__:
                assert len(kernel.signatures) <= 1, (name, kernel.signatures)
                n_compiled += len(kernel.signatures)
    assert n_compiled > 5


def test_count_words_takes_text_and_bytes() -> None:
    assert count_words(["the", b"the"], "none") == WordCounts.from_mapping({b"the": 2})
    assert count_words(iter(["a b"]), PreTokenizer.from_pattern("gpt2")).n_words == 2
    assert count_words([]).n_words == 0
    with pytest.raises(UsageError):
        count_words("one text", "gpt2")
    with pytest.raises(DataError) as error:
        count_words(["a", 1], "gpt2")  # type: ignore[list-item]
    assert error.value.where.row == 1
    with pytest.raises(DataError, match="surrogate"):
        count_words(["\ud800"], "gpt2")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("workers", [1, 3])
def test_count_words_takes_arrow_arrays(kind: pa.DataType, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokctl.corpus.word_counts.from_texts._PART_BYTES", 64)
    texts = [f"the cat{i % 7} sat\n" * (i % 5) for i in range(100)]
    expected = count_words(texts)
    array = pa.array(texts, kind)
    assert count_words(array, workers=workers) == expected
    assert count_words(array.slice(3, 90), workers=workers) == count_words(texts[3:93])
    chunked = pa.chunked_array([array.slice(0, 10), array.slice(10, 0), array.slice(10)])
    assert count_words(chunked, workers=workers) == expected
    assert count_words(pa.chunked_array([], kind)).n_words == 0


def test_arrow_texts_are_not_copied() -> None:
    array = pa.array(["the cat sat"] * 100_000, pa.large_string())
    allocated = pa.total_allocated_bytes()
    parts = list(text_parts(array, 1 << 16))
    assert pa.total_allocated_bytes() == allocated
    assert [text for part in parts for text in part.to_pylist()] == array.to_pylist()
    assert all(part.buffers()[2].address == array.buffers()[2].address for part in parts)
    assert max(flat_text(part)[1][-1] - flat_text(part)[1][0] for part in parts) <= 1 << 16


def test_count_words_says_what_is_wrong_with_an_arrow_array() -> None:
    with pytest.raises(DataError) as null:
        count_words(pa.chunked_array([["a", "b"], ["c", None]]))
    assert (null.value.code, null.value.where.row) == ("null-text", 3)
    with pytest.raises(DataError) as kind:
        count_words(pa.array([1, 2]))
    assert kind.value.code == "not-text"
    with pytest.raises(UsageError) as workers:
        count_words(["a"], workers=0)
    assert workers.value.code == "bad-workers"
