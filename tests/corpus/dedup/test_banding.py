"""Bands and rows by target recall."""

from __future__ import annotations

import random

import pytest

from tokctl.corpus.dedup.banding import BandPlan, plan_bands
from tokctl.errors import UsageError


def test_the_default_plan() -> None:
    plan = plan_bands(128, 0.8, 0.99)
    assert plan == BandPlan(21, 6)
    assert round(plan.recall(0.8), 3) == 0.998


def test_no_plan_with_more_rows_suffices() -> None:
    for num_perm in (1, 16, 100, 128, 256):
        for threshold in (0.3, 0.5, 0.8, 0.95, 1.0):
            for recall in (0.5, 0.9, 0.99):
                try:
                    plan = plan_bands(num_perm, threshold, recall)
                except UsageError as refused:
                    assert BandPlan(num_perm, 1).recall(threshold) < recall and refused.hint
                    continue
                assert plan.n_bands * plan.n_rows <= num_perm and plan.recall(threshold) >= recall
                for n_rows in range(plan.n_rows + 1, num_perm + 1):
                    assert BandPlan(num_perm // n_rows, n_rows).recall(threshold) < recall


def test_s_curve_rises_from_none_to_all() -> None:
    curve = BandPlan(21, 6).s_curve()
    assert len(curve) == 21 and curve[0] == (0.0, 0.0) and curve[-1] == (1.0, 1.0)
    assert [recall for _, recall in curve] == sorted(recall for _, recall in curve)


def test_s_curve_is_what_random_signatures_do() -> None:
    rng = random.Random(0)
    plan, n = BandPlan(5, 3), 4000
    for similarity in (0.4, 0.7):
        met = sum(
            any(all(rng.random() < similarity for _ in range(plan.n_rows)) for _ in range(plan.n_bands))
            for _ in range(n)
        )
        assert abs(met / n - plan.recall(similarity)) < 0.03


@pytest.mark.parametrize(
    "arguments", [(0, 0.8, 0.9), (128, 0.0, 0.9), (128, 1.1, 0.9), (128, 0.8, 0.0), (128, 0.8, 2.0)]
)
def test_impossible_wishes_are_usage_errors(arguments: tuple[int, float, float]) -> None:
    with pytest.raises(UsageError):
        plan_bands(*arguments)
