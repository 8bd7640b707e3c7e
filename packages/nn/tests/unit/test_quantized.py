"""Weights of 8 bits: their errors, names and dtypes, and models around which they are."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError, DtypeError

MODEL = nn.Sequential(nn.Embedding(7, 16), nn.Linear(16, 32), nn.gelu, nn.Linear(32, 16))
PARAMS = MODEL.init(phlox.random.key(0))
TOKENS = jnp.arange(7)


def test_errors_are_those_of_8_bits():
    small = nn.Quantized(MODEL)
    params = small.quantize(PARAMS)
    for path, axis in (("0", 1), ("1", 0)):
        weight = np.asarray(PARAMS[path]["weight"])
        steps, scale = np.asarray(params["layer"][path]["weight"]), np.asarray(params["scales"][path]["scale"])
        assert steps.dtype == np.int8
        error = np.abs(steps * np.expand_dims(scale, axis) - weight)
        assert (error <= np.expand_dims(np.abs(weight).max(axis) / 254, axis) * 1.0001).all()
    expected, y = MODEL.apply(PARAMS, TOKENS), small.apply(params, TOKENS)
    assert 0 < jnp.abs(y - expected).max() < 0.03 * jnp.abs(expected).max()
    assert small.apply(params, TOKENS, dtype=jnp.bfloat16).dtype == jnp.bfloat16


def test_init_and_columns_of_zeros():
    small = nn.Quantized(MODEL)
    assert phlox.tree.structure(small.init(phlox.random.key(0))) == phlox.tree.structure(small.quantize(PARAMS))
    layer = nn.Quantized(nn.Linear(2, 2))
    params = layer.quantize({"weight": jnp.array([[0.0, 1.0], [0.0, -2.0]]), "bias": jnp.zeros(2)})
    np.testing.assert_allclose(layer.apply(params, jnp.ones(2)), [0, -1], atol=0.01)


def test_a_pattern_selects_and_names_are_those_of_the_model():
    small = nn.Quantized(MODEL, pattern="3")
    params = small.quantize(PARAMS)
    assert params["layer"]["1"]["weight"].dtype == jnp.float32
    assert list(params["scales"]) == ["3"]
    assert small.layers == MODEL.layers
    with pytest.raises(AttributeError):
        small.others
    with pytest.raises(ArgumentError, match="is meant by the pattern"):
        nn.Quantized(MODEL, pattern="none").init(phlox.random.key(0))
    with pytest.raises(DtypeError, match="int8"):
        small.quantize(params["layer"])
