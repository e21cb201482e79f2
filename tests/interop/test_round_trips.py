"""Three round trips, each by itself: text, pieces and metadata; through tokctl's format and through tokenizers' file."""

import json

import pytest
from interop import real_vocabularies as real
from interop.conformance_encode import VOCABULARIES
from interop.conformance_strings import strings
from interop.family_files import family_file

from tokctl.errors import ArtifactError
from tokctl.tokenizer.formats import huggingface, load, tiktoken

tokenizers = pytest.importorskip("tokenizers")


@pytest.fixture(scope="module", params=["llama3", "qwen2", "prefix-space", "modernbert"])
def family(request, tmp_path_factory):
    """``(file, tokenizer)`` of a family shape."""
    real.or_skip(real.wheel, *real.GPT2)
    file = family_file(request.param, tmp_path_factory.mktemp(request.param))
    return file, load(file)


def keeps_text(tokenizer):
    changes = tokenizer.normalizers or tokenizer.steps
    return not changes and not any(token.lstrip or token.rstrip for token in tokenizer.added_tokens)


def test_text(family):
    """Decoding gives the text back or, where the tokenizer rewrites text, what it declares; as the library does."""
    file, tokenizer = family
    theirs = tokenizers.Tokenizer.from_file(str(file))
    for text in strings(tokenizer, 150, seed=5):
        ids = tokenizer.encode(text, allowed_special="all")
        assert tokenizer.decode_bytes(ids) == tokenizer.normalize(text, "all")
        if keeps_text(tokenizer):
            assert tokenizer.decode(ids) == text
        assert tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_pieces(family):
    """Every token is the same piece: its spelling in the library's file, its bytes here."""
    from tokctl.tokenizer.byte_order import unspell_bytes

    file, tokenizer = family
    theirs = tokenizers.Tokenizer.from_file(str(file))
    added = {token.id for token in tokenizer.added_tokens}
    assert theirs.get_vocab_size() == tokenizer.vocab_size - len(tokenizer.unused_ids)
    for token_id in range(tokenizer.vocab_size):
        spelled = theirs.id_to_token(token_id)
        expected = spelled.encode() if token_id in added else unspell_bytes(spelled)
        assert tokenizer.token_bytes(token_id) == expected
    for text in strings(tokenizer, 100, seed=6):
        pieces = theirs.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text, allowed_special="all") == pieces


def metadata(tokenizer):
    """What a file says besides pieces and merges."""
    return (
        tokenizer.added_tokens,
        tokenizer.template,
        tokenizer.bos_token,
        tokenizer.eos_token,
        tokenizer.normalizers,
        tokenizer.steps,
        tokenizer.pre_tokenizer,
        tokenizer.model.whole_words,
        tokenizer.unused_ids,
    )


def test_metadata(family, tmp_path):
    """Flags, template, ends, normalizers and patterns survive load, save, load; and export, the library, load."""
    file, tokenizer = family
    tokenizer.save(tmp_path / "native")
    again = load(tmp_path / "native")
    assert metadata(again) == metadata(tokenizer)
    assert again.semantic_hash == tokenizer.semantic_hash
    huggingface.export(again, tmp_path / "exported")
    exported = load(tmp_path / "exported")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "exported" / "tokenizer.json"))
    theirs.save(str(tmp_path / "rewritten.json"))
    written = json.loads(file.read_text())["added_tokens"]
    rewritten = json.loads((tmp_path / "rewritten.json").read_text())["added_tokens"]
    assert sorted(rewritten, key=lambda t: t["id"]) == sorted(written, key=lambda t: t["id"])
    original = tokenizers.Tokenizer.from_file(str(file))
    for other in (exported, load(tmp_path / "rewritten.json")):
        assert other.added_tokens == tokenizer.added_tokens
        assert other.template == tokenizer.template
        assert other.model.whole_words == tokenizer.model.whole_words
    for text in strings(tokenizer, 60, seed=7):
        for specials in (False, True):
            expected = original.encode(text, add_special_tokens=specials)
            found = theirs.encode(text, add_special_tokens=specials)
            assert (found.ids, found.offsets, found.special_tokens_mask) == (
                expected.ids,
                expected.offsets,
                expected.special_tokens_mask,
            )
            assert exported.encode(text, add_special_tokens=specials, allowed_special="all") == expected.ids


@pytest.mark.parametrize("shape", ["qwen2", "prefix-space"])
def test_exports_are_verified_by_the_library(shape, tmp_path):
    real.or_skip(real.wheel, *real.GPT2)
    tokenizer = load(family_file(shape, tmp_path))
    huggingface.export(tokenizer, tmp_path)
    texts = list(strings(tokenizer, 60, seed=8))
    result = huggingface.verify_huggingface(tokenizer, tmp_path, texts)
    assert result["first_divergence"] is None
    assert result["status"] == "verified"
    with pytest.raises(ArtifactError, match="does more to a text"):
        tiktoken.export(tokenizer, tmp_path / "ranks")


@pytest.mark.parametrize("name", ["tekken_240911", "claude.json"])
def test_published_vocabularies_keep_their_metadata(name, tmp_path):
    real.or_skip(VOCABULARIES[name].fetch)
    ours, _ = VOCABULARIES[name].open(tmp_path)
    ours.save(tmp_path / "native")
    again = load(tmp_path / "native")
    assert metadata(again) == metadata(ours)
    assert again.semantic_hash == ours.semantic_hash
    for text in strings(ours, 60, seed=9):
        ids = ours.encode(text, allowed_special="all")
        assert again.encode(text, allowed_special="all") == ids
        assert ours.decode_bytes(ids) == ours.normalize(text, "all")
        if keeps_text(ours):
            assert ours.decode(ids) == text
