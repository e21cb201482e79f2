import json

import pytest
from tokenizer.samples import TEXT, small

from tokctl.errors import DataError
from tokctl.tokenizer.inspect import MAX_TRACED_BYTES, inspect
from tokctl.tokenizer.layout import from_merges


def test_a_part_of_a_character_is_shown_as_bytes():
    found = inspect(from_merges(bytes(range(256)), [(0xE2, 0x82), (97, 97)]), "€aa")
    assert [(token["hex"], token["text"]) for token in found["tokens"]] == [
        ("e2 82", None),
        ("ac", None),
        ("61 61", "aa"),
    ]
    assert [token["bytes"] for token in found["tokens"]] == [[0, 2], [2, 3], [3, 5]]
    assert [token["code_points"] for token in found["tokens"]] == [[0, 1], [0, 1], [1, 3]]
    (span,) = found["spans"]
    assert (span["text"], span["ids"]) == ("€aa", [256, 0xAC, 257])
    assert [(m["rank"], m["position"], m["left"], m["right"], m["merged"]) for m in span["merges"]] == [
        (0, 0, 0xE2, 0x82, 256),
        (1, 2, 97, 97, 257),
    ]


@pytest.mark.parametrize("pattern", ["gpt2", "deepseek-v3", "none"])
def test_spans_and_merges_explain_the_ids(pattern):
    tokenizer = small(pattern)
    text = TEXT[:600] + "<|endoftext|> é<|pad|>"
    found = inspect(tokenizer, text, allowed_special="all", bos=True)
    assert json.loads(json.dumps(found)) == found
    ids = tokenizer.encode(text, allowed_special="all", bos=True)
    assert found["ids"] == [token["id"] for token in found["tokens"]] == ids
    assert [i for span in found["spans"] for i in span["ids"]] == ids[1:]
    assert b"".join(bytes.fromhex(span["hex"]) for span in found["spans"]) == text.encode()
    assert "".join(text[slice(*span["code_points"])] for span in found["spans"]) == text
    assert [span["text"] for span in found["spans"] if span["kind"] == "special"] == ["<|endoftext|>", "<|pad|>"]
    for span in found["spans"]:
        if span["kind"] == "word" and span["merges"] is not None:
            symbols = [int(tokenizer.model.byte_ids[byte]) for byte in bytes.fromhex(span["hex"])]
            for merge in span["merges"]:
                at = merge["position"]
                assert symbols[at : at + 2] == [merge["left"], merge["right"]]
                symbols[at : at + 2] = [merge["merged"]]
            assert symbols == span["ids"]


def test_edges():
    tokenizer = small()
    assert inspect(tokenizer, "")["spans"] == []
    assert inspect(tokenizer, "")["ids"] == []
    (span,) = inspect(small("none"), "a" * (MAX_TRACED_BYTES + 1))["spans"]
    assert span["merges"] is None
    assert span["ids"] == small("none").encode("a" * (MAX_TRACED_BYTES + 1))
    broken = inspect(tokenizer, b"\xff\xe2\x82")
    assert broken["text"] == {"hex": "ff e2 82", "text": None}
    with pytest.raises(DataError):
        inspect(from_merges("ab", []), "c")
