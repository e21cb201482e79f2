from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokctl.artifacts.canonical import canonical_json
from tokctl.artifacts.framed_hash import framed_sha256
from tokctl.errors import ArtifactError

_SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters(exclude_categories=["Cs"]))
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def test_known_answer():
    expected = "21661361ab1821d4729bb89538d4d7adab30b56dc7804c7fea545f6ab6e29052"
    assert framed_sha256("tokenizer-semantic-v1", {}) == expected


def test_keys_are_sorted_by_utf16_code_units():
    # U+10000 is D800 DC00 in UTF-16 and so comes before U+E000, though its code point is larger
    assert canonical_json({"\ue000": 1, "\U00010000": 2}) == '{"\U00010000":2,"\ue000":1}'.encode()


def test_escapes_are_minimal():
    assert canonical_json('a"\\\n\x00é\u2028/\x7f') == '"a\\"\\\\\\n\\u0000é\u2028/\x7f"'.encode()


@settings(max_examples=200, derandomize=True)
@given(_VALUES)
def test_round_trip_and_stability_under_key_order(value):
    data = canonical_json(value)
    assert json.loads(data) == value
    shuffled = json.loads(data, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert canonical_json(shuffled) == data


@pytest.mark.parametrize(
    "value", [1.5, float("nan"), 2**53, -(2**53), "\ud800", {"\udc00": 1}, {1: 2}, b"x", {"a": [1, {"b": 0.5}]}]
)
def test_refusals(value):
    with pytest.raises(ArtifactError):
        canonical_json(value)


@pytest.mark.parametrize(
    ("value", "place"),
    [(0.5, "$"), ({"a": [1, {"b": 0.5}]}, "$.a[1].b"), ([[], [2**60]], "$[1][0]"), ([{1: 2}], "$[0]")],
)
def test_a_refusal_names_the_place(value, place):
    with pytest.raises(ArtifactError) as caught:
        canonical_json(value)
    assert f"at {place}: " in caught.value.message


def test_domains_and_values_never_share_a_hash():
    hashes = {framed_sha256(d, p) for d in ("a", "ab") for p in (None, {}, "b", [], 0, False)}
    assert len(hashes) == 12
