"""The variables of `BatchNorm`, biased and unbiased; beside PyTorch and flax they are tested elsewhere."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ShapeError

X = (np.random.default_rng(0).normal(size=(4, 3, 5)) * 3 + 1).astype("f4")


@pytest.mark.parametrize("unbiased", [False, True])
def test_variables_over_devices_are_those_of_the_whole_batch(unbiased):
    layer = nn.BatchNorm(5, unbiased=unbiased)
    params, state = layer.init(phlox.random.key(0)), layer.init_state()
    _, expected = layer.apply(params, X, state=state, train=True)
    ones = nn.BatchNorm(5, unbiased=unbiased, axis_name="data")
    run = phlox.vmap(lambda x: ones.apply(params, x, state=state, train=True)[1], axis_name="data")
    for name, value in run(X.reshape(12, 1, 5)).items():
        np.testing.assert_allclose(value[3], expected[name], rtol=1e-5)


def test_one_number_has_no_unbiased_variance():
    layer = nn.BatchNorm(5, unbiased=True)
    with pytest.raises(ShapeError, match=r"f32\[1,5\] has 1 number of each feature"):
        layer.apply(layer.init(phlox.random.key(0)), jnp.ones((1, 5)), state=layer.init_state(), train=True)
