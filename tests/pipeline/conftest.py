from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline.cli_answers import tokctl

TEXT = "the cat sat on the mat. the dog sat.\n" * 20


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with one output of each kind, made from ``a.txt``: documents, words, tok, sizes, split, encoded, hf, tiktoken."""
    root = tmp_path_factory.mktemp("artifacts")
    (root / "a.txt").write_text(TEXT, encoding="utf-8")
    special = ["--special", "<|end|>", "--eos", "<|end|>"]
    for command in (
        ["extract", root / "a.txt", "-o", root / "documents"],
        ["count", root / "documents", "-o", root / "words"],
        ["fit", "bpe", "--counts", root / "words", "-o", root / "tok", "--vocab-size", "265", *special],
        ["fit", "bpe", "--counts", root / "words", "-o", root / "sizes", "--vocab-size", "260,263"],
        ["split", root / "documents", "-o", root / "split"],
        ["encode", root / "documents", "--tokenizer", root / "tok", "-o", root / "encoded"],
        ["export", "huggingface", "--tokenizer", root / "tok", "-o", root / "hf", "--verify-strings", "20"],
        ["export", "tiktoken", "--tokenizer", root / "tok", "-o", root / "tiktoken", "--verify-strings", "20"],
    ):
        assert tokctl(*command).code == 0
    return root
