import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import bpe_dropout as oracle
from oracles.bpe_schedules import occurrence_priority
from tokenizer.samples import SENTENCES, SPECIALS, TEXT, small

from tokctl.errors import DataError, UsageError
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.dropout import Dropout
from tokctl.tokenizer.models import bpe_dropout
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary

fast = settings(max_examples=40, deadline=None, derandomize=True)


def oracle_ids(tokenizer, text, dropout, sample):
    """The ids of a text without added tokens, word by word."""
    model = tokenizer.model
    pairs = model.pairs
    keys = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
    table = dict(zip(keys, zip(pairs.ranks.tolist(), pairs.merged.tolist(), strict=True), strict=True))
    key = oracle.sample_key(dropout.seed, dropout.epoch, dropout.view, sample)
    found = []
    for number, (start, stop) in enumerate(itertools.pairwise([0, *tokenizer.pre_tokenizer.split(text).tolist()])):
        ids = [int(model.byte_ids[byte]) for byte in text[start:stop]]
        found += oracle.encode_word(ids, table, dropout.p, oracle.draws(key, number))
    return found


# a pinned trace: a = 0, b = 1, c = 2; rank 0: a b -> 3, rank 1: 3 c -> 4, rank 2: 4 4 -> 5
TRACE = """
abcabc, p = 1/2, seed 11, epoch 0, view 0, sample "doc", word 0: a draw below 0x80000000 drops
symbols            pair          draw
0 1 2 0 1 2   rank 0 at 0   0x2fe345b5 dropped
0 1 2 0 1 2   rank 0 at 3   0xb0832bd9 merged
0 1 2 3 2     rank 0 at 0   0xd2e299ab merged
3 2 3 2       rank 1 at 0   0x2aac1f79 dropped
3 2 3 2       rank 1 at 2   0xc11cec00 merged
3 2 4         rank 1 at 0   0xa595979a merged
4 4           rank 2 at 0   0xfb21810f merged
5
"""
TABLE = {(0, 1): (0, 3), (3, 2): (1, 4), (4, 4): (2, 5)}


def test_a_pinned_trace():
    key = oracle.sample_key(11, 0, 0, b"doc")
    assert key == 0xA52D11D2CC37EE11
    draws = []
    ids = oracle.encode_word([0, 1, 2, 0, 1, 2], TABLE, 0.5, oracle.draws(key, 0), draws)
    lines = [
        f"{' '.join(map(str, draw.symbols)):<13} rank {draw.rank} at {draw.position}   {draw.value:#010x} "
        + ("dropped" if draw.dropped else "merged")
        for draw in draws
    ]
    print("\n".join(lines))
    assert [*lines, " ".join(map(str, ids))] == TRACE.strip().split("\n")[2:]
    tokenizer = Tokenizer.from_merges("abc", [(0, 1), (3, 2), (4, 4)])
    dropout = Dropout(0.5, seed=11)
    assert dropout.key("doc") == key
    assert tokenizer.encode("abcabc", dropout=dropout, sample="doc") == [5]
    found = {
        name: tokenizer.encode("abcabc", dropout=Dropout(0.5, **numbers), sample=sample)
        for name, numbers, sample in (
            ("another seed", {"seed": 3}, "doc"),
            ("another epoch", {"seed": 11, "epoch": 1}, "doc"),
            ("another view", {"seed": 11, "view": 1}, "doc"),
            ("another sample", {"seed": 11}, "other"),
        )
    }
    assert found == {
        "another seed": [0, 1, 2, 4],
        "another epoch": [4, 0, 1, 2],
        "another view": [0, 1, 2, 3, 2],
        "another sample": [4, 4],
    }


def test_nothing_dropped_is_plain_bpe_and_all_dropped_is_bytes():
    for pattern in ("gpt2", "none", r"\p{L}+(?=\s)|."):
        tokenizer = small(pattern)
        assert tokenizer.encode(TEXT, dropout=Dropout(0)) == tokenizer.encode(TEXT)
        assert tokenizer.encode(TEXT, dropout=Dropout(1)) == tokenizer.model.byte_ids[list(TEXT.encode())].tolist()
        assert tokenizer.encode("", dropout=Dropout(0.5)) == []
    ids = list(b"abcabc")
    assert oracle.encode_word(ids, {}, 0.5, iter(())) == ids
    start = [0, 1, 2, 0, 1, 2]
    assert oracle.encode_word(start, TABLE, 0, itertools.repeat(0)) == occurrence_priority(start, TABLE) == [5]


@fast
@given(
    st.lists(st.sampled_from([*SENTENCES, "x", "1234567", "  \n"]), max_size=4).map("".join),
    st.sampled_from([0.05, 0.5, 0.95]),
    st.integers(0, 2**64 - 1),
    st.integers(0, 3),
    st.integers(0, 3),
    st.binary(max_size=9),
)
def test_texts_equal_the_oracle(text, p, seed, epoch, view, sample):
    dropout = Dropout(p, seed, epoch, view)
    for pattern in ("gpt2", r"\p{L}+(?=\s)|."):
        tokenizer = small(pattern)
        ids = tokenizer.encode(text, dropout=dropout, sample=sample)
        assert ids == oracle_ids(tokenizer, text.encode(), dropout, sample)
        assert tokenizer.decode(ids) == text


def test_order_workers_batches_and_chunks_change_no_sample(monkeypatch):
    tokenizer = small()
    dropout = Dropout(0.4, seed=5, epoch=2)
    texts = {f"doc-{k}": "".join(SENTENCES[k % 8 :]) * (k % 3) + SENTENCES[k % 5] for k in range(40)}
    alone = {name: tokenizer.encode(text, dropout=dropout, sample=name) for name, text in texts.items()}
    assert len({tuple(ids) for ids in alone.values()}) == 40
    for names in (list(texts), list(texts)[::-1], list(texts)[7:9]):
        for workers in (1, 3):
            for chunk in (4 << 20, 300):
                monkeypatch.setattr(bpe_dropout, "CHUNK_BYTES", chunk)
                found = tokenizer.encode_batch(
                    [texts[name] for name in names], dropout=dropout, samples=names, workers=workers
                )
                assert dict(zip(names, found, strict=True)) == {name: alone[name] for name in names}
    for name, value in {
        "SLICE_BYTES": 10,
        "BLOCK_WORDS": 3,
        "LONGEST_WORD": 8,
        "_BUFFER_IDS": 20,
        "_MERGE_STEPS": 5,
    }.items():
        monkeypatch.setattr(bpe_dropout, name, value)
    names = pa.array(list(texts), pa.large_string())
    assert tokenizer.encode_batch(list(texts.values()), dropout=dropout, samples=names) == list(alone.values())


def test_a_text_names_itself():
    tokenizer = small()
    dropout = Dropout(0.5)
    texts = ["the quick dog", "the quick dog ", "the quick dog"]
    first, second, third = tokenizer.encode_batch(texts, dropout=dropout)
    assert first == third == tokenizer.encode(texts[0], dropout=dropout, sample=texts[0])
    assert first != second[: len(first)]
    same_words = tokenizer.encode("the the the the the the the the", dropout=dropout)
    assert len({len(same_words), 8}) == 2  # each occurrence has draws of its own


def test_added_tokens_and_what_goes_around_are_never_dropped():
    tokenizer = small()
    text = f"the dog{SPECIALS[1]} the dog{SPECIALS[1]}"
    dropout = Dropout(0.5, seed=1)
    ids = tokenizer.encode(text, bos=True, allowed_special="all", dropout=dropout, sample="a")
    pad = tokenizer.token_id(SPECIALS[1])
    assert ids[0] == tokenizer.token_id(SPECIALS[0]) and ids.count(pad) == 2 and ids[-1] == pad
    inner = tokenizer.encode("the dog the dog", dropout=dropout, sample="a")
    assert [i for i in ids[1:] if i != pad] == inner  # words are numbered through the pieces
    found = tokenizer.encode_with_offsets(text, allowed_special="all", dropout=dropout, sample="a", bos=True)
    assert found.ids == ids
    raw = text.encode()
    assert all(tokenizer.token_bytes(i) == raw[a:b] for i, (a, b) in list(zip(ids, found.offsets, strict=True))[1:])


def test_whole_words_are_looked_up_only_where_nothing_is_dropped():
    tokens = [*(bytes([byte]) for byte in range(256)), b"the", b"th"]
    tokenizer = Tokenizer(
        small("gpt2").pre_tokenizer, BPE(Vocabulary.from_tokens(tokens), None, None, whole_words=True)
    )
    assert tokenizer.encode("the", dropout=Dropout(0)) == [256]
    assert tokenizer.encode("the", dropout=Dropout(1)) == list(b"the")


def test_control_tokens_are_made_by_no_merge():
    tokenizer = small("none")
    token_id = tokenizer.model.token_ids[-1]
    spelled = tokenizer.model.vocabulary.token(int(token_id)).decode()
    control = Tokenizer(tokenizer.pre_tokenizer, tokenizer.model, (AddedToken(int(token_id), spelled),))
    for seed in range(20):
        assert token_id not in control.encode(spelled, dropout=Dropout(0.01, seed=seed))


@pytest.mark.parametrize("wrong", [{"p": -0.1}, {"p": 1.5}, {"p": float("nan")}, {"p": True}, {"p": 0.5, "seed": -1}])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError, match="dropout"):
        Dropout(**wrong)


def test_errors():
    tokenizer = Tokenizer.from_merges("ab", [(0, 1)])
    with pytest.raises(DataError, match="0x3F") as caught:
        tokenizer.encode_flat([b"ab", b"abab?"], dropout=Dropout(0.5))
    assert (caught.value.where.row, caught.value.where.offset) == (1, 4)
    with pytest.raises(UsageError, match="1 sample names for 2 texts"):
        tokenizer.encode_flat(["a", "b"], dropout=Dropout(0.5), samples=["x"])


def test_draws_are_fair():
    """Of 20,000 words ab a share of p stays a b."""
    tokenizer = Tokenizer.from_merges(bytes(range(256)), [(97, 98)], pattern=r"ab")
    for p in (0.1, 0.5, 0.9):
        ids = tokenizer.encode("ab" * 20_000, dropout=Dropout(p, seed=8))
        assert abs(np.mean([len(ids) - 20_000]) / 20_000 - p) < 0.015


def test_describe_is_canonical():
    from tokctl.artifacts.canonical import canonical_json

    described = Dropout(0.1, seed=2**64 - 1).describe()
    assert canonical_json(described)
    assert {"method", "p", "generator", "scope", "draw_order", "seed"} <= described.keys()
