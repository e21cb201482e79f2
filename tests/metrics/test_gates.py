from __future__ import annotations

import pytest

from tokctl.errors import UsageError
from tokctl.metrics.gates import Gate, judge, passed, read_gates
from tokctl.metrics.sample import Row


def row(candidate, value, metric="bytes_per_token.micro", where=None, reason=None):
    return Row(candidate, metric, where, 10, value, None, None, None, reason)


ROWS = [
    row("a", 4.0),
    row("b", 3.0),
    row("base", 2.0),
    row("a", 2.0, where="language=de"),
    row("b", None, where="language=de", reason="there are no tokens"),
    row("base", 0.0, where="language=de"),
]


def status(gate, **options):
    return {v.candidate: v.status for v in judge([gate], ROWS, **options)}


def gate(op, limit, **more):
    return Gate("g", "bytes_per_token.micro", op, limit, **more)


@pytest.mark.parametrize(
    ("op", "limit", "expected"),
    [
        (">=", 4, ("passed", "failed")),
        (">", 4, ("failed", "failed")),
        ("<=", 3, ("failed", "passed")),
        ("<", 3, ("failed", "failed")),
        ("==", 4, ("passed", "failed")),
    ],
)
def test_operators(op, limit, expected):
    assert status(gate(op, limit), baseline="base") == dict(zip(("a", "b"), expected, strict=True))


def test_without_a_baseline_all_are_judged():
    assert status(gate(">=", 3)) == {"a": "passed", "b": "passed", "base": "failed"}


def test_relative_limits_are_ratios():
    verdicts = judge([gate(">=", 1.5, relative_to="base")], ROWS, baseline="base")
    assert [(v.candidate, v.value, v.status) for v in verdicts] == [("a", 2.0, "passed"), ("b", 1.5, "passed")]


def test_what_can_not_be_checked_says_why():
    german = judge([gate(">=", 1, slice="language=de")], ROWS, baseline="base")
    assert [(v.status, v.reason) for v in german] == [("passed", None), ("not-checked", "there are no tokens")]
    dutch = judge([gate(">=", 1, slice="language=nl")], ROWS, baseline="base")
    assert {v.status for v in dutch} == {"not-checked"}
    assert "did you mean 'language=de'?" in dutch[0].reason
    zero = judge([gate(">=", 1, slice="language=de", relative_to="base")], ROWS, baseline="base")
    assert (zero[0].status, zero[0].reason) == ("not-checked", "relative to base: base has the value 0")


def test_verdict_of_the_whole():
    def verdicts(limit, **more):
        return judge([gate(">=", limit, **more)], ROWS, baseline="base")

    assert passed(verdicts(3))
    assert not passed(verdicts(4))
    assert passed(verdicts(4, severity="warn"))
    assert not passed(verdicts(1, slice="language=de"))
    assert passed(verdicts(1, slice="language=de"), allow_not_checked=["g"])
    assert not passed(verdicts(3, slice="language=de"), allow_not_checked=["g"])
    assert passed([])


def test_relative_to_a_stranger_names_the_nearest():
    with pytest.raises(UsageError) as caught:
        judge([gate(">=", 1, relative_to="bse")], ROWS)
    assert caught.value.hint == "did you mean 'base'?"


def test_a_gate_file():
    gates = read_gates(
        """
        [[gate]]
        metric = "bytes_per_token.micro"
        slice = "language=de"
        op = ">="
        limit = 3.5

        [[gate]]
        id = "no-worse"
        metric = "tokens.total"
        op = "<="
        limit = 1
        relative_to = "old"
        severity = "warn"
        """
    )
    assert gates == (
        Gate("bytes_per_token.micro[language=de] >= 3.5", "bytes_per_token.micro", ">=", 3.5, "language=de"),
        Gate("no-worse", "tokens.total", "<=", 1, None, "old", "warn"),
    )


GOOD = 'metric = "tokens.total"\nop = "<"\nlimit = 5\n'


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("[[gate]\n", "not TOML", None),
        ("", "there is none", "[[gate]]"),
        ("gates = 1\n", "'gates'", "[[gate]]"),
        ("gate = []\n", "there is none", None),
        ('[[gate]]\nop = "<"\nlimit = 5\n', "no metric", None),
        ('[[gate]]\nmetric = "tokens.totl"\nop = "<"\nlimit = 5\n', "unknown metric", "did you mean 'tokens.total'?"),
        ('[[gate]]\nmetric = "tokens.total"\nop = "=<"\nlimit = 5\n', "unknown op", "did you mean"),
        (f'[[gate]]\n{GOOD}severity = "warning"\n', "unknown severity", "did you mean 'warn'?"),
        (f"[[gate]]\n{GOOD}sliced = 1\n", "unknown key 'sliced'", "did you mean 'slice'?"),
        (f'[[gate]]\n{GOOD}slice = "de"\n', "column=value", "language=de"),
        ('[[gate]]\nmetric = "tokens.total"\nop = "<"\nlimit = nan\n', "finite", None),
        ('[[gate]]\nmetric = "tokens.total"\nop = "<"\nlimit = true\n', "finite", None),
        ('[[gate]]\nmetric = 1\nop = "<"\nlimit = 5\n', "not a string", None),
        (f"[[gate]]\n{GOOD}[[gate]]\n{GOOD}", "two gates", "give each an id"),
    ],
)
def test_bad_gate_files_teach(text, says, hint):
    with pytest.raises(UsageError) as caught:
        read_gates(text, file="gates.toml")
    assert says in caught.value.message
    assert caught.value.where.file == "gates.toml"
    if hint is not None:
        assert hint in caught.value.hint
