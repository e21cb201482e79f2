"""The merge loop of BPE fitting: take the best pair, replace it everywhere, update the pairs beside it.

Three facts keep it fast. (1) A pair's occurrence list is made exactly once, in the round that creates its newer symbol,
so that lists are contiguous slices of one pool of positions, in ascending order. (2) From then on a pair's count only
falls, so that stale heap entries are too high, never too low: an entry is corrected when it comes to the top. (3) One round's
changes gather by neighbour in dense arrays, and the pair table is touched once a neighbour.

Pairs rarer than the minimum frequency, or too long, can never be merged and are not kept. Only pairs whose count is at
least a threshold are in the heap; when it runs empty the threshold is lowered to half of the highest count in the table.

Counts are of windows: ``aaa`` has two windows (a, a). Replacement goes left to right without overlap.
"""

from typing import NamedTuple

import numpy as np

from tokctl.kernels import pair_heap
from tokctl.kernels._jit import jit
from tokctl.kernels._memory import prefetch
from tokctl.kernels.bpe_words import INSIDE, SYMBOL, data_position, weight_of
from tokctl.kernels.pair_heap import Spelling
from tokctl.kernels.pair_table import COUNT, EMPTY, KEY, LENGTH, START, is_listed, pair_key, prefetch_row, put, slot_of

# Slots of FitState.control.
N_MERGES, N_OCCURRENCES, N_ROWS, HEAP_SIZE, THRESHOLD, ROOM_NEEDED, BEST_COUNT, BOUND = range(8)
# Slots of FitState.limits.
N_BASE, MIN_FREQUENCY, MAX_TOKEN_BYTES, TIES = range(4)
# Tie-breaks among the pairs with the highest count.
ASCENDING, DESCENDING, FIRST_SEEN, SENTENCEPIECE, SUBWORD_NMT = range(5)
# What a call of merge_steps ended with.
MORE, ENOUGH, NO_PAIR, NO_ROOM = range(4)
# Sides and columns of FitState.gathered.
LEFT, RIGHT = range(2)
WEIGHED, CURSOR = range(2)
# How many windows ahead their places in the pool are asked for.
AHEAD = 16
# How many entries of the heap may be among the next best.
NEXT = 7

# The pair table is filled to at most 3/4.
LOAD_NUMERATOR = 3
LOAD_DENOMINATOR = 4


class FitState(NamedTuple):
    """Everything a fit knows; N = base symbols + merges asked for, P = pool positions."""

    pool: np.ndarray  # int32|int64[P, 2]: see bpe_words
    heavy: np.ndarray  # int64[k]: see bpe_words
    offsets: np.ndarray  # int64[n_words + 1]: of the words' bytes
    occurrences: np.ndarray  # int32|int64[<= 3 * windows]: slices of positions, one a pair
    table: np.ndarray  # int64[capacity, 4]: see pair_table
    heap: np.ndarray  # int64[capacity, 3]: see pair_heap
    spelling: Spelling  # bytes and lengths of the symbols, int64[N]
    n_chars: np.ndarray  # int64[N]: bytes of the symbol that are not UTF-8 continuation bytes
    gathered: np.ndarray  # int64[2, N, 2]: one round's neighbours, all zero between rounds
    beside: np.ndarray  # int32[w, 2]: the neighbours of one round's new tokens, w the windows of the most frequent pair
    touched: np.ndarray  # int32[2, N]: which of them are in use
    merges: np.ndarray  # int32[n_merges, 2]
    pair_counts: np.ndarray  # int64[n_merges]
    ambiguous: np.ndarray  # uint8[n_merges]
    n_tokens: np.ndarray  # int64[n_merges + 1]: weighted tokens before the first merge and after each
    control: np.ndarray  # int64[8]
    limits: np.ndarray  # int64[4]
    passed_over: np.ndarray  # int64[k]: keys of pairs that are never merged, ascending


@jit(inner=True, borrows=True)
def _is_live(pool, lengths, position, left, right):
    # The ids that are written to one position only grow, so an old id means an untouched token.
    return pool[position, SYMBOL] == left and pool[position + lengths[left], SYMBOL] == right


@jit(inner=True, borrows=True)
def _tie_number(state, slot):
    """The number that decides among equal counts, smallest first; drops dead entries from the front of the pair's slice."""
    key = state.table[slot, KEY]
    left, right = key >> np.int64(32), key & np.int64(0xFFFFFFFF)
    ties = state.limits[TIES]
    if ties == ASCENDING:
        return key
    if ties == DESCENDING:
        return -key
    if ties == SUBWORD_NMT:
        return np.int64(0)
    if ties == SENTENCEPIECE:
        return state.n_chars[left] + state.n_chars[right]
    # First seen: a window's place in the text is where its left token starts. The pair has a live window (count > 0).
    start = state.table[slot, START]
    while not _is_live(state.pool, state.spelling.length, state.occurrences[start], left, right):
        start += 1
        state.table[slot, LENGTH] -= 1
    state.table[slot, START] = start
    return np.int64(state.occurrences[start])


@jit(inner=True, borrows=True)
def _refill_heap(state):
    """Fill the empty heap from the table, under a new threshold."""
    table, heap = state.table, state.heap
    bound = state.control[BOUND]
    threshold = max(bound - bound // 2, state.limits[MIN_FREQUENCY])
    size = below = np.int64(0)
    for slot in range(table.shape[0]):
        if table[slot, KEY] == EMPTY:
            continue
        count = table[slot, COUNT]
        if count >= threshold:
            heap[size, pair_heap.COUNT] = count
            heap[size, pair_heap.TIE] = _tie_number(state, slot)
            heap[size, pair_heap.KEY] = table[slot, KEY]
            size += 1
        else:
            below = max(below, count)
    pair_heap.order(heap, size, state.spelling)
    state.control[HEAP_SIZE] = size
    state.control[THRESHOLD] = threshold
    state.control[BOUND] = below


@jit(inner=True, borrows=True)
def _top_is_true(state):
    """Correct the heap's first entry; False if that moved or removed it."""
    heap, size = state.heap, state.control[HEAP_SIZE]
    key = heap[0, pair_heap.KEY]
    slot = slot_of(state.table, key)
    count = state.table[slot, COUNT]
    if count < state.control[THRESHOLD]:
        state.control[BOUND] = max(state.control[BOUND], count)
        state.control[HEAP_SIZE] = pair_heap.drop_top(heap, size, state.spelling)
        return False
    tie = _tie_number(state, slot)
    if count == heap[0, pair_heap.COUNT] and tie == heap[0, pair_heap.TIE]:
        return True
    pair_heap.sink(heap, size, pair_heap.TOP, count, tie, key, state.spelling)
    return False


@jit(inner=True, borrows=True)
def _find_best(state):
    """Bring the best pair to the top of the heap; returns its count, or 0 if no pair can be merged."""
    while True:
        while state.control[HEAP_SIZE] > 0:
            if _top_is_true(state):
                return state.heap[0, pair_heap.COUNT]
        if state.control[BOUND] < state.limits[MIN_FREQUENCY]:
            return np.int64(0)
        _refill_heap(state)


@jit(inner=True, borrows=True)
def _is_tied(state, count):
    """Whether another pair than the best, whose row in the table is closed, has its count as well; unheaps the best."""
    while state.control[HEAP_SIZE] > 0 and state.heap[0, pair_heap.COUNT] == count:
        if _top_is_true(state):
            return True
    return False


@jit(inner=True, borrows=True)
def _replace(state, left, right, new, start, length):
    """Replace the live windows of one slice and add up the new tokens' neighbours by symbol.

    Packs the replaced positions at the slice's front; returns (how many, left neighbours, right neighbours, their weight).
    What (x, left) loses is what (x, new) gains, and the same on the right, except between two new tokens: there
    (right, left) loses and (new, new) gains, counted at the first of the two.
    """
    pool, occurrences, lengths = state.pool, state.occurrences, state.spelling.length
    gathered, touched = state.gathered, state.touched
    left_length, right_length = lengths[left], lengths[right]
    stop = start + length
    span = 2 * (left_length + right_length)
    n_replaced = n_left = n_right = np.int64(0)
    total = np.int64(0)
    for i in range(start, stop):
        ahead = 2 * np.int64(occurrences[min(i + AHEAD, stop - 1)])
        prefetch(pool, ahead)
        prefetch(pool, ahead + span)
        position = np.int64(occurrences[i])
        middle = position + left_length
        if pool[position, SYMBOL] != left or pool[middle, SYMBOL] != right:
            continue
        last = middle + right_length - 1
        # Inner ends first: a token of one byte has its first and last byte in one place.
        pool[middle - 1, SYMBOL] = INSIDE
        pool[middle, SYMBOL] = INSIDE
        pool[position, SYMBOL] = new
        pool[last, SYMBOL] = new
        occurrences[start + n_replaced] = position
        weight = weight_of(pool, state.heavy, position)
        total += weight
        before = np.int64(pool[position - 1, SYMBOL])
        if before == new:
            before = np.int64(-1)  # the window is counted at the other one
        elif before >= 0:
            if gathered[LEFT, before, CURSOR] == 0:
                touched[LEFT, n_left] = before
                n_left += 1
                prefetch_row(state.table, pair_key(before, left))
                prefetch_row(state.table, pair_key(before, new))
            gathered[LEFT, before, WEIGHED] += weight
            gathered[LEFT, before, CURSOR] += 1
        after = np.int64(pool[last + 1, SYMBOL])
        if after >= 0:
            if after == left and pool[last + 1 + left_length, SYMBOL] == right:
                after = new  # as it will be in a moment
            if gathered[RIGHT, after, CURSOR] == 0:
                touched[RIGHT, n_right] = after
                n_right += 1
                prefetch_row(state.table, pair_key(right, after))
                prefetch_row(state.table, pair_key(new, after))
            gathered[RIGHT, after, WEIGHED] += weight
            gathered[RIGHT, after, CURSOR] += 1
        state.beside[n_replaced, LEFT] = before
        state.beside[n_replaced, RIGHT] = after
        n_replaced += 1
    return n_replaced, n_left, n_right, total


@jit(inner=True, borrows=True)
def _lose(table, left, right, weight):
    slot = slot_of(table, pair_key(left, right))
    if table[slot, KEY] != EMPTY:
        table[slot, COUNT] -= weight


@jit(inner=True, borrows=True)
def _reserve(state, key, weight, n_windows, token_bytes):
    """Open a slice for a new pair if it may be merged one day; returns the slice's end, or -1."""
    if weight < state.limits[MIN_FREQUENCY] or token_bytes > state.limits[MAX_TOKEN_BYTES]:
        return np.int64(-1)
    if is_listed(state.passed_over, key):
        return np.int64(-1)
    first = state.control[N_OCCURRENCES]
    put(state.table, key, weight, first, n_windows)
    state.control[N_OCCURRENCES] = first + n_windows
    state.control[N_ROWS] += 1
    return first + n_windows


@jit(inner=True, borrows=True)
def _place(state, new, start, n_replaced):
    """Write the new windows' positions to the reserved slices, from the back, so that each cursor ends at its start."""
    gathered, occurrences, lengths, beside = state.gathered, state.occurrences, state.spelling.length, state.beside
    for i in range(n_replaced - 1, -1, -1):
        position = np.int64(occurrences[start + i])
        before = np.int64(beside[i, LEFT])
        if before >= 0:
            cursor = gathered[LEFT, before, CURSOR] - 1
            if cursor >= 0:
                gathered[LEFT, before, CURSOR] = cursor
                occurrences[cursor] = position - lengths[before]
        after = np.int64(beside[i, RIGHT])
        if after >= 0:
            cursor = gathered[RIGHT, after, CURSOR] - 1
            if cursor >= 0:
                gathered[RIGHT, after, CURSOR] = cursor
                occurrences[cursor] = position


@jit(inner=True, borrows=True)
def _offer(state, key, weight):
    """Put a new pair into the heap, if it is above the threshold."""
    if weight >= state.control[THRESHOLD]:
        tie = _tie_number(state, slot_of(state.table, key))
        state.control[HEAP_SIZE] = pair_heap.push(
            state.heap, state.control[HEAP_SIZE], weight, tie, key, state.spelling
        )
    else:
        state.control[BOUND] = max(state.control[BOUND], weight)


@jit(inner=True, borrows=True)
def _update_pairs(state, left, right, new, start, n_replaced, n_left, n_right):
    """Update the pair table after a replacement."""
    gathered, touched, lengths = state.gathered, state.touched, state.spelling.length
    n_before = state.control[N_ROWS]
    for i in range(n_left):
        before = np.int64(touched[LEFT, i])
        weight, n_windows = gathered[LEFT, before, WEIGHED], gathered[LEFT, before, CURSOR]
        _lose(state.table, before, left, weight)
        gathered[LEFT, before, CURSOR] = _reserve(
            state, pair_key(before, new), weight, n_windows, lengths[before] + lengths[new]
        )
    for i in range(n_right):
        after = np.int64(touched[RIGHT, i])
        weight, n_windows = gathered[RIGHT, after, WEIGHED], gathered[RIGHT, after, CURSOR]
        _lose(state.table, right, left if after == new else after, weight)
        gathered[RIGHT, after, CURSOR] = _reserve(
            state, pair_key(new, after), weight, n_windows, lengths[new] + lengths[after]
        )
    if state.control[N_ROWS] > n_before:
        _place(state, new, start, n_replaced)
    for i in range(n_left):
        before = np.int64(touched[LEFT, i])
        if gathered[LEFT, before, CURSOR] >= 0:
            _offer(state, pair_key(before, new), gathered[LEFT, before, WEIGHED])
        gathered[LEFT, before, WEIGHED] = 0
        gathered[LEFT, before, CURSOR] = 0
    for i in range(n_right):
        after = np.int64(touched[RIGHT, i])
        if gathered[RIGHT, after, CURSOR] >= 0:
            _offer(state, pair_key(new, after), gathered[RIGHT, after, WEIGHED])
        gathered[RIGHT, after, WEIGHED] = 0
        gathered[RIGHT, after, CURSOR] = 0


@jit(inner=True, borrows=True)
def _name_symbol(state, left, right, new, position):
    """Record length, characters and (if strings are compared) the place of the new symbol's bytes."""
    spelling = state.spelling
    spelling.length[new] = spelling.length[left] + spelling.length[right]
    state.n_chars[new] = state.n_chars[left] + state.n_chars[right]
    if spelling.is_compared[0] != 0:
        spelling.at[new] = data_position(state.offsets, position)


@jit(inner=True, borrows=True)
def _look_ahead(state, start, length):
    """Ask for what is read next: the first places of a slice, and the rows of the pairs that are best after this one."""
    for i in range(start, start + min(length, AHEAD)):
        prefetch(state.pool, 2 * np.int64(state.occurrences[i]))
    for entry in range(1, min(state.control[HEAP_SIZE], NEXT)):
        prefetch_row(state.table, state.heap[entry, pair_heap.KEY])


@jit(borrows=True)
def merge_steps(state, n_steps):
    """Do at most ``n_steps`` merges; returns MORE, ENOUGH (as many as asked for), NO_PAIR, or NO_ROOM.

    ``control[BEST_COUNT]`` is the count of the last best pair that was looked up: after ENOUGH, of the next one.
    NO_ROOM: the next merge may make ``control[ROOM_NEEDED]`` new pairs, for which the table is too small; nothing was
    changed, and the caller goes on with a larger table and an empty heap.
    """
    control, table = state.control, state.table
    room = table.shape[0] // LOAD_DENOMINATOR * LOAD_NUMERATOR
    for _ in range(n_steps):
        done = control[N_MERGES]
        count = _find_best(state)
        control[BEST_COUNT] = count
        if done == state.merges.shape[0]:
            return ENOUGH
        if count == 0:
            return NO_PAIR
        key = state.heap[0, pair_heap.KEY]
        left, right = key >> np.int64(32), key & np.int64(0xFFFFFFFF)
        new = state.limits[N_BASE] + done
        slot = slot_of(table, key)
        start, length = table[slot, START], table[slot, LENGTH]
        # Each replaced window has two neighbours, and there are not more neighbours than symbols.
        control[ROOM_NEEDED] = 2 * min(length, new + 1)
        if control[N_ROWS] + control[ROOM_NEEDED] > room:
            return NO_ROOM
        table[slot, COUNT] = 0
        _look_ahead(state, start, length)
        state.ambiguous[done] = _is_tied(state, count)
        state.merges[done, 0] = left
        state.merges[done, 1] = right
        state.pair_counts[done] = count
        n_replaced, n_left, n_right, total = _replace(state, left, right, new, start, length)
        _name_symbol(state, left, right, new, np.int64(state.occurrences[start]))
        _update_pairs(state, left, right, new, start, n_replaced, n_left, n_right)
        state.n_tokens[done + 1] = state.n_tokens[done] - total
        control[N_MERGES] = done + 1
    return MORE
