import copy
import json

import pytest
from tokenizer.samples import SPECIALS, TEXT, small

from tokctl.errors import ArtifactError
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.formats import huggingface, load
from tokctl.tokenizer.formats.huggingface_pre_tokenizer import pre_tokenizer_json
from tokctl.tokenizer.layout import from_merges
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED
from tokctl.tokenizer.template import Piece, Template
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary


@pytest.mark.parametrize("pattern", [*NAMED, "none", r"\p{L}+|\s"])
@pytest.mark.parametrize("layout", ["first", "last"])
def test_an_export_is_loaded_as_the_same_tokenizer(tmp_path, pattern, layout):
    tokenizer = small(pattern, 60, special_layout=layout)
    paths = huggingface.export(tokenizer, tmp_path)
    assert sorted(path.name for path in paths) == ["tokenizer.json", "tokenizer_config.json"]
    loaded = load(tmp_path)
    assert loaded.semantic_hash == tokenizer.semantic_hash
    assert loaded.encode(TEXT, allowed_special="all") == tokenizer.encode(TEXT, allowed_special="all")
    assert (loaded.notices, loaded.bos_token) == ((), SPECIALS[0])
    again = tmp_path / "again"
    huggingface.export(loaded, again)
    for path in paths:
        assert (again / path.name).read_bytes() == path.read_bytes()


def test_the_configuration_keeps_spaces(tmp_path):
    huggingface.export(small(), tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["clean_up_tokenization_spaces"] is False
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert config["bos_token"] == "<|endoftext|>"
    assert config["added_tokens_decoder"]["0"]["special"] is True
    value = json.loads((tmp_path / "tokenizer.json").read_text())
    assert value["pre_tokenizer"] == {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    assert all(token["special"] and not token["normalized"] for token in value["added_tokens"])


def test_patterns_are_written_as_split_steps():
    for name, patterns in NAMED.items():
        value = pre_tokenizer_json(small(name, 5).pre_tokenizer)
        steps = value["pretokenizers"] if value["type"] == "Sequence" else [value]
        assert steps[-1]["type"] == "ByteLevel"
        regexes = [step["pattern"]["Regex"] for step in steps[:-1]]
        assert regexes + [NAMED["gpt2"][0]] * steps[-1]["use_regex"] == list(patterns)


def test_vocab_and_merges_on_request(tmp_path):
    tokenizer = small("gpt2", 50)
    huggingface.export(tokenizer, tmp_path, vocab_and_merges=True)
    assert (tmp_path / "merges.txt").read_text().startswith("#version: 0.2\n")
    (tmp_path / "tokenizer.json").unlink()
    nameless = Tokenizer(tokenizer.pre_tokenizer, tokenizer.model, tokenizer.added_tokens)  # the files name no bos
    for loaded in (
        load(tmp_path),
        load(tmp_path / "vocab.json"),
        load(tmp_path / "vocab.json", merges=tmp_path / "merges.txt"),
    ):
        assert loaded.semantic_hash == nameless.semantic_hash
        assert "control tokens by their place" in loaded.notices[0]
    other = load(tmp_path / "vocab.json", pattern="llama3", specials=["<|new|>", "<|pad|>"])
    assert other.pre_tokenizer.name == "llama3"
    assert other.special_ids == {"<|endoftext|>": 0, "<|pad|>": 1, "<|new|>": tokenizer.vocab_size}
    for wrong in (
        small("cl100k", 5),
        Tokenizer(tokenizer.pre_tokenizer, BPE(**{**vars_of(tokenizer.model), "whole_words": True})),
    ):
        with pytest.raises(ArtifactError, match="gpt2 pattern"):
            huggingface.export(wrong, tmp_path / "x", vocab_and_merges=True)


def test_a_vocabulary_with_an_end_of_word_suffix_is_refused(tmp_path):
    vocab = {char: i for i, char in enumerate("ab")} | {"a</w>": 2, "b</w>": 3, "ab</w>": 4}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b</w>\n")
    with pytest.raises(ArtifactError, match="</w>") as caught:
        load(tmp_path)
    assert caught.value.code == "unsupported"


def vars_of(model):
    return {"vocabulary": model.vocabulary, "merges": model.merges, "merged": model.merged}


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (lambda: from_merges("ab", []), "2 of the 256 bytes"),
        (lambda: from_merges(bytes(range(256)), [], ["é"]), "spelling of token"),
        (lambda: from_merges(bytes(range(256)), [(32, 97)], ["Ġa"]), "spelling of token"),
    ],
)
def test_what_the_format_cannot_carry_is_refused(tmp_path, tokenizer, message):
    with pytest.raises(ArtifactError, match=message):
        huggingface.export(tokenizer(), tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hf")
    huggingface.export(small("gpt2", 20), directory)
    return json.loads((directory / "tokenizer.json").read_text())


def load_changed(tmp_path, exported, **changes):
    value = copy.deepcopy(exported)
    for key, change in changes.items():
        if key == "model":
            value["model"].update(change)
        else:
            value[key] = change
    (tmp_path / "tokenizer.json").write_text(json.dumps(value))
    return load(tmp_path / "tokenizer.json")


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def split(regex, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


@pytest.mark.parametrize(
    ("pre_tokenizer", "patterns"),
    [
        (BYTE_LEVEL, ()),
        ({**BYTE_LEVEL, "use_regex": True}, NAMED["gpt2"]),
        (sequence(split(NAMED["llama3"][0]), BYTE_LEVEL), NAMED["llama3"]),
        (sequence(split(NAMED["llama3"][0], "Removed", True), BYTE_LEVEL), NAMED["llama3"]),
        (
            sequence({"type": "Digits", "individual_digits": True}, {**BYTE_LEVEL, "use_regex": True}),
            (r"[\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}]", *NAMED["gpt2"]),
        ),
        (
            sequence({"type": "Digits", "individual_digits": False}, BYTE_LEVEL),
            (r"[\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}]+",),
        ),
        (sequence(sequence(split("a")), {**split("."), "pattern": {"String": "."}}, BYTE_LEVEL), ("a", r"\.")),
    ],
)
def test_pre_tokenizers_are_read(tmp_path, exported, pre_tokenizer, patterns):
    assert load_changed(tmp_path, exported, pre_tokenizer=pre_tokenizer).pre_tokenizer.patterns == patterns


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"normalizer": {"type": "StripAccents"}}, r"\$\.normalizer is not supported: found StripAccents"),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Nmt"}]}},
            r"\$\.normalizer\.normalizers\[1\] is not supported: found Nmt",
        ),
        ({"normalizer": {"type": "Sequence"}}, "null for 'normalizers'"),
        ({"normalizer": {"type": "Strip"}}, "Strip that is not complete"),
        ({"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "x"}}, "normalizer.pattern"),
        ({"pre_tokenizer": None}, "none"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "Whitespace"),
        ({"pre_tokenizer": sequence({"type": "Metaspace"}, BYTE_LEVEL)}, r"pretokenizers\[0\] is .* found Metaspace"),
        ({"pre_tokenizer": sequence({"type": "CharDelimiterSplit"}, BYTE_LEVEL)}, "delimiter None"),
        ({"pre_tokenizer": sequence(BYTE_LEVEL, split("a"))}, "ByteLevel, Split"),
        ({"pre_tokenizer": sequence(split("a", "Sideways"), BYTE_LEVEL)}, "Sideways"),
        ({"model": {"type": "Unigram"}}, "Unigram"),
        ({"model": {"dropout": 0.1}}, "dropout 0.1"),
        ({"model": {"end_of_word_suffix": "</w>"}}, "</w>"),
        ({"model": {"continuing_subword_prefix": "##"}}, "##"),
        ({"post_processor": {"type": "Other"}}, "Other"),
        ({"decoder": {"type": "Metaspace"}}, "Metaspace"),
        ({"decoder": {"type": "Sequence", "decoders": [{"type": "ByteLevel"}, {"type": "Strip"}]}}, "ByteLevel, Strip"),
    ],
)
def test_what_is_not_supported_is_named(tmp_path, exported, changes, found):
    with pytest.raises(ArtifactError, match=found) as caught:
        load_changed(tmp_path, exported, **changes)
    assert caught.value.code == "unsupported"
    assert caught.value.where.file == str(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"model": {"vocab": {"a": 0, "b": 0}, "merges": []}}, "duplicate-id"),
        ({"model": {"vocab": {"a": -1}, "merges": []}}, "bad-id"),
        ({"model": {"vocab": {"a": 2**40}, "merges": []}}, "bad-id"),
        ({"model": {"vocab": {"a": "0"}, "merges": []}}, "wrong-shape"),
        ({"model": {"vocab": {"": 0}, "merges": []}}, "empty-token"),
        ({"model": {"vocab": []}}, "wrong-shape"),
        ({"model": {"merges": ["a"]}}, "bad-merges"),
        ({"model": {"merges": ["a b c"]}}, "bad-merges"),
        ({"model": {"merges": [["a", 1]]}}, "bad-merges"),
        ({"model": {"merges": ["a zz"]}}, "merge-unknown-token"),
        ({"model": {"merges": ["q q"]}}, "merge-without-token"),
        ({"added_tokens": [{"id": 0}]}, "missing-member"),
        ({"added_tokens": [{"id": 0, "content": ""}]}, "added-token"),
        ({"added_tokens": 3}, "wrong-shape"),
        ({"pre_tokenizer": sequence(split("("), BYTE_LEVEL)}, "bad-pattern"),
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": "("}, "content": ""}}, "bad-pattern"),
    ],
)
def test_broken_files_are_refused(tmp_path, exported, changes, code):
    with pytest.raises(ArtifactError) as caught:
        load_changed(tmp_path, exported, **changes)
    assert caught.value.code == code
    assert caught.value.where.file == str(tmp_path / "tokenizer.json")


def test_options_that_change_nothing_are_passed_over(tmp_path, exported):
    changes = {
        "model": {"unk_token": "<|endoftext|>", "byte_fallback": True, "dropout": 0.0, "end_of_word_suffix": ""},
        "normalizer": {"type": "Sequence", "normalizers": []},
        "padding": {"strategy": "BatchLongest"},
        "truncation": {"max_length": 3},
    }
    loaded = load_changed(tmp_path, exported, **changes)
    assert loaded.encode(TEXT) == small("gpt2", 20).encode(TEXT)
    assert [notice.split(" is ")[0] for notice in loaded.notices] == ["the file's padding", "the file's truncation"]


TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [
        {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"Sequence": {"id": "B", "type_id": 1}},
    ],
    "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}},
}
TRIM = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


def test_post_processors_are_read(tmp_path, exported):
    loaded = load_changed(tmp_path, exported, post_processor=TEMPLATE)
    assert loaded.encode("a", add_special_tokens=True) == [0, *loaded.encode("a")]
    assert (loaded.bos_token, loaded.eos_token) == ("<|endoftext|>", None)
    both = load_changed(tmp_path, exported, post_processor={"type": "Sequence", "processors": [TRIM, TEMPLATE]})
    assert both.template == Template(loaded.template.single, loaded.template.pair, True, True)
    roberta = {
        "type": "RobertaProcessing",
        "cls": ["x", 0],
        "sep": ["y", 1],
        "trim_offsets": False,
        "add_prefix_space": True,
    }
    found = load_changed(tmp_path, exported, post_processor=roberta)
    assert found.encode("a", add_special_tokens=True) == [0, *loaded.encode("a"), 1]
    assert [piece.what for piece in found.template.pair] == [0, "A", 1, 1, "B", 1]
    bert = {"type": "BertProcessing", "cls": ["x", 0], "sep": ["y", 1]}
    assert load_changed(tmp_path, exported, post_processor=bert).template.pair[-1] == Piece(1, 1)
    for wrong in (
        {"type": "BertProcessing"},
        {**TEMPLATE, "special_tokens": {}},
        {**TEMPLATE, "special_tokens": 3},
        {**TEMPLATE, "single": []},
        {"type": "Sequence", "processors": [TEMPLATE, TEMPLATE]},
    ):
        with pytest.raises(ArtifactError) as caught:
            load_changed(tmp_path, exported, post_processor=wrong)
        assert caught.value.code == "unsupported"


def test_added_tokens_get_the_ids_that_the_library_gives(tmp_path, exported):
    size = len(exported["model"]["vocab"])
    added = [
        {"id": 7000, "content": "<new>", "special": True},
        {"id": 3, "content": "two words"},
        exported["added_tokens"][0],
    ]
    loaded = load_changed(tmp_path, exported, added_tokens=added)
    ids = {token.content: token.id for token in loaded.added_tokens}
    assert ids == {"<new>": size, "two words": size + 1, "<|endoftext|>": 0}
    assert len([notice for notice in loaded.notices if "as in tokenizers" in notice]) == 2
    assert loaded.added_tokens[-1] == AddedToken(size + 1, "two words", normalized=True, special=False)


def test_added_tokens_may_be_tokens_of_the_model(tmp_path, exported):
    """A word that merging makes anyway, marked as added; a run of spaces, which spells no bytes as it is."""
    vocab = {**exported["model"]["vocab"]}
    size = len(vocab)
    vocab |= {"   ": size, "qqq": size + 1}
    made = next(merge.replace(" ", "") for merge in exported["model"]["merges"] if "Ġ" not in merge)
    names = [made, "   ", "qqq"]
    added = exported["added_tokens"] + [{"id": vocab[name], "content": name, "special": False} for name in names]
    loaded = load_changed(tmp_path, exported, model={"vocab": vocab}, added_tokens=added)
    assert loaded.encode("x   qqq") == [vocab["x"], size, size + 1]
    assert loaded.encode(made) == [vocab[made]] == small("gpt2", 20).encode(made)
    assert loaded.decode([size]) == "   "
    loaded.save(tmp_path / "native")
    assert load(tmp_path / "native").semantic_hash == loaded.semantic_hash


def test_text_in_the_vocabulary_is_only_decoded(tmp_path, exported):
    vocab = {**exported["model"]["vocab"], "①": 1000}
    loaded = load_changed(tmp_path, exported, model={"vocab": vocab})
    assert loaded.decode([1000]) == "①"
    assert 1000 not in loaded.encode("①")
    loaded.save(tmp_path / "native")
    assert load(tmp_path / "native").semantic_hash == loaded.semantic_hash


def test_a_merge_that_comes_twice_has_its_last_rank(tmp_path, exported):
    vocab = {char: i for i, char in enumerate(["a", "b", "c", "ab", "bc", "<|endoftext|>", "<|pad|>"])}
    once = load_changed(tmp_path, exported, model={"vocab": vocab, "merges": ["a b", "b c"]})
    twice = load_changed(tmp_path, exported, model={"vocab": vocab, "merges": ["a b", "b c", "a b"]})
    assert once.encode("abc") == [3, 2]
    assert twice.encode("abc") == [0, 4]


def test_ranks_are_exported_with_a_merge_for_every_split(tmp_path):
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"bc", b"abc"]
    tokenizer = Tokenizer(
        small("none").pre_tokenizer, BPE(Vocabulary.from_tokens(tokens), None, None, whole_words=True)
    )
    huggingface.export(tokenizer, tmp_path)
    model = json.loads((tmp_path / "tokenizer.json").read_text())["model"]
    assert model["merges"] == ["a b", "b c", "a bc", "ab c"]
    assert model["ignore_merges"] is True
    loaded = load(tmp_path)
    for text in ("abc", "abcabc", "bcab"):
        assert loaded.encode(text) == tokenizer.encode(text)
