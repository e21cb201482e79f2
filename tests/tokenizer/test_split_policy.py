import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.split_policy import llama3_pieces
from tokenizer.samples import SENTENCES, SPECIALS, TEXT, small

from tokctl.errors import UsageError
from tokctl.kernels.length_cuts import is_space
from tokctl.tokenizer import split_policy
from tokctl.tokenizer.split_policy import cut_long_texts

fast = settings(max_examples=150, deadline=None, derandomize=True)


def cut(texts, *limits):
    encoded = [text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape") for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)])
    pieces = cut_long_texts(np.frombuffer(b"".join(encoded), np.uint8).copy(), offsets, *limits)
    result = [[] for _ in texts]
    columns = (pieces.starts.tolist(), pieces.stops.tolist(), pieces.documents.tolist())
    data = b"".join(encoded)
    for start, stop, document in zip(*columns, strict=True):
        result[document].append(data[start:stop].decode("utf-8", "surrogateescape"))
    return result


def test_white_space_is_what_python_calls_so():
    """Of every code point; the 29 are the same in each Unicode version since 6.3, which is why they are in the code."""
    spaces = []
    for point in range(sys.maxunicode + 1):
        if not 0xD800 <= point < 0xE000:
            data = np.frombuffer(chr(point).encode(), np.uint8).copy()
            if is_space.py_func(data, 0, len(data)):
                spaces.append(chr(point))
    assert spaces == [chr(point) for point in range(sys.maxunicode + 1) if chr(point).isspace()]
    assert len(spaces) == 29


@fast
@given(
    st.lists(st.text(st.sampled_from("ab é€😀 \u2003\u3000\n\x1c\u200b"), max_size=40), min_size=1, max_size=4),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(1, 9),
)
def test_pieces_equal_the_oracle(texts, max_points, max_run, slice_bytes):
    expected = [llama3_pieces(text, max_points, max_run) or [""] for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        assert cut(texts, max_points, max_run) == expected
        patch.setattr(split_policy, "_SLICE_BYTES", slice_bytes)
        patch.setattr(split_policy, "_CUTS", 2)
        assert cut(texts, max_points, max_run) == expected


def test_broken_bytes_are_code_points():
    assert cut([b"a\xff\xe2\x82b"], 2, 9) == [["a\udcff", "\udce2\udc82", "b"]]


@pytest.mark.parametrize(
    "text",
    [
        "a" * 25_000,
        "a" * 25_001,
        "a" * 50_001 + " " * 25_001 + "b",
        " " * 24_999 + "\u3000" * 2 + "é" * 25_001,
        ("ab " * 140_000)[:400_000],
        ("ab " * 140_000)[:400_001],
        "x" * 20_000 + " " + "y" * 379_999 + "z" * 30_000,
        "€ " * 199_999 + "abc" + "d" * 25_000,
    ],
    ids=range(8),
)
def test_boundary_cases_of_the_real_policy(text):
    """Each piece encoded alone, as Llama's tokenizer does."""
    tokenizer = small("gpt2")
    pieces = llama3_pieces(text)
    expected = [token for piece in pieces for token in tokenizer.encode(piece)]
    assert tokenizer.encode(text, split_policy="llama3") == expected
    assert cut([text], 400_000, 25_000) == [pieces]


def test_it_changes_ids_only_where_a_text_is_long():
    tokenizer = small("gpt2")
    assert tokenizer.encode(TEXT, split_policy="llama3") == tokenizer.encode(TEXT)
    run = "x" + "a" * 25_004
    assert tokenizer.encode(run, split_policy="llama3") != tokenizer.encode(run)
    assert tokenizer.encode("", split_policy="llama3") == []


def test_a_special_across_a_cut_is_not_found(monkeypatch):
    monkeypatch.setitem(split_policy.POLICIES, "llama3", (20, 9))
    tokenizer = small("gpt2")
    name, token_id = SPECIALS[1], tokenizer.token_id(SPECIALS[1])
    for before in range(25):
        text = "a " * (before // 2) + "b" * (before % 2) + name + " c"
        expected = [
            token for piece in llama3_pieces(text, 20, 9) for token in tokenizer.encode(piece, allowed_special="all")
        ]
        found = tokenizer.encode_with_offsets(text, allowed_special="all", split_policy="llama3", bos=True, eos=True)
        end = tokenizer.token_id(SPECIALS[0])
        assert found.ids == [end, *expected, end]
        assert found.special_mask == [1, *(int(i == token_id) for i in expected), 1]
        raw = text.encode()
        inner = list(zip(found.ids, found.offsets, strict=True))[1:-1]
        assert all(tokenizer.token_bytes(i) == raw[first:last] for i, (first, last) in inner)


def test_many_texts_with_empty_ones_between(monkeypatch):
    monkeypatch.setitem(split_policy.POLICIES, "llama3", (7, 4))
    tokenizer = small("gpt2")
    texts = ["", *SENTENCES, "", "x", ""]
    expected = [[i for piece in llama3_pieces(text, 7, 4) for i in tokenizer.encode(piece)] for text in texts]
    assert tokenizer.encode_batch(texts, split_policy="llama3") == expected
    assert tokenizer.encode_batch(texts, split_policy="llama3", workers=2) == expected


def test_an_unknown_policy_is_a_usage_error():
    with pytest.raises(UsageError, match="unknown split policy 'llama'"):
        small().encode("x", split_policy="llama")
