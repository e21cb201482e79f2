"""Splitting by a pattern, the slow and obvious way: Python's ``regex`` module on the pattern as it is written.

It knows nothing of tokctl's parser or tables. Its Unicode version is another, so texts for a comparison are made of
code points that both class alike (``agreeing_points``).
"""

from __future__ import annotations

import functools
import random
from itertools import pairwise

import regex

# without Cs, which no text holds
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn"


def split(patterns: tuple[str, ...], text: str) -> list[str]:
    """The words of ``text``: each pattern in turn cuts each piece at the start and end of each match."""
    pieces = [text] if text else []
    for pattern in patterns:
        pieces = [word for piece in pieces for word in _cut(pattern, piece)]
    return pieces


def _cut(pattern: str, piece: str) -> list[str]:
    cuts = {0, len(piece)}
    for match in regex.finditer(pattern, piece, regex.V0):
        cuts |= {match.start(), match.end()}
    ordered = sorted(cuts)
    return [piece[a:b] for a, b in pairwise(ordered)]


@functools.cache
def category_of() -> dict[int, str]:
    """The general category of every code point but surrogates, in the Unicode version of the ``regex`` module."""
    everything = "".join(chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000)
    return {ord(found): name for name in CATEGORIES.split() for found in regex.findall(rf"\p{{{name}}}", everything)}


def random_text(rng: random.Random, points: list[int], length: int) -> str:
    """A text that is likely to hit the corners of split patterns: short runs of few kinds of characters."""
    frequent = [
        *"aAzsStTrREeVvMmlLdDkK",
        *"  \n\r\t\u00a0\u2003\u3000",
        *"''''\"/.,-!",
        *"0129\u0663",
        *"éßǅʰ中あカ・\u0301\u017f\u212a",
    ]
    out = []
    while len(out) < length:
        character = rng.choice(frequent) if rng.random() < 0.8 else chr(rng.choice(points))
        out += [character] * (rng.choice((1, 1, 1, 2, 3, 5)))
    return "".join(out[:length])
