import json
import shutil

import pytest
from tokenizer.samples import TEXT, small

from tokctl.errors import ArtifactError, CheckFailed
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.formats import load, native
from tokctl.tokenizer.layout import from_merges
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.template import Piece, Template
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary

WHOLE = PreTokenizer.from_pattern("none")


def ranks_tokenizer():
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", None, b"abc"]
    added = (AddedToken(259, "<s>"), AddedToken(262, "two words", lstrip=True, normalized=True, special=False))
    template = Template.around((259,), (259,))
    return Tokenizer(
        WHOLE, BPE(Vocabulary.from_tokens(tokens), None, None, whole_words=True), added, "<s>", None, template
    )


SAMPLES = {
    "fitted": small,
    "layout last": lambda: small("cl100k", special_layout="last"),
    "ranks": ranks_tokenizer,
    "tiny": lambda: from_merges("ab", [(0, 0)]),
    "literal": lambda: Tokenizer(WHOLE, BPE.from_merges(Vocabulary.from_tokens([b"a", b"<x>"], [1]), [])),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_saved_is_loaded(tmp_path, name):
    tokenizer = SAMPLES[name]()
    tokenizer.save(tmp_path / "t")
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == ["self-test.json", "tokctl.json"]
    for path in (tmp_path / "t", tmp_path / "t" / "tokctl.json", str(tmp_path / "t")):
        loaded = load(path)
        assert native.to_json(loaded) == native.to_json(tokenizer)
        assert loaded.semantic_hash == tokenizer.semantic_hash
    assert native.check_self_test(loaded, tmp_path / "t") >= 2
    text = TEXT if tokenizer.model.is_byte_complete else "aaa"
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.vocab_size == tokenizer.vocab_size
    loaded.save(tmp_path / "again")
    for file in ("tokctl.json", "self-test.json"):
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "t" / file).read_bytes()


def test_the_hash_is_of_behaviour(tmp_path):
    tokenizer = small()
    tokenizer.save(tmp_path / "t")
    file = tmp_path / "t" / "tokctl.json"
    file.write_text(json.dumps(json.loads(file.read_text()), indent=3, sort_keys=False))
    shutil.move(tmp_path / "t", tmp_path / "moved")
    assert load(tmp_path / "moved").semantic_hash == tokenizer.semantic_hash
    others = [
        small("gpt2", 20),
        small("llama3"),
        small(byte_order="raw"),
        Tokenizer(tokenizer.pre_tokenizer, tokenizer.model, tokenizer.added_tokens),
        Tokenizer(
            tokenizer.pre_tokenizer,
            tokenizer.model,
            tokenizer.added_tokens,
            *("<|endoftext|>",) * 2,
            Template.around((0,), ()),
        ),
    ]
    assert len({tokenizer.semantic_hash, *(other.semantic_hash for other in others)}) == 6


def test_the_hash_is_stable():
    """Changing it changes the identity of every tokenizer in the world: only with a new domain."""
    assert from_merges("ab", [(0, 1)], ["<s>"]).semantic_hash == (
        "7d89848eab0e607bdf3eebd0591ee8b60da2193ef5d0c67085970262e9d4792c"
    )


def write(directory, change):
    tokenizer = ranks_tokenizer() if change.__name__ == "ranks" else small("gpt2", 10)
    value = native.to_json(tokenizer)
    change(value)
    directory.mkdir(exist_ok=True)
    (directory / "tokctl.json").write_text(json.dumps(value))
    return directory


def _set(*path_and_value):
    *path, last, value = path_and_value

    def change(root):
        for key in path:
            root = root[key]
        root[last] = value

    return change


def _delete(*path):
    *path, last = path

    def change(root):
        for key in path:
            root = root[key]
        del root[last]

    return change


def _swap_token(root):
    root["model"]["tokens"][260] = "717171"


def _repeat_token(root):
    root["model"]["tokens"][260] = root["model"]["tokens"][5]


def _append_id(root):
    root["model"]["tokens"] += [None, "7a7a7a"]


def _same_bytes(root):
    root["added_tokens"][0]["content"] = "a"


def _special_is_token(root):
    root["added_tokens"][0]["content"] = root["bos"] = root["eos"] = "a"


def _two_meanings(root):
    root["added_tokens"][0]["id"] = 100


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (_set("format", "other"), "not-a-tokenizer", "other"),
        (_set("version", 2), "format-version", "version 2"),
        (_set("version", True), "wrong-shape", "boolean"),
        (_set("normalizer", "nfc"), "wrong-shape", "normalizer"),
        (_delete("model"), "missing-member", "'model'"),
        (_set("extra", 1), "unknown-member", "'extra'"),
        (_set("model", "extra", 1), "unknown-member", "'extra'"),
        (_set("added_tokens", 0, "extra", 1), "unknown-member", "'extra'"),
        (_set("model", "type", "unigram"), "unknown-model", "unigram"),
        (_set("model", "form", "x"), "wrong-shape", "form"),
        (_set("model", "form", "ranks"), "wrong-shape", "does not fit"),
        (_set("model", "merges", None), "wrong-shape", "does not fit"),
        (_set("model", "tokens", 5, "xyz"), "not-hex", "tokens\\[5\\]"),
        (_set("model", "tokens", 5, 7), "wrong-shape", "tokens\\[5\\]"),
        (_set("model", "tokens", 5, ""), "empty-token", "tokens\\[5\\]"),
        (_set("model", "tokens", 5, None), "merge-unknown-id|ids-not-dense", "5|not dense"),
        (_set("model", "literals", [9999]), "unknown-id", "9999"),
        (_set("model", "literals", [-1]), "wrong-shape", "-1"),
        (_set("model", "merges", 3, [1]), "wrong-shape", "merges\\[3\\]"),
        (_set("model", "merges", 3, [5, 9999]), "merge-unknown-id", "merge 3 uses id 9999"),
        (_set("model", "merges", 3, [0, 5]), "merge-unknown-id", "merge 3 uses id 0"),
        (_set("model", "merges", 3, [5, 6]), "merge-without-token", "merge 3"),
        (lambda root: root["model"]["merges"].append(root["model"]["merges"][0]), "merge-repeated", "repeats merge 0"),
        (_swap_token, "merge-without-token", "which is no token"),
        (_repeat_token, "duplicate-token", "are both"),
        (_append_id, "ids-not-dense", "not dense"),
        (_set("unused_ids", [3]), "ids-not-dense", "not dense"),
        (_same_bytes, "unknown-special", "no added token"),
        (_special_is_token, "added-token-overlap", "same bytes as token"),
        (_two_meanings, "control-byte", "id 100"),
        (_set("added_tokens", 0, "id", 1), "added-token", "comes twice"),
        (_set("added_tokens", 0, "special", 1), "wrong-shape", "special"),
        (_set("added_tokens", 0, []), "wrong-shape", "added_tokens\\[0\\]"),
        (_set("added_tokens", 0, "content", "\ud800"), "wrong-shape", "surrogate"),
        (_set("bos", "<x>"), "unknown-special", "<x>"),
        (_set("post_processor", "single", []), "template", "template"),
        (_set("post_processor", "single", 0, {"id": 9999, "type_id": 0}), "template", "9999"),
        (_set("unicode_version", "1.0"), "unicode-version", "1.0"),
        (_set("pre_tokenizer", {}), "pre-tokenizer", "pre_tokenizer"),
        (_set("pre_tokenizer", "patterns", ["("]), "pre-tokenizer", "pre_tokenizer"),
    ],
)
def test_hand_edited_files_are_refused(tmp_path, change, code, message):
    with pytest.raises(ArtifactError, match=message) as caught:
        load(write(tmp_path / "t", change))
    assert caught.value.code in code.split("|")
    assert caught.value.where.file == str(tmp_path / "t" / "tokctl.json")


def test_truncated_files_are_refused(tmp_path):
    small("gpt2", 10).save(tmp_path)
    data = (tmp_path / "tokctl.json").read_bytes()
    for n in (0, 1, 50, len(data) // 2, len(data) - 1):
        (tmp_path / "tokctl.json").write_bytes(data[:n])
        with pytest.raises(ArtifactError) as caught:
            native.load(tmp_path)
        assert caught.value.code == "not-json"
        assert caught.value.where.offset <= n
    for broken in (b"\xff{}", b'{"a": 1, "a": 2}', b"[" * 100_000, b"[]", b"3"):
        (tmp_path / "tokctl.json").write_bytes(broken)
        with pytest.raises(ArtifactError):
            native.load(tmp_path)


def test_the_self_test_notices_other_ids(tmp_path):
    tokenizer = small("gpt2", 10)
    tokenizer.save(tmp_path)
    file = tmp_path / "self-test.json"
    value = json.loads(file.read_text())
    value["cases"][2]["ids"][0] += 1
    file.write_text(json.dumps(value))
    with pytest.raises(CheckFailed, match="case 2"):
        native.check_self_test(tokenizer, tmp_path)
    with pytest.raises(CheckFailed, match="self-test is of tokenizer"):
        native.check_self_test(small("gpt2", 11), tmp_path)
    file.unlink()
    with pytest.raises(ArtifactError, match="no file"):
        native.check_self_test(tokenizer, tmp_path)


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "f").write_text("x")
    with pytest.raises(ArtifactError, match="is a file"):
        small().save(tmp_path / "f")


def test_a_template_with_a_pair_is_kept(tmp_path):
    tokenizer = small()
    template = Template((Piece(0), Piece("A")), (Piece("B", 1), Piece(1, 1), Piece("A")), True, True)
    changed = Tokenizer(tokenizer.pre_tokenizer, tokenizer.model, tokenizer.added_tokens, template=template)
    changed.save(tmp_path)
    assert load(tmp_path).template == template
