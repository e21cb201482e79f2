"""From a syntax tree to a program for threads: the non-deterministic automaton whose threads have an order of preference.

The order is that of a backtracking engine (leftmost-first): the first option before the second, one more repetition
before none (R. Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tokctl.tokenizer.pre_tokenizers.code_points import NOTHING, CodePoints
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
    can_be_empty,
    refers_back,
)

MAX_INSTRUCTIONS = 5_000


class Unsupported(Exception):
    """The pattern is valid but outside what an automaton of this kind can do; the text says why, for a user."""


@dataclass
class Take:
    """Take one code point of set number ``points``, go on at ``after``."""

    points: int
    after: int


@dataclass
class Check:
    """Go on at ``after`` where the next code point is in set number ``points``, or at the end of the text if ``at_end``."""

    points: int
    at_end: bool
    after: int


@dataclass
class Fork:
    """Go on at all of ``options``, the first preferred."""

    options: tuple[int, ...]


@dataclass
class Match:
    """The pattern has matched."""


Instruction = Take | Check | Fork | Match


@dataclass
class Program:
    """Instructions, where to begin, and the distinct sets they speak of."""

    instructions: list[Instruction] = field(default_factory=list)
    sets: list[CodePoints] = field(default_factory=list)
    entry: int = 0


def assemble(node: Node) -> Program:
    """The program of a pattern; ``Unsupported`` for what needs more than one automaton and one code point of look-ahead."""
    if refers_back(node):
        raise Unsupported("a back-reference looks back")
    if can_be_empty(node):
        raise Unsupported("the pattern can match the empty string")
    assembler = _Assembler()
    match = assembler.add(Match())
    assembler.program.entry = assembler.build(node, match)
    return assembler.program


class _Assembler:
    """Builds backwards: each node is given the instruction that follows it."""

    def __init__(self) -> None:
        self.program = Program()
        self.set_numbers: dict[bytes, int] = {}

    def add(self, instruction: Instruction) -> int:
        if len(self.program.instructions) >= MAX_INSTRUCTIONS:
            raise Unsupported(f"the pattern needs more than {MAX_INSTRUCTIONS} instructions")
        self.program.instructions.append(instruction)
        return len(self.program.instructions) - 1

    def set_number(self, points: CodePoints) -> int:
        key = points.bounds.tobytes()
        if key not in self.set_numbers:
            self.set_numbers[key] = len(self.program.sets)
            self.program.sets.append(points)
        return self.set_numbers[key]

    def build(self, node: Node, after: int) -> int:
        match node:
            case Chars(points):
                return self.add(Take(self.set_number(points), after))
            case Sequence(parts):
                for part in reversed(parts):
                    after = self.build(part, after)
                return after
            case Choice(options):
                return self.add(Fork(tuple(self.build(option, after) for option in options)))
            case Repeat(Chars(points), low, high, "possessive"):
                return self.possessive(points, low, high, after)
            case Repeat(body, low, high, mode):
                if mode == "possessive":
                    raise Unsupported("a possessive quantifier follows more than one set of characters")
                return self.repeat(body, low, high, mode == "lazy", after)
            case Atomic(Chars() as body):
                return self.build(body, after)
            case Atomic(Repeat(Chars(points), low, high, "greedy" | "possessive")):
                return self.possessive(points, low, high, after)
            case Atomic():
                raise Unsupported("an atomic group holds more than one repeated set of characters")
            case Group(_, body):
                return self.build(body, after)
            case BackReference():
                raise Unsupported("a back-reference looks back")
            case Look() | Edge():
                points, at_end = condition(node)
                return self.add(Check(self.set_number(points), at_end, after))

    def repeat(self, body: Node, low: int, high: int | None, lazy: bool, after: int) -> int:
        if high is None:
            if can_be_empty(body):
                raise Unsupported("something that can be empty is repeated without a limit")
            loop = self.add(Fork(()))
            again = self.build(body, loop)
            self.program.instructions[loop] = Fork((after, again) if lazy else (again, after))
            entry = again if low else loop
            optional = max(low - 1, 0)
        else:
            entry = after
            for _ in range(high - low):
                again = self.build(body, entry)
                entry = self.add(Fork((after, again) if lazy else (again, after)))
            optional = low
        for _ in range(optional):
            entry = self.build(body, entry)
        return entry

    def possessive(self, points: CodePoints, low: int, high: int | None, after: int) -> int:
        """As often as possible: it may stop before ``high`` only where the next code point is no member."""
        stop = self.add(Check(self.set_number(~points), True, after))
        number = self.set_number(points)
        if high is None:
            entry = self.add(Fork(()))
            again = self.add(Take(number, entry))
            self.program.instructions[entry] = Fork((again, stop))
        else:
            entry = after
            for _ in range(high - low):
                entry = self.add(Fork((self.add(Take(number, entry)), stop)))
        for _ in range(low):
            entry = self.add(Take(number, entry))
        return entry


def condition(node: Node) -> tuple[CodePoints, bool]:
    """What a look-ahead asks of the next code point: a set, and whether the end of the text will do."""
    match node:
        case Edge("end"):
            return NOTHING, True
        case Edge():
            raise Unsupported("an anchor at the start looks back")
        case Look(ahead=False):
            raise Unsupported("a look-behind looks back")
        case Look(body, _, negated):
            points, at_end = _next(body)
            return (~points, not at_end) if negated else (points, at_end)
        case _:
            raise Unsupported("a look-ahead needs more than one code point")


def _next(node: Node) -> tuple[CodePoints, bool]:
    match node:
        case Chars(points):
            return points, False
        case Choice(options):
            points, at_end = NOTHING, False
            for option in options:
                more, more_at_end = _next(option)
                points, at_end = points | more, at_end or more_at_end
            return points, at_end
        case _:
            return condition(node)
