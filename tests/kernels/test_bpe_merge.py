"""What the BPE kernels promise beyond their results: slices, signatures, memory."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tokctl.kernels import bpe_merge
from tokctl.tokenizer.byte_order import byte_alphabet
from tokctl.tokenizer.trainers.bpe import TIES
from tokctl.tokenizer.trainers.bpe_state import grow, prepare

RAW = byte_alphabet("raw")


def words(seed: int, n_words: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    data = rng.integers(97, 105, 15 * n_words, dtype=np.uint8)
    return data, np.arange(n_words + 1) * 15, rng.integers(1, 50, n_words)


def arrays(state: bpe_merge.FitState) -> dict[str, bytes]:
    # Beyond their used parts, buffers hold whatever was there.
    size, used = state.control[bpe_merge.HEAP_SIZE], state.control[bpe_merge.N_OCCURRENCES]
    done = state.control[bpe_merge.N_MERGES]
    contents = state._asdict() | {
        "heap": state.heap[:size],
        "occurrences": state.occurrences[:used],
        "touched": state.touched[:, :0],
        "beside": state.beside[:0],
        "merges": state.merges[:done],
        "pair_counts": state.pair_counts[:done],
        "ambiguous": state.ambiguous[:done],
        "n_tokens": state.n_tokens[: done + 1],
        "spelling": np.concatenate([state.spelling.at, state.spelling.length]),
        "table": state.table[state.table[:, 0] != -1],
    }
    return {name: np.ascontiguousarray(array).tobytes() for name, array in contents.items()}


@pytest.mark.parametrize("ties", TIES)
def test_n_steps_at_once_equal_n_times_one_step(ties):
    options = {"n_merges": 400, "alphabet": RAW, "ties": ties, "min_frequency": 2, "max_token_bytes": 8}
    at_once = prepare(*words(3), **options)
    one_by_one = prepare(*words(3), **options)
    for n_steps in (1, 2, 57, 300):
        while (status := bpe_merge.merge_steps(at_once, n_steps)) == bpe_merge.NO_ROOM:
            at_once = grow(at_once)
        for _ in range(n_steps):
            while (single := bpe_merge.merge_steps(one_by_one, 1)) == bpe_merge.NO_ROOM:
                one_by_one = grow(one_by_one)
        if at_once.control[bpe_merge.N_MERGES] != one_by_one.control[bpe_merge.N_MERGES]:
            # A call that ran out of room ended early; the other state has to catch up, not to be different.
            behind = one_by_one.control[bpe_merge.N_MERGES] - at_once.control[bpe_merge.N_MERGES]
            bpe_merge.merge_steps(at_once, behind)
        assert arrays(at_once) == arrays(one_by_one)
        assert status == single
    assert at_once.control[bpe_merge.N_MERGES] > 300


def test_no_room_changes_nothing():
    data, offsets, counts = words(4)
    state = prepare(
        data, offsets, counts, n_merges=50, alphabet=RAW, ties="ascending", min_frequency=1, max_token_bytes=99
    )
    state.control[bpe_merge.N_ROWS] = len(state.table)  # as if the table were full
    bpe_merge.merge_steps(state, 0)
    assert bpe_merge.merge_steps(state, 10) == bpe_merge.NO_ROOM
    before = arrays(state)
    assert bpe_merge.merge_steps(state, 10) == bpe_merge.NO_ROOM
    assert arrays(state) == before
    assert state.control[bpe_merge.N_MERGES] == 0
    grown = grow(state)
    assert bpe_merge.merge_steps(grown, 10) == bpe_merge.MORE


SIGNATURES = """
import numpy as np
from tokctl.kernels import bpe_merge, bpe_words, pair_heap, pair_table
from tokctl.tokenizer.trainers.bpe import TIES, fit_bpe

rng = np.random.default_rng(0)
data = rng.integers(0, 40, 30000, dtype=np.uint8)
offsets = np.arange(3001) * 10
counts = rng.integers(1, 9, 3000)
frozen = [np.frombuffer(array.tobytes(), array.dtype) for array in (data, offsets, counts)]
alphabet = [bytes([byte]) for byte in range(256)]
for ties in TIES:
    for arrays in ((data, offsets, counts), frozen, (data[20:], offsets[:-2].astype(np.int32), counts[::-1][2:])):
        fit_bpe(*arrays, n_merges=50000, alphabet=alphabet, ties=ties, max_token_bytes=6)
for rows in ((data, offsets), (frozen[0].astype(np.int32), frozen[1])):
    fit_bpe(*frozen, n_merges=50, alphabet=alphabet, segments=rows, passed_over=[(1, 2)])
seen = 0
for module in (bpe_merge, bpe_words, pair_heap, pair_table):
    for name, kernel in vars(module).items():
        if hasattr(kernel, "signatures"):
            assert len(kernel.signatures) == 1, (name, kernel.signatures)
            seen += 1
print(seen)
"""


def test_each_kernel_is_compiled_once(tmp_path):
    # Compiled afresh: a kernel that comes from the cache doesn't tell what its callees were compiled for.
    environment = os.environ | {"TOKCTL_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SIGNATURES], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 25


MEMORY = """
from pathlib import Path
import numpy as np
from tokctl.tokenizer.trainers.bpe import fit_bpe

def memory(name):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024

def fit(data, length):
    n_words = len(data) // length
    fit_bpe(data, np.arange(n_words + 1) * length, np.ones(n_words, np.int64), n_merges=10000, alphabet=alphabet)

rng = np.random.default_rng(0)
alphabet = [bytes([byte]) for byte in range(256)]
data = rng.integers(97, 97 + {letters}, {n_symbols}, dtype=np.uint8)
fit(data[:60000], 10)
Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is resident now
baseline = memory("VmRSS")
fit(data, {length})
print((memory("VmHWM") - baseline) / len(data))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("letters", "n_symbols", "length"), [(26, 6_000_000, 10), (4, 6_000_000, 10), (158, 3_000_000, 3_000_000)]
)
def test_memory_stays_below_40_bytes_a_symbol(letters, n_symbols, length):
    script = MEMORY.format(letters=letters, n_symbols=n_symbols, length=length)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 10 < float(done.stdout) < 40
