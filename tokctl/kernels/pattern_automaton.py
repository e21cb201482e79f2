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

# Bits of ``Automaton.pair_step``, below the row offset of the state after both bytes.
FIRST_ENDS = 1  # NEXT_WORD of the first byte
SECOND_ENDS = 2  # NEXT_WORD of the second byte
ONE_BY_ONE = 4  # something else happens at one of the two: step them singly
PAIR_BITS = 3


class Automaton(NamedTuple):
    """A deterministic automaton over classes of code points; its start is state 0.

    A state is named by its row's offset in ``next_state``, ``action`` and ``pair_step``, whose rows are ``width`` long: the
    entry for class ``c`` is ``state + c``.

    - ``next_state`` int32[n_states * width]: row offset of the following state.
    - ``action`` uint8[n_states * width]: bits above.
    - ``ascii_class`` uint8[128]: class of each ASCII byte.
    - ``pair_class`` uint8[1 << 15]: class of two ASCII bytes, first + 256 * second, for ``pair_step`` int32[n_states *
      width]: row offset of the state after both, shifted left by PAIR_BITS, and bits above. Both are empty where there
      would be too many classes.
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
    block: np.ndarray
    block_class: np.ndarray
    context: np.ndarray
    pending: np.ndarray
    n_pending: int
    width: int
    end_class: int
