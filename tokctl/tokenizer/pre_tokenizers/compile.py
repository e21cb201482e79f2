"""From split patterns to the arrays that ``kernels.pattern_scan`` runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokctl.kernels.pattern_automaton import FIRST_ENDS, NEXT_WORD, ONE_BY_ONE, PAIR_BITS, SECOND_ENDS, Automaton
from tokctl.tokenizer.pre_tokenizers.alphabet import partition, two_stage
from tokctl.tokenizer.pre_tokenizers.compose import compose
from tokctl.tokenizer.pre_tokenizers.determinise import actions, determinise, falls_back
from tokctl.tokenizer.pre_tokenizers.program import Program, Unsupported, assemble
from tokctl.tokenizer.pre_tokenizers.syntax import Node

MAX_CLASSES = 255  # with the class for the end of the text they fit a byte
MAX_PAIRS = 256


def compile_patterns(nodes: Sequence[Node]) -> Automaton:
    """One automaton for patterns that are applied in turn, each to what the ones before it made.

    Raises ``Unsupported`` where the patterns are outside the subset; see ``program.assemble`` and the limits here.
    """
    programs = [assemble(node) for node in nodes]
    class_of, member = partition([points for program in programs for points in program.sets])
    end_class = member.shape[1]
    if end_class >= MAX_CLASSES:
        raise Unsupported(f"the sets of the pattern make more than {MAX_CLASSES - 1} classes of characters")
    machines = [determinise(program, rows) for program, rows in _per_program(programs, member)]
    machine, context = compose(machines)
    target, action = actions(machine)
    ascii_class = class_of[:128].astype(np.uint8)
    pair_class, pair_step = _ascii_pairs(target, action, ascii_class)
    width = max(end_class + 1, pair_step.shape[1])
    pending = falls_back(machine)
    block, block_class = two_stage(class_of)
    return Automaton(
        next_state=_rows(target * width, width),
        action=_rows(action, width),
        ascii_class=ascii_class,
        pair_class=pair_class,
        pair_step=_rows((pair_step >> PAIR_BITS) * width << PAIR_BITS | pair_step & (1 << PAIR_BITS) - 1, width),
        block=block,
        block_class=block_class,
        context=context,
        pending=np.where(pending, np.cumsum(pending) - 1, -1).astype(np.int32),
        n_pending=int(pending.sum()),
        width=width,
        end_class=end_class,
    )


def _rows(table: np.ndarray, width: int) -> np.ndarray:
    """``table [n_states, n]`` with rows of ``width`` entries, as one array; uint8 stays, all else becomes int32."""
    out = np.zeros((len(table), width), np.uint8 if table.dtype == np.uint8 else np.int32)
    out[:, : table.shape[1]] = table
    return out.reshape(-1)


def _ascii_pairs(target: np.ndarray, action: np.ndarray, ascii_class: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(pair_class, pair_step int32[n_states, n])`` of the automaton, with numbers of states in place of row offsets.

    Pairs of bytes on which all states agree share a class. ``n`` is 0, and no pair is stepped, where more than
    ``MAX_PAIRS`` classes would be needed.
    """
    used = np.unique(ascii_class)
    first, second = np.repeat(used, len(used)), np.tile(used, len(used))
    middle = target[:, first]
    step = (
        target[middle, second] << PAIR_BITS | action[middle, second] << 1 & SECOND_ENDS | action[:, first] & FIRST_ENDS
    )
    is_plain = (action[:, first] <= NEXT_WORD) & (action[middle, second] <= NEXT_WORD)
    step = np.where(is_plain, step, ONE_BY_ONE)
    step, number = np.unique(step, axis=1, return_inverse=True)
    if step.shape[1] > MAX_PAIRS:
        return np.zeros(0, np.uint8), np.zeros((len(target), 0), np.int32)
    class_of_pair = np.zeros((128, 128), np.uint8)  # [second byte, first byte]: indexed by a little-endian load
    place = np.searchsorted(used, ascii_class)
    class_of_pair[:] = number.reshape(len(used), len(used))[place[None, :], place[:, None]]
    pair_class = np.zeros((128, 256), np.uint8)
    pair_class[:, :128] = class_of_pair
    return pair_class.reshape(-1), step.astype(np.int32)


def _per_program(programs: list[Program], member: np.ndarray) -> list[tuple[Program, np.ndarray]]:
    out = []
    begin = 0
    for program in programs:
        end = begin + len(program.sets)
        out.append((program, member[begin:end]))
        begin = end
    return out
