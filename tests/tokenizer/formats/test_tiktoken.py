import base64
import json

import pytest
from oracles import bpe_encode as oracle
from tokenizer.samples import SENTENCES, TEXT, small

from tokctl.errors import ArtifactError
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.formats import encodings, load, tiktoken
from tokctl.tokenizer.formats.huggingface_load import load_vocab_and_merges
from tokctl.tokenizer.layout import from_merges
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary

BYTES = [bytes([byte]) for byte in range(256)]


def write_ranks(path, tokens):
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in tokens))
    return path


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "none", r"\p{L}+|\s"])
@pytest.mark.parametrize("layout", ["first", "after-bytes", "last"])
def test_an_export_is_loaded_as_the_same_tokenizer(tmp_path, pattern, layout):
    tokenizer = small(pattern, 150, special_layout=layout)
    ranks, sibling = tiktoken.export(tokenizer, tmp_path, "mine")
    assert (ranks.name, sibling.name) == ("mine.tiktoken", "mine.json")
    for loaded in (load(tmp_path), load(ranks)):
        assert loaded.model.form == "ranks"
        assert loaded.special_ids == tokenizer.special_ids
        assert (loaded.bos_token, loaded.vocab_size) == (tokenizer.bos_token, tokenizer.vocab_size)
        for text in (TEXT, *SENTENCES, "<|pad|>"):
            assert loaded.encode(text, allowed_special="all") == tokenizer.encode(text, allowed_special="all")
    for first, second in zip((ranks, sibling), tiktoken.export(loaded, tmp_path / "again", "mine"), strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_encoding_by_ranks_equals_the_oracle():
    ranks = {token: i for i, token in enumerate(small("none", 200, specials=()).model.vocabulary.tokens())}
    tokenizer = tiktoken.from_ranks(ranks, "none", [])
    for sentence in SENTENCES:
        assert tokenizer.encode(sentence) == oracle.encode_word_by_ranks(sentence.encode(), ranks)


def test_arguments_win_over_the_sibling(tmp_path):
    ranks, sibling = tiktoken.export(small("gpt2", 20), tmp_path, "mine")
    size = small("gpt2", 20).vocab_size
    assert load(ranks, pattern="llama3").pre_tokenizer.name == "llama3"
    assert load(ranks, pattern=r"\s+").pre_tokenizer.patterns == (r"\s+",)
    assert load(ranks, specials={"<x>": 1}).special_ids == {"<x>": 1}
    assert load(ranks, specials=["<x>", "<y>"]).special_ids == {"<x>": size, "<y>": size + 1}
    sibling.unlink()
    with pytest.raises(ArtifactError, match=r"no mine\.json") as caught:
        load(ranks)
    assert caught.value.code == "no-pattern"
    assert load(ranks, pattern="gpt2").special_ids == {}


def test_ids_between_ranks_and_specials_are_unused(tmp_path):
    path = write_ranks(tmp_path / "x.tiktoken", [(token, i) for i, token in enumerate([*BYTES, b"ab"])])
    tokenizer = load(path, pattern="gpt2", specials={"<e>": 260})
    assert tokenizer.unused_ids == [257, 258, 259]
    assert tokenizer.encode("ab<e>", allowed_special="all") == [256, 260]
    tokenizer.save(tmp_path / "native")
    assert load(tmp_path / "native").semantic_hash == tokenizer.semantic_hash


@pytest.mark.parametrize(
    ("content", "row", "message"),
    [
        (b"", None, "no ranks"),
        (b"IQ== 0\nIg==\n", 1, "line 2"),
        (b"IQ== 0\n!! 1\n", 1, "line 2"),
        (b"IQ== x\n", 0, "line 1"),
        (b"IQ== -1\n", 0, "out of range"),
        (b"IQ== 99999999999\n", 0, "out of range"),
        (b"IQ== 0\n\nIQ== 1\n", 2, "comes twice"),
        (b"IQ== 0\nIg== 0\n", 1, "also on line 1"),
        (b"IQ== 0 1\n", 0, "line 1"),
        (b" 0\n", 0, "line 1"),
    ],
)
def test_broken_ranks_are_refused(tmp_path, content, row, message):
    (tmp_path / "x.tiktoken").write_bytes(content)
    with pytest.raises(ArtifactError, match=message) as caught:
        load(tmp_path / "x.tiktoken", pattern="gpt2")
    assert (caught.value.code, caught.value.where.row) == ("bad-ranks", row)


@pytest.mark.parametrize(
    ("specials", "code"),
    [
        ({"<e>": -1}, "bad-id"),
        ({"<e>": "1"}, "bad-id"),
        ({"<e>": 5}, "control-byte"),
        ({"ab": 300}, "added-token-overlap"),
    ],
)
def test_wrong_specials_are_refused(tmp_path, specials, code):
    path = write_ranks(tmp_path / "x.tiktoken", [(token, i) for i, token in enumerate([*BYTES, b"ab"])])
    with pytest.raises(ArtifactError) as caught:
        load(path, pattern="gpt2", specials=specials)
    assert caught.value.code == code


def test_ranks_without_all_bytes_are_refused(tmp_path):
    path = write_ranks(tmp_path / "x.tiktoken", [(b"a", 0), (b"b", 1)])
    with pytest.raises(ArtifactError, match="254 of the 256 bytes"):
        load(path, pattern="gpt2")


def with_added(**flags):
    base = small("gpt2", 5, specials=())
    return Tokenizer(base.pre_tokenizer, base.model, (AddedToken(base.vocab_size, "<x>", **flags),))


def unreachable():
    """abc is a token that merging never gives: b c comes first."""
    model = BPE.from_merges(Vocabulary.from_tokens([*BYTES, b"bc", b"ab", b"abc"]), [(98, 99), (97, 98), (257, 99)])
    return Tokenizer(PreTokenizer.from_pattern("gpt2"), model)


def out_of_order():
    model = BPE.from_merges(Vocabulary.from_tokens([*BYTES, b"bc", b"ab"]), [(97, 98), (98, 99)])
    return Tokenizer(PreTokenizer.from_pattern("gpt2"), model)


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (lambda: small("deepseek-v3", 5), "3 patterns in turn"),
        (lambda: small("starcoder", 5), "2 patterns in turn"),
        (lambda: from_merges("ab", []), "2 of the 256 bytes"),
        (lambda: with_added(lstrip=True), "has flags"),
        (lambda: with_added(special=False), "not special"),
        (unreachable, "1 tokens are not what merging"),
        (out_of_order, "not in the order"),
        (
            lambda: Tokenizer(PreTokenizer.from_pattern("gpt2"), BPE(Vocabulary.from_tokens(BYTES), None, None)),
            "does not look whole words up",
        ),
    ],
)
def test_what_the_format_cannot_carry_is_refused(tmp_path, tokenizer, message):
    with pytest.raises(ArtifactError, match=message) as caught:
        tiktoken.export(tokenizer(), tmp_path / "x")
    assert caught.value.code == "not-expressible"
    assert not (tmp_path / "x").exists()


def test_a_pattern_with_gaps_is_completed(tmp_path):
    """tiktoken drops what the pattern doesn't match."""
    import regex

    pattern = tiktoken.pattern_for_tiktoken(PreTokenizer.from_pattern(r"\p{L}+|\s"))
    assert regex.findall(pattern, "ab 12!c") == ["ab", " ", "12!", "c"]
    again = PreTokenizer.from_pattern(pattern)
    assert again.split(b"ab 12!c").tolist() == [2, 3, 6, 7]
    assert tiktoken.pattern_for_tiktoken(again) == pattern


def test_gpt2s_file_names(tmp_path):
    vocab = {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "<|endoftext|>": 4}
    (tmp_path / "encoder.json").write_text(json.dumps(vocab))
    (tmp_path / "vocab.bpe").write_text("#version: 0.2\na b\n")
    for tokenizer in (load(tmp_path), load(tmp_path / "encoder.json")):
        assert tokenizer.encode("ab ab<|endoftext|>", allowed_special="all") == [2, 3, 2, 4]
        assert tokenizer.special_ids == {"<|endoftext|>": 4}
    for lines, row in ((b"#version: 0.2\na\n", 1), (b"a b\na  b\n", 1), (b"a b\nb a c\n", 1)):
        (tmp_path / "vocab.bpe").write_bytes(lines)
        with pytest.raises(ArtifactError, match="line 2") as caught:
            load(tmp_path)
        assert caught.value.where.row == row
    (tmp_path / "vocab.bpe").write_bytes(b"\xff")
    with pytest.raises(ArtifactError, match="not UTF-8"):
        load(tmp_path)
    (tmp_path / "encoder.json").write_text("[]")
    with pytest.raises(ArtifactError, match="not an object"):
        load_vocab_and_merges(tmp_path / "encoder.json", tmp_path / "vocab.bpe")


def test_named_encodings_bring_their_pattern_and_specials(tmp_path):
    ranks, sibling = tiktoken.export(small("gpt2", 20), tmp_path, "mine")
    sibling.unlink()
    named = load(ranks, pattern="o200k_harmony")
    assert named.pre_tokenizer.name == "o200k"
    assert named.special_ids["<|call|>"] == 200012
    assert named.special_ids["<|endofprompt|>"] == 200018
    assert len(named.special_ids) == 201088 - 199998
    assert load(ranks, pattern="cl100k_base", specials=["<x>"]).special_ids == {"<x>": small("gpt2", 20).vocab_size}
    renamed = ranks.rename(tmp_path / "cl100k_base.tiktoken")
    with pytest.raises(ArtifactError, match=r"no cl100k_base\.json"):  # as many ranks as the name promises, or none
        load(renamed)


def test_a_files_name_says_its_encoding_where_the_number_of_ranks_agrees(tmp_path, monkeypatch):
    ranks, sibling = tiktoken.export(small("cl100k", 20, specials=()), tmp_path, "cl100k_base")
    sibling.unlink()
    n_ranks = len(tiktoken.read_ranks(ranks))
    monkeypatch.setitem(encodings.ENCODINGS, "cl100k_base", encodings.NamedEncoding("cl100k", {"<|e|>": 5000}, n_ranks))
    tokenizer = load(ranks)
    assert tokenizer.pre_tokenizer.name == "cl100k"
    assert tokenizer.special_ids == {"<|e|>": 5000}
    assert "after the file's name" in tokenizer.notices[0]


def test_ranks_may_be_called_model(tmp_path):
    ranks, sibling = tiktoken.export(small("llama3", 20, specials=()), tmp_path, "tokenizer")
    sibling.unlink()
    model = ranks.rename(tmp_path / "tokenizer.model")
    (tmp_path / "tokenizer.json").write_text('{"model": {}}')  # another library's file
    tokenizer = load(model, pattern="llama3", specials=["<|begin_of_text|>"])
    assert tokenizer.special_ids == {"<|begin_of_text|>": small("llama3", 20, specials=()).vocab_size}
    with pytest.raises(ArtifactError) as caught:
        load(model)
    assert caught.value.code == "no-pattern"
    model.write_bytes(b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02")
    with pytest.raises(ArtifactError, match="a SentencePiece model"):
        load(model)
