"""The normalisation tables are what their sources say."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from tokctl.tokenizer.normalization_tables import DEFAULT_VERSION, load
from tokctl.tokenizer.normalization_tables.generate import tables

PARTS = ("combining_points", "combining_classes", "decomposed_points", "decomposed_offsets", "decomposed", "composites")


def test_unknown_versions_are_refused() -> None:
    with pytest.raises(KeyError):
        load("1.0.0")


def test_generating_again_gives_the_shipped_arrays() -> None:
    unicodedata2 = pytest.importorskip("unicodedata2")
    table = load(DEFAULT_VERSION)
    folds = {
        int(point): table.folded[table.folded_offsets[i] : table.folded_offsets[i + 1]].tolist()
        for i, point in enumerate(table.folded_points)
    }
    again = tables(unicodedata2, folds)
    for name in PARTS:
        if unicodedata2.unidata_version == DEFAULT_VERSION:
            assert np.array_equal(getattr(table, name), again[name]), name
    # By Unicode's stability policy, whatever version is installed only adds to what the tables say.
    assert {tuple(row) for row in table.composites.tolist()} <= {tuple(row) for row in again["composites"].tolist()}
    assert set(table.decomposed_points.tolist()) <= set(again["decomposed_points"].tolist())


def test_full_case_folding_is_pythons() -> None:
    table = load()
    for i, point in enumerate(table.folded_points.tolist()):
        to = "".join(map(chr, table.folded[table.folded_offsets[i] : table.folded_offsets[i + 1]]))
        if unicodedata.category(chr(point)) != "Cn" and all(unicodedata.category(c) != "Cn" for c in to):
            assert chr(point).casefold() == to
    known = set(table.folded_points.tolist())
    assert all(chr(point).casefold() == chr(point) for point in range(0x110000) if point not in known)
