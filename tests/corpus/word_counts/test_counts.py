import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tokctl.corpus.word_counts import WordCounts, merge_files
from tokctl.corpus.word_counts.parquet import GROUP_WORDS
from tokctl.errors import ArtifactError, DataError

MOST = 2**63 - 1


def sliced(rows: dict[bytes, list[int]], slices: tuple[str, ...]) -> WordCounts:
    table = WordCounts.from_mapping(dict.fromkeys(rows, 1))
    return WordCounts(table.data, table.offsets, np.array([rows[word] for word, _ in table.items()]), slices)


def test_from_mapping_sorts_bytewise() -> None:
    counts = WordCounts.from_mapping({b"b": 2, b"ab": 1, b"a": 3, b"\xff": 4, b"a\x00": 5})
    assert list(counts.items()) == [(b"a", 3), (b"a\x00", 5), (b"ab", 1), (b"b", 2), (b"\xff", 4)]
    assert (counts.n_words, len(counts), counts.n_slices, counts.total) == (5, 5, 0, 15)
    assert counts.find(b"ab") == 2 and counts.find(b"aa") is None and counts.find(b"\xff\xff") is None
    assert counts.count(b"b") == 2 and counts.count(b"c") == 0
    counts.check()


@pytest.mark.parametrize(
    ("mapping", "code"),
    [
        ({b"": 1}, "bad-word"),
        ({"a": 1}, "bad-word"),
        ({b"a": -1}, "bad-count"),
        ({b"a": 2**63}, "bad-count"),
        ({b"a": True}, "bad-count"),
        ({b"a": 1.0}, "bad-count"),
    ],
)
def test_from_mapping_refuses(mapping: dict, code: str) -> None:
    with pytest.raises(DataError) as error:
        WordCounts.from_mapping(mapping)
    assert error.value.code == code


def test_total_is_exact_beyond_64_bits() -> None:
    counts = WordCounts.from_mapping({b"a": MOST, b"b": MOST, b"c": MOST})
    assert counts.total == 3 * MOST


@pytest.mark.parametrize(
    ("words", "counts", "what"),
    [
        ([b"b", b"a"], [1, 1], "not in order"),
        ([b"a", b"a"], [1, 1], "occurs twice"),
        ([b"a", b""], [1, 1], "an empty word"),
        ([b"a", b"b"], [1, -1], "negative"),
        ([b"abcdefghij", b"abcdefghi"], [1, 1], "not in order"),
    ],
)
def test_check_names_the_wrong_row(words: list[bytes], counts: list[int], what: str) -> None:
    offsets = np.cumsum([0, *map(len, words)])
    table = WordCounts(np.frombuffer(b"".join(words), np.uint8), offsets, np.array(counts))
    with pytest.raises(ArtifactError, match=what) as error:
        table.check("somewhere")
    assert (error.value.where.file, error.value.where.row) == ("somewhere", 1)


def test_constructor_refuses_other_types_and_shapes() -> None:
    data, offsets = np.frombuffer(b"ab", np.uint8), np.array([0, 1, 2])
    with pytest.raises(TypeError):
        WordCounts(data, offsets.astype(np.int32), np.array([1, 1]))
    with pytest.raises(ValueError):
        WordCounts(data, offsets, np.array([1]))
    with pytest.raises(ValueError):
        WordCounts(data, offsets, np.array([1, 1]), ("de",))


def test_merge_adds_and_checks() -> None:
    a = WordCounts.from_mapping({b"a": 1, b"common": 2**40, b"z" * 40: 3})
    b = WordCounts.from_mapping({b"b": 1, b"common": 2**41, b"z" * 41: 3})
    merged = WordCounts.merge([a, b, WordCounts.from_mapping({})])
    assert list(merged.items()) == [(b"a", 1), (b"b", 1), (b"common", 3 * 2**40), (b"z" * 40, 3), (b"z" * 41, 3)]
    assert WordCounts.merge([b, a]) == merged
    assert WordCounts.merge([]).n_words == 0
    with pytest.raises(DataError, match="'common'") as error:
        WordCounts.merge([a, WordCounts.from_mapping({b"common": MOST})])
    assert error.value.code == "count-overflow"
    assert (
        WordCounts.merge([WordCounts.from_mapping({b"x": MOST - 1}), WordCounts.from_mapping({b"x": 1})]).total == MOST
    )


def test_merge_of_many_tables() -> None:
    tables = [WordCounts.from_mapping({b"w%d" % (k % 7): k, b"x%03d" % k: 1}) for k in range(1, 151)]
    merged = WordCounts.merge(tables)
    assert merged.total == sum(range(1, 151)) + 150
    assert merged.count(b"w3") == sum(k for k in range(1, 151) if k % 7 == 3)
    merged.check()


def test_merge_of_slices_goes_by_name() -> None:
    a = sliced({b"x": [1, 0], b"y": [0, 2]}, ("de", "en"))
    b = sliced({b"x": [5, 7], b"z": [1, 1]}, ("en", "fr"))
    merged = WordCounts.merge([b, a])
    assert merged.slices == ("de", "en", "fr")
    assert {word: merged.counts[i].tolist() for i, (word, _) in enumerate(merged.items())} == {
        b"x": [1, 5, 7],
        b"y": [0, 2, 0],
        b"z": [0, 1, 1],
    }
    assert merged.slice("en") == WordCounts.from_mapping({b"x": 5, b"y": 2, b"z": 1})
    with pytest.raises(DataError, match="no slice 'it'"):
        merged.slice("it")
    with pytest.raises(DataError) as error:
        WordCounts.merge([a, WordCounts.from_mapping({b"x": 1})])
    assert error.value.code == "slices-differ"


def test_total_counts_are_checked() -> None:
    table = sliced({b"x": [MOST, 1], b"y": [1, 2]}, ("de", "en"))
    with pytest.raises(DataError, match="'x'"):
        table.total_counts()
    assert table.part(1, 2).total_counts().tolist() == [3]


def test_parquet_round_trip(tmp_path) -> None:
    for table in [
        WordCounts.from_mapping({}),
        WordCounts.from_mapping({b"a": MOST, b"\x00": 0, b"\xff\xfe": 2**40}),
        sliced({b"x": [1, 0], b"y": [0, 2**41]}, ("de", "é\n")),
        WordCounts(np.empty(0, np.uint8), np.zeros(1, np.int64), np.empty((0, 2), np.int64), ("de", "en")),
    ]:
        path = tmp_path / "words.parquet"
        table.write_parquet(path)
        again = WordCounts.read_parquet(path)
        assert again == table
        again.write_parquet(tmp_path / "again.parquet")
        assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()


def test_parquet_columns_are_plain(tmp_path) -> None:
    sliced({b"x": [1, 0], b"y": [0, 2]}, ("de", "en")).write_parquet(tmp_path / "sliced.parquet")
    table = pq.read_table(tmp_path / "sliced.parquet")
    assert table.schema.names == ["word", "count:de", "count:en"]
    assert table.schema.field("word").type == pa.large_binary()
    WordCounts.from_mapping({b"x": 1}).write_parquet(tmp_path / "plain.parquet")
    assert pq.read_table(tmp_path / "plain.parquet").to_pydict() == {"word": [b"x"], "count": [1]}


def test_row_groups_end_by_words_and_bytes(tmp_path) -> None:
    n = GROUP_WORDS + 5
    table = WordCounts.from_mapping({b"%07d" % i: i for i in range(n)})
    table.write_parquet(tmp_path / "many.parquet")
    file = pq.ParquetFile(tmp_path / "many.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(2)] == [GROUP_WORDS, 5]
    assert WordCounts.read_parquet(tmp_path / "many.parquet") == table
    long = WordCounts.from_mapping({bytes([65 + i]) * (3 << 20): i for i in range(3)} | {b"Z": 1})
    long.write_parquet(tmp_path / "long.parquet")
    file = pq.ParquetFile(tmp_path / "long.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(3)] == [1, 1, 2]
    assert WordCounts.read_parquet(tmp_path / "long.parquet") == long


def test_files_that_are_no_word_counts(tmp_path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"no parquet at all")
    with pytest.raises(ArtifactError, match="not a Parquet file"):
        WordCounts.read_parquet(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(ArtifactError, match=r"\['a'\]"):
        WordCounts.read_parquet(path)
    WordCounts.from_mapping({b"a": 1, b"b": 1}).write_parquet(path)
    schema = pq.read_schema(path)
    pq.write_table(pa.table({"word": [b"b", b"a"], "count": [1, 1]}).cast(schema), path)
    with pytest.raises(ArtifactError, match="not in order"):
        WordCounts.read_parquet(path)
    pq.write_table(pa.table({"word": [b"a", b"a"], "count": [1, 1]}).cast(schema), path, row_group_size=1)
    with pytest.raises(ArtifactError, match="come after"):
        WordCounts.read_parquet(path)
    pq.write_table(pa.table({"word": [b"a"], "count": [1.5]}).replace_schema_metadata(schema.metadata), path)
    with pytest.raises(ArtifactError, match="columns"):
        WordCounts.read_parquet(path)


def test_merge_files_equals_merge_in_memory(tmp_path) -> None:
    tables = [WordCounts.from_mapping({b"%d" % (i * k % 97): i for i in range(1, 60)}) for k in range(1, 71)]
    paths = []
    for i, table in enumerate(tables):
        paths.append(tmp_path / f"{i}.parquet")
        table.write_parquet(paths[-1])
    result = merge_files(paths, tmp_path / "all.parquet", merge_bytes=100_000, spill_dir=tmp_path)
    WordCounts.merge(tables).write_parquet(tmp_path / "memory.parquet")
    assert (tmp_path / "all.parquet").read_bytes() == (tmp_path / "memory.parquet").read_bytes()
    assert result == (96, sum(table.total for table in tables))
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".parquet"]
