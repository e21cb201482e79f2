"""Internal chunking never changes ids: chunks, slices, buffers and threads of any size give what one text at once gives."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import bpe_encode as oracle
from tokenizer.samples import SENTENCES, SPECIALS, TEXT, small

from tokctl.tokenizer import added_tokens
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.models import bpe_encoder
from tokctl.tokenizer.tokenizer import Tokenizer

fast = settings(max_examples=40, deadline=None, derandomize=True)
PARTS = [*SENTENCES, *SPECIALS, "<DOC>", " ", "\n\n", "aaaaaaa", "€", "123456789", "don't", SPECIALS[0][:7]]


def with_added(pattern):
    base = small(pattern)
    added = AddedToken(base.vocab_size, "<DOC>", lstrip=True, rstrip=True, special=False)
    return Tokenizer(base.pre_tokenizer, base.model, (*base.added_tokens, added), base.bos_token, base.eos_token)


def reference(tokenizer, text, allowed):
    """Cut at the added tokens by hand, split, and merge each word with the oracle."""
    model = tokenizer.model
    byte_ids = {byte: int(i) for byte, i in enumerate(model.byte_ids)}
    merges = [(int(left), int(right), int(new)) for (left, right), new in zip(model.merges, model.merged, strict=True)]
    names = {name: tokenizer.token_id(name) for name in (*allowed, "<DOC>")}
    ids = []

    def words(part):
        start = 0
        for end in tokenizer.pre_tokenizer.split(part.encode()).tolist():
            ids.extend(oracle.encode_word(part.encode()[start:end], byte_ids, merges))
            start = end

    begin = at = 0
    while at < len(text):
        name = next((name for name in names if text.startswith(name, at)), None)
        if name is None:
            at += 1
            continue
        before, after = text[begin:at], text[at + len(name) :]
        if name == "<DOC>":
            before = before.rstrip()
            after = after.lstrip()
        words(before)
        ids.append(names[name])
        begin = at = len(text) - len(after)
    words(text[begin:])
    return ids


def shrink(patch, size):
    """Every inner size that an encoding has, made ``size``."""
    for module, names in (
        (bpe_encoder, ("SLICE_BYTES", "CHUNK_BYTES", "_BUFFER_IDS", "_MERGE_STEPS")),
        (added_tokens, ("_SLICE_BYTES", "_FOUND")),
    ):
        for name in names:
            patch.setattr(module, name, max(size, 8) if name == "_BUFFER_IDS" else size)


@fast
@given(st.lists(st.sampled_from(PARTS), max_size=10).map("".join), st.sampled_from([1, 2, 3, 7, 16, 61]), st.booleans())
def test_one_text_equals_the_reference(text, size, allow):
    allowed = SPECIALS if allow else ()
    for pattern in ("gpt2", "none", r"\p{L}+(?=\s)|."):
        tokenizer = with_added(pattern)
        expected = reference(tokenizer, text, allowed)
        with pytest.MonkeyPatch.context() as patch:
            shrink(patch, size)
            for workers in (1, 2):
                ids, offsets = tokenizer.encode_flat([text], allowed_special=allowed, workers=workers)
                assert (ids.tolist(), offsets.tolist()) == (expected, [0, len(expected)])
            found = tokenizer.encode_with_offsets(text, allowed_special=allowed)
        assert found.ids == expected
        assert found == tokenizer.encode_with_offsets(text, allowed_special=allowed)


@pytest.mark.parametrize("size", [1, 5, 17, 100, 1000])
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "none"])
def test_many_texts_equal_single_ones(monkeypatch, pattern, size):
    tokenizer = with_added(pattern)
    texts = [TEXT, "", f"a <DOC> b{SPECIALS[0]}", "x", TEXT[::-1] * 2, " <DOC> " * 9, ""]
    expected = [tokenizer.encode(text, allowed_special="all") for text in texts]
    shrink(monkeypatch, size)
    for workers in (1, 2, 3):
        assert tokenizer.encode_batch(texts, allowed_special="all", workers=workers) == expected


def test_specials_at_every_place_of_a_chunk(monkeypatch):
    """A special that begins at each offset of a chunk of 16 bytes is found, and what only looks like one isn't."""
    tokenizer = with_added("gpt2")
    expected = {}
    for before in range(40):
        for name in (SPECIALS[0], "<DOC>", SPECIALS[0][:-1]):
            text = "a" * before + name + "b" * (40 - before)
            expected[text] = reference(tokenizer, text, SPECIALS)
    shrink(monkeypatch, 16)
    assert tokenizer.encode_batch(list(expected), allowed_special="all", workers=2) == list(expected.values())
