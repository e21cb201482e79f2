"""Alarms fire above their limits, and say by how much."""

from __future__ import annotations

import pytest

from tokctl.corpus.dedup.limits import Limits, alarms, refuse
from tokctl.errors import CheckFailed, UsageError

SOURCES = {"big": (100, 60), "small": (5, 5), "fair": (100, 50)}


def test_limits_are_inclusive_and_off_by_default() -> None:
    assert alarms(Limits(), 10**6, SOURCES) == []
    assert alarms(Limits(max_cluster_size=7, max_source_removal=0.6), 7, SOURCES) == []
    refuse([])


def test_each_alarm_has_its_numbers() -> None:
    found = alarms(Limits(7, 0.5), 8, SOURCES)
    assert [alarm.code for alarm in found] == ["large-cluster", "source-removed"]
    assert "8" in found[0].message and "60 of 100" in found[1].message and "'big'" in found[1].message
    every = alarms(Limits(max_source_removal=0.0, min_source_documents=1), 1, SOURCES)
    assert len(every) == 3
    with pytest.raises(CheckFailed, match="60 of 100") as caught:
        refuse(found)
    assert caught.value.exit_code == 1 and caught.value.hint


def test_impossible_limits_are_usage_errors() -> None:
    for arguments in ({"max_cluster_size": 0}, {"max_source_removal": 1.5}, {"max_source_removal": -0.1}):
        with pytest.raises(UsageError):
            Limits(**arguments)  # type: ignore[arg-type]
