import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import bpe_dropout as oracle
from tokenizer.samples import TEXT, small

from tokctl.kernels import bpe_dropout as kernel

fast = settings(max_examples=120, deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_numbers(counter, key, expected):
    """The known answers of Random123 1.x for philox4x32-10."""
    assert tuple(oracle.philox(counter, key)) == expected
    lanes = np.zeros(4, np.uint64)
    block, occurrence = (counter[k] | counter[k + 1] << 32 for k in (0, 2))
    kernel.philox(signed(key[0] | key[1] << 32), signed(block), signed(occurrence), lanes)
    assert tuple(lanes.tolist()) == expected


def signed(number):
    return number - (1 << 64) if number >> 63 else number


def table_of(model):
    pairs = model.pairs
    keys = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
    return dict(zip(keys, zip(pairs.ranks.tolist(), pairs.merged.tolist(), strict=True), strict=True))


def drop(model, word, p, key, occurrence, n_steps=kernel.ALL_STEPS):
    space = kernel.drop_space(max(len(word), 1))
    data = np.frombuffer(word, np.uint8).copy()
    assert (
        kernel.start_drop(data, 0, len(word), model.byte_ids, model.merge_table, signed(key), occurrence, space) == -1
    )
    threshold = np.uint64(round(p * 2**32))
    while not kernel.continue_drop(model.merge_table, threshold, space, n_steps):
        pass
    out = np.empty(int(space.merge.state[kernel.N_SYMBOLS]), np.uint32)
    assert kernel.write_merged(space.merge, out, 0) == len(out)
    return out.tolist()


@fast
@given(
    st.lists(
        st.sampled_from([b"the", b" ", b"a", b"aaaa", b"dog", b"quick", "€".encode(), b"\xff"]), min_size=1, max_size=20
    ),
    st.sampled_from([0.01, 0.1, 0.5, 0.9, 0.999]),
    st.integers(0, (1 << 64) - 1),
    st.integers(0, (1 << 62)),
)
def test_the_kernel_equals_the_oracle(parts, p, key, occurrence):
    model = small("none").model
    word = b"".join(parts)
    ids = [int(model.byte_ids[byte]) for byte in word]
    expected = oracle.encode_word(ids, table_of(model), p, oracle.draws(key, occurrence))
    assert drop(model, word, p, key, occurrence) == expected
    assert drop(model, word, p, key, occurrence, n_steps=1) == expected
    assert b"".join(model.vocabulary.token(i) for i in expected) == word


def test_words_of_a_block():
    """Slices, a full output buffer and words beyond the working arrays change nothing."""
    tokenizer = small("gpt2")
    model = tokenizer.model
    data = np.frombuffer(TEXT.encode(), np.uint8).copy()
    ends = tokenizer.pre_tokenizer.split(data)
    starts = np.concatenate([[0], ends[:-1]])
    words = [data[start:stop].tobytes() for start, stop in zip(starts, ends, strict=True)]
    expected = [drop(model, word, 0.3, 77, 5 + k) for k, word in enumerate(words)]
    flat = [token for ids in expected for token in ids]
    for n_out, max_bytes, room in ((len(data), 1 << 30, 64), (64, 1, 64), (len(data), 50, 8)):
        space, cursor, found, calls = kernel.drop_space(room), np.zeros(3, np.int64), [], 0
        out = np.empty(n_out, np.uint32)
        while True:
            calls += 1
            status = kernel.drop_words(
                data, 0, ends, 77, 5, model.byte_ids, model.merge_table, np.uint64(round(0.3 * 2**32)), space, out, cursor,
                max_bytes,
            )  # fmt: skip
            found += out[: cursor[kernel.N_OUT]].tolist()
            cursor[kernel.N_OUT] = 0
            if status == kernel.DONE:
                break
            if status == kernel.LONG_WORD:
                assert len(words[cursor[kernel.WORD]]) > room
                found += expected[cursor[kernel.WORD]]
                cursor[kernel.WORD] += 1
        assert found == flat
        assert calls == 1 or n_out == 64 or room == 8


def test_a_long_word_takes_no_quadratic_time():
    begin = time.perf_counter()
    model = small("none").model
    ids = drop(model, b"the quick " * 30_000, 0.5, 1, 0)
    assert time.perf_counter() - begin < 10
    assert b"".join(model.vocabulary.token(i) for i in ids) == b"the quick " * 30_000


def test_one_signature():
    tokenizer = small("gpt2")
    from tokctl.tokenizer.dropout import Dropout

    tokenizer.encode(TEXT, dropout=Dropout(0.5))
    tokenizer.encode_flat([TEXT, "x" * 9000], dropout=Dropout(0.5, seed=2**64 - 1), workers=2)
    drop(tokenizer.model, b"word", 0.5, 2**64 - 1, 3)
    for function in (kernel.drop_words, kernel.continue_drop, kernel.start_drop):
        assert len(function.signatures) == 1, function
