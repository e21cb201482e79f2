"""Equal keys, in one range or many."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from tokctl.corpus.dedup import key_groups
from tokctl.corpus.dedup.key_groups import KeyFile


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("memory_limit", [1, 4000, 1 << 30])
def test_groups_are_those_of_a_dict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int, memory_limit: int
) -> None:
    monkeypatch.setattr(key_groups, "_CHUNK", 50)
    monkeypatch.setattr(key_groups, "_LEAST_MEMORY", 2000)
    rng = np.random.default_rng(width)
    keys = rng.integers(0, 2**64, (150, width), dtype=np.uint64)[rng.integers(0, 150, 400)]
    keys[:40] = 2**64 - 1
    keys[40:60, 0] = 0  # the first word alone decides nothing
    file = KeyFile(tmp_path / "k", width)
    for start in range(0, 400, 60):
        file.add(keys[start : start + 60])
    expected: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, key in enumerate(keys.tolist()):
        expected[tuple(key)].append(i)
    found = [
        groups.members[start:stop].tolist()
        for groups in file.groups(memory_limit)
        for start, stop in zip(groups.offsets[:-1], groups.offsets[1:], strict=True)
    ]
    assert found == [members for _, members in sorted(expected.items()) if len(members) > 1]
    assert np.array_equal(file.keys(np.array([3, 399])), keys[[3, 399]])
    file.close()
    assert not list(tmp_path.iterdir())


def test_no_keys(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "k", 2)
    assert list(file.groups(1)) == []
