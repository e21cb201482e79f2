"""Fits by the released trainers on real text, in terms that tokctl's can be compared with: bytes, pairs, ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.corpora import corpus, help_paragraphs

from tokctl.tokenizer.byte_order import unspell_bytes
from tokctl.tokenizer.pre_tokenizers.patterns import NAMED

UDHR = Path(__file__).parents[2] / "examples" / "corpus" / "udhr"

Merges = list[tuple[bytes, bytes]]


def documents(name: str) -> list[str]:
    """``udhr``: the declaration's articles in the languages of the bundled corpus. ``help-LANGUAGE``: pages of LibreOffice's
    help. Any other name: the paragraphs of a text corpus of ``benchmarks/corpora.py``."""
    if name == "udhr":
        rows = [line for path in sorted(UDHR.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
        return [json.loads(row)["text"] for row in rows]
    if name.startswith("help-"):
        return ["\n".join(page) for page in help_paragraphs(name.removeprefix("help-"))]
    return (corpus(name) / "text.txt").read_text("utf-8").split("\n\n")


def pre_tokenizer(pattern: str) -> Any:
    """tokenizers' pre-tokenizer for a named pattern: its expressions, isolated, then bytes."""
    from tokenizers import Regex, pre_tokenizers

    splits = [pre_tokenizers.Split(Regex(regex), "isolated") for regex in NAMED[pattern]]
    return pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def built_in_gpt2() -> Any:
    """tokenizers' own pre-tokenizer of GPT-2, expression and bytes in one."""
    from tokenizers import pre_tokenizers

    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def fit_tokenizers(
    texts: Iterable[str],
    vocab_size: int,
    words: Any,
    *,
    specials: Sequence[str] = (),
    min_frequency: int = 2,
    **more: Any,
) -> Any:
    """A tokenizer fitted by tokenizers' ``BpeTrainer``, one item a document; ``words`` is its pre-tokenizer."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = words
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=list(specials),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        **more,
    )
    tokenizer.train_from_iterator(iter(texts), trainer)
    return tokenizer


def tokenizers_merges(tokenizer: Any) -> Merges:
    """The merges of a tokenizer of tokenizers, as bytes, in rank order."""
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [(unspell_bytes(left), unspell_bytes(right)) for left, right in merges]


def tokenizers_ids(tokenizer: Any, specials: Sequence[str]) -> dict[int, bytes | str]:
    """id -> the bytes of a token, or the name of a special token."""
    return {
        number: spelling if spelling in specials else unspell_bytes(spelling)
        for spelling, number in tokenizer.get_vocab().items()
    }


def fit_rustbpe(texts: Iterable[str], vocab_size: int, pattern: str) -> list[bytes]:
    """The tokens of a fit by rustbpe in rank order, the 256 bytes first; ``pattern`` is a name of one expression."""
    import rustbpe

    (regex,) = NAMED[pattern]
    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(iter(texts), vocab_size, pattern=regex)
    return [bytes(token) for token, _ in sorted(tokenizer.get_mergeable_ranks(), key=lambda item: item[1])]


def tokctl_merges(tokenizer: Any) -> Merges:
    """The merges of a fitted tokctl tokenizer, as bytes, in rank order."""
    token = tokenizer.token_bytes
    return [(token(left), token(right)) for left, right in tokenizer.model.merges.tolist()]


def tokctl_ids(tokenizer: Any) -> dict[int, bytes | str]:
    """id -> the bytes of a token, or the name of a special token."""
    names = {number: name for name, number in tokenizer.special_ids.items()}
    return {number: names.get(number) or tokenizer.token_bytes(number) for number in range(tokenizer.vocab_size)}


def first_difference(ours: Sequence[Any], theirs: Sequence[Any]) -> int | None:
    """The first index at which two sequences differ, or where the shorter ends; None when they are equal."""
    if ours == theirs:
        return None
    pairs = enumerate(zip(ours, theirs, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(ours), len(theirs)))
