"""The range test of learning rates, and that the types of optax's functions are those of its signatures."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_optim as optim
from phlox.errors import ArgumentError

X = np.random.default_rng(0).normal(size=(64, 3)).astype("f4")
Y = X @ np.array([1.0, -2.0, 0.5], "f4")


def loss(params, batch):
    x, y = batch
    return jnp.mean((x @ params["w"] - y) ** 2)


BATCHES = [(X[n : n + 16], Y[n : n + 16]) for n in range(0, 64, 16)]


def test_the_suggestion_trains_and_the_end_diverges():
    params = {"w": jnp.zeros(3)}
    result = optim.range_test(loss, optim.sgd, params, BATCHES, lowest=1e-4, highest=100.0, steps=60)
    assert len(result.rates) == len(result.losses) < 60, "it ends when the loss grows"
    assert 1e-3 < result.suggestion < 1
    np.testing.assert_allclose(np.diff(np.log(result.rates)), np.log(1e6) / 59, rtol=1e-6)
    np.testing.assert_array_equal(params["w"], 0)
    step = optim.make_step(loss, optim.sgd(result.suggestion))
    done = optim.fit(step.init(params), step, BATCHES, epochs=20, progress=False)
    assert done.history[-1]["loss"] < 0.1 * done.history[0]["loss"]


def test_random_losses_and_options_of_steps():
    def noisy(params, batch, key):
        return loss(params, batch) + 0.01 * phlox.random.normal(key)

    result = optim.range_test(noisy, lambda rate: optim.sgd(rate, 0.9), {"w": jnp.zeros(3)}, BATCHES, steps=10, highest=0.1,
                              key=phlox.random.key(0), clip=1.0)  # fmt: skip
    assert len(result.losses) == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": optim.sgd(0.1)}, "must be a function of the learning rate"),
        ({"lowest": 1.0, "highest": 0.1}, "lowest=1.0, highest=0.1"),
        ({"batches": []}, "no more batches"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ArgumentError, match=message):
        optim.range_test(
            **{"loss": loss, "optimizer": optim.sgd, "params": {"w": jnp.zeros(3)}, "batches": BATCHES, **options}
        )


def test_types_are_those_of_the_signatures():
    tree = ast.parse((Path(optim.__file__).parent / "_optax_types.pyi").read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions.keys() == {name for name in optim._TESTED if inspect.isfunction(getattr(optim, name))}
    for name, node in functions.items():
        arguments = node.args
        own = [
            *arguments.args,
            *filter(None, [arguments.vararg]),
            *arguments.kwonlyargs,
            *filter(None, [arguments.kwarg]),
        ]
        assert [argument.arg for argument in own] == list(inspect.signature(getattr(optim, name)).parameters), name
