"""Expressions as the tokenizers library reads them (Oniguruma), in the language of ``pre_tokenizers.parse``.

There ``$`` and ``^`` are the ends of every line, ``(?m)`` lets ``.`` match a line feed (elsewhere ``(?s)`` does), ``\\Z``
also stops before a last line feed, and a ``+`` after ``{n,m}`` repeats once more, where other engines take it for a
possessive quantifier.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:[pP]\{[^}]*\}|[xu]\{[^}]*\}|x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_INTERVAL = re.compile(r"\{(?:\d+(?:,\d*)?|,\d+)\}")
_FLAGS = re.compile(r"\(\?([a-z-]+)([:)])")
_OPENER = re.compile(r"\((?:\?(?:<[=!]|[=!>:]|<\w+>))?")
_ALONE = {"$": "(?m:$)", "^": "(?m:^)"}


def from_oniguruma(regex: str) -> str:
    """The expression with what is read differently spelled out; the same text where nothing is."""
    out: list[str] = []
    opened: list[int] = []
    atom = 0  # where in ``out`` the last thing begins that a quantifier would repeat
    at = 0
    while at < len(regex):
        character = regex[at]
        token: str | None = None
        if character == "\\" and (found := _ESCAPE.match(regex, at)):
            token = found[0]
            out.append(r"(?=\n?\z)" if token == r"\Z" else token)
            atom = len(out) - 1
        elif character == "[":
            token = _set(regex, at)
            # A set inside a set, where others think of a collating symbol or an equivalence class.
            out.append(re.sub(r"(?<=.)\[(?=[.=])", r"[\\", token))
            atom = len(out) - 1
        elif flags := _FLAGS.match(regex, at):
            token = flags[0]
            opened += [len(out)] * (flags[2] == ":")
            out.append(token.replace("m", "s"))
        elif character == "(":
            opener = _OPENER.match(regex, at)
            token = opener[0] if opener else character
            opened.append(len(out))
            out.append(token)
        elif character == ")":
            out.append(character)
            atom = opened.pop() if opened else atom
        elif interval := _INTERVAL.match(regex, at):
            token = interval[0]
            if regex[interval.end() : interval.end() + 1] == "+":
                out[atom:] = [f"(?:{''.join(out[atom:])}{token})"]
            else:
                out.append(token)
        elif character in "*+?|":
            out.append(character)
        else:
            out.append(_ALONE.get(character, character))
            atom = len(out) - 1
        at += len(token or character)
    return "".join(out)


def _set(regex: str, begin: int) -> str:
    """The set that begins at ``begin``, nested ones included."""
    depth = 0
    at = begin
    while at < len(regex):
        if regex[at] == "\\":
            at += 2
            continue
        if regex[at] == "[":
            depth += 1
            at += 1
            at += regex[at : at + 1] == "^"
            at += regex[at : at + 1] == "]"  # stands for itself in the first place
            continue
        if regex[at] == "]":
            depth -= 1
            if depth == 0:
                return regex[begin : at + 1]
        at += 1
    return regex[begin:]
