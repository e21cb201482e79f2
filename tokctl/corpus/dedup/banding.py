"""Bands and rows: how a signature is cut up so that similar documents meet, and how likely they are to.

Two documents of Jaccard similarity s agree in one signature value with probability s, in a band of r values with s^r,
and in at least one of b bands with 1 - (1 - s^r)^b: the S-curve (Rajaraman and Ullman, *Mining of Massive Datasets*,
section 3.4). datasketch's own optimum weighs false positives against false negatives; here candidates are verified
anyway, so the plan starts from the share of true pairs that may be missed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokctl.errors import UsageError


@dataclass(frozen=True, slots=True)
class BandPlan:
    """``n_bands`` bands of ``n_rows`` signature values each."""

    n_bands: int
    n_rows: int

    def recall(self, similarity: float) -> float:
        """Probability that two documents of this Jaccard similarity share a band."""
        return float(1.0 - (1.0 - similarity**self.n_rows) ** self.n_bands)

    def s_curve(self, n_points: int = 20) -> list[tuple[float, float]]:
        """``(similarity, recall)`` at ``n_points + 1`` similarities from 0 to 1."""
        return [(i / n_points, self.recall(i / n_points)) for i in range(n_points + 1)]


def plan_bands(num_perm: int, threshold: float, recall: float) -> BandPlan:
    """The most selective plan within ``num_perm`` values that finds ``recall`` of the pairs exactly at ``threshold``.

    That is the largest number of rows whose recall suffices, with all the bands that fit (0.99 at 0.8 with 128 values:
    21 bands of 6 rows, whose recall is 0.998). Pairs above the threshold are found with a higher probability.
    Raises UsageError when no plan suffices, naming the best recall.
    """
    if num_perm < 1:
        raise UsageError(f"a signature of {num_perm} values", hint="give at least 1 permutation", code="bad-signature")
    for name, value in (("similarity threshold", threshold), ("target recall", recall)):
        if not 0.0 < value <= 1.0:
            raise UsageError(f"a {name} of {value}", hint="give a number above 0, at most 1", code="bad-threshold")
    for n_rows in range(num_perm, 0, -1):
        plan = BandPlan(num_perm // n_rows, n_rows)
        if plan.recall(threshold) >= recall:
            return plan
    best = BandPlan(num_perm, 1).recall(threshold)
    raise UsageError(
        f"{num_perm} permutations find at most {best:.4f} of the pairs at similarity {threshold}, not {recall}",
        hint="raise the number of permutations or the threshold, or lower the target recall",
        code="recall-out-of-reach",
    )
