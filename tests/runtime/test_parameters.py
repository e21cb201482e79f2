from __future__ import annotations

from decimal import Decimal

import pytest
from runtime.toy_stage import ToyParameters

from tokctl.errors import UsageError
from tokctl.runtime.parameters import (
    ExactDecimal,
    StageParameters,
    canonical_parameters,
    param,
    parse_quantity,
    validate,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("32k", 32_000),
        ("32Ki", 32_768),
        ("64MB", 64_000_000),
        ("1GiB", 2**30),
        ("1.5G", 1_500_000_000),
        ("7", 7),
        (9, 9),
    ],
)
def test_quantities(text, value):
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", "k", "1.5", "-3", "32x", "1iB", True, "1e3"])
def test_bad_quantities(text):
    with pytest.raises(ValueError):
        parse_quantity(text)


def test_unknown_parameter_names_the_nearest():
    with pytest.raises(UsageError) as caught:
        validate(ToyParameters, {"sufix": "x"}, origin="here")
    assert caught.value.hint == "did you mean 'suffix'?"


def test_bad_value_names_parameter_and_help():
    with pytest.raises(UsageError, match="here: size") as caught:
        validate(ToyParameters, {"size": "0"}, origin="here")
    assert "A size." in caught.value.hint


def test_decimals_are_exact_and_canonical():
    class P(StageParameters):
        threshold: ExactDecimal = param(Decimal("0.8"), help="t")

    assert canonical_parameters(validate(P, {"threshold": 0.1}, origin="x")) == {"threshold": "0.1"}
    assert canonical_parameters(validate(P, {"threshold": "0.80"}, origin="x")) == {"threshold": "0.8"}


def test_parameters_that_cannot_change_the_output_are_left_out():
    assert "chatty" not in canonical_parameters(ToyParameters(chatty=True))
