"""Layers whose conventions differ between libraries, beside flax."""

import flax.linen
import jax
import numpy as np

import phlox
import phlox_nn as nn

X = (np.random.default_rng(0).normal(size=(4, 3, 5)) * 3 + 1).astype("f4")


def test_batch_statistics_are_those_of_flax():
    theirs = flax.linen.BatchNorm(use_running_average=False, momentum=0.7)
    variables = theirs.init(jax.random.key(0), X)
    expected, updates = theirs.apply(variables, X, mutable=["batch_stats"])
    layer = nn.BatchNorm(5, momentum=0.7)
    found, state = layer.apply(layer.init(phlox.random.key(0)), X, state=layer.init_state(), train=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    for name, value in state.items():
        np.testing.assert_allclose(value, updates["batch_stats"][name], rtol=1e-5)
