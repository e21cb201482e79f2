"""The pair table against a dict."""

import numpy as np

from tokctl.kernels import pair_table


def empty(capacity: int) -> np.ndarray:
    table = np.empty((capacity, 4), np.int64)
    table[:, pair_table.KEY] = pair_table.EMPTY
    return table


def rows(table: np.ndarray) -> dict[int, tuple[int, ...]]:
    return {int(row[0]): tuple(row[1:].tolist()) for row in table if row[0] != pair_table.EMPTY}


def test_holds_what_was_put_and_copies_what_still_counts():
    rng = np.random.default_rng(2)
    keys = np.unique(rng.integers(0, 2**62, 700))
    counts, starts, lengths = (rng.integers(0, 9, len(keys)) for _ in range(3))
    table = empty(1024)
    pair_table.put_all(table, keys, counts, lengths, starts)
    expected = dict(
        zip(keys.tolist(), zip(counts.tolist(), starts.tolist(), lengths.tolist(), strict=True), strict=True)
    )
    assert rows(table) == expected

    frequent = {key: row for key, row in expected.items() if row[0] >= 5}
    assert pair_table.n_rows_from(table, 5) == len(frequent)
    smaller = empty(512)
    assert pair_table.copy_rows(table, smaller, 5) == len(frequent)
    assert rows(smaller) == frequent


def test_a_table_may_be_filled_to_the_last_row():
    keys = np.arange(64) << 32
    table = empty(64)
    pair_table.put_all(table, keys, keys, keys, keys)
    assert rows(table) == {key: (key, key, key) for key in keys.tolist()}
