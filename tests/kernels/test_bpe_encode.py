from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import bpe_encode as oracle
from tokenizer.samples import TEXT, small

from tokctl.errors import DataError, TokctlError
from tokctl.kernels import bpe_encode, bpe_merge_word, bpe_tokens, merge_table, token_bytes, word_cache, word_table
from tokctl.tokenizer.decoding import join_tokens
from tokctl.tokenizer.layout import from_merges
from tokctl.tokenizer.models import bpe_encoder
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.texts import flatten
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary

fast = settings(max_examples=60, deadline=None, derandomize=True)


def oracle_ids(tokenizer, word):
    model = tokenizer.model
    byte_ids = {byte: int(token_id) for byte, token_id in enumerate(model.byte_ids) if token_id >= 0}
    merges = [(int(left), int(right), int(new)) for (left, right), new in zip(model.merges, model.merged, strict=True)]
    return oracle.encode_word(word, byte_ids, merges)


def merge(tokenizer, word, short):
    space = bpe_merge_word.merge_space(max(len(word), 64))
    data = np.frombuffer(word, np.uint8).copy()
    model = tokenizer.model
    if short:
        n = bpe_merge_word.merge_short(data, 0, len(word), model.byte_ids, model.byte_pairs, model.merge_table, space)
        return space.ids[:n].tolist()
    assert bpe_merge_word.start_merge(data, 0, len(word), model.byte_ids, model.merge_table, space) == -1
    bpe_merge_word.continue_merge(model.merge_table, space, bpe_merge_word.ALL_STEPS)
    out = np.empty(int(space.state[0]), np.uint32)
    assert bpe_merge_word.write_merged(space, out, 0) == len(out)
    return out.tolist()


@st.composite
def tables(draw):
    """A random merge table over a, b, c: each merge joins two tokens that exist before it."""
    tokens = [b"a", b"b", b"c"]
    merges = []
    for _ in range(draw(st.integers(0, 12))):
        pair = draw(st.integers(0, len(tokens) - 1)), draw(st.integers(0, len(tokens) - 1))
        made = tokens[pair[0]] + tokens[pair[1]]
        if made not in tokens and len(made) < 30:
            merges.append(pair)
            tokens.append(made)
    return from_merges("abc", merges)


@fast
@given(tables(), st.lists(st.sampled_from(b"aabbc"), min_size=1, max_size=80).map(bytes))
def test_both_ways_of_merging_equal_the_oracle(tokenizer, word):
    expected = oracle_ids(tokenizer, word)
    assert merge(tokenizer, word, short=True) == expected
    assert merge(tokenizer, word, short=False) == expected
    assert tokenizer.encode(word) == expected


@fast
@given(st.data())
def test_words_glued_from_the_vocabulary_equal_the_oracle(data):
    tokenizer = small("none")
    tokens = [token for token in tokenizer.model.vocabulary.tokens() if token]
    word = b"".join(data.draw(st.lists(st.sampled_from(tokens), min_size=1, max_size=25)))
    assert tokenizer.encode(word) == oracle_ids(tokenizer, word)


@pytest.mark.parametrize(
    "word", [b"a", b"a" * 39, b"a" * 40, b"a" * 41, b"a" * 1000, b"ab" * 300, bytes(range(256)) * 2]
)
def test_long_runs_equal_the_oracle(word):
    tokenizer = small("none")
    assert tokenizer.encode(word) == oracle_ids(tokenizer, word)


@fast
@given(
    st.lists(st.sampled_from([b"a", b"b", b"ab", b"ba", b"aab", b"abb", b"abab", b"bbbb"]), unique=True), st.binary()
)
def test_ranks_equal_the_oracle(longer, seed):
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {token: 256 + k for k, token in enumerate(token for token in longer if token not in ranks)}
    vocabulary = Vocabulary.from_tokens(ranks)
    tokenizer = Tokenizer(small("none").pre_tokenizer, BPE(vocabulary, None, None, whole_words=True))
    for n in (1, 2, 3, 5, 8, 13, 60):
        word = bytes(b"ab"[byte & 1] for byte in (seed + b"\x01\x00\x00\x01" * 20)[:n])
        assert tokenizer.encode(word) == oracle.encode_word_by_ranks(word, ranks)


def test_occurrences_are_merged_one_at_a_time():
    """Rank 0: (256, a) -> 257, rank 1: (a, a) -> 256: a table in which a merge comes before the one that feeds it."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"aa", b"aaa"]
    model = BPE.from_merges(Vocabulary.from_tokens(tokens), [(256, 97), (97, 97)])
    tokenizer = Tokenizer(small("none").pre_tokenizer, model)
    assert tokenizer.encode("aaaa") == [257, 97]
    assert merge(tokenizer, b"aaaa", short=False) == [257, 97]


def test_steps_at_once_equal_single_steps():
    tokenizer = small("none")
    word = (TEXT * 2).encode()
    data = np.frombuffer(word, np.uint8).copy()
    model = tokenizer.model
    ids = []
    for n_steps in (1, 7, bpe_merge_word.ALL_STEPS):
        space = bpe_merge_word.merge_space(len(word))
        bpe_merge_word.start_merge(data, 0, len(word), model.byte_ids, model.merge_table, space)
        calls = 1
        while not bpe_merge_word.continue_merge(model.merge_table, space, n_steps):
            calls += 1
        out = np.empty(int(space.state[0]), np.uint32)
        bpe_merge_word.write_merged(space, out, 0)
        ids.append(out.tolist())
        assert calls > 100 or n_steps == bpe_merge_word.ALL_STEPS
    assert ids[0] == ids[1] == ids[2]


@pytest.mark.parametrize("pattern", ["gpt2", "none"])
def test_small_slices_and_buffers_change_nothing(monkeypatch, pattern):
    texts = [TEXT, "", "x", TEXT * 3, " ", "aaaa" * 50]
    tokenizer = small(pattern)
    expected = tokenizer.encode_batch(texts)
    monkeypatch.setattr(bpe_encoder, "SLICE_BYTES", 1)
    monkeypatch.setattr(bpe_encoder, "_BUFFER_IDS", 8)
    assert tokenizer.encode_batch(texts) == expected
    assert tokenizer.encode_batch(texts, bos=True) == [[tokenizer.token_id("<|endoftext|>"), *ids] for ids in expected]


def encode_with(tokenizer, cache, text):
    """Ids by way of the given cache, twice: the second time words are found in it."""
    encoder = bpe_encoder.BPEEncoder(tokenizer.model, tokenizer.pre_tokenizer)
    space = bpe_encoder._Space(bpe_encode.workspace(cache), bpe_merge_word.merge_space(bpe_encode.LONGEST_WORD))
    encoder._spaces.append(space)
    data = np.frombuffer(text.encode(), np.uint8).copy()
    pieces = tokenizer.prepare(data, np.array([0, len(data)])).pieces
    first, second = (encoder.encode(data, pieces)[0].tolist() for _ in range(2))
    assert first == second
    return first


@pytest.mark.parametrize("slot_bits", [1, 3, 6, 12])
def test_a_crowded_cache_changes_nothing(slot_bits):
    """Few slots: words push one another out all the time."""
    tokenizer = small()
    text = TEXT * 3 + "".join(f" {n}abc{n * n}" for n in range(2000))
    cache = word_cache.word_cache(slot_bits)
    assert encode_with(tokenizer, cache, text) == tokenizer.encode(text)
    assert np.count_nonzero(cache.slots[1::4]) > 0


def test_a_full_cache_is_emptied_and_changes_nothing():
    tokenizer = small()
    text = "".join(f" {'abcdefghijklmnopqrstuvwxyz' * (n % 5)}{n}" for n in range(3000))
    cache = word_cache.word_cache(12)._replace(arena=np.empty(1000, np.uint8), ids=np.empty(400, np.uint32))
    assert encode_with(tokenizer, cache, text) == tokenizer.encode(text)
    assert 0 < cache.state[word_cache.ARENA_USED] <= 1000
    assert 0 < cache.state[word_cache.IDS_USED] <= 400


def test_a_long_word_with_the_key_of_another_is_not_taken_for_it():
    """The key of a long word is only a hash: forge an entry whose key fits and whose bytes don't."""
    tokenizer = small("none")
    word, other = b"abcdefghijklmnopqrst", b"abcdefghijklmnopqrsT"
    cache = word_cache.word_cache(4)
    assert encode_with(tokenizer, cache, word.decode()) == oracle_ids(tokenizer, word)
    at = bytes(cache.arena[:20]).index(b"t")
    cache.arena[at] = ord("T")  # now the entry of ``word`` says that it is ``other``
    assert encode_with(tokenizer, cache, word.decode()) == oracle_ids(tokenizer, word)
    assert encode_with(tokenizer, cache, other.decode()) == oracle_ids(tokenizer, other)


@fast
@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=30, unique=True), st.integers(0, 40))
def test_a_vocabulary_finds_its_tokens_and_nothing_else(tokens, padding):
    """Also at the very end of the data, where 16 bytes can't be read, and with bytes of 0 at the end of a word."""
    vocabulary = Vocabulary.from_tokens(tokens)
    ids = np.arange(len(tokens), dtype=np.int32)
    table, twice = word_table.token_table(vocabulary.data, vocabulary.offsets, ids)
    assert twice == -1
    for word in [*tokens, *(token + b"\0" for token in tokens), *(token[:-1] for token in tokens if len(token) > 1)]:
        data = np.frombuffer(word + b"x" * padding, np.uint8).copy()
        found = word_table.find_token(table, data, 0, len(word))
        assert found == (tokens.index(word) if word in tokens else -1)


def test_words_beyond_the_kernels_limit_are_merged_in_slices(monkeypatch):
    monkeypatch.setattr(bpe_encoder, "_MERGE_STEPS", 1000)
    doubling = from_merges(bytes(range(256)), [(97, 97), (256, 256), (257, 257), (258, 258)])
    n = bpe_encode.LONGEST_WORD + 21
    assert doubling.encode("b" + "a" * n + "b") == [98, *[259] * (n // 16), 257, 97, 98]
    two = doubling.encode_batch(["a" * n, "ba" * n, "aa"])
    assert two == [[259] * (n // 16) + [257, 97], [98, 97] * n, [256]]
    assert doubling.encode_with_offsets("a" * n).offsets[-1] == (n - 1, n)


def test_worst_cases_finish_in_seconds():
    tokenizer = small("none")
    ids = tokenizer.encode("a" * 1_000_000)
    assert tokenizer.decode_bytes(ids) == b"a" * 1_000_000
    gpt2 = small("gpt2")
    for text in ("0123456789" * 10_000, "\U0001f600" * 16_384, "_" * 50_000, " " * 200_000 + "x"):
        assert gpt2.decode(gpt2.encode(text)) == text


@pytest.mark.parametrize("position", [0, 3, 50, bpe_encode.LONGEST_WORD + 500])
def test_a_byte_outside_the_alphabet_is_named(position):
    tokenizer = from_merges("ab", [(0, 1)])
    text = b"a" * position + b"?" + b"b" * 100
    with pytest.raises(DataError, match="0x3F") as caught:
        tokenizer.encode_flat([b"ab", text])
    assert caught.value.code == "byte-outside-alphabet"
    assert (caught.value.where.row, caught.value.where.offset) == (1, position)


def test_each_kernel_has_one_signature():
    import pyarrow as pa

    tokenizer = small()
    texts = ["some words", "more, of them " * 200]
    array = pa.array(texts, pa.large_string())
    for source in (texts, [text.encode() for text in texts], array, pa.chunked_array([array, array]), array[1:]):
        ids, offsets = tokenizer.encode_flat(source)
        ids.flags.writeable = False
        tokenizer.decode(ids)
        assert offsets.dtype == np.int64
        assert ids.dtype == np.uint32
    small("none").encode("some words")
    tokenizer.encode_with_offsets("é", "raw_codepoints")
    kernels = [
        bpe_encode.encode_segments,
        bpe_merge_word.merge_short,
        bpe_merge_word.start_merge,
        merge_table.fill_merge_table,
        bpe_tokens.encodes_to_itself,
        token_bytes.decode_ids,
        token_bytes.measure_ids,
        word_table.fill_token_table,
    ]
    assert {kernel.__name__: len(kernel.signatures) for kernel in kernels} == {k.__name__: 1 for k in kernels}


def test_split_pairs_are_all_the_splits_into_tokens():
    tokens = [b"a", b"b", b"c", b"ab", b"bc", b"abc", b"abcabc", b"zz"]
    model = BPE(Vocabulary.from_tokens(tokens), None, None)
    pairs = model.pairs
    found = set(zip(pairs.left.tolist(), pairs.right.tolist(), pairs.merged.tolist(), strict=True))
    expected = {
        (tokens.index(token[:i]), tokens.index(token[i:]), tokens.index(token))
        for token in tokens
        for i in range(1, len(token))
        if token[:i] in tokens and token[i:] in tokens
    }
    assert found == expected
    assert len(expected) == 5


def test_reachability_is_proved_by_encoding():
    tokens = [bytes([byte]) for byte in range(256)] + [b"abc", b"ab", b"x" * 60]
    model = BPE(Vocabulary.from_tokens(tokens), None, None, whole_words=True)
    assert model.unreachable == [258]  # abc is ab + c, but nothing leads to the sixty x
    lonely = BPE(Vocabulary.from_tokens([*tokens[:256], b"abc"]), None, None, whole_words=True)
    assert lonely.unreachable == [256]
    tokenizer = Tokenizer(small("none").pre_tokenizer, lonely)
    assert tokenizer.encode("abc") == [256]
    assert tokenizer.encode("abcd") == [97, 98, 99, 100]


@fast
@given(st.data())
def test_decoding_joins_the_tokens(data):
    """Short tokens, long ones and empty ones, at the end of the output too."""
    tokens = data.draw(st.lists(st.one_of(st.none(), st.binary(max_size=40)), min_size=1, max_size=20))
    vocabulary = Vocabulary.from_tokens(tokens)
    ids = data.draw(st.lists(st.integers(0, len(tokens) + 1), max_size=60))
    known = [i < len(tokens) and tokens[i] is not None for i in ids]
    if all(known):
        assert join_tokens(vocabulary, ids) == b"".join(tokens[i] for i in ids)
        return
    with pytest.raises(DataError, match=rf"id {ids[known.index(False)]} \(number {known.index(False)}") as caught:
        join_tokens(vocabulary, np.array(ids, np.uint32))
    assert caught.value.code == "unknown-id"


@pytest.mark.parametrize("text", ["", "x", "plain text " * 50, "caf\u00e9", "\u4e2d\u6587", b"\xff\x00", b""])
def test_one_text_is_read_in_place(text):
    expected = text if isinstance(text, bytes) else text.encode()
    data, offsets = flatten([text])
    assert (data.tobytes(), offsets.tolist()) == (expected, [0, len(expected)])
    tokenizer = small()
    assert tokenizer.encode(text) == tokenizer.encode_batch([text, "another"])[0]
    del text
    assert data.tobytes() == expected


def test_many_texts_are_gathered_like_few():
    texts = [TEXT[k % 7 : k % 50] + "é" * (k % 3) for k in range(300)]
    data, offsets = flatten(texts)
    assert [data[a:b].tobytes().decode() for a, b in pairwise(offsets.tolist())] == texts
    data, offsets = flatten([*texts, b"\xff"])
    assert data[offsets[-2] :].tobytes() == b"\xff"
    for bad, code in ((None, "null-text"), ("\ud800", "lone-surrogate"), (7, "not-a-text")):
        with pytest.raises(TokctlError) as caught:
            flatten([*texts, bad])
        assert caught.value.code == code
        assert code == "not-a-text" or caught.value.where.row == 300
