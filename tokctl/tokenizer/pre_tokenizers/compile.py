"""From split patterns to the arrays that ``kernels.pattern_scan`` runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokctl.kernels.pattern_automaton import (
    FIRST_ENDS,
    NEXT_WORD,
    ONE_BY_ONE,
    PAIR_BITS,
    QUAD_BITS,
    QUAD_COUNT,
    QUAD_SINGLY,
    SECOND_ENDS,
    Automaton,
)
from tokctl.tokenizer.pre_tokenizers.alphabet import partition, two_stage
from tokctl.tokenizer.pre_tokenizers.compose import compose
from tokctl.tokenizer.pre_tokenizers.determinise import actions, determinise, falls_back
from tokctl.tokenizer.pre_tokenizers.program import Program, Unsupported, assemble
from tokctl.tokenizer.pre_tokenizers.syntax import Node

MAX_CLASSES = 255  # with the class for the end of the text they fit a byte
MAX_PAIRS = 256
MAX_QUAD_STEPS = 1 << 16  # classes of four bytes times states: a row's offset fits 16 bits


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
    quad_class, quad_step, quad_shift = _ascii_quads(pair_step)
    pending = falls_back(machine)
    block, block_class = two_stage(class_of)
    return Automaton(
        next_state=_by_class(target.astype(np.int32)),
        action=_by_class(action),
        ascii_class=ascii_class,
        pair_class=pair_class,
        pair_step=_by_class(pair_step),
        quad_class=quad_class,
        quad_step=_by_class(quad_step),
        block=block,
        block_class=block_class,
        context=context,
        pending=np.where(pending, np.cumsum(pending) - 1, -1).astype(np.int32),
        n_pending=int(pending.sum()),
        n_states=len(target),
        quad_shift=quad_shift,
        end_class=end_class,
    )


def _by_class(table: np.ndarray) -> np.ndarray:
    """``table [n_states, n]`` as one array in which what all states do on one class lies together."""
    return np.ascontiguousarray(table.T).reshape(-1)


def _ascii_pairs(target: np.ndarray, action: np.ndarray, ascii_class: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(pair_class, pair_step int32[n_states, n])`` of the automaton.

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
    step, number = _distinct_columns(np.where(is_plain, step, ONE_BY_ONE))
    if step.shape[1] > MAX_PAIRS:
        return np.zeros(0, np.uint8), np.zeros((len(target), 0), np.int32)
    class_of_pair = np.zeros((128, 128), np.uint8)  # [second byte, first byte]: indexed by a little-endian load
    place = np.searchsorted(used, ascii_class)
    class_of_pair[:] = number.reshape(len(used), len(used))[place[None, :], place[:, None]]
    pair_class = np.zeros((128, 256), np.uint8)
    pair_class[:, :128] = class_of_pair
    return pair_class.reshape(-1), step


def _ascii_quads(pair_step: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """``(quad_class, quad_step int32[n_states, n], quad_shift)`` from the steps by two bytes, in the same way."""
    n_states, n_pairs = pair_step.shape
    is_single = pair_step & ONE_BY_ONE != 0
    ends = pair_step & (FIRST_ENDS | SECOND_ENDS)
    second = pair_step[np.where(is_single, 0, pair_step >> PAIR_BITS)]  # [state, first pair, second pair]
    ends = ends[:, :, None] | (second & (FIRST_ENDS | SECOND_ENDS)) << 2
    n_ends = (ends & 1) + (ends >> 1 & 1) + (ends >> 2 & 1) + (ends >> 3)
    step = second >> PAIR_BITS << QUAD_BITS | n_ends << QUAD_COUNT | ends
    step = np.where(is_single[:, :, None] | (second & ONE_BY_ONE != 0), QUAD_SINGLY, step)
    step, number = _distinct_columns(step.reshape(n_states, -1))
    if n_pairs == 0 or step.shape[1] * n_states > MAX_QUAD_STEPS:
        return np.zeros(0, np.uint16), np.zeros((n_states, 0), np.int32), 0
    shift = (n_pairs - 1).bit_length()
    quad_class = np.zeros((n_pairs, 1 << shift), np.uint16)
    quad_class[:, :n_pairs] = (number * n_states).reshape(n_pairs, n_pairs)
    return quad_class.reshape(-1), step, shift


def _distinct_columns(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct columns of an integer table as int32, in a fixed order, and for each column the number of its equal."""
    rows = np.ascontiguousarray(table.T, np.int32)
    _, first, number = np.unique(
        rows.view(np.dtype((np.void, 4 * table.shape[0]))).reshape(-1), return_index=True, return_inverse=True
    )
    return np.ascontiguousarray(rows[first].T), number.reshape(-1)


def _per_program(programs: list[Program], member: np.ndarray) -> list[tuple[Program, np.ndarray]]:
    out = []
    begin = 0
    for program in programs:
        end = begin + len(program.sets)
        out.append((program, member[begin:end]))
        begin = end
    return out
