"""The normalisation tables are what their sources say."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from tokctl.tokenizer import unicode_tables
from tokctl.tokenizer.normalization_tables import load, versions
from tokctl.tokenizer.normalization_tables.generate import Package, tables
from tokctl.tokenizer.pre_tokenizers.code_points import category

PARTS = ["combining_points", "combining_classes", "composites"]
PARTS += [f"{name}{part}" for name in ("decomposed", "compatible") for part in ("_points", "_offsets", "")]


def test_unknown_versions_are_refused() -> None:
    with pytest.raises(KeyError):
        load("1.0.0")


@pytest.mark.parametrize("version", versions())
def test_generating_again_gives_the_shipped_arrays(version) -> None:
    unicodedata2 = pytest.importorskip("unicodedata2")
    properties = unicode_tables.load("16.0.0")
    table = load(version)
    assigned = set(range(0x110000))
    if version == "16.0.0":
        unassigned = category(properties, "Cn").bounds.reshape(-1, 2).tolist()
        assigned -= {point for begin, end in unassigned for point in range(begin, end)}
    again = tables(unicodedata2, Package({}, {}, assigned))
    numbers = [[int(part) for part in v.split(".")] for v in (unicodedata2.unidata_version, version)]
    if version == "16.0.0" and numbers[0] >= numbers[1]:
        for name in PARTS:
            assert np.array_equal(getattr(table, name), again[name]), name
    # By Unicode's stability policy later versions only add to what earlier ones say.
    assert {tuple(row) for row in table.composites.tolist()} <= {tuple(row) for row in again["composites"].tolist()}
    for name in ("decomposed", "compatible"):
        assert set(getattr(table, f"{name}_points").tolist()) <= set(again[f"{name}_points"].tolist())


def test_versions_only_add() -> None:
    assert versions() == ["9.0.0", "16.0.0", "17.0.0"]
    for name in ("decomposed", "compatible", "folded", "lowered"):
        first, second, third = (load(version).mapping(name) for version in versions())
        if name in ("decomposed", "compatible"):
            assert first.items() <= second.items() <= third.items()
        assert len(first) < len(second) <= len(third) < 4000


def test_lower_case_is_pythons() -> None:
    table = load("17.0.0").mapping("lowered")
    for point in range(0x110000):
        if unicodedata.category(chr(point)) not in ("Cn", "Cs"):
            expected = chr(point).lower()
            found = "".join(map(chr, table.get(point, [point])))
            assert found == expected or any(unicodedata.category(char) == "Cn" for char in found)


def test_full_case_folding_is_pythons() -> None:
    table = load()
    for i, point in enumerate(table.folded_points.tolist()):
        to = "".join(map(chr, table.folded[table.folded_offsets[i] : table.folded_offsets[i + 1]]))
        if unicodedata.category(chr(point)) != "Cn" and all(unicodedata.category(c) != "Cn" for c in to):
            assert chr(point).casefold() == to
    known = set(table.folded_points.tolist())
    assert all(chr(point).casefold() == chr(point) for point in range(0x110000) if point not in known)
