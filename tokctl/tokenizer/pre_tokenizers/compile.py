"""From split patterns to the arrays that ``kernels.pattern_scan`` runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokctl.kernels.pattern_automaton import Automaton
from tokctl.tokenizer.pre_tokenizers.alphabet import partition, two_stage
from tokctl.tokenizer.pre_tokenizers.compose import compose
from tokctl.tokenizer.pre_tokenizers.determinise import actions, determinise, falls_back
from tokctl.tokenizer.pre_tokenizers.program import Program, Unsupported, assemble
from tokctl.tokenizer.pre_tokenizers.syntax import Node

MAX_CLASSES = 255  # with the class for the end of the text they fit a byte


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
    n_classes = end_class + 1
    pending = falls_back(machine)
    block, block_class = two_stage(class_of)
    return Automaton(
        next_state=(target * n_classes).astype(np.int32).reshape(-1),
        action=action.reshape(-1),
        ascii_class=class_of[:128].astype(np.uint8),
        block=block,
        block_class=block_class,
        context=context,
        pending=np.where(pending, np.cumsum(pending) - 1, -1).astype(np.int32),
        n_pending=int(pending.sum()),
        n_classes=n_classes,
        end_class=end_class,
    )


def _per_program(programs: list[Program], member: np.ndarray) -> list[tuple[Program, np.ndarray]]:
    out = []
    begin = 0
    for program in programs:
        end = begin + len(program.sets)
        out.append((program, member[begin:end]))
        begin = end
    return out
