"""Inputs that do not fit a layer: the error names the layer by path, and has the shape that came and the one it needs."""

import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from nn_layers import EXAMPLES, Example
from phlox.errors import ShapeError

KEY = phlox.random.key(0)
#: layers that take any shape, and those whose first argument is not what is told
ANY = (
    "Dropout",
    "Embedding",
    "MaxPool",
    "AvgPool",
    "Parallel",
    "RNNCell",
    "GRUCell",
    "LSTMCell",
    "Identity",
    "Upsample",
    "DropPath",
)
NAMES = [n for n in EXAMPLES if n.split(",")[0] not in ANY]


class Inside(nn.Layer):
    """The layer as a part, so that it has a path."""

    layer: nn.Layer

    def __call__(self, x):
        return self.layer(x)


def refused(example, x):
    """The error of the layer for `x`."""
    model = Inside(example.layer)
    params, state = model.init(KEY), model.init_state(batch=example.shape[0])
    layer = model.bind(params, state=state, key=KEY, train=example.train).layer
    with pytest.raises(ShapeError) as excinfo:
        getattr(layer, example.method)(x, *example.rest, **example.keywords)
    assert excinfo.value.where.file == __file__
    return excinfo.value


@pytest.mark.parametrize("name", NAMES)
def test_the_last_axis_is_told_with_both_shapes(name):
    example = EXAMPLES[name]
    x = jnp.ones((*example.shape[:-1], example.shape[-1] + 1))
    error = refused(example, x)
    assert error.layer == "layer" or error.layer.startswith("layer."), error.layer
    assert error.layer in str(error) and phlox.typeof(x).short in str(error)
    assert x.shape in error.shapes and any(s[-1] == example.shape[-1] for s in error.shapes), error.shapes


@pytest.mark.parametrize(
    "name", [n for n in NAMES if "Group" in n or ("Norm" not in n and "MoE" not in n and len(EXAMPLES[n].shape) > 2)]
)
def test_too_few_axes_are_told_with_both_shapes(name):
    example = EXAMPLES[name]
    x = jnp.ones(example.shape[-1:])
    error = refused(example, x)
    assert error.layer.startswith("layer") and phlox.typeof(x).short in str(error)
    assert x.shape in error.shapes and len(error.shapes) == 2, error.shapes


@pytest.mark.parametrize("pool", [nn.max_pool((2, 2)), nn.avg_pool((2, 2))])
def test_pooling_needs_its_axes(pool):
    error = refused(Example(pool, (2, 2)), jnp.ones((2, 2)))
    assert error.shapes[0] == (2, 2) and "f32[2,2]" in str(error)
