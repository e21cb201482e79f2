"""From a program for threads to a deterministic automaton, and what each of its steps says about where a match ends.

A state is a list of threads in order of preference. Reading a code point (or the end of the text) first settles the
threads that wait for a look-ahead, then moves the others; a thread that has matched cuts off all that are less preferred.
What is left after the last of them is what a backtracking engine would have found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tokctl.kernels.pattern_automaton import END_AT_MARK, END_BEFORE_PREVIOUS, END_HERE, MARK, NEXT_WORD
from tokctl.tokenizer.pre_tokenizers.program import Check, Fork, Match, Program, Take, Unsupported

MAX_STATES = 1_000
DEAD = -1

State = tuple[int, ...]


@dataclass(frozen=True)
class Machine:
    """``target int32[n_states, n_classes]`` (``DEAD``: no thread is left), state 0 is the start; the last class is the
    end of the text. ``matched bool[n_states, n_classes]``: a match ends before the code point that is read."""

    target: np.ndarray
    matched: np.ndarray


def determinise(program: Program, member: np.ndarray) -> Machine:
    """The machine of a program; ``member bool[n_sets, n_classes]`` without the class for the end of the text."""
    end_class = member.shape[1]
    threads = _Threads(program, member)
    numbers: dict[State, int] = {}
    states: list[State] = []

    def number(state: State) -> int:
        if state not in numbers:
            if len(states) >= MAX_STATES:
                raise Unsupported(f"the automaton needs more than {MAX_STATES} states")
            numbers[state] = len(states)
            states.append(state)
        return numbers[state]

    number(threads.start())
    target: list[list[int]] = []
    matched: list[list[bool]] = []
    for state in _growing(states):
        steps = [threads.step(state, klass) for klass in range(end_class)]
        steps.append(((), threads.step(state, None)[1]))
        target.append([number(after) if after else DEAD for after, _ in steps])
        matched.append([match for _, match in steps])
    return Machine(np.array(target, np.int32), np.array(matched, bool))


def _growing(states: list[State]) -> Iterator[State]:
    index = 0
    while index < len(states):
        yield states[index]
        index += 1


class _Threads:
    def __init__(self, program: Program, member: np.ndarray) -> None:
        self.instructions = program.instructions
        self.entry = program.entry
        self.member = [[bool(value) for value in row] for row in member]

    def start(self) -> State:
        return self.spread([self.entry])

    def spread(self, places: list[int]) -> State:
        """Follow forks; what is left takes a code point, waits for a look-ahead, or (as the last) has matched."""
        seen: set[int] = set()
        out: list[int] = []
        stack = places[::-1]
        while stack:
            place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            match self.instructions[place]:
                case Fork(options):
                    stack.extend(reversed(options))
                case Match():
                    out.append(place)
                    break
                case _:
                    out.append(place)
        return tuple(out)

    def step(self, state: State, klass: int | None) -> tuple[State, bool]:
        """The state after reading ``klass`` (None: the end of the text), and whether a match ends before it."""
        seen: set[int] = set()
        moved: list[int] = []
        matched = False
        stack = list(reversed(state))
        while stack and not matched:
            place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            match self.instructions[place]:
                case Fork(options):
                    stack.extend(reversed(options))
                case Match():
                    matched = True
                case Check(points, at_end, after):
                    if at_end if klass is None else self.member[points][klass]:
                        stack.append(after)
                case Take(points, after):
                    if klass is not None and self.member[points][klass]:
                        moved.append(after)
        return self.spread(moved), matched


def falls_back(machine: Machine) -> np.ndarray:
    """``bool[n_states]``: states from which a run can die without having matched again, further back than one step."""
    dead = machine.target == DEAD
    unmatched = ~machine.matched
    out = (dead & unmatched).any(axis=1) & ~matched_before(machine)
    while True:
        leads = (unmatched & ~dead & out[machine.target]).any(axis=1)
        grown = out | leads
        if (grown == out).all():
            return out
        out = grown


def matched_before(machine: Machine) -> np.ndarray:
    """``bool[n_states]``: states that are entered only by a step before which a match ended."""
    out = np.ones(machine.target.shape[0], bool)
    out[0] = False
    live = machine.target != DEAD
    out[machine.target[live & ~machine.matched]] = False
    return out


def actions(machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """``(target, action)`` of the automaton: as ``machine``, with what to do about the match.

    Where a match ends and no thread is left, the target is already that of the next word, if one begins there.
    A place is marked only where a later step may have to come back to it, and not for one step, which needs no mark.
    """
    marked = falls_back(machine)
    one_back = matched_before(machine)
    dead = machine.target == DEAD
    fresh = np.broadcast_to(machine.target[0], machine.target.shape)
    ends_here = dead & machine.matched
    next_word = ends_here & (fresh != DEAD)
    action = np.zeros(machine.target.shape, np.uint8)
    action[~dead & machine.matched & marked[machine.target]] = MARK
    action[ends_here] = END_HERE
    action[next_word] = NEXT_WORD
    action[dead & ~machine.matched] = END_AT_MARK
    action[dead & ~machine.matched & one_back[:, None]] = END_BEFORE_PREVIOUS
    target = np.where(next_word, fresh, machine.target)
    target[target == DEAD] = 0
    return target, action
