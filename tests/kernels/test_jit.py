"""What the one compiling decorator promises about inner kernels."""

import gc

import numpy as np
import pytest

from tokctl.kernels import _jit, compiling
from tokctl.kernels._jit import jit


@jit(inner=True)
def _double(x):
    return 2 * x


@jit
def _double_all(values):
    for i in range(values.shape[0]):
        values[i] = _double(values[i])


def test_an_inner_kernel_is_called_by_kernels_and_refuses_python():
    values = np.arange(4)
    _double_all(values)
    assert values.tolist() == [0, 2, 4, 6]
    with pytest.raises(TypeError, match="_double is an inner kernel"):
        _double(1)


def test_an_inner_kernel_has_no_machine_code_and_serves_several_signatures(monkeypatch, tmp_path):
    monkeypatch.setattr(_jit, "_CACHE_DIR", str(tmp_path))

    @jit
    def double_both(small, large):
        return _double(small[0]), _double(large[0])

    assert double_both(np.array([2], np.int32), np.array([2.5])) == (4, 5.0)
    for signature in _double.signatures:
        assert _double.overloads[signature].library.get_pointer_to_function("anything") == 0
    cached = [path.name for path in tmp_path.glob("**/*.nbi")]
    assert len(cached) == 1 and "double_both" in cached[0]


def test_compiling_is_told_and_its_cost_is_kept_by_file(monkeypatch, tmp_path):
    monkeypatch.setattr(_jit, "_CACHE_DIR", str(tmp_path))
    told = []
    before = compiling.costs.get("test_jit", compiling.FamilyCost()).n_compiled

    @jit(inner=True)
    def add(x, y):
        return x + y

    @jit
    def total(values):
        result = 0
        for value in values:
            result = add(result, value)
        return result

    monkeypatch.setattr(compiling, "on_compile", lambda: told.append(gc.isenabled()))
    assert total(np.arange(5)) == 10
    assert total(np.arange(6)) == 15
    assert told == [True], "once, for the kernel that Python called"
    assert gc.isenabled()
    cost = compiling.costs["test_jit"]
    assert cost.seconds > 0
    assert cost.n_compiled == before, "only tokctl's own are counted"


def test_a_constant_argument_is_an_argument_like_any_other(monkeypatch, tmp_path):
    monkeypatch.setattr(_jit, "_CACHE_DIR", str(tmp_path))

    @jit(inner=True)
    def step(at, by):
        return at + by

    @jit
    def walk(values):
        at = 0
        while at < values.size:
            at = step(at, 3)
        return step(at, at)

    assert walk(np.arange(7)) == 18
    assert len(step.signatures) == 1
