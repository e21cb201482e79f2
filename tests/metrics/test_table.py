from __future__ import annotations

import importlib

from tokctl.metrics.table import FAMILIES, METRICS
from tokctl.report.table import HEADINGS


def test_every_family_resolves_and_documents_itself():
    for place in FAMILIES.values():
        module, _, function = place.partition(":")
        rows = getattr(importlib.import_module(module), function)
        assert callable(rows)
        assert rows.__doc__


def test_metrics_say_their_unit_and_direction():
    for metric in METRICS.values():
        assert metric.unit
        assert metric.summary
        assert metric.better in ("higher", "lower")


def test_the_overview_shows_every_metric():
    assert set(HEADINGS) == set(METRICS)
