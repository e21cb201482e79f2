from dataclasses import replace

import numpy as np
import pytest
from pipeline.cli_answers import raw, tokctl
from tokenizer.samples import small
from tokenizer.test_schedules import improper

from tokctl.tokenizer.added_tokens import AddedToken
from tokctl.tokenizer.models.bpe import BPE
from tokctl.tokenizer.soundness import check_tokenizer, unreachable_tokens
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.vocabulary import Vocabulary

BYTES = [bytes([byte]) for byte in range(256)]


def tokenizer_of(tokens, merges=None, whole_words=False, added=(), literals=()):
    vocabulary = Vocabulary.from_tokens(tokens, literals)
    if merges is None:
        model = BPE(vocabulary, None, None, whole_words)
    else:
        model = BPE.from_merges(vocabulary, merges, whole_words=whole_words)
    return Tokenizer(small("none").pre_tokenizer, model, added)


def codes(tokenizer):
    return {finding["code"]: finding["severity"] for finding in check_tokenizer(tokenizer)["findings"]}


def test_a_fitted_tokenizer_has_no_findings():
    result = check_tokenizer(small())
    assert result["findings"] == [] and result["unreachable"]["n"] == 0
    assert result["n_merges"] == len(small().model.merges)


def test_each_finding():
    assert codes(improper()) == {"schedule-dependent": "warning"}
    assert codes(tokenizer_of([*BYTES, None, b"ab"], [(97, 98)])) == {"unused-ids": "note"}
    assert codes(tokenizer_of([b"a", b"b", b"ab"], [(0, 1)])) == {"bytes-missing": "note"}
    assert codes(tokenizer_of([*BYTES, "<é>".encode()], [], literals=[256])) == {"literal-tokens": "note"}
    assert codes(tokenizer_of([*BYTES, b"ab"], [])) == {"unreachable-tokens": "note"}


def test_a_merge_that_makes_other_bytes_is_an_error():
    model = tokenizer_of([*BYTES, b"ab", b"cd"], [(97, 98), (99, 100)]).model
    wrong = replace(model, merged=np.array([256, 256], np.int32))
    found = codes(Tokenizer(small("none").pre_tokenizer, wrong))
    assert found["merge-ancestry"] == "error"


def test_a_control_token_that_spells_another_token_is_an_error():
    tokenizer = tokenizer_of([*BYTES, b"ab"], [(97, 98)], added=[AddedToken(300, "ab")])
    assert codes(tokenizer) == {"added-token-overlap": "error", "unused-ids": "note"}


def test_why_a_token_is_out_of_reach():
    """abc = a + bc, but ab is merged first; xyz has no merge; é has a byte without an id; the last one is control."""
    tokens = [b"a", b"b", b"c", b"x", b"y", b"z", b"ab", b"bc", b"abc", b"xyz", "é".encode(), b"zz"]
    merges = [(0, 1), (1, 2), (0, 7), (5, 5)]
    tokenizer = tokenizer_of(tokens, merges, added=[AddedToken(11, "zz")])
    found = unreachable_tokens(tokenizer)
    assert {token["id"]: (token["reason"], token["encoded_as"]) for token in found["tokens"]} == {
        8: ("other merges come first", [6, 2]),
        9: ("no merge makes it", [3, 4, 5]),
        10: ("outside the alphabet", None),
        11: ("control", [5, 5]),
    }
    assert found["n"] == sum(found["by_reason"].values()) == 4
    whole = tokenizer_of([*BYTES, b"abc"], whole_words=True)
    assert unreachable_tokens(whole)["by_reason"] == {"whole word only": 1}
    assert whole.encode("abc") == [256]


@pytest.fixture
def saved(tmp_path):
    improper().save(tmp_path / "improper")
    tokenizer_of([*BYTES, b"ab"], []).save(tmp_path / "unreachable")
    small().save(tmp_path / "small")
    return tmp_path


def test_the_command_shows_them(saved):
    answer = tokctl("inspect", "--tokenizer", saved / "improper", "--check")
    assert [finding["code"] for finding in answer.result["findings"]] == ["schedule-dependent"]
    code, out, _ = raw("inspect", "--tokenizer", str(saved / "unreachable"), "--check")
    assert code == 0 and "token 256 <61 62>: no merge makes it; its bytes give [97, 98]" in out
    assert "every token encodes to itself" in raw("inspect", "--tokenizer", str(saved / "small"), "--check")[1]
    for words in (["--check", "text"], []):
        answer = tokctl("inspect", "--tokenizer", saved / "small", *words)
        assert (answer.code, answer.error["code"]) == (2, "usage")


def test_verify_tells_of_what_is_unsound(saved):
    findings = tokctl("verify", saved / "improper").result["findings"]
    assert [(finding["code"], finding["severity"]) for finding in findings] == [
        ("schedule-dependent", "warning"),
        ("no-manifest", "note"),
    ]
    assert [finding["code"] for finding in tokctl("verify", saved / "small").result["findings"]] == ["no-manifest"]
