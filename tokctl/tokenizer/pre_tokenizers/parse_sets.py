"""Reads what stands for one code point in a split pattern: escapes, properties, and sets in brackets."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import NoReturn

from tokctl.errors import UsageError
from tokctl.tokenizer.pre_tokenizers import code_points as cp
from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints
from tokctl.tokenizer.unicode_tables import UnicodeTable

MAX_NESTING = 100

_CONTROLS = {"n": 0x0A, "r": 0x0D, "t": 0x09, "f": 0x0C, "v": 0x0B, "a": 0x07, "e": 0x1B, "0": 0x00}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


@dataclass(frozen=True)
class Flags:
    """What ``(?i)``, ``(?s)`` and ``(?m)`` switch on."""

    ignore_case: bool = False
    dot_all: bool = False
    multi_line: bool = False


class SetParser:
    """A place in a pattern and the sets of code points that can be read there; errors name the place."""

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

    # -- escapes ---------------------------------------------------------------------------------------------------

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

    def folded(self, points: CodePoints, flags: Flags) -> CodePoints:
        return cp.ignoring_case(self.table, points) if flags.ignore_case else points

    # -- sets ------------------------------------------------------------------------------------------------------

    def set(self, begin: int, flags: Flags, depth: int) -> CodePoints:
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

    def set_item(self, flags: Flags, depth: int) -> CodePoints:
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
