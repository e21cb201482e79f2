"""Strings for comparing encoders: the same ones for the same vocabulary and seed.

Random Unicode, strings glued from the vocabulary's own tokens, look-alikes of its added tokens in the contexts that their
flags care about, slices of real text in many languages and of code, and the same slices decomposed.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from interop import peer_fits

from tokctl.tokenizer.formats.probe_texts import AWKWARD
from tokctl.tokenizer.tokenizer import Tokenizer

SCRIPTS = (
    (0x20, 0x7E),
    (0xA0, 0x24F),
    (0x300, 0x36F),
    (0x370, 0x5FF),
    (0x600, 0x6FF),
    (0x900, 0xE7F),
    (0x1F00, 0x20CF),
    (0x2100, 0x2BFF),
    (0x3000, 0x30FF),
    (0x4E00, 0x9FFF),
    (0x1100, 0x11FF),
    (0xAC00, 0xD7A3),
    (0xFB00, 0xFFEF),
    (0x1F300, 0x1FAFF),
    (0x1D400, 0x1D7FF),
    (0, 0x10FFFF),
)
SPACES = (" ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "123", "\u00a0", "\u3000", "_", "\u0301")
CONTEXTS = ("{}", "a{}b", " {} ", "x \u3000{}\n\ty", "{0}{0}", "{0} {0}.{0}", "é{}é", "_{}_", "{}\u0301", "\u200d{}1")


def strings(tokenizer: Tokenizer, n: int, seed: int = 0) -> Iterator[str]:
    """``n`` strings."""
    draw = random.Random(seed)
    tokens = [token for token in tokenizer.vocabulary.tokens() if token]
    names = [token.content for token in tokenizer.added_tokens]
    names = draw.sample(names, min(len(names), 60)) or ["<|endoftext|>"]
    real_text = _real_text()
    for i in range(n):
        kind = i % 10
        if i < len(AWKWARD):
            yield AWKWARD[i]
        elif kind < 4:
            yield b"".join(draw.choices(tokens, k=draw.randint(1, 8))).decode("utf-8", "ignore")
        elif kind < 6:
            yield _random_text(draw)
        elif kind == 6:
            name = draw.choice(names)
            cut = draw.randint(0, len(name))
            likes = (name, name, name[:cut], name[cut:], name.upper(), name.lower(), name.title())
            like = draw.choice(likes).replace("{", "{{").replace("}", "}}").replace("{{}}", "")
            yield draw.choice(CONTEXTS).replace("{0}", "{}").replace("{}", like) + _random_text(draw)
        else:
            at = draw.randrange(max(1, len(real_text) - 160))
            text = real_text[at : at + draw.randint(1, 160)]
            yield unicodedata.normalize("NFD", text) if kind == 9 and i % 20 == 9 else text


def _random_text(draw: random.Random) -> str:
    parts = []
    for _ in range(draw.randint(1, 4)):
        low, high = draw.choice(SCRIPTS)
        if draw.random() < 0.2:
            parts.append(draw.choice(SPACES) * draw.randint(1, 4))
            continue
        points = [draw.randint(low, high) for _ in range(draw.randint(1, 8))]
        parts.append("".join(chr(point) for point in points if not 0xD800 <= point < 0xE000))
    return "".join(parts)


@cache
def _real_text() -> str:
    root = Path(__file__).parents[2]
    files = [
        *sorted(root.glob("*.md")),
        *sorted(root.glob("tokctl/**/*.py")),
        *sorted(root.glob("examples/corpus/**/*.html")),
    ]
    return "\n".join([*peer_fits.documents("udhr"), *(file.read_text("utf-8") for file in files)])
