import base64
import json

import pytest

from tokctl.errors import ArtifactError
from tokctl.tokenizer.formats import huggingface, load

TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", b"bc", b"abc", b" x", b"zz", b"beyond"]


def entry(rank, token):
    return {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": token.decode("utf-8", "ignore")}


def special(rank, name, is_control=True):
    return {"rank": rank, "token_str": name, "is_control": is_control}


SPECIALS = [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>"), special(4, "[THINK]", False)]


def write(directory, **changes):
    config = {
        "pattern": r"\p{L}+|\P{L}",
        "num_vocab_tokens": len(TOKENS),
        "default_vocab_size": 261 + 6,
        "default_num_special_tokens": 6,
        "version": "v11",
    }
    value = {
        "config": config | changes.pop("config", {}),
        "vocab": [entry(rank, token) for rank, token in enumerate(TOKENS)],
        "special_tokens": SPECIALS,
    } | changes
    value = {key: member for key, member in value.items() if member is not None}
    (directory / "tekken.json").write_text(json.dumps(value))
    return directory / "tekken.json"


def test_ids_are_ranks_after_the_special_tokens(tmp_path):
    tokenizer = load(write(tmp_path))
    assert tokenizer.vocab_size == 267
    assert tokenizer.encode("abc") == [6 + 258]  # whole, before any merge
    assert tokenizer.encode("abcd") == [6 + 258, 6 + 100]
    assert tokenizer.encode("beyond") == [6 + byte for byte in b"beyond"]  # a rank beyond the size counts for nothing
    assert tokenizer.encode("a", bos=True, eos=True) == [1, 6 + 97, 2]
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<s>", "</s>")
    assert "first 261 count" in tokenizer.notices[-1]
    assert load(tmp_path).semantic_hash == tokenizer.semantic_hash


def test_no_special_token_comes_from_text_unless_it_is_allowed(tmp_path):
    tokenizer = load(write(tmp_path))
    assert tokenizer.special_ids == {
        "<unk>": 0,
        "<s>": 1,
        "</s>": 2,
        "<SPECIAL_3>": 3,
        "[THINK]": 4,
        "<SPECIAL_5>": 5,
    }
    for name in tokenizer.special_ids:
        assert min(tokenizer.encode(f"a{name}b")) >= 6
    assert tokenizer.encode("[THINK]<s>", allowed_special=["[THINK]"])[0] == 4
    assert "'[THINK]'" in tokenizer.notices[0]


def test_old_versions_have_the_special_tokens_that_they_do_not_list(tmp_path):
    config = {"version": "v3", "default_num_special_tokens": 22, "default_vocab_size": 22 + 256}
    tokenizer = load(write(tmp_path, config=config, special_tokens=None))
    names = list(tokenizer.special_ids)
    assert names[:5] == ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    assert names[19:] == ["[TOOL_CONTENT]", "<SPECIAL_20>", "<SPECIAL_21>"]
    assert tokenizer.encode("a") == [22 + 97]


def test_it_survives_other_formats(tmp_path):
    tokenizer = load(write(tmp_path))
    tokenizer.save(tmp_path / "native")
    again = load(tmp_path / "native")
    assert again.semantic_hash == tokenizer.semantic_hash
    huggingface.export(again, tmp_path / "hf")
    exported = load(tmp_path / "hf")
    for text in ("abcd abc bc x zz", "beyond <s> é", ""):
        assert exported.encode(text) == tokenizer.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert exported.special_ids == tokenizer.special_ids


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"config": {"default_vocab_size": 1000}}, "vocabulary-size", "262 entries"),
        ({"config": {"default_num_special_tokens": 300}}, "vocabulary-size", "300 of them special"),
        ({"config": {"pattern": "("}}, "bad-pattern", "group"),
        ({"config": {"pattern": 3}}, "wrong-shape", r"\$\.config\.pattern"),
        ({"special_tokens": None}, "missing-member", "'v11'"),
        ({"special_tokens": [special(9, "<s>")]}, "bad-id", r"special_tokens\[0\]"),
        ({"special_tokens": [special(1, "a"), special(1, "b")]}, "bad-id", r"special_tokens\[1\]"),
        ({"special_tokens": [special(1, "a"), special(2, "a")]}, "added-token", "repeats"),
        ({"special_tokens": [special(1, "<SPECIAL_0>")]}, "added-token", "SPECIAL_0"),
        ({"vocab": [entry(1, b"a")] * 300}, "bad-ranks", r"\$\.vocab\[0\]\.rank is 1"),
        ({"vocab": [entry(i, b"a") for i in range(300)]}, "bad-ranks", "not the byte 0"),
        ({"vocab": [entry(i, t) for i, t in enumerate([*TOKENS[:258], b"ab", *TOKENS])]}, "bad-ranks", "entry 256"),
        ({"vocab": [entry(i, t) for i, t in enumerate([*TOKENS[:258], b"", *TOKENS])]}, "empty-token", "258"),
        ({"vocab": [entry(0, b"\0") | {"token_bytes": "!"}] * 300}, "bad-ranks", "base64"),
    ],
)
def test_broken_files_are_refused(tmp_path, changes, code, message):
    with pytest.raises(ArtifactError, match=message) as caught:
        load(write(tmp_path, **changes))
    assert caught.value.code == code
    assert caught.value.where.file == str(tmp_path / "tekken.json")
