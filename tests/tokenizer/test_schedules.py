"""Merge schedules: which tables they agree on, and what a loader does with the others."""

import base64
import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import bpe_schedules as oracle
from tokenizer.samples import small

import tokctl
from tokctl.errors import ArtifactError, UsageError
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary

fast = settings(max_examples=150, deadline=None, derandomize=True)
SCHEDULES = (oracle.occurrence_priority, oracle.selected_pair_rounds, oracle.fixed_pass, oracle.heap_form)
BYTES = [bytes([byte]) for byte in range(256)]
IMPROPER = [(256, 97), (97, 97)]  # rank 0: (256, a) -> 257, rank 1: (a, a) -> 256


def table_of(model):
    pairs = model.pairs
    keys = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
    return dict(zip(keys, zip(pairs.ranks.tolist(), pairs.merged.tolist(), strict=True), strict=True))


def start(model, word):
    return [int(model.byte_ids[byte]) for byte in word]


def tokenizer_of(model):
    return Tokenizer(small("none").pre_tokenizer, model)


def improper(**options):
    return tokenizer_of(BPE.from_merges(Vocabulary.from_tokens([*BYTES, b"aa", b"aaa"]), IMPROPER, **options))


@st.composite
def models(draw):
    """Tables over a and b in both forms, in order of creation or shuffled, so that many are not proper."""
    tokens = [b"a", b"b"]
    merges = []
    for _ in range(draw(st.integers(1, 9))):
        pair = draw(st.integers(0, len(tokens) - 1)), draw(st.integers(0, len(tokens) - 1))
        made = tokens[pair[0]] + tokens[pair[1]]
        if len(made) < 9 and (tokens[pair[0]], tokens[pair[1]]) not in merges:
            merges.append((tokens[pair[0]], tokens[pair[1]]))
            if made not in tokens:
                tokens.append(made)
    is_shuffled = draw(st.booleans())
    if draw(st.booleans()):
        longer = draw(st.permutations(tokens[2:])) if is_shuffled else tokens[2:]
        return BPE(Vocabulary.from_tokens([*tokens[:2], *longer]), None, None)
    order = draw(st.permutations(merges)) if is_shuffled else merges
    return BPE.from_merges(Vocabulary.from_tokens(tokens), [(tokens.index(l), tokens.index(r)) for l, r in order])


@fast
@given(models(), st.lists(st.sampled_from(b"aab"), min_size=1, max_size=24).map(bytes))
def test_all_schedules_agree_on_proper_tables(model, word):
    table = table_of(model)
    expected = oracle.occurrence_priority(start(model, word), table)
    assert oracle.heap_form(start(model, word), table) == expected
    assert tokenizer_of(model).encode(word) == expected
    if oracle.is_proper(table):
        assert {tuple(schedule(start(model, word), table)) for schedule in SCHEDULES} == {tuple(expected)}
        assert model.schedule_dependent == []


@fast
@given(models())
def test_schedule_dependent_tokens_are_exactly_where_schedules_part(model):
    """No such token: all words come out the same. And the bytes of each such token don't."""
    table = table_of(model)
    tokens = model.vocabulary.tokens()
    parted = [
        token_id
        for token_id, token in enumerate(tokens)
        if len({tuple(schedule(start(model, token), table)) for schedule in SCHEDULES}) > 1
    ]
    assert set(model.schedule_dependent) <= set(parted)
    assert bool(model.schedule_dependent) == bool(parted)
    if not parted:
        for n in range(1, 8):
            for word in product(b"ab", repeat=n):
                ids = start(model, word)
                assert len({tuple(schedule(ids, table)) for schedule in SCHEDULES}) == 1


def test_the_improper_table():
    model = improper().model
    table = table_of(model)
    assert not oracle.is_proper(table)
    ids = list(b"aaaa")
    assert oracle.occurrence_priority(ids, table) == oracle.heap_form(ids, table) == [257, 97]
    assert oracle.selected_pair_rounds(ids, table) == oracle.fixed_pass(ids, table) == [256, 256]
    assert improper().encode("aaaa") == [257, 97]
    assert model.schedule_dependent == [257]


def test_parts_that_are_made_later_do_no_harm_where_they_can_not_meet():
    """Rank form: abc = a + bc too, and bc comes later; but ab is made first wherever a stands before b."""
    model = BPE(Vocabulary.from_tokens([b"a", b"b", b"c", b"ab", b"abc", b"bc"]), None, None)
    assert not oracle.is_proper(table_of(model))
    assert model.schedule_dependent == []
    assert tokenizer_of(model).encode("abcbc") == [4, 5]


def save_huggingface(directory):
    vocab = {chr(33 + k): k for k in range(94)} | {"aa": 94, "aaa": 95}
    model = {"type": "BPE", "vocab": vocab, "merges": [["aa", "a"], ["a", "a"]]}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    value = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": level, "post_processor": None}
    path = directory / "tokenizer.json"
    path.write_text(json.dumps(value | {"decoder": level, "model": model}))
    return path


def save_ranks(directory):
    path = directory / "improper.tiktoken"
    tokens = [*BYTES, b"aaa", b"aa"]
    path.write_text("".join(f"{base64.b64encode(t).decode()} {rank}\n" for rank, t in enumerate(tokens)))
    path.with_suffix(".json").write_text(json.dumps({"pattern": r"[\s\S]+", "specials": {}}))
    return path


def save_native(directory):
    improper().save(directory / "native")
    return directory / "native"


@pytest.mark.parametrize("save", [save_huggingface, save_ranks, save_native])
def test_a_loader_says_so_or_refuses(tmp_path, save):
    path = save(tmp_path)
    tokenizer = tokctl.load(path)
    (notice,) = [notice for notice in tokenizer.notices if "order of merging" in notice]
    assert "b'aaa'" in notice and "occurrence" in notice
    longest, single = (tokenizer.model.vocabulary.tokens().index(token) for token in (b"aaa", b"a"))
    assert tokenizer.encode("aaaa") == [longest, single]
    with pytest.raises(ArtifactError, match="order of merging") as caught:
        tokctl.load(path, schedules="refuse")
    assert (caught.value.code, caught.value.hint is not None) == ("schedules", True)
    assert caught.value.where.file is not None


def test_the_libraries_follow_occurrence_priority(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    path = save_huggingface(tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    ours = tokctl.load(path)
    for n in range(1, 12):
        assert ours.encode("a" * n) == theirs.encode("a" * n).ids


def test_tiktoken_follows_occurrence_priority(tmp_path):
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {token: rank for rank, token in enumerate([*BYTES, b"aaa", b"aa"])}
    theirs = tiktoken.Encoding("improper", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})
    ours = tokctl.load(save_ranks(tmp_path))
    for n in range(1, 12):
        assert ours.encode("a" * n) == theirs.encode("a" * n)


def test_a_proper_file_has_no_notice(tmp_path):
    small().save(tmp_path / "small")
    assert tokctl.load(tmp_path / "small", schedules="refuse").notices == ()
    with pytest.raises(UsageError, match="'follow' or 'refuse'"):
        tokctl.load(tmp_path / "small", schedules="rounds")


def test_one_signature():
    from tokctl.kernels.bpe_schedule import find_rank_falls

    tokens = [b"a", b"b", b"ab", b"bb", b"abb"]
    model = BPE(Vocabulary.from_tokens([tokens[k] for k in np.argsort([0, 1, 4, 3, 2])]), None, None)
    assert isinstance(model.schedule_dependent, list)
    assert improper().model.schedule_dependent
    assert len(find_rank_falls.signatures) == 1
