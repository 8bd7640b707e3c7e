"""What other libraries write is answered with what to write here."""

import dataclasses
import pickle

import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError, ShapeError

X = jnp.ones((2, 4))
KEY = phlox.random.key(0)


class AssignsInInit(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def __call__(self, x):
        return self.linear(x)


class AssignsSizes(nn.Layer):
    def __init__(self, size):
        self.size = size


class AssignsInCall(nn.Layer):
    def __call__(self, x):
        self.linear = nn.Linear(4, 4)
        return self.linear(x)


class Counts(nn.Layer):
    def __call__(self, x):
        self.count = 1
        return x


class MakesInCall(nn.Layer):
    def __call__(self, x):
        return nn.relu(nn.Linear(4, 4)(x))


class ForgetsAnnotation(nn.Layer):
    linear = nn.Linear(4, 4)

    def __call__(self, x):
        return self.linear(x)


class KeepsInSet(nn.Layer):
    layers: frozenset

    def __call__(self, x):
        return next(iter(self.layers))(x)


def run(model):
    return model.apply(model.init(KEY), X)


@pytest.mark.parametrize(
    ("program", "parts"),
    [
        (AssignsInInit, ["AssignsInInit: __init__ assigns self.linear", "linear: nn.Layer", "parts(self)"]),
        (lambda: AssignsSizes(3), ["__init__ assigns self.size", "size: int"]),
        (lambda: run(AssignsInCall()), ["__call__ assigns self.linear", "parts(self)"]),
        (lambda: run(Counts()), ["__call__ assigns self.count", "local variable", "self.update(count=...)"]),
        (lambda: run(MakesInCall()), ["MakesInCall calls Linear(4, 4)", '"linear: nn.Layer"', "parts(self)"]),
        (lambda: run(ForgetsAnnotation()), ["'linear' has no annotation", '"linear: nn.Layer"']),
        (lambda: run(KeepsInSet(frozenset([nn.Linear(4, 4)]))), ["KeepsInSet calls Linear(4, 4)"]),
        (lambda: nn.Linear(4, 4)(X), ["is configuration", "model.apply(params, x)"]),
        (lambda: nn.relu(), ["relu is a function of an array", "Sequential(..., nn.relu)"]),
        (lambda: nn.gelu(approximate=False), ["lambda x: nn.gelu(x, approximate=False)"]),
        (lambda: nn.softmax(axis=-1), ["lambda x: nn.softmax(x, axis=-1)"]),
        (
            lambda: nn.max_pool(jnp.ones((1, 4, 4, 2)), (2, 2)),
            ["array f32[1,4,4,2]", "nn.max_pool((2, 2)).apply({}, x)"],
        ),
        (lambda: nn.avg_pool(jnp.ones((1, 4, 4, 2)), (2, 2)), ["nn.avg_pool((2, 2))"]),
        (lambda: nn.max_pool("2x2"), ["window must be lengths"]),
    ],
)
def test_errors_say_what_was_meant(program, parts):
    with pytest.raises(ArgumentError) as excinfo:
        program()
    for part in parts:
        assert part in str(excinfo.value)
    assert excinfo.value.where.file == __file__


@pytest.mark.parametrize(
    ("layer", "shape", "axis"),
    [
        (nn.Conv(3, 8, (3, 3)), (2, 3, 32, 32), 1),
        (nn.Conv(3, 8, (3, 3)), (3, 32, 32), 0),
        (nn.Conv(3, 8, 3), (2, 3, 32), 1),
        (nn.Conv(3, 8, (3, 3, 3)), (2, 3, 8, 8, 8), 1),
        (nn.ConvTranspose(3, 8, (3, 3)), (2, 3, 32, 32), 1),
        (nn.GroupNorm(3, groups=3), (2, 3, 32, 32), 1),
        (nn.InstanceNorm(3), (2, 3, 32, 32), 1),
        (nn.BatchNorm(3), (2, 3, 32, 32), 1),
    ],
)
def test_features_first_are_told(layer, shape, axis):
    with pytest.raises(ShapeError, match=rf"axis {axis} has it.*last axis here(.|\n)*moveaxis\(x, {axis}, -1\)"):
        layer.apply(layer.init(KEY), jnp.ones(shape), state=layer.init_state(), train=True)
    with pytest.raises(ShapeError) as excinfo:
        layer.apply(layer.init(KEY), jnp.ones((2, 5, 5, 7)), state=layer.init_state(), train=True)
    assert "moveaxis" not in str(excinfo.value)


def test_a_layer_is_still_a_frozen_dataclass():
    layer = nn.Linear(4, 4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        layer.out_features = 5
    with pytest.raises(AttributeError):
        layer.out_features = 5
    assert pickle.loads(pickle.dumps(nn.Sequential(layer, nn.relu))).layers[1] is nn.relu
