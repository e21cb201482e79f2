from __future__ import annotations

import pyarrow as pa
import pytest

from tokctl.corpus.documents import DOCUMENT_SCHEMA
from tokctl.corpus.group_keys import _KEY_COLUMNS, GroupBy, group_keys, positions, stratum_values
from tokctl.errors import DataError, UsageError

BATCH = pa.table(
    {
        "doc_id": ["a", "b", "c", "d", "e", "f"],
        "uri": ["docs/x/1.md", "docs/x/2.md", "docs/y/1.md", "other", "", "docs//3.md"],
        "group_id": ["g1", "g1", None, "", "doc:a", "g2"],
        "meta": ['{"n":3}', '{"n":"3"}', '{"n":null}', '{"k":{"z":[1,2.5]}}', '{"n":true}', '{"k":{"z":"\\ud800"}}'],
    }
)


def keys(spec: str) -> list[str]:
    return group_keys(BATCH, GroupBy.parse(spec))[0].to_pylist()


def test_key_columns_are_document_columns():
    assert set(_KEY_COLUMNS) < set(DOCUMENT_SCHEMA.names)


def test_column_keys_and_documents_of_their_own():
    assert keys("group_id") == ["key:g1", "key:g1", "doc:c", "doc:d", "key:doc:a", "key:g2"]
    assert group_keys(BATCH, GroupBy.parse("group_id"))[1].tolist() == [True, True, False, False, True, True]


def test_meta_fields_are_strings_or_json():
    assert keys("meta.n") == ["key:3", "key:3", "doc:c", "doc:d", "key:true", "doc:f"]
    assert keys("meta.k.z") == ["doc:a", "doc:b", "doc:c", "key:[1,2.5]", "doc:e", "key:\\ud800"]
    assert keys("meta.n.deeper") == [f"doc:{d}" for d in "abcdef"]


def test_pattern_takes_its_first_group_or_the_match():
    assert keys("uri~^docs/([^/]*)/") == ["key:x", "key:x", "key:y", "doc:d", "doc:e", "doc:f"]
    assert keys("uri~^docs/[^/]+")[:3] == ["key:docs/x", "key:docs/x", "key:docs/y"]
    assert keys("doc_id~[a-c]") == ["key:a", "key:b", "key:c", "doc:d", "doc:e", "doc:f"]


@pytest.mark.parametrize(
    ("spec", "code", "says"),
    [
        ("group", "unknown-column", "group_id"),
        ("text", "unknown-column", "columns"),
        ("meta", "bad-group-by", "meta.FIELD"),
        ("uri.x", "bad-group-by", "meta.FIELD"),
        ("meta..x", "bad-group-by", "meta.FIELD"),
        ("uri~(", "bad-pattern", ""),
    ],
)
def test_bad_specs_teach(spec, code, says):
    with pytest.raises(UsageError) as caught:
        GroupBy.parse(spec)
    assert caught.value.code == code
    assert says in (caught.value.hint or "")


def test_meta_that_is_not_an_object_names_its_row():
    table = pa.table({"doc_id": ["a", "b"], "meta": ["{}", "[1]"]})
    with pytest.raises(DataError) as caught:
        group_keys(table, GroupBy.parse("meta.n"))
    assert caught.value.where.row == 1


def test_positions_are_pinned():
    # SHA-256 of "tokctl-split-v1\0", eight seed bytes and the key: computed once with sha256sum.
    line = positions(pa.array(["key:a", "doc:a"]), 0)
    assert [hex(p) for p in line.tolist()] == ["0xb5ef88387ed46749", "0x2bc96295101cbe49"]
    assert positions(pa.array(["key:a"]), 1)[0] != line[0]


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_has_64_bits(seed):
    with pytest.raises(UsageError):
        positions(pa.array(["key:a"]), seed)


def test_a_null_stratum_is_the_empty_one():
    assert stratum_values(BATCH, "group_id").to_pylist() == ["g1", "g1", "", "", "doc:a", "g2"]
    with pytest.raises(UsageError):
        stratum_values(BATCH, "uri~x")
