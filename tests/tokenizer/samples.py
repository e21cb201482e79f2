"""Small tokenizers for tests, fitted on a few sentences; the same ones everywhere."""

from __future__ import annotations

import functools

import numpy as np

from tokctl.tokenizer.byte_order import byte_alphabet
from tokctl.tokenizer.layout import assemble
from tokctl.tokenizer.pre_tokenizers.split import PreTokenizer
from tokctl.tokenizer.tokenizer import Tokenizer
from tokctl.tokenizer.trainers.bpe import fit_bpe

SENTENCES = (
    "The quick brown fox jumps over the lazy dog; the dog doesn't mind, and they've jumped before.\n",
    "All human beings are born free and equal in dignity and rights. They are endowed with reason.\n",
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft begabt.\n",
    "Все люди рождаются свободными и равными в своем достоинстве и правах.\n",
    "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心。\n",
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια.\n",
    "for i in range(10):\n    print(i, 1234567 * i, 3.14)\n\n\n    return {'a': [1, 2, 3]}\r\n",
    "aaaaaaaaaaaaaaaa      \t\t  ____----====  €€€ ½½ 2024-01-31\n",
)
TEXT = "".join(SENTENCES)
SPECIALS = ("<|endoftext|>", "<|pad|>")


@functools.cache
def small(
    pattern: str = "gpt2",
    n_merges: int = 300,
    specials: tuple[str, ...] = SPECIALS,
    special_layout: str = "first",
    byte_order: str = "gpt2",
) -> Tokenizer:
    """A tokenizer fitted on TEXT (every merge that occurs at least twice, at most ``n_merges``)."""
    alphabet = byte_alphabet(byte_order)
    pre_tokenizer = PreTokenizer.from_pattern(pattern)
    data = TEXT.encode()
    ends = pre_tokenizer.split(data)
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    counts = np.ones(len(ends), np.int64)
    fit = fit_bpe(np.frombuffer(data, np.uint8), offsets, counts, n_merges=n_merges, alphabet=alphabet)
    tokenizer, _ = assemble(
        alphabet,
        fit.merges,
        specials=specials,
        special_layout=special_layout,
        pre_tokenizer=pre_tokenizer,
        bos=specials[0] if specials else None,
        eos=specials[0] if specials else None,
    )
    return tokenizer
