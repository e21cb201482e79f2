"""Fits through tokctl's public functions against tokenizers and rustbpe, and the worked examples of the literature."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from interop import peer_fits
from interop.conformance_part import Check, Part

import tokctl
from tokctl.errors import DataError

SIZES = (1_000, 4_000, 8_000, 16_000, 32_000)
SPECIALS = ("<|endoftext|>", "<|pad|>", "<s>")
FULL_CORPORA = ("udhr", "mixed20", "en20", "help-hi", "help-ja", "help-ru")


def against_tokenizers(quick: bool) -> Iterator[Check]:
    """Merges and ids, each size fitted by tokenizers on its own and all of them by one fit of tokctl."""
    for name in ("udhr",) if quick else FULL_CORPORA:
        texts = peer_fits.documents(name)
        for pattern in ("gpt2", "cl100k"):
            counts = tokctl.count_words(texts, pattern)
            sizes = (1_000, 8_000) if quick else SIZES
            few = (4_000,) if quick else (1_000, 32_000)
            for specials, wanted, min_frequency in (((), sizes, 2), (SPECIALS, few, 2), ((), few, 5)):
                options = {"specials": specials, "min_frequency": min_frequency}
                ours = tokctl.fit("bpe", counts, vocab_size=wanted, pattern=pattern, on_short="warn", **options)
                for size in wanted:
                    theirs = peer_fits.fit_tokenizers(texts, size, peer_fits.pre_tokenizer(pattern), **options)
                    case = f"{name} {pattern} {size}, {len(specials)} specials, min frequency {min_frequency}"
                    yield compare_fits(case, ours[size], theirs, specials)


def compare_fits(case: str, ours: Any, theirs: Any, specials: tuple[str, ...] = ()) -> Check:
    """Merges, then ids, of tokctl's and of tokenizers' fit."""
    merges, ids = peer_fits.tokctl_merges(ours), peer_fits.tokctl_ids(ours)
    their_merges, their_ids = peer_fits.tokenizers_merges(theirs), peer_fits.tokenizers_ids(theirs, specials)
    n = len(their_merges) + len(their_ids)
    at = peer_fits.first_difference(merges, their_merges)
    if at is not None:
        return Check(case, n, {"merge": at, "tokctl": merges[at : at + 1], "tokenizers": their_merges[at : at + 1]})
    differing = sorted(number for number in ids.keys() | their_ids.keys() if ids.get(number) != their_ids.get(number))
    if differing:
        number = differing[0]
        return Check(case, n, {"id": number, "tokctl": ids.get(number), "tokenizers": their_ids.get(number)})
    return Check(case, n)


def line_by_line(quick: bool) -> Iterator[Check]:
    """tokenizers fed line by line is another fit: white space that reaches over a line's end is cut there.

    It equals tokctl's fit of the lines as documents, and must differ from the fit of the documents. Text of one paragraph a
    line would not show it; code with its blank lines and indentation does.
    """
    texts = [path.read_text("utf-8") for path in sorted(Path(tokctl.__path__[0]).rglob("*.py"))]
    lines = [line for text in texts for line in text.splitlines(keepends=True)]
    for pattern in ("gpt2", "cl100k"):
        size = 1_000
        theirs = peer_fits.fit_tokenizers(lines, size, peer_fits.pre_tokenizer(pattern))
        of_lines, of_documents = (
            tokctl.fit("bpe", tokctl.count_words(items, pattern), vocab_size=size, pattern=pattern)
            for items in (lines, texts)
        )
        yield compare_fits(f"{pattern}: lines as documents", of_lines, theirs)
        at = peer_fits.first_difference(peer_fits.tokctl_merges(of_documents), peer_fits.tokenizers_merges(theirs))
        same = "the fit of the documents equals the fit of their lines" if at is None else None
        yield Check(f"{pattern}: documents differ from lines, first at merge {at}", 1, same)


def against_rustbpe(quick: bool) -> Iterator[Check]:
    """The tokens in rank order, bytes in raw order."""
    for name in ("udhr",) if quick else FULL_CORPORA:
        texts = peer_fits.documents(name)
        for pattern in ("gpt2", "cl100k"):
            size = 8_000 if quick else 32_000
            counts = tokctl.count_words(texts, pattern)
            ours = tokctl.fit(
                "bpe", counts, vocab_size=size, pattern=pattern, byte_order="raw", min_frequency=1, on_short="warn"
            )
            tokens = [ours.token_bytes(number) for number in range(ours.vocab_size)]
            theirs = peer_fits.fit_rustbpe(texts, size, pattern)
            at = peer_fits.first_difference(tokens, theirs)
            differs = None
            if at is not None:
                differs = {"rank": at, "tokctl": tokens[at : at + 1], "rustbpe": theirs[at : at + 1]}
            yield Check(f"{name} {pattern} {size}", len(theirs), differs)


def worked_examples(quick: bool) -> Iterator[Check]:
    """minbpe's published example, the three rounds over a, b, c, d, and a vocabulary that a text can't fill."""
    text = b"aaabdaaabac"
    minbpe = tokctl.fit(
        "bpe", {text: 1}, vocab_size=259, ties="first-seen", byte_order="raw", pattern="none", min_frequency=1
    )
    yield _equal("minbpe: ids of aaabdaaabac", minbpe.encode(text), [258, 100, 258, 97, 99])
    yield _equal("minbpe: merges", minbpe.model.merges.tolist(), [[97, 97], [256, 97], [257, 98]])
    yield _equal("minbpe: decoded", minbpe.decode_bytes([258, 100, 258, 97, 99]), text)
    with tempfile.TemporaryDirectory() as scratch:
        yield from _on_the_command_line(Path(scratch))
    yield from _three_rounds()
    yield from _too_large()


def _equal(case: str, found: Any, expected: Any) -> Check:
    return Check(case, 1, None if found == expected else {"found": found, "expected": expected})


def _command(*arguments: object) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tokctl", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def _on_the_command_line(scratch: Path) -> Iterator[Check]:
    source, short, out = scratch / "text.txt", scratch / "short.txt", scratch / "out"
    source.write_bytes(b"aaabdaaabac")
    short.write_bytes(b"aaaa")
    options = ("--pattern", "none", "--byte-order", "raw")
    code, _ = _command("fit", "bpe", source, "-o", out, *options, "--ties", "first-seen", "--vocab-size", 259)
    yield _equal("command line: fit of minbpe's example", code, 0)
    code, said = _command("encode", "--tokenizer", out, source)
    rows = [json.loads(line) for line in said.splitlines()] if code == 0 else []
    yield _equal("command line: ids of aaabdaaabac", [row["ids"] for row in rows], [[258, 100, 258, 97, 99]])
    code, said = _command("fit", "bpe", short, "-o", scratch / "no", *options, "--vocab-size", 300, "--json")
    message = json.loads(said)["error"]["message"]
    named = all(number in message for number in ("300", "256", "44"))
    yield _equal("command line: aaaa can't fill 300", (code, named, (scratch / "no").exists()), (3, True, False))
    code, said = _command(
        "fit", "bpe", short, "-o", scratch / "warned", *options, "--vocab-size", 300, "--on-short", "warn"
    )
    size = tokctl.load(scratch / "warned").vocab_size if code == 0 else None
    yield _equal("command line: aaaa under --on-short warn", (code, size), (0, 257))


def _three_rounds() -> Iterator[Check]:
    """aaab twice, daaabac once: (a, a) is seen 6 times, then (a, b) 3 times, then their pair 3 times; then once each."""
    from tokctl.tokenizer.trainers.bpe import fit_bpe

    alphabet, words = (b"a", b"b", b"c", b"d"), {b"aaab": 2, b"daaabac": 1}
    tokenizer = tokctl.fit("bpe", words, vocab_size=7, alphabet=alphabet, pattern="none")
    yield _equal("three rounds: merges", tokenizer.model.merges.tolist(), [[0, 0], [0, 1], [4, 5]])
    yield _equal("three rounds: ids", (tokenizer.encode("aaab"), tokenizer.encode("daaabac")), ([6], [3, 6, 0, 2]))
    more = tokctl.fit("bpe", words, vocab_size=100, alphabet=alphabet, pattern="none", on_short="warn")
    yield _equal("three rounds: no fourth at minimum frequency 2", more.vocab_size, 7)
    fitted = fit_bpe(
        np.frombuffer(b"".join(words), np.uint8),
        np.array([0, 4, 11]),
        np.array([2, 1]),
        n_merges=100,
        alphabet=alphabet,
        min_frequency=2,
    )
    yield _equal("three rounds: scores", fitted.pair_counts.tolist(), [6, 3, 3])
    yield _equal("three rounds: weighted lengths", fitted.n_tokens.tolist(), [15, 12, 9, 6])
    yield _equal("three rounds: why it stopped", (fitted.stopped, fitted.best_remaining), ("min-frequency", 1))


def _too_large() -> Iterator[Check]:
    """aaaa holds (a, a) three times and then (aa, aa) once: at most 2 merges, and at most 1 at minimum frequency 2."""
    for min_frequency, achievable in ((1, 258), (2, 257)):
        options = {"pattern": "none", "min_frequency": min_frequency}
        try:
            tokctl.fit("bpe", {b"aaaa": 1}, vocab_size=300, **options)
            said = "nothing"
        except DataError as error:
            said = str(error)
        # the arithmetic: specials + bytes + merges = size
        named = all(part in said for part in ("0 specials", "256 bytes", "44 merges", "300"))
        yield _equal(f"aaaa, 300 tokens, min frequency {min_frequency}: the error's arithmetic", named, True)
        short = tokctl.fit("bpe", {b"aaaa": 1}, vocab_size=300, on_short="warn", **options)
        yield _equal(f"aaaa, 300 tokens, min frequency {min_frequency}: warn", short.vocab_size, achievable)
        exact = tokctl.fit("bpe", {b"aaaa": 1}, vocab_size=achievable, **options)
        yield _equal(f"aaaa, {achievable} tokens, min frequency {min_frequency}", exact.vocab_size, achievable)


PARTS = (
    Part("fit-tokenizers", ("tokenizers",), "merges and ids of fits equal those of BpeTrainer", against_tokenizers),
    Part("fit-line-by-line", ("tokenizers",), "feeding line by line is another fit, and the same one", line_by_line),
    Part("fit-rustbpe", ("rustbpe",), "tokens of fits with raw byte order equal rustbpe's", against_rustbpe),
    Part(
        "fit-worked-examples", (), "minbpe's example, three rounds by hand, a text that is too short", worked_examples
    ),
)
