"""The compiled form of a split pattern: plain arrays, built by ``tokenizer.pre_tokenizers.compile``, run by ``pattern_scan``.

Kept apart from the kernel so that building and storing an automaton doesn't import numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Bits of ``Automaton.action``: what reading a code point of one class in one state says about where a match ends.
# The match always ends *before* a code point that was read, so that a look-ahead of one code point costs nothing.
NEXT_WORD = 1  # the match ends before this code point, which is already the first of the next match
MARK = 2  # a match may end before this code point: remember the place, a longer one is still possible
END_BEFORE_PREVIOUS = 4  # dead; the match ended before the previous code point
END_AT_MARK = 8  # dead; the match ended at the last mark of this attempt, or there is no match where there was none
END_HERE = 16  # the match ends before this code point, which can't begin another

# Bits of ``Automaton.pair_step`` and ``quad_step``, below the number of the state after all the bytes.
FIRST_ENDS = 1  # NEXT_WORD of the first byte
SECOND_ENDS = 2  # NEXT_WORD of the second byte
ONE_BY_ONE = 4  # something else happens at one of the two: step them singly
PAIR_BITS = 3
QUAD_ENDS = 15  # bit k: NEXT_WORD of byte k
QUAD_SINGLY = 16  # something else happens at one of the four
QUAD_COUNT = 5  # from this bit on, three bits: how many words end
QUAD_BITS = 8


class Automaton(NamedTuple):
    """A deterministic automaton over classes of code points; its start is state 0.

    States are numbered. What a state does on class ``c`` stands at ``c * n_states + state``.

    - ``next_state`` int32[n_classes * n_states]: the following state.
    - ``action`` uint8[n_classes * n_states]: bits above.
    - ``ascii_class`` uint8[128]: class of each ASCII byte.
    - ``pair_class`` uint8[1 << 15]: class of two ASCII bytes, first + 256 * second, for ``pair_step`` int32[n * n_states]:
      the state after both, shifted left by PAIR_BITS, and bits above. Both are empty where there would be too many classes.
    - ``quad_class`` uint16[]: at ``first << quad_shift | second`` of the classes of two pairs, ``n_states`` times the class
      of the four bytes, for ``quad_step`` int32[n * n_states]: the state after the four, shifted left by QUAD_BITS, and bits
      above. Both are empty where there would be too many classes.
    - ``block`` int32[0x110000 / 128] and ``block_class`` uint8[128 * n_blocks]: class of code point ``x`` is
      ``block_class[block[x // 128] + x % 128]``.
    - ``context`` uint8[n_classes]: text that nothing matches is cut between code points of different contexts
      (where an earlier pattern of a sequence has cut).
    - ``pending`` int32[n_states]: number of each state from which a scan may fall back over what it read, else -1;
      ``n_pending`` how many there are.
    - ``end_class``: the class that stands for the end of the text, the last one.
    """

    next_state: np.ndarray
    action: np.ndarray
    ascii_class: np.ndarray
    pair_class: np.ndarray
    pair_step: np.ndarray
    quad_class: np.ndarray
    quad_step: np.ndarray
    block: np.ndarray
    block_class: np.ndarray
    context: np.ndarray
    pending: np.ndarray
    n_pending: int
    n_states: int
    quad_shift: int
    end_class: int
