"""One machine for a sequence of patterns, each of which cuts the pieces that the ones before it made.

Done where each pattern but the last is simple: a piece that it makes of a match either is a run of one set of characters,
or can't be cut further (a single character, or text in which no later pattern finds anything); and where its matches
end is known when the next character is read. Then all patterns can be followed side by side, an earlier one's cut being
the end of the text for the later ones. This is the case for the sequences that published tokenizers use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokctl.tokenizer.pre_tokenizers.determinise import DEAD, MAX_STATES, Machine
from tokctl.tokenizer.pre_tokenizers.program import Unsupported

FRESH = -2  # an outer pattern, before the first character of a word
BETWEEN = -3  # an outer pattern, between its matches


@dataclass(frozen=True)
class _Joint:
    """States of the outer patterns, outermost first, and that of the one that cuts here.

    ``outer[k]`` is FRESH, BETWEEN, or a state of pattern ``k`` inside a run that it matched. ``inner`` is a state of
    pattern ``len(outer)``: the last one, or an earlier one inside a match that is a word as it is.
    """

    outer: tuple[int, ...]
    inner: int


def compose(machines: list[Machine]) -> tuple[Machine, np.ndarray]:
    """``(machine, context uint8[n_classes])`` over the common classes of ``machines``; ``Unsupported`` where it can't.

    Between characters of different contexts an earlier pattern cuts even where no pattern matches.
    """
    outers, last = machines[:-1], machines[-1]
    makes_words = [_makes_words(level, machines) for level in range(len(outers))]
    n_classes = last.target.shape[1]
    end_class = n_classes - 1

    def step(state: _Joint, klass: int) -> tuple[_Joint | None, bool]:
        """The joint state after ``klass`` (None: no thread left), and whether a match ends before it."""
        outer: list[int] = []
        for level, before in enumerate(state.outer):
            begins = int(outers[level].target[0, klass])
            if before == FRESH:
                if begins != DEAD and makes_words[level]:
                    return _Joint(tuple(outer), begins), False
                after = BETWEEN if begins == DEAD else begins
            elif before == BETWEEN:
                after = DEAD if begins != DEAD or klass == end_class else BETWEEN
            else:
                after = int(outers[level].target[before, klass])
            if after == DEAD:
                return None, bool(machines[len(state.outer)].matched[state.inner, end_class])
            outer.append(after)
        cutting = machines[len(state.outer)]
        after = int(cutting.target[state.inner, klass])
        return None if after == DEAD else _Joint(tuple(outer), after), bool(cutting.matched[state.inner, klass])

    numbers = {_Joint((FRESH,) * len(outers), 0): 0}
    target: list[list[int]] = []
    matched: list[list[bool]] = []
    todo = list(numbers)
    while len(target) < len(todo):
        row = [step(todo[len(target)], klass) for klass in range(n_classes)]
        for after, _ in row:
            if after is not None and after not in numbers:
                if len(numbers) >= MAX_STATES:
                    raise Unsupported(f"the automaton needs more than {MAX_STATES} states")
                numbers[after] = len(todo)
                todo.append(after)
        target.append([DEAD if after is None else numbers[after] for after, _ in row])
        matched.append([match for _, match in row])

    contexts: dict[tuple[int, ...], int] = {}
    context = [
        contexts.setdefault(tuple(int(outer.target[0, klass]) for outer in outers), len(contexts))
        for klass in range(n_classes)
    ]
    return Machine(np.array(target, np.int32), np.array(matched, bool)), np.array(context, np.uint8)


def _makes_words(level: int, machines: list[Machine]) -> bool:
    """True where matches of a pattern are never cut by later ones, False where they are runs of one set."""
    machine = machines[level]
    live = machine.target != DEAD
    if not machine.matched[1:][~live[1:]].all():
        raise Unsupported(f"pattern {level + 1} of {len(machines)} has to read on to know where a match ends")
    taken = live.any(axis=0)
    taken[-1] = True  # the end of the text
    if not live[1:].any() or not any(_can_match(later, taken) for later in machines[level + 1 :]):
        return True
    stays = (machine.target == np.arange(live.shape[0])[:, None]) & (machine.target == machine.target[0])
    if not (stays | ~live)[1:].all():
        raise Unsupported(f"a match of pattern {level + 1} of {len(machines)} is cut further and is no run of one set")
    return False


def _can_match(machine: Machine, alphabet: np.ndarray) -> bool:
    """Whether the machine finds anything in text of the classes ``alphabet bool[n_classes]``."""
    reached = {0}
    todo = [0]
    while todo:
        state = todo.pop()
        if machine.matched[state, alphabet].any():
            return True
        for target in machine.target[state, alphabet].tolist():
            if target != DEAD and target not in reached:
                reached.add(target)
                todo.append(target)
    return False
