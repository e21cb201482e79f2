from __future__ import annotations

import pytest

from tokctl.corpus.language_tags import by_path, decide, fallback, html_language
from tokctl.corpus.read_options import ReadOptions
from tokctl.errors import UsageError


@pytest.mark.parametrize(
    ("attribute", "tag"),
    [
        ("de", "de"),
        ("EN_us", "en-US"),
        (" zh-hant-tw ", "zh-Hant-TW"),
        ("es-419", "es-419"),
        ("x-klingon", None),
        ("en-x-US", "en-x-us"),
        ("sl-rozaj", "sl-rozaj"),
        ("", None),
        ("english please", None),
        ("de-", None),
        (None, None),
    ],
)
def test_html_attributes(attribute, tag):
    assert html_language(attribute) == tag


def test_path_rules():
    assert by_path("help/de/x.html", r"/([a-z]{2})/") == "de"
    assert by_path("help/de/x.html", r"(help)/(?P<language>..)/") == "de"
    assert by_path("help/german/x.html", r"/([a-z]{2})/") is None
    assert by_path("help/x", None) is None
    assert by_path("help/x", "(y)?x") is None  # a group that took no part says nothing


def test_a_column_goes_before_the_path_and_the_default_comes_last():
    assert decide("a/de/x", "/(..)/", "Deutsch") == ("Deutsch", "column")
    assert decide("a/de/x", "/(..)/", None) == ("de", "path")
    assert decide("a/de/x", "/(..)/", "") == ("de", "path")
    assert decide("a/x", "/(..)/", None) is None
    assert fallback("fr") == ("fr", "default")
    assert fallback(None) == ("und", "none")


@pytest.mark.parametrize("rule", ["(", "nogroup"])
def test_rules_that_can_not_work(rule):
    with pytest.raises(UsageError) as error:
        ReadOptions(language_from_path=rule)
    assert error.value.code == "bad-path-rule"


@pytest.mark.parametrize(
    "options",
    [
        {"errors": "ignore"},
        {"format": "pdf"},
        {"encoding": "klingon"},
        {"encoding": "hex"},
        {"time_limit": 0},
        {"max_ratio": 0},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(UsageError):
        ReadOptions(**options)
