"""Cuts UTF-8 bytes into words with a compiled split pattern, in linear time.

One table look-up per code point; where a match ends the same look-up already reads the next word's first code point.
Two things need more: a match that was given up further back than ``NEAR`` bytes, and text that nothing matches. Both
are handled attempt by attempt with a memo of failed (state, place) pairs, so that no stretch of text is read again and
again (T. Reps, "Maximal-munch" tokenization in linear time, TOPLAS 20(2), 1998). The memo keeps one entry per 32 bytes.
"""

from __future__ import annotations

import numpy as np

from tokctl.kernels._jit import jit
from tokctl.kernels._memory import load2, load4, store4_sums
from tokctl.kernels.pattern_automaton import (
    END_AT_MARK,
    END_BEFORE_PREVIOUS,
    END_HERE,
    FIRST_ENDS,
    MARK,
    NEXT_WORD,
    ONE_BY_ONE,
    PAIR_BITS,
    QUAD_BITS,
    QUAD_COUNT,
    QUAD_ENDS,
    QUAD_SINGLY,
    SECOND_ENDS,
    Automaton,
)

__all__ = ["Automaton", "scan"]

NEAR = 64  # bytes that may be read twice without a memo
BLOCK_BITS = 5  # one memo entry per 32 bytes

# Row m: which of four bytes are the m's bits, in order, then anything.
_PLACES = np.array([[*(k for k in range(4) if m >> k & 1), 0, 0, 0, 0][:4] for m in range(16)], np.int64).reshape(-1)


@jit(inner=True, borrows=True)
def _read(ascii_class, block, block_class, data, at, stop):
    """Class of the code point at ``at`` and the place after it.

    A byte that is no part of well-formed UTF-8 (Unicode table 3-7) is one code point, U+DC00 + byte: a lone surrogate.
    Casts to uint64 spare numba's test for negative indexes.
    """
    lead = np.int64(data[np.uint64(at)])
    if lead < 0x80:
        return np.int64(ascii_class[np.uint64(lead)]), at + 1
    point = 0xDC00 + lead
    after = at + 1
    if 0xC2 <= lead < 0xE0:
        if at + 1 < stop:
            b1 = np.int64(data[np.uint64(at + 1)])
            if b1 & 0xC0 == 0x80:
                point = (lead & 0x1F) << 6 | (b1 & 0x3F)
                after = at + 2
    elif 0xE0 <= lead < 0xF0:
        if at + 2 < stop:
            b1 = np.int64(data[np.uint64(at + 1)])
            b2 = np.int64(data[np.uint64(at + 2)])
            if b1 & 0xC0 == 0x80 and b2 & 0xC0 == 0x80:
                three = (lead & 0x0F) << 12 | (b1 & 0x3F) << 6 | (b2 & 0x3F)
                if three >= 0x800 and not 0xD800 <= three < 0xE000:
                    point = three
                    after = at + 3
    elif 0xF0 <= lead < 0xF5 and at + 3 < stop:
        b1 = np.int64(data[np.uint64(at + 1)])
        b2 = np.int64(data[np.uint64(at + 2)])
        b3 = np.int64(data[np.uint64(at + 3)])
        if b1 & 0xC0 == 0x80 and b2 & 0xC0 == 0x80 and b3 & 0xC0 == 0x80:
            four = (lead & 0x07) << 18 | (b1 & 0x3F) << 12 | (b2 & 0x3F) << 6 | (b3 & 0x3F)
            if 0x10000 <= four < 0x110000:
                point = four
                after = at + 4
    return np.int64(block_class[np.uint64(block[np.uint64(point >> 7)] + (point & 127))]), after


@jit(inner=True, borrows=True)
def _run(automaton, data, here, stop, ends, n):
    """The fast loop: from a word start ``here`` on, until something special happens or ``ends`` is full.

    Returns ``(n, action, here, previous, mark)``: the special action, the code point where it happened (``stop`` for
    the end of the text), the one before, and the last marked place.
    """
    next_state, actions, ascii_class = automaton.next_state, automaton.action, automaton.ascii_class
    pair_class, pair_step = automaton.pair_class, automaton.pair_step
    quad_class, quad_step = automaton.quad_class, automaton.quad_step
    n_states, quad_shift = automaton.n_states, automaton.quad_shift
    previous = here
    mark = here
    state = np.int64(0)
    while n < ends.size:
        # Each code point ends at most one word, so up to ``limit`` the buffer needs no check.
        limit = min(stop, here + (ends.size - n))
        pair_limit = limit - 1 if pair_class.size > 0 else here
        quad_limit = limit - 3 if quad_class.size > 0 else here
        while here < limit:
            if here < quad_limit:
                four = load4(data, here)
                if four & 0x80808080 == 0:
                    row = np.int64(pair_class[np.uint64(four & 0x7FFF)]) << quad_shift
                    row |= np.int64(pair_class[np.uint64(four >> 16)])
                    step = np.int64(quad_step[np.uint64(np.int64(quad_class[np.uint64(row)]) + state)])
                    if step & QUAD_SINGLY == 0:
                        store4_sums(ends, n, here, _PLACES, step & QUAD_ENDS)
                        n += step >> QUAD_COUNT & 7
                        state = step >> QUAD_BITS
                        previous = here + 3
                        here += 4
                        continue
            if here < pair_limit:
                two = load2(data, here)
                if two & 0x8080 == 0:
                    entry = np.uint64(np.int64(pair_class[np.uint64(two)]) * n_states + state)
                    step = np.int64(pair_step[entry])
                    if step & ONE_BY_ONE == 0:
                        ends[np.uint64(n)] = here
                        n += step & FIRST_ENDS
                        ends[np.uint64(n)] = here + 1
                        n += (step & SECOND_ENDS) >> 1
                        state = step >> PAIR_BITS
                        previous = here + 1
                        here += 2
                        continue
            byte = data[np.uint64(here)]
            if byte < 0x80:
                klass = np.int64(ascii_class[np.uint64(byte)])
                after = here + 1
            else:
                klass, after = _read(automaton.ascii_class, automaton.block, automaton.block_class, data, here, stop)
            entry = np.uint64(klass * n_states + state)
            action = np.int64(actions[entry])
            state = np.int64(next_state[entry])
            ends[np.uint64(n)] = here
            n += action & NEXT_WORD
            if action > NEXT_WORD:
                if action != MARK:
                    return n, action, here, previous, mark
                mark = here
            previous = here
            here = after
        if here >= stop and n < ends.size:
            return n, np.int64(actions[np.uint64(automaton.end_class * n_states + state)]), stop, previous, mark
    return n, np.int64(0), here, previous, mark


@jit(inner=True)
def _remember_failure(automaton, data, state, at, dead, stop, memo, memo_base):
    """Mark the states of the run from ``(state, at)`` to its death at ``dead`` as leading to no further match.

    Returns the memo, grown where needed: uint8[n_blocks * width], one row of bits of pending states for each block of
    bytes since ``memo_base``.
    """
    ascii_class, block, block_class = automaton.ascii_class, automaton.block, automaton.block_class
    width = (automaton.n_pending + 7) >> 3
    needed = ((dead >> BLOCK_BITS) - (memo_base >> BLOCK_BITS) + 1) * width
    if needed > memo.size:
        grown = np.zeros(max(needed, 2 * memo.size), np.uint8)
        for i in range(memo.size):  # an array assignment would bring seconds of compilation for its error message
            grown[i] = memo[i]
        memo = grown
    while at < dead:
        klass, after = _read(ascii_class, block, block_class, data, at, stop)
        state = np.int64(automaton.next_state[klass * automaton.n_states + state])
        if (at >> BLOCK_BITS) != (after >> BLOCK_BITS) and after < dead:
            pending = automaton.pending[state]
            if pending >= 0:
                row = (after >> BLOCK_BITS) - (memo_base >> BLOCK_BITS)
                memo[row * width + (pending >> 3)] |= np.uint8(1 << (pending & 7))
        at = after
    return memo


@jit(inner=True)
def _scan_attempts(automaton, data, word, stop, ends, n):
    """Write words from ``word`` on, one attempt at a match at a time, until text is reached that was never read before.

    Returns ``(n, position)``. Handles what ``scan`` doesn't alone: text between matches, and long fall-backs.
    """
    ascii_class, block, block_class = automaton.ascii_class, automaton.block, automaton.block_class
    actions, next_state, context = automaton.action, automaton.next_state, automaton.context
    n_states = automaton.n_states
    width = (automaton.n_pending + 7) >> 3
    memo = np.zeros(0, np.uint8)
    memo_base = word
    memo_end = word
    at = word  # where this attempt begins; [word, at) is text that nothing matches
    gap_context = context[0]  # of the last code point before ``at``, where ``at > word``
    while True:
        while at < stop:
            klass, after = _read(ascii_class, block, block_class, data, at, stop)
            if at > word and context[klass] != gap_context:
                ends[n] = at
                n += 1
                word = at
                if n == ends.size:
                    return n, word
            if actions[klass * n_states] == 0:
                break
            gap_context = context[klass]
            at = after
        if at >= stop:
            if at > word:
                ends[n] = stop
                n += 1
            return n, stop
        state = 0
        here = at
        previous = at
        mark = at
        mark_state = 0
        mark_after = at
        end = at
        while True:
            if here < stop:
                klass, after = _read(ascii_class, block, block_class, data, here, stop)
            else:
                klass, after = automaton.end_class, here
            entry = klass * n_states + state
            action = actions[entry]
            if action & (NEXT_WORD | END_HERE):
                end = here
                break
            if action & END_BEFORE_PREVIOUS:
                end = previous
                break
            failed = action & END_AT_MARK != 0
            if not failed:
                state = np.int64(next_state[entry])
                if action & MARK:
                    mark = here
                    mark_state = np.int64(next_state[entry])
                    mark_after = after
                if after < memo_end and (here >> BLOCK_BITS) != (after >> BLOCK_BITS):
                    pending = automaton.pending[state]
                    if pending >= 0:
                        row = (after >> BLOCK_BITS) - (memo_base >> BLOCK_BITS)
                        bits = memo[row * width + (pending >> 3)]
                        failed = bits >> (pending & 7) & 1 != 0
                if not failed:
                    previous = here
                    here = after
                    continue
            end = mark
            if here - mark > NEAR:
                if at >= memo_end:
                    memo = np.zeros(0, np.uint8)
                    memo_base = at
                if mark > at:
                    memo = _remember_failure(automaton, data, mark_state, mark_after, here, stop, memo, memo_base)
                else:
                    memo = _remember_failure(automaton, data, 0, at, here, stop, memo, memo_base)
                memo_end = max(memo_end, here)
            break
        if end == at:
            klass, at = _read(ascii_class, block, block_class, data, at, stop)
            gap_context = context[klass]
            continue
        if at > word:
            ends[n] = at
            n += 1
            word = at
            if n == ends.size:
                return n, word
        ends[n] = end
        n += 1
        word = end
        at = end
        if n == ends.size or at >= memo_end:
            return n, word


@jit(borrows=True)
def scan(automaton, data, start, stop, ends):
    """Ends of the words of ``data[start:stop]``, as many as fit.

    ``automaton`` is an ``Automaton``, ``data`` uint8[n], ``start`` and ``stop`` int64 byte offsets, ``ends`` int64[m]
    (m >= 1) is written. Returns ``(n, position)``: ``ends[:n]`` are absolute offsets of word ends, increasing;
    ``position`` is the last of them (``start`` where n is 0). Words are contiguous and cover the input, so all is
    done when ``position == stop``; else call again with ``start=position`` and the same ``stop``: the words are the
    same as in one call. ``stop`` is the end of the text for look-ahead; nothing before ``start`` is looked at.
    Time is linear in ``stop - start``; a call that fills ``ends`` may have read further ahead, so give it room for
    thousands of words.
    """
    n = 0
    word = start
    while n < ends.size and word < stop:
        n, action, here, previous, mark = _run(automaton, data, word, stop, ends, n)
        if n > 0:
            word = ends[n - 1]
        if n == ends.size:
            break
        if action & END_HERE:
            word = here
        elif action & END_BEFORE_PREVIOUS:
            word = previous
        elif mark > word and here - mark <= NEAR:
            word = mark
        else:
            n, word = _scan_attempts(automaton, data, word, stop, ends, n)
            continue
        ends[n] = word
        n += 1
    return n, word
