"""Reads a split pattern into a syntax tree.

The language is what tiktoken's, tokenizers' and Python's engines agree on. Where they differ:

- ``$`` outside ``(?m)``, ``\\z`` and ``\\Z`` are the very end of the text (tiktoken; Python's ``$`` also stops before a
  final newline, tokenizers' at every line end).
- A ``[`` inside a set opens a nested set and ``&&`` intersects (tiktoken and tokenizers; Python reads them literally).
- ``(?i)`` adds simple case foldings, before a set is negated (tiktoken).
- ``\\w`` is tiktoken's; properties come from tokctl's own Unicode tables.
- A back-reference means exactly the same code points; inside ``(?i)`` it is refused.

Recursion and conditions are refused, as is what the engines read in different ways (``[[:alpha:]]``, ``\\h``, ``--`` inside
a set, numbers of groups where others have names).
"""

from __future__ import annotations

from dataclasses import replace

from tokctl.tokenizer.pre_tokenizers import code_points as cp
from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints
from tokctl.tokenizer.pre_tokenizers.groups import Groups
from tokctl.tokenizer.pre_tokenizers.parse_sets import MAX_NESTING, Flags, SetParser
from tokctl.tokenizer.pre_tokenizers.syntax import (
    Atomic,
    BackReference,
    Chars,
    Choice,
    Edge,
    Group,
    Look,
    Node,
    Repeat,
    Sequence,
)
from tokctl.tokenizer.unicode_tables import UnicodeTable

MAX_REPEAT = 65_535

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


def parse(pattern: str, table: UnicodeTable) -> Node:
    """The syntax tree of ``pattern``; UsageError (``bad-pattern``) naming the position for what isn't a pattern."""
    parser = _Parser(pattern, table)
    node = parser.whole()
    if parser.has_references:
        parser = _Parser(pattern, table, keeps_groups=True)
        node = parser.whole()
    return node


class _Parser(SetParser):
    def __init__(self, pattern: str, table: UnicodeTable, *, keeps_groups: bool = False) -> None:
        super().__init__(pattern, table)
        self.keeps_groups = keeps_groups
        self.groups = Groups()
        self.has_references = False

    # -- structure -------------------------------------------------------------------------------------------------

    def whole(self) -> Node:
        node = self.choice(Flags(), 0)
        if not self.at_end():
            self.fail("this ')' closes no group", "write \\) for a parenthesis that stands for itself")
        return node

    def choice(self, flags: Flags, depth: int) -> Node:
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

    def repeated(self, flags: Flags, depth: int) -> Node:
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

    def inline_flags(self, flags: Flags) -> Flags | None:
        """``(?i)``: changes the flags up to the end of the group; None where there is no such thing."""
        begin = self.at
        if self.accept("(?") and not self.at_end() and self.pattern[self.at] in "imsxuaLV-":
            changed = self.flag_letters(flags)
            if self.accept(")"):
                return changed
        self.at = begin
        return None

    def flag_letters(self, flags: Flags) -> Flags:
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

    def atom(self, flags: Flags, depth: int) -> Node:
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

    def group(self, begin: int, flags: Flags, depth: int) -> Node:
        self.at = begin
        kind = next((kind for opener, kind in _OPENERS if self.accept(opener)), None)
        number = None
        if kind is None:
            kind = "plain"
            if self.accept("(?P="):
                return self.reference(begin, self.name(begin, ")"), flags)
            if self.accept("(?P<") or self.accept("(?<"):
                number = self.groups.open(self.name(begin, ">"))
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
                number = self.groups.open(None)
        body = self.choice(flags, depth + 1)
        if not self.accept(")"):
            self.fail("this group is not closed", "add ')' or write \\( for the character itself", begin)
        if number is not None:
            self.groups.close(number)
            return Group(number, body) if self.keeps_groups else body
        if kind == "plain":
            return body
        if kind == "atomic":
            return Atomic(body)
        return Look(body, "ahead" in kind, "not" in kind)

    def name(self, begin: int, closer: str) -> str:
        """A group's name, up to ``closer``, which is read too."""
        close = self.pattern.find(closer, self.at)
        name = self.pattern[self.at : max(close, self.at)]
        if not name.isidentifier():
            self.fail("this group has no valid name", "write (?<name>...) or (?:...)", begin)
        self.at = close + 1
        return name

    def reference(self, begin: int, wanted: str, flags: Flags) -> Node:
        if flags.ignore_case:
            self.fail("a back-reference inside (?i)", "put it outside of (?i:...)", begin)
        number = self.groups.find(wanted)
        if isinstance(number, str):
            self.fail(number, "refer to a group that is closed before, by its name where groups have names", begin)
        self.has_references = True
        return BackReference(number)

    # -- escapes ---------------------------------------------------------------------------------------------------

    def escape(self, begin: int, flags: Flags) -> Node:
        letter = self.take()
        if letter in "zZ":
            return Edge("end")
        if letter == "A":
            return Edge("start")
        if letter in "bB":
            return self.word_edge(letter == "B")
        if letter in "123456789":
            while not self.at_end() and self.pattern[self.at] in "0123456789":
                letter += self.take()
            return self.reference(begin, letter, flags)
        if letter == "k" and self.accept("<"):
            return self.reference(begin, self.name(begin, ">"), flags)
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


def _sequence(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))
