import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer.samples import SENTENCES, SPECIALS, TEXT, small

from tokctl.errors import ArtifactError, DataError, UsageError
from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.template import Piece, Template
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary

fast = settings(max_examples=80, deadline=None, derandomize=True)
END = small().token_id("<|endoftext|>")


@fast
@given(st.binary())
def test_any_bytes_come_back(data):
    tokenizer = small()
    assert tokenizer.decode_bytes(tokenizer.encode(data)) == data


@fast
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text):
    tokenizer = small("cl100k")
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids, errors="strict") == text
    assert ids == tokenizer.encode(text.encode())


@pytest.mark.parametrize("text", ["the  cat\n\tsat ", " ?", "'a' 'b", "hello !", "a\x00b", "a\r\nb\r", "\ufeffx"])
def test_white_space_and_controls_are_kept(text):
    assert small().decode(small().encode(text)) == text


def test_fitted_tokens_are_used():
    tokenizer = small()
    assert len(tokenizer.encode(TEXT)) < len(TEXT.encode()) * 0.7
    assert [tokenizer.token_bytes(i) for i in tokenizer.encode(" the dog")] == [b" the", b" dog"]


def test_a_lone_surrogate_is_named():
    with pytest.raises(DataError, match="character 2 is a lone surrogate") as caught:
        small().encode("é1\ud800x")
    assert caught.value.code == "lone-surrogate"
    assert caught.value.where.offset == 3
    with pytest.raises(DataError, match="text 1") as caught:
        small().encode_batch(["ok", "\udfff"])
    assert caught.value.where.row == 1


@pytest.mark.parametrize("wrong", [None, 3, ["a"]])
def test_what_is_no_text_is_refused(wrong):
    with pytest.raises((UsageError, DataError)):
        small().encode(wrong)


def test_one_text_is_not_a_batch():
    with pytest.raises(UsageError, match="several texts"):
        small().encode_batch("abc")


# -- batches


def test_batches_equal_single_texts():
    texts = [*SENTENCES, "", "x", b"\xff\xfe", "<|endoftext|>"]
    tokenizer = small()
    expected = [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_batch(texts) == expected
    assert tokenizer.encode_batch(iter(texts)) == expected
    ids, offsets = tokenizer.encode_flat(texts)
    assert (ids.dtype, offsets.dtype, offsets[0], len(offsets)) == (np.uint32, np.int64, 0, len(texts) + 1)
    assert [ids[offsets[i] : offsets[i + 1]].tolist() for i in range(len(texts))] == expected
    assert tokenizer.encode_batch([]) == []


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_arrow_arrays_equal_lists(kind):
    texts = [*SENTENCES, "", "x" * 50]
    tokenizer = small()
    expected = tokenizer.encode_batch(texts)
    array = pa.array(texts, kind)
    assert tokenizer.encode_batch(array) == expected
    assert tokenizer.encode_batch(array[3:7]) == expected[3:7]
    assert tokenizer.encode_batch(array[3:3]) == []
    assert tokenizer.encode_batch(pa.chunked_array([array[:2], array[5:]])) == expected[:2] + expected[5:]
    assert tokenizer.encode_batch(pa.chunked_array([], kind)) == []
    assert tokenizer.encode_batch(pa.array([], kind)) == []
    found = tokenizer.encode_flat_with_offsets(array[3:7], "raw_codepoints")
    assert found.text(0) == tokenizer.encode_with_offsets(texts[3], "raw_codepoints")


def test_null_and_foreign_arrow_values_are_named():
    with pytest.raises(DataError, match="text 1 is null") as caught:
        small().encode_flat(pa.array(["a", None, "b"]))
    assert (caught.value.code, caught.value.where.row) == ("null-text", 1)
    with pytest.raises(DataError, match="text 1 is null"):
        small().encode_flat(["a", None])
    with pytest.raises(UsageError, match="int64"):
        small().encode_flat(pa.array([1, 2]))


@pytest.mark.parametrize("pattern", ["gpt2", r"(?<=a)b|\p{L}+"])
def test_workers_do_not_change_ids(monkeypatch, pattern):
    from tokctl.tokenizer.models import bpe_encoder

    monkeypatch.setattr(bpe_encoder, "CHUNK_BYTES", 300)
    tokenizer = small(pattern)
    texts = [SENTENCES[i % len(SENTENCES)] * (i % 4) for i in range(60)] + ["<|pad|>x"] * 3
    options = {"bos": True, "allowed_special": ["<|pad|>"]}
    ids, offsets = tokenizer.encode_flat(texts, workers=1, **options)
    for workers in (2, 5):
        other, other_offsets = tokenizer.encode_flat(texts, workers=workers, **options)
        assert np.array_equal(ids, other)
        assert np.array_equal(offsets, other_offsets)
    assert [tokenizer.encode(text, **options) for text in texts] == tokenizer.encode_batch(texts, workers=3, **options)
    with pytest.raises(UsageError, match="workers"):
        tokenizer.encode_flat(texts, workers=0)


def test_a_tokenizer_is_shared_by_threads():
    tokenizer = small()
    expected = tokenizer.encode(TEXT)
    with ThreadPoolExecutor(4) as pool:
        assert all(ids == expected for ids in pool.map(lambda _: tokenizer.encode(TEXT), range(40)))


# -- control tokens


def test_content_never_becomes_a_control_token_unless_allowed():
    tokenizer = small()
    text = "a<|endoftext|>b<|pad|>"
    control = set(tokenizer.special_ids.values())
    assert control.isdisjoint(tokenizer.encode(text))
    assert tokenizer.decode(tokenizer.encode(text)) == text
    only = tokenizer.encode(text, allowed_special=["<|endoftext|>"])
    assert control.intersection(only) == {END}
    everything = tokenizer.encode(text, allowed_special="all")
    assert control.intersection(everything) == control
    assert tokenizer.decode(everything) == text


def test_words_do_not_cross_a_control_token():
    tokenizer = small()
    expected = [*tokenizer.encode("the"), END, *tokenizer.encode("the")]
    assert tokenizer.encode("the<|endoftext|>the", allowed_special="all") == expected


def test_specials_in_text_can_be_refused():
    tokenizer = small()
    assert tokenizer.encode("plain", special_in_text="error") == tokenizer.encode("plain")
    with pytest.raises(DataError, match=r"'<\|pad\|>'") as caught:
        tokenizer.encode_batch(["fine", "é <|pad|>"], special_in_text="error")
    assert (caught.value.code, caught.value.where.row, caught.value.where.offset) == ("special-in-text", 1, 3)
    ids = tokenizer.encode("<|endoftext|>", allowed_special=["<|endoftext|>"], special_in_text="error")
    assert ids == [END]
    with pytest.raises(DataError, match="pad"):
        tokenizer.encode("<|endoftext|><|pad|>", allowed_special=["<|endoftext|>"], special_in_text="error")
    with pytest.raises(UsageError, match="unknown policy"):
        tokenizer.encode("x", special_in_text="maybe")


def test_allowed_names_are_checked():
    with pytest.raises(UsageError, match="not a special token"):
        small().encode("x", allowed_special=["<|nope|>"])
    with pytest.raises(UsageError, match="list of names"):
        small().encode("x", allowed_special="<|pad|>")


def test_bos_and_eos_are_put_once():
    tokenizer = small()
    ids = tokenizer.encode("the")
    assert tokenizer.encode("the", bos=True) == [END, *ids]
    assert tokenizer.encode("the", eos=True) == [*ids, END]
    assert tokenizer.encode("", bos=True, eos=True) == [END, END]
    around = Tokenizer(
        tokenizer.pre_tokenizer,
        tokenizer.model,
        tokenizer.added_tokens,
        SPECIALS[0],
        SPECIALS[1],
        Template.around((END,), ()),
    )
    assert around.encode("the", add_special_tokens=True) == [END, *ids]
    assert around.encode("the", add_special_tokens=True, bos=True) == [END, *ids]
    assert around.encode("the", add_special_tokens=True, bos=True, eos=True) == [END, *ids, around.token_id("<|pad|>")]
    batch = around.encode_batch(["the", "", "the"], add_special_tokens=True, eos=True)
    assert batch == [around.encode(text, add_special_tokens=True, eos=True) for text in ("the", "", "the")]


def test_a_missing_bos_is_a_usage_error():
    with pytest.raises(UsageError, match="names no bos token"):
        Tokenizer.from_merges("ab", []).encode("a", bos=True)


def test_a_merge_that_would_make_a_control_token_is_not_made():
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"abab"]
    model = BPE.from_merges(Vocabulary.from_tokens(tokens), [(97, 98), (256, 256)], whole_words=True)
    tokenizer = Tokenizer(small("none").pre_tokenizer, model, (AddedToken(257, "abab"),))
    assert tokenizer.encode("abab") == [256, 256]
    assert tokenizer.encode("abab", allowed_special="all") == [257]
    assert tokenizer.decode([257]) == "abab"
    with pytest.raises(ArtifactError, match="base token of the alphabet"):
        Tokenizer(small("none").pre_tokenizer, model, (AddedToken(97, "a"),))


@pytest.mark.parametrize(
    ("added", "options"),
    [
        ((AddedToken(600, "x"), AddedToken(601, "x")), {}),
        ((AddedToken(600, "x"), AddedToken(600, "y")), {}),
        ((AddedToken(600, ""),), {}),
        ((AddedToken(600, "x"),), {"bos_token": "y"}),
        ((), {"template": Template.around((999,), ())}),
        ((), {"template": Template((Piece("B"),))}),
    ],
)
def test_a_tokenizer_that_contradicts_itself_is_refused(added, options):
    with pytest.raises(ArtifactError):
        Tokenizer(small().pre_tokenizer, small("none", specials=()).model, added, **options)


# -- decoding


def test_decoding_parts_of_characters():
    tokenizer = Tokenizer.from_merges(bytes(range(256)), [(0xE2, 0x82)])
    ids = tokenizer.encode("€")
    assert ids == [256, 0xAC]
    assert [tokenizer.token_bytes(i) for i in ids] == [b"\xe2\x82", b"\xac"]
    assert tokenizer.decode(ids) == "€"
    assert tokenizer.decode(ids[:1]) == "\ufffd"
    with pytest.raises(DataError, match="not UTF-8") as caught:
        tokenizer.decode([97, *ids[:1]], errors="strict")
    assert caught.value.where.offset == 1
    with pytest.raises(UsageError, match="unknown error policy"):
        tokenizer.decode(ids, errors="ignore")


@pytest.mark.parametrize("wrong", [-1, 100_000, 2**32, 2**40, -(2**40)])
def test_unknown_ids_are_named(wrong):
    tokenizer = small()
    for ids in ([0, wrong], np.array([0, wrong]), iter([0, wrong])):
        with pytest.raises(DataError, match=f"the id {wrong} ") as caught:
            tokenizer.decode_bytes(ids)
        assert caught.value.code == "unknown-id"
    with pytest.raises(DataError, match=f"the id {wrong} "):
        tokenizer.token_bytes(wrong)


def test_ids_may_be_any_integers():
    tokenizer = small()
    ids = tokenizer.encode("the dog")
    for kind in (np.uint16, np.int32, np.int64, np.uint64):
        assert tokenizer.decode(np.array(ids, kind)) == "the dog"
    assert tokenizer.decode(tuple(ids)) == "the dog"
    assert tokenizer.decode([]) == ""
    for wrong in ([0.5], ["a"], [[1]]):
        with pytest.raises(DataError, match="whole numbers"):
            tokenizer.decode_bytes(wrong)


def test_ids_that_stand_for_nothing():
    model = BPE.from_merges(Vocabulary.from_tokens([b"a", None, b"b"]), [])
    tokenizer = Tokenizer(small("none").pre_tokenizer, model, (AddedToken(5, "<s>"),))
    assert (tokenizer.vocab_size, tokenizer.unused_ids) == (6, [1, 3, 4])
    assert tokenizer.encode("ab<s>", allowed_special="all") == [0, 2, 5]
    with pytest.raises(DataError, match="the id 3 "):
        tokenizer.decode([0, 3])
    with pytest.raises(DataError, match="the id 1 "):
        tokenizer.token_bytes(1)


# -- offsets


@fast
@given(st.text(st.sampled_from("aé€😀 \n1the"), max_size=30), st.booleans())
def test_offsets_cover_the_text(text, bos):
    tokenizer = small()
    in_bytes = tokenizer.encode_with_offsets(text, bos=bos)
    raw = text.encode()
    content = list(zip(in_bytes.ids, in_bytes.offsets, in_bytes.sequence_ids, strict=True))[int(bos) :]
    assert b"".join(raw[start:stop] for _, (start, stop), _ in content) == raw
    assert all(tokenizer.token_bytes(token_id) == raw[start:stop] for token_id, (start, stop), _ in content)
    in_points = tokenizer.encode_with_offsets(text, "raw_codepoints", bos=bos)
    assert in_points.ids == in_bytes.ids == tokenizer.encode(text, bos=bos)
    for (start, stop), (first, last) in zip(in_bytes.offsets[int(bos) :], in_points.offsets[int(bos) :], strict=True):
        whole = text[first:last].encode()
        assert raw[start:stop] in whole
        assert len(text[:first].encode()) <= start < stop <= len(text[:last].encode())
    assert tokenizer.encode_with_offsets(text, "normalized_codepoints", bos=bos) == in_points


def test_a_part_of_a_character_gets_the_whole_one():
    tokenizer = Tokenizer.from_merges(bytes(range(256)), [(0xE2, 0x82)])
    assert tokenizer.encode_with_offsets("a€b", "raw_codepoints").offsets == [(0, 1), (1, 2), (1, 2), (2, 3)]
    assert tokenizer.encode_with_offsets("a€b").offsets == [(0, 1), (1, 3), (3, 4), (4, 5)]


def test_broken_bytes_are_code_points_of_their_own():
    tokenizer = Tokenizer.from_merges(bytes(range(256)), [])
    points = tokenizer.encode_with_offsets(b"\xe2\x82a\xc3\xa9\xff", "raw_codepoints")
    assert points.offsets == [(0, 1), (1, 2), (2, 3), (3, 4), (3, 4), (4, 5)]
    batch = tokenizer.encode_flat_with_offsets([b"\xe2\x82", b"\xac"], "raw_codepoints")
    assert batch.text(1).offsets == [(0, 1)]


def test_masks_and_sequence_ids():
    tokenizer = small()
    found = tokenizer.encode_with_offsets("a<|pad|>", bos=True, eos=True, allowed_special=["<|pad|>"])
    assert found.special_mask == [1, 0, 1, 1]
    assert found.sequence_ids == [None, 0, 0, None]
    assert found.offsets == [(0, 0), (0, 1), (1, 8), (0, 0)]


def test_an_unknown_unit_is_a_usage_error():
    with pytest.raises(UsageError, match="unknown offset unit 'bytes'"):
        small().encode_with_offsets("x", "bytes")


def test_offsets_of_nothing():
    for unit in ("raw_utf8_bytes", "raw_codepoints"):
        assert small().encode_with_offsets("", unit).ids == []
        assert small().encode_with_offsets("", unit, bos=True).offsets == [(0, 0)]
        assert small().encode_flat_with_offsets([], unit).offsets.tolist() == [0]


def test_importing_the_room_does_not_import_the_consumers():
    code = (
        "import sys, tokctl.tokenizer.formats.huggingface, tokctl.tokenizer.formats.tiktoken;"
        "print(sorted({'tokenizers', 'tiktoken'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
