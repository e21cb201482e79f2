"""What the one compiling decorator promises about inner kernels."""

import numpy as np
import pytest

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
