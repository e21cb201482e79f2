"""How each library is asked to fit byte-level BPE, the fastest way it has, and what it takes its text as.

A :class:`Fitter` has an ``open`` function: it imports the library (which is not measured) and returns two functions, one that
fits (``documents, vocab_size -> result``, measured) and one that gives the merged tokens of a result in rank order.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Fit = Callable[[Any, int], Any]
Tokens = Callable[[Any], list[bytes]]

EVERY = ("gpt2", "cl100k", "o200k")

# The published texts of the patterns, which ffbpe's scanner knows. It runs any other text, even of an equal expression, with
# a general engine: ``ffbpe-regex``.
PUBLISHED = {
    "cl100k": r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"""
    r"""|\s+(?!\S)|\s""",
    "o200k": r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
}


@dataclass(frozen=True)
class Fitter:
    """``input``: what it takes ("arrow", "strings" or "file"). ``merges``: whose merges it must agree with ("gpt2" or "raw"
    for the ties of that byte order, "" for another algorithm)."""

    package: str
    input: str
    merges: str
    open: Callable[[str, int], tuple[Fit, Tokens]]
    patterns: tuple[str, ...] = EVERY
    note: str = ""


def open_tokctl(byte_order: str) -> Callable[[str, int], tuple[Fit, Tokens]]:
    """Counting and fitting in Python, from Arrow; the result is a Tokenizer, the seconds of both parts beside it."""

    def opened(pattern: str, threads: int) -> tuple[Fit, Tokens]:
        import time

        import tokctl

        def fit(documents: Any, vocab_size: int) -> Any:
            started = time.perf_counter()
            counts = tokctl.count_words(documents, pattern, workers=threads)
            counted = time.perf_counter()
            fitted = tokctl.fit("bpe", counts, vocab_size=vocab_size, pattern=pattern, byte_order=byte_order)
            figures = {"count_s": counted - started, "fit_s": time.perf_counter() - counted, "n_words": counts.n_words}
            return fitted, figures

        def tokens(result: Any) -> list[bytes]:
            return [result[0].token_bytes(number) for number in range(256, result[0].vocab_size)]

        return fit, tokens

    return opened


def open_tokctl_file(pattern: str, threads: int) -> tuple[Fit, Tokens]:
    """The command, in this process: it reads and checks the file, and writes the tokenizer and its manifest."""
    import tokctl
    from tokctl.cli.entry import run

    def fit(path: Path, vocab_size: int) -> tempfile.TemporaryDirectory[str]:
        out = tempfile.TemporaryDirectory()
        options = ["--vocab-size", str(vocab_size), "--pattern", pattern, "--workers", str(threads), "--quiet"]
        code = run(["fit", "bpe", str(path), "-o", str(Path(out.name, "tokenizer")), *options])
        if code:
            raise SystemExit(code)
        return out

    def tokens(out: tempfile.TemporaryDirectory[str]) -> list[bytes]:
        with out:
            tokenizer = tokctl.load(Path(out.name, "tokenizer"))
        return [tokenizer.token_bytes(number) for number in range(256, tokenizer.vocab_size)]

    return fit, tokens


def open_gigabpe(pattern: str, threads: int) -> tuple[Fit, Tokens]:
    import gigabpe

    from tokctl.tokenizer.byte_order import unspell_bytes

    def fit(path: Path, vocab_size: int) -> Any:
        return gigabpe.train_bpe(
            [str(path)], vocab_size=vocab_size, pretokenizer="bytelevel", threads=threads, min_frequency=2
        )

    return fit, lambda result: [unspell_bytes(left) + unspell_bytes(right) for left, right in result[1]]


def open_gigatoken(pattern: str, threads: int) -> tuple[Fit, Tokens]:
    import gigatoken

    def fit(path: Path, vocab_size: int) -> Any:
        said = os.dup(1)  # it says how many words there are, on the standard output
        try:
            os.dup2(2, 1)
            return gigatoken.train_bpe(gigatoken.TextFileSource([path]), vocab_size, [])
        finally:
            os.dup2(said, 1)
            os.close(said)

    return fit, lambda result: [left + right for left, right in result[1]]


def open_ffbpe(texts: dict[str, str]) -> Callable[[str, int], tuple[Fit, Tokens]]:
    """``texts``: pattern -> how it is written; GPT-2's is ffbpe's default."""

    def opened(pattern: str, threads: int) -> tuple[Fit, Tokens]:
        import ffbpe

        def fit(documents: list[str], vocab_size: int) -> Any:
            counter = ffbpe.PreTokenizer([], pat_str=texts.get(pattern)).word_counter()
            counter.add_source(iter(documents), prefetch=threads - 1)  # a second thread that reads ahead
            trainer = ffbpe.BpeTrainer([], initial_alphabet="byte_level", tie_break="smallest_pair_id")
            trainer.add_word_counter(counter)
            trainer.train(vocab_size)
            return trainer.validate_model()

        def tokens(model: Any) -> list[bytes]:
            return [token for token, _ in sorted(model.vocab.items(), key=lambda item: item[1])][256:]

        return fit, tokens

    return opened


def open_rustbpe(pattern: str, threads: int) -> tuple[Fit, Tokens]:
    import rustbpe

    from tokctl.tokenizer.pre_tokenizers.patterns import NAMED

    def fit(documents: list[str], vocab_size: int) -> Any:
        tokenizer = rustbpe.Tokenizer()
        # Its default is the published cl100k.
        regex = None if pattern == "cl100k" else NAMED[pattern][0]
        tokenizer.train_from_iterator(iter(documents), vocab_size, pattern=regex)
        return tokenizer

    def tokens(tokenizer: Any) -> list[bytes]:
        ranks = sorted(tokenizer.get_mergeable_ranks(), key=lambda item: item[1])
        return [bytes(token) for token, _ in ranks[256:]]

    return fit, tokens


def open_tokenizers(pattern: str, threads: int) -> tuple[Fit, Tokens]:
    import tokenizers  # noqa: F401  imported before the measurement
    from interop import peer_fits

    words = peer_fits.built_in_gpt2() if pattern == "gpt2" else peer_fits.pre_tokenizer(pattern)

    def fit(documents: list[str], vocab_size: int) -> Any:
        return peer_fits.fit_tokenizers(documents, vocab_size, words)

    return fit, lambda fitted: [left + right for left, right in peer_fits.tokenizers_merges(fitted)]


def open_sentencepiece(pattern: str, threads: int) -> tuple[Fit, Tokens]:
    import sentencepiece

    def fit(documents: list[str], vocab_size: int) -> bytes:
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line for text in documents for line in text.split("\n")),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocab_size,
            character_coverage=1.0,
            byte_fallback=True,
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            max_sentence_length=1 << 24,
            num_threads=threads,
            minloglevel=2,
        )
        return model.getvalue()

    return fit, lambda model: []


def _regex_texts() -> dict[str, str]:
    return {name: f"(?:{text})" for name, text in PUBLISHED.items()}


FITTERS: dict[str, Fitter] = {
    "tokctl": Fitter("tokctl", "arrow", "gpt2", open_tokctl("gpt2")),
    "tokctl-raw": Fitter("tokctl", "arrow", "raw", open_tokctl("raw"), note="raw byte order"),
    "tokctl-file": Fitter(
        "tokctl", "file", "gpt2", open_tokctl_file, note="the command: file in, tokenizer directory out"
    ),
    "gigabpe": Fitter("gigabpe", "file", "gpt2", open_gigabpe, ("gpt2",), "a file is its lines"),
    "gigatoken": Fitter("gigatoken", "file", "gpt2", open_gigatoken, ("gpt2",), "a file is one document"),
    "ffbpe": Fitter("ffbpe", "strings", "gpt2", open_ffbpe(PUBLISHED)),
    "ffbpe-regex": Fitter(
        "ffbpe",
        "strings",
        "gpt2",
        open_ffbpe(_regex_texts()),
        EVERY[1:],
        "the pattern in words its scanner doesn't know",
    ),
    "rustbpe": Fitter("rustbpe", "strings", "raw", open_rustbpe),
    "tokenizers": Fitter("tokenizers", "strings", "gpt2", open_tokenizers),
    "sentencepiece": Fitter(
        "sentencepiece", "strings", "", open_sentencepiece, ("gpt2",), "another algorithm: characters, its own words"
    ),
}
