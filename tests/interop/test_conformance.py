"""Each part of the conformance run on its seeded sample."""

from __future__ import annotations

import subprocess

import pytest
from interop.conformance import PARTS, run_part


@pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
def test_part_agrees(part) -> None:
    for name in part.peers:
        pytest.importorskip(name)
    try:
        part.fetch(True)
    except (SystemExit, OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the vocabularies can't be fetched here: {error}")
    result = run_part(part, quick=True)
    assert result["mismatches"] == []
    assert result["compared"] >= result["cases"] > 0
