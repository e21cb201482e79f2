import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer.samples import small

from tokctl.tokenizer.added_tokens import AddedToken, Pieces, build_trie, first_spelling
from tokctl.tokenizer.preparing import Preparer
from tokctl.tokenizer.split_policy import whole_texts
from tokctl.tokenizer.tokenizer import Tokenizer

VERSION = small().pre_tokenizer.unicode_version


def cut(tokens, *texts):
    """The pieces of each text as (text, id) with id None for text."""
    encoded = [text.encode() if isinstance(text, str) else text for text in texts]
    bounds = np.cumsum([0, *map(len, encoded)])
    data = np.frombuffer(b"".join(encoded), np.uint8).copy()
    preparer = Preparer(tokens, (), (), VERSION)
    found = preparer.prepare(
        data, bounds, whole_texts(bounds), frozenset(t.content for t in tokens), follow=False
    ).pieces
    result = [[] for _ in texts]
    columns = (found.starts.tolist(), found.stops.tolist(), found.tokens.tolist(), found.documents.tolist())
    for start, stop, token, document in zip(*columns, strict=True):
        result[document].append((data[start:stop].tobytes().decode("utf-8", "replace"), None if token < 0 else token))
    return result


def test_the_leftmost_longest_wins():
    tokens = [AddedToken(1, "<a>"), AddedToken(2, "<a><b>"), AddedToken(3, "b>")]
    assert cut(tokens, "x<a><b>y") == [[("x", None), ("<a><b>", 2), ("y", None)]]
    assert cut(tokens, "x<a><c>b>") == [[("x", None), ("<a>", 1), ("<c>", None), ("b>", 3)]]
    assert cut(tokens, "<a", "><a>", "") == [[("<a", None)], [(">", None), ("<a>", 1)], [("", None)]]


def test_tokens_that_are_not_normalized_come_first():
    tokens = [AddedToken(1, "ab", normalized=True), AddedToken(2, "bc", normalized=False)]
    assert cut(tokens, "abc") == [[("a", None), ("bc", 2)]]
    assert cut(tokens, "ab") == [[("ab", 1)]]


def test_stripping_takes_the_white_space_beside():
    tokens = [
        AddedToken(1, "<L>", lstrip=True),
        AddedToken(2, "<R>", rstrip=True),
        AddedToken(3, "<B>", lstrip=True, rstrip=True),
    ]
    assert cut(tokens, "a \u3000<L> b") == [[("a", None), (" \u3000<L>", 1), (" b", None)]]
    assert cut(tokens, "a <R>\u00a0\n b") == [[("a ", None), ("<R>\u00a0\n ", 2), ("b", None)]]
    assert cut(tokens, "<R>  <L>") == [[("<R>  ", 2), ("<L>", 1)]]
    assert cut(tokens, "  <B>  ", "  <B>") == [[("  <B>  ", 3)], [("  <B>", 3)]]
    assert cut(tokens, b"\xff <L>") == [[("\ufffd", None), (" <L>", 1)]]


def test_single_words_need_no_word_character_beside():
    tokens = [AddedToken(1, "yes", single_word=True)]
    for text in ("yes", "yes.", " yes ", "\u2014yes", "yes\xff".encode("latin-1")):
        assert 1 in [token for _, token in cut(tokens, text)[0]]
    for text in ("yesterday", "eyes", "yes1", "_yes", "yes\u0301", "\u00e9yes", "yes\u200d"):
        assert cut(tokens, text) == [[(text, None)]]
    assert cut(tokens, "yesyes yes") == [[("yesyes ", None), ("yes", 1)]]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.text("ab<", min_size=1, max_size=4), min_size=1, max_size=6, unique=True),
    st.lists(st.text("ab< ", max_size=30), min_size=1, max_size=4),
)
def test_plain_matching_equals_a_search_by_hand(spellings, texts):
    tokens = [AddedToken(k, spelling) for k, spelling in enumerate(spellings)]
    for text, pieces in zip(texts, cut(tokens, *texts), strict=True):
        expected, at, begin = [], 0, 0
        while at < len(text):
            matches = [token for token in tokens if text.startswith(token.content, at)]
            if matches:
                token = max(matches, key=lambda match: len(match.content))
                expected += [(text[begin:at], None)] if begin < at else []
                expected.append((token.content, token.id))
                at = begin = at + len(token.content)
            else:
                at += 1
        if begin < len(text) or not text:
            expected.append((text[begin:], None))
        assert pieces == expected


def test_many_matches_are_found_in_slices(monkeypatch):
    from tokctl.tokenizer import added_tokens

    tokens = [AddedToken(1, "<a>"), AddedToken(2, "<b>", lstrip=True)]
    text = "x<a> <b><a>yy" * 200
    expected = cut(tokens, text, text)
    assert sum(token is not None for _, token in expected[0]) == 600
    monkeypatch.setattr(added_tokens, "_SLICE_BYTES", 5)
    monkeypatch.setattr(added_tokens, "_FOUND", 3)
    assert cut(tokens, text, text) == expected


def test_the_first_spelling():
    data = np.frombuffer(b"abcabx", np.uint8).copy()
    pieces = Pieces(*(np.array(column) for column in ([0, 3], [3, 6], [-1, -1], [0, 1])))
    assert first_spelling(build_trie([b"abx", b"zz"]), data, pieces) == (1, 3, 0)
    assert first_spelling(build_trie([b"cab"]), data, pieces) is None  # it crosses two texts


def test_ordinary_added_tokens_are_no_control_tokens():
    base = small("gpt2", specials=())
    added = AddedToken(base.vocab_size, "<DOC>", lstrip=True, special=False)
    tokenizer = Tokenizer(base.pre_tokenizer, base.model, (added,))
    found = tokenizer.encode_with_offsets(" <DOC>")
    assert (found.ids, found.special_mask, found.offsets) == ([added.id], [0], [(0, 6)])
    assert tokenizer.special_ids == {}
    assert tokenizer.decode(found.ids) == "<DOC>"
    assert tokenizer.encode("<DOC>", special_in_text="error") == [added.id]


@pytest.mark.parametrize("n", [2, 300])
def test_a_trie_of_many_spellings(n):
    names = [f"<|reserved_{k}|>" for k in range(n)]
    assert cut([AddedToken(k, name) for k, name in enumerate(names)], f"a{names[-1]}b{names[0]}") == [
        [("a", None), (names[-1], n - 1), ("b", None), (names[0], 0)]
    ]
