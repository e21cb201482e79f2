"""Reads a split pattern into a syntax tree.

The language is what tiktoken's, tokenizers' and Python's engines agree on. Where they differ:

- ``$`` outside ``(?m)``, ``\\z`` and ``\\Z`` are the very end of the text (tiktoken; Python's ``$`` also stops before a
  final newline, tokenizers' at every line end).
- A ``[`` inside a set opens a nested set and ``&&`` intersects (tiktoken and tokenizers; Python reads them literally).
- ``(?i)`` adds simple case foldings, before a set is negated (tiktoken).
- ``\\w`` is tiktoken's; properties come from tokctl's own Unicode tables.

What no automaton and no class of code points can say (back-references, recursion, conditions) is refused, as is what the
engines read in different ways (``[[:alpha:]]``, ``\\h``, ``--`` inside a set).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import NoReturn

from tokctl.errors import UsageError
from tokctl.tokenizer.pre_tokenizers import code_points as cp
from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints
from tokctl.tokenizer.pre_tokenizers.syntax import Atomic, Chars, Choice, Edge, Look, Node, Repeat, Sequence
from tokctl.tokenizer.unicode_tables import UnicodeTable

MAX_NESTING = 100
MAX_REPEAT = 65_535

_CONTROLS = {"n": 0x0A, "r": 0x0D, "t": 0x09, "f": 0x0C, "v": 0x0B, "a": 0x07, "e": 0x1B, "0": 0x00}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_OPENERS = (
    # longest first where one is the beginning of another
    ("(?<=", "behind"),
    ("(?<!", "not behind"),
    ("(?=", "ahead"),
    ("(?!", "not ahead"),
    ("(?>", "atomic"),
    ("(?:", "plain"),
)
_LINE_FEED = CodePoints.of((0x0A, 0x0A))


@dataclass(frozen=True)
class _Flags:
    ignore_case: bool = False
    dot_all: bool = False
    multi_line: bool = False


def parse(pattern: str, table: UnicodeTable) -> Node:
    """The syntax tree of ``pattern``; UsageError (``bad-pattern``) naming the position for what isn't a pattern."""
    parser = _Parser(pattern, table)
    node = parser.choice(_Flags(), 0)
    if not parser.at_end():
        parser.fail("this ')' closes no group", "write \\) for a parenthesis that stands for itself")
    return node


class _Parser:
    def __init__(self, pattern: str, table: UnicodeTable) -> None:
        self.pattern = pattern
        self.table = table
        self.at = 0

    # -- reading ---------------------------------------------------------------------------------------------------

    def at_end(self) -> bool:
        return self.at >= len(self.pattern)

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def accept(self, text: str) -> bool:
        if not self.peek(text):
            return False
        self.at += len(text)
        return True

    def take(self) -> str:
        if self.at_end():
            self.fail("the pattern ends too early", "a group, set or escape is not finished")
        self.at += 1
        return self.pattern[self.at - 1]

    def fail(self, what: str, hint: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        shown = self.pattern if len(self.pattern) <= 80 else self.pattern[max(0, at - 30) : at + 30]
        raise UsageError(
            f"pattern, position {at}: {what} (in {shown!r})",
            hint=hint,
            code="bad-pattern",
            offset=len(self.pattern[:at].encode("utf-8", "surrogatepass")),
        )

    # -- structure -------------------------------------------------------------------------------------------------

    def choice(self, flags: _Flags, depth: int) -> Node:
        if depth > MAX_NESTING:
            self.fail(f"groups are nested more than {MAX_NESTING} deep", "simplify the pattern")
        options = []
        parts: list[Node] = []
        while not self.at_end() and not self.peek(")"):
            if self.accept("|"):
                options.append(_sequence(parts))
                parts = []
            elif (changed := self.inline_flags(flags)) is not None:
                flags = changed
            else:
                parts.append(self.repeated(flags, depth))
        options.append(_sequence(parts))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def repeated(self, flags: _Flags, depth: int) -> Node:
        begin = self.at
        body = self.atom(flags, depth)
        bounds = self.quantifier()
        if bounds is None:
            return body
        if isinstance(body, (Look, Edge)):
            self.fail("a look-around or an anchor can't be repeated", "remove the quantifier", begin)
        low, high = bounds
        node: Node
        if self.accept("+"):
            node = Repeat(body, low, high, "possessive")
        elif self.accept("?"):
            node = Repeat(body, low, high, "lazy")
        else:
            node = Repeat(body, low, high, "greedy")
        at = self.at
        if self.quantifier() is not None:
            self.fail("a quantifier follows a quantifier", "put what is repeated in (?:...)", at)
        return node

    def quantifier(self) -> tuple[int, int | None] | None:
        if self.accept("*"):
            return 0, None
        if self.accept("+"):
            return 1, None
        if self.accept("?"):
            return 0, 1
        if not self.peek("{"):
            return None
        begin = self.at
        close = self.pattern.find("}", begin)
        low, comma, high = self.pattern[begin + 1 : max(close, begin + 1)].partition(",")
        digits = low + high
        if close < 0 or not digits.isascii() or not digits.isdigit() or (not comma and not low):
            return None  # a brace that stands for itself
        self.at = close + 1
        if len(low) > 9 or len(high) > 9 or max(int(low or 0), int(high or 0)) > MAX_REPEAT:
            self.fail(f"more than {MAX_REPEAT} repetitions", "use * or + for 'any number'", begin)
        least = int(low or 0)
        most = (int(high) if high else None) if comma else least
        if most is not None and most < least:
            self.fail(f"at least {least} but at most {most} times", "write the smaller number first", begin)
        return least, most

    def inline_flags(self, flags: _Flags) -> _Flags | None:
        """``(?i)``: changes the flags up to the end of the group; None where there is no such thing."""
        begin = self.at
        if self.accept("(?") and not self.at_end() and self.pattern[self.at] in "imsxuaLV-":
            changed = self.flag_letters(flags)
            if self.accept(")"):
                return changed
        self.at = begin
        return None

    def flag_letters(self, flags: _Flags) -> _Flags:
        names = {"i": "ignore_case", "s": "dot_all", "m": "multi_line"}
        value = True
        while not self.at_end() and self.pattern[self.at] not in ":)":
            letter = self.take()
            if letter == "-" and value:
                value = False
            elif letter in names:
                flags = replace(flags, **{names[letter]: value})
            elif letter != "u" or not value:
                self.fail(f"the flag {letter!r} is not known", "known flags are i, m, s and u", self.at - 1)
        return flags

    def atom(self, flags: _Flags, depth: int) -> Node:
        begin = self.at
        character = self.take()
        if character == "(":
            return self.group(begin, flags, depth)
        if character == "[":
            return Chars(self.set(begin, flags, 0))
        if character == ".":
            return Chars(cp.EVERYTHING if flags.dot_all else ~_LINE_FEED)
        if character == "^":
            edge = Edge("start")
            return Choice((edge, Look(Chars(_LINE_FEED), False, False))) if flags.multi_line else edge
        if character == "$":
            edge = Edge("end")
            return Choice((edge, Look(Chars(_LINE_FEED), True, False))) if flags.multi_line else edge
        if character in "*+?":
            self.fail(f"nothing to repeat before {character!r}", f"write \\{character} for the character itself", begin)
        if character == "\\":
            return self.escape(begin, flags)
        return Chars(self.folded(CodePoints.of((ord(character), ord(character))), flags))

    def group(self, begin: int, flags: _Flags, depth: int) -> Node:
        self.at = begin
        kind = next((kind for opener, kind in _OPENERS if self.accept(opener)), None)
        if kind is None:
            kind = "plain"
            if self.accept("(?P<") or self.accept("(?<"):
                close = self.pattern.find(">", self.at)
                if close < 0 or not self.pattern[self.at : close].isidentifier():
                    self.fail("this group has no valid name", "write (?<name>...) or (?:...)", begin)
                self.at = close + 1
            elif self.accept("(?"):
                if self.at_end() or self.pattern[self.at] not in "imsxuaLV-":
                    self.fail(
                        "this kind of group is not supported",
                        "supported are (...), (?:...), (?i:...), (?>...), (?=...), (?!...), (?<=...) and (?<!...)",
                        begin,
                    )
                flags = self.flag_letters(flags)
                if not self.accept(":"):
                    self.fail("the flags are not followed by ':'", "write (?i:...)")
            else:
                self.at += 1
        body = self.choice(flags, depth + 1)
        if not self.accept(")"):
            self.fail("this group is not closed", "add ')' or write \\( for the character itself", begin)
        if kind == "plain":
            return body
        if kind == "atomic":
            return Atomic(body)
        return Look(body, "ahead" in kind, "not" in kind)

    # -- escapes ---------------------------------------------------------------------------------------------------

    def escape(self, begin: int, flags: _Flags) -> Node:
        letter = self.take()
        if letter in "zZ":
            return Edge("end")
        if letter == "A":
            return Edge("start")
        if letter in "bB":
            return self.word_edge(letter == "B")
        if letter == "R":
            line_ends = Chars(CodePoints.of((0x0A, 0x0D), (0x85, 0x85), (0x2028, 0x2029)))
            pair = Sequence((Chars(CodePoints.of((0x0D, 0x0D))), Chars(_LINE_FEED)))
            return Atomic(Choice((pair, line_ends)))
        self.at -= 1
        return Chars(self.folded(self.escaped_set(begin)[0], flags))

    def word_edge(self, negated: bool) -> Node:
        word = Chars(cp.word_characters(self.table))

        def places(before: bool, after: bool) -> Node:
            return Sequence((Look(word, False, not before), Look(word, True, not after)))

        same = Choice((places(True, True), places(False, False)))
        other = Choice((places(True, False), places(False, True)))
        return same if negated else other

    def escaped_set(self, begin: int) -> tuple[CodePoints, bool]:
        """The set of an escape whose backslash was read, and whether it is one code point that may begin a range."""
        letter = self.take()
        if letter in "dDsSwW":
            lower = letter.lower()
            if lower == "d":
                points = cp.category(self.table, "Nd")
            elif lower == "s":
                points = cp.white_space(self.table)
            else:
                points = cp.word_characters(self.table)
            return (points if letter == lower else ~points), False
        if letter in "pP":
            return self.property(begin, letter == "P"), False
        if letter in _HEX_DIGITS:
            point = self.hexadecimal(begin, letter)
        elif letter in _CONTROLS:
            if letter == "0" and not self.at_end() and self.pattern[self.at] in "01234567":
                self.fail("octal escapes are not supported", "write \\xHH", begin)
            point = _CONTROLS[letter]
        elif letter.isdigit() or letter in "kg":
            self.fail("back-references are not supported", "spell out what may be repeated", begin)
        elif letter.isascii() and letter.isalnum():
            self.fail(f"\\{letter} is not supported", "write the code points or \\p{...} that are meant", begin)
        else:
            point = ord(letter)
        return CodePoints.of((point, point)), True

    def hexadecimal(self, begin: int, letter: str) -> int:
        if self.accept("{"):
            close = self.pattern.find("}", self.at)
            digits = self.pattern[self.at : close] if close >= 0 else ""
            self.at = close + 1
        else:
            digits = self.pattern[self.at : self.at + _HEX_DIGITS[letter]]
            self.at += _HEX_DIGITS[letter]
            if len(digits) < _HEX_DIGITS[letter]:
                digits = ""
        hexadecimal = "0123456789abcdefABCDEF"
        if not digits or any(digit not in hexadecimal for digit in digits) or int(digits, 16) > sys.maxunicode:
            self.fail(
                f"\\{letter} needs the hexadecimal number of a code point",
                "write \\xHH, \\uHHHH, \\UHHHHHHHH or \\x{H...}",
                begin,
            )
        return int(digits, 16)

    def property(self, begin: int, negated: bool) -> CodePoints:
        if self.accept("{"):
            close = self.pattern.find("}", self.at)
            if close < 0:
                self.fail("this property is not closed", "write \\p{Name}", begin)
            name = self.pattern[self.at : close]
            self.at = close + 1
        else:
            name = self.take()
        if name.startswith("^"):
            name, negated = name[1:], not negated
        points = cp.named_property(self.table, name)
        if points is None:
            self.fail(
                f"the property {name!r} is not known",
                "known are general categories (L, Lu, Letter, ...), scripts (Han, ...), White_Space, Alphabetic, Any, Assigned",
                begin,
            )
        return ~points if negated else points

    def folded(self, points: CodePoints, flags: _Flags) -> CodePoints:
        return cp.ignoring_case(self.table, points) if flags.ignore_case else points

    # -- sets ------------------------------------------------------------------------------------------------------

    def set(self, begin: int, flags: _Flags, depth: int) -> CodePoints:
        """The rest of a set whose ``[`` was read."""
        if depth > MAX_NESTING:
            self.fail(f"sets are nested more than {MAX_NESTING} deep", "simplify the pattern")
        negated = self.accept("^")
        whole: CodePoints | None = None  # the intersection so far
        points = cp.NOTHING
        first = True
        while first or not self.peek("]"):
            if self.at_end():
                self.fail("this set is not closed", "add ']' or write \\[ for the character itself", begin)
            if self.accept("&&"):
                whole = points if whole is None else whole & points
                points = cp.NOTHING
                first = False
                continue
            points = points | self.set_item(flags, depth)
            first = False
        self.at += 1
        if whole is not None:
            points = whole & points
        return ~points if negated else points

    def set_item(self, flags: _Flags, depth: int) -> CodePoints:
        begin = self.at
        self.refuse_unclear("--", "~~", "||", "[:", "[.", "[=")
        if self.accept("["):
            return self.set(begin, flags, depth + 1)
        low, single = self.set_member(begin)
        if not single or not self.peek("-") or self.peek("-]"):
            return self.folded(low, flags)
        self.refuse_unclear("--")
        self.at += 1
        if self.peek("["):
            self.fail("a range ends in a set", "write \\- for the character itself", begin)
        high, high_single = self.set_member(self.at)
        if not high_single:
            self.fail("a range ends in a class", "write \\- for the character itself", begin)
        first, last = int(low.bounds[0]), int(high.bounds[0])
        if last < first:
            self.fail("this range ends before it begins", "write the smaller code point first", begin)
        return self.folded(CodePoints.of((first, last)), flags)

    def refuse_unclear(self, *operators: str) -> None:
        for operator in operators:
            if self.peek(operator) and not self.peek(operator + "]"):
                self.fail(
                    f"{operator!r} inside a set means different things in different engines",
                    f"write \\{operator[0]} for the character itself, and \\p{{...}} for a named class",
                )

    def set_member(self, begin: int) -> tuple[CodePoints, bool]:
        character = self.take()
        if character != "\\":
            return CodePoints.of((ord(character), ord(character))), True
        if self.accept("b"):
            return CodePoints.of((0x08, 0x08)), True
        return self.escaped_set(begin)


def _sequence(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))
