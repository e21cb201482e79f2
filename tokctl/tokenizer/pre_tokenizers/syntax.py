"""The syntax tree of a split pattern. Properties and case are already resolved: a leaf is a set of code points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tokctl.tokenizer.pre_tokenizers.code_points import CodePoints


@dataclass(frozen=True)
class Chars:
    """One code point of a set."""

    points: CodePoints


@dataclass(frozen=True)
class Sequence:
    """Its parts, one after the other; without parts, the empty string."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """The first of its options that lets the whole pattern match."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """``body`` at least ``low`` and at most ``high`` times (None: no limit)."""

    body: Node
    low: int
    high: int | None
    mode: Literal["greedy", "lazy", "possessive"]


@dataclass(frozen=True)
class Look:
    """A condition on the text after (``ahead``) or before a place; takes nothing."""

    body: Node
    ahead: bool
    negated: bool


@dataclass(frozen=True)
class Edge:
    """The start or the end of the text."""

    at: Literal["start", "end"]


@dataclass(frozen=True)
class Atomic:
    """``body``, whose first way to match is never revised."""

    body: Node


@dataclass(frozen=True)
class Group:
    """``body``, whose last match a ``BackReference`` to ``number`` means; kept only where there is one."""

    number: int
    body: Node


@dataclass(frozen=True)
class BackReference:
    """What the group of this number has matched, the same code points again; no match where it has matched nothing."""

    number: int


Node = Chars | Sequence | Choice | Repeat | Look | Edge | Atomic | Group | BackReference


def can_be_empty(node: Node) -> bool:
    """Whether ``node`` can match without taking a code point."""
    match node:
        case Chars():
            return False
        case Sequence(parts):
            return all(can_be_empty(part) for part in parts)
        case Choice(options):
            return any(can_be_empty(option) for option in options)
        case Repeat(body, low):
            return low == 0 or can_be_empty(body)
        case Atomic(body) | Group(_, body):
            return can_be_empty(body)
        case _:
            return True


def sets_of(node: Node) -> list[CodePoints]:
    """The sets of all leaves, in order of appearance."""
    match node:
        case Chars(points):
            return [points]
        case Sequence(parts) | Choice(parts):
            return [points for part in parts for points in sets_of(part)]
        case Repeat(body) | Look(body) | Atomic(body) | Group(_, body):
            return sets_of(body)
        case _:
            return []


def refers_back(node: Node) -> bool:
    """Whether there is a ``BackReference`` in ``node``: then code points of one class are not all alike."""
    match node:
        case BackReference():
            return True
        case Sequence(parts) | Choice(parts):
            return any(refers_back(part) for part in parts)
        case Repeat(body) | Look(body) | Atomic(body) | Group(_, body):
            return refers_back(body)
        case _:
            return False
