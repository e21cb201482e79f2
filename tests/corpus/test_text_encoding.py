from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokctl.corpus import text_encoding
from tokctl.corpus.text_encoding import Undecodable, check_utf8, decode, first_invalid, split_bom


@settings(max_examples=300, derandomize=True)
@given(st.lists(st.one_of(st.binary(max_size=6), st.text(max_size=6).map(str.encode)), max_size=8))
def test_the_first_invalid_byte_is_python_s(pieces):
    data = b"".join(pieces)
    try:
        data.decode()
        expected = None
    except UnicodeDecodeError as error:
        expected = error.start
    assert first_invalid(data) == expected


@pytest.mark.parametrize("pad", range(-4, 5))
def test_characters_across_the_slices(pad):
    edge = text_encoding._SLICE + pad
    data = b"a" * edge + "€😀".encode() * 3
    assert first_invalid(data) is None
    assert first_invalid(data[:-1]) == len(data) - 4
    assert first_invalid(b"a" * edge + b"\xff") == edge


def test_policies():
    data = "ä".encode() + b"x\xff\xfey\xe2\x82" + "\ufffd".encode()
    for errors in ("error", "skip"):
        with pytest.raises(Undecodable) as error:
            check_utf8(data, errors)
        assert (error.value.offset, error.value.found, error.value.code) == (3, b"\xff", "invalid-utf8")
    # three ill-formed sequences; the U+FFFD that was there is none
    assert check_utf8(data, "replace") == ("äx\ufffd\ufffdy\ufffd\ufffd".encode(), 3, 3)
    assert check_utf8(data, "bytes") == (data, 3, 3)
    valid = "naïve".encode()
    assert check_utf8(valid, "error").text is valid


def test_other_encodings():
    assert decode("Grüße".encode("cp1252"), "cp1252", "error") == ("Grüße".encode(), 0, None)
    assert decode(b"a\x81b", "cp1252", "bytes") == ("a\ufffdb".encode(), 1, 1)
    with pytest.raises(Undecodable) as error:
        decode(b"a\x81b", "cp1252", "error")
    assert (error.value.code, error.value.offset) == ("invalid-encoding", 1)
    assert decode("x".encode("utf-16-le") + b"\x00", "utf-16-le", "replace").n_invalid == 1
    assert decode(b"a\xff", "UTF8", "replace") == ("a\ufffd".encode(), 1, 1)


def test_marks():
    assert split_bom("\ufeffa".encode()) == ("utf-8", 3)
    assert split_bom("\ufeffa".encode("utf-16-le")) == ("utf-16-le", 2)
    assert split_bom("\ufeffa".encode("utf-32-le")) == ("utf-32-le", 4)
    assert split_bom("\ufeffa".encode("utf-32-be")) == ("utf-32-be", 4)
    assert split_bom(b"a") == (None, 0)
