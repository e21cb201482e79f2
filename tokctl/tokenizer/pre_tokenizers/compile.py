"""From split patterns to the arrays that ``kernels.pattern_scan`` runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokctl.kernels.pattern_automaton import Automaton
from tokctl.tokenizer.pre_tokenizers.alphabet import partition, two_stage
from tokctl.tokenizer.pre_tokenizers.determinise import actions, can_restart_inside, determinise, falls_back
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
    for level, machine in enumerate(machines[:-1]):
        if not can_restart_inside(machine, machines[level + 1 :]):
            raise Unsupported(f"what pattern {level + 1} of {len(machines)} cuts depends on where it begins")

    targets, action_rows, pending_flags, starts = [], [], [], []
    n_states = 0
    for machine in machines:
        target, action = actions(machine)
        targets.append(target + n_states)
        action_rows.append(action)
        pending_flags.append(falls_back(machine))
        starts.append(n_states)
        n_states += target.shape[0]
    n_classes = end_class + 1
    pending = np.concatenate(pending_flags)
    numbers = np.where(pending, np.cumsum(pending) - 1, -1)
    block, block_class = two_stage(class_of)
    return Automaton(
        next_state=(np.concatenate(targets) * n_classes).astype(np.int32).reshape(-1),
        action=np.concatenate(action_rows).reshape(-1),
        ascii_class=class_of[:128].astype(np.uint8),
        block=block,
        block_class=block_class,
        starts=(np.array(starts) * n_classes).astype(np.int32),
        pending=numbers.astype(np.int32),
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
