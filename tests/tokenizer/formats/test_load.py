import json

import pytest
from tokenizer.samples import small

from tokctl.errors import ArtifactError, UsageError
from tokctl.tokenizer import formats
from tokctl.tokenizer.formats import huggingface, load, tiktoken


@pytest.fixture
def everything(tmp_path):
    tokenizer = small("gpt2", 10)
    tokenizer.save(tmp_path / "native")
    huggingface.export(tokenizer, tmp_path / "hf", vocab_and_merges=True)
    tiktoken.export(tokenizer, tmp_path / "tt", "mine")
    return tmp_path


def test_each_kind_is_recognised(everything):
    expected = small("gpt2", 10).encode("the dog")
    for path in ("native", "native/tokctl.json", "hf", "hf/tokenizer.json", "hf/vocab.json", "tt", "tt/mine.tiktoken"):
        assert load(everything / path).encode("the dog") == expected
        assert load(str(everything / path)).encode("the dog") == expected


def test_files_are_recognised_by_what_they_say(everything):
    for old, new in (("native/tokctl.json", "renamed.json"), ("hf/tokenizer.json", "other.json")):
        (everything / new).write_bytes((everything / old).read_bytes())
        assert load(everything / new).vocab_size == small("gpt2", 10).vocab_size


def test_ambiguous_directories_are_refused(everything):
    (everything / "native" / "tokenizer.json").write_bytes((everything / "hf" / "tokenizer.json").read_bytes())
    with pytest.raises(ArtifactError, match=r"tokctl\.json, tokenizer\.json") as caught:
        load(everything / "native")
    assert caught.value.code == "ambiguous-tokenizer"
    tiktoken.export(small("gpt2", 10), everything / "tt", "second")
    with pytest.raises(ArtifactError, match=r"mine\.tiktoken, second\.tiktoken"):
        load(everything / "tt")


def test_directories_without_a_tokenizer_are_refused(everything):
    with pytest.raises(ArtifactError, match="hf, native, tt") as caught:
        load(everything)
    assert "native" in caught.value.hint
    (everything / "empty").mkdir()
    with pytest.raises(ArtifactError, match="it holds nothing"):
        load(everything / "empty")
    with pytest.raises(ArtifactError, match="there is no"):
        load(everything / "missing")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tekken.json", "{}", "tekken"),
        ("spiece.model", "x", "SentencePiece"),
        ("vocab.txt", "x", "WordPiece"),
        ("merges.bpe", "x", "merges without"),
        ("a.json", "[]", "an array"),
        ("a.json", "3", "a number"),
        ("a.json", "{}", "no members"),
        ("a.json", '{"b": 1, "a": 2}', "'a', 'b'"),
        ("a.json", '{"format": 7}', "a number, not str"),
    ],
)
def test_other_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ArtifactError, match=message) as caught:
        load(tmp_path / name)
    assert caught.value.where.file == str(tmp_path / name)


def test_a_pattern_for_a_file_that_has_one_is_refused(everything):
    for path in ("native", "hf"):
        with pytest.raises(UsageError, match="its own pattern"):
            load(everything / path, pattern="gpt2")
        with pytest.raises(UsageError, match="its own pattern"):
            load(everything / path, specials=["<x>"])


def test_merges_can_be_named(everything):
    (everything / "v.json").write_bytes((everything / "hf" / "vocab.json").read_bytes())
    loaded = load(everything / "v.json", merges=everything / "hf" / "merges.txt")
    assert loaded.encode("the dog") == small("gpt2", 10).encode("the dog")
    with pytest.raises(ArtifactError, match="there is no file"):
        load(everything / "v.json", merges=everything / "none.txt")


def test_exports_resolve():
    import importlib

    for target in formats.EXPORTS.values():
        module, _, name = target.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_json_is_read_with_a_byte_order_mark(everything):
    path = everything / "hf" / "tokenizer.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load(path).vocab_size == json.loads(path.read_text("utf-8-sig"))["model"]["vocab"].__len__()
