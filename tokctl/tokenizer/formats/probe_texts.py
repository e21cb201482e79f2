"""Texts that show whether two tokenizers are the same: fixed awkward ones, and strings glued from the vocabulary's own tokens."""

from __future__ import annotations

from collections.abc import Iterator

from tokctl.tokenizer.tokenizer import Tokenizer

AWKWARD = (
    "",
    " ",
    "the  cat\n\tsat ",
    " ?",
    "'a' 'b",
    "hello !",
    "don't they'll I'VE we’re",
    "a\r\nb\rc\n\n\n d   ",
    "1234567 3.14 1e9 ٣٤٥ 四五",
    "x" * 300,
    " " * 300 + "x",
    "日本語のテキスト、中文文本。",
    "Ελληνικά кириллица עברית العربية हिन्दी ไทย",
    "cafe\u0301 café ﬁ ǅ İ ß",
    "👩‍👩‍👧‍👦 🇫🇷 ☕️ \U0001f9ff",
    "\u00a0\u2003\u200b\u2028\ufeff",
    "a\x00b\x1f\x7f\x85",
    "snake_case camelCase __init__ (a+b)*c == d; // c",
    "<|endoftext|> <|im_start|>user",
)
_MASK = (1 << 64) - 1


def probe_texts(tokenizer: Tokenizer, n: int, seed: int = 0) -> list[str]:
    """``AWKWARD`` and ``n`` strings of 1 to 12 pieces, each a token (where it is UTF-8 with its neighbours) or any character.

    The same texts for the same vocabulary and seed, on every machine (SplitMix64).
    """
    draws = _split_mix(seed)
    tokens = [token for token in tokenizer.vocabulary.tokens() if token]
    texts = list(AWKWARD)
    for _ in range(n):
        pieces = []
        for _ in range(1 + next(draws) % 12):
            draw = next(draws)
            if draw % 4 and tokens:
                pieces.append(tokens[(draw >> 8) % len(tokens)])
            else:
                pieces.append(_character(draw >> 8).encode())
        texts.append(b"".join(pieces).decode("utf-8", "ignore"))
    return texts


def _character(draw: int) -> str:
    """ASCII half of the time, else any code point that isn't a surrogate."""
    if draw & 1:
        return chr((draw >> 1) % 128)
    code = (draw >> 1) % (0x110000 - 0x800)
    return chr(code if code < 0xD800 else code + 0x800)


def _split_mix(seed: int) -> Iterator[int]:
    state = seed & _MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        yield z ^ (z >> 31)
