"""Optimizers, frozen parameters and weight decay by path: each leaf is treated as its own optimizer would."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_optim as optim
from phlox.errors import ArgumentError

PARAMS = {
    "encoder": {"layers": [{"weight": jnp.ones((2, 2)), "bias": jnp.ones(2)}, {"weight": jnp.full((2, 2), 2.0)}]},
    "head": {"weight": jnp.ones((2, 3)), "bias": jnp.zeros(3)},
}
GRADS = phlox.tree.map(lambda x: jnp.full(x.shape, 0.5), PARAMS)


def after(tx, params=PARAMS, grads=GRADS, steps=3):
    state = tx.init(params)
    for _ in range(steps):
        updates, state = phlox.jit(tx.update)(grads, state, params)
        params = optim.apply_updates(params, updates)
    return params


def alone(tx, leaf):
    return after(tx, {"x": leaf}, {"x": jnp.full(leaf.shape, 0.5)})["x"]


def test_each_leaf_has_its_optimizer():
    rules = {"encoder/layers/0": None, "*/bias": optim.sgd(0.1), "encoder": optim.adam(1e-4), "*": optim.adam(1e-2)}
    new = after(optim.by_path(rules))
    np.testing.assert_array_equal(new["encoder"]["layers"][0]["weight"], 1)
    np.testing.assert_array_equal(new["encoder"]["layers"][0]["bias"], 1)
    np.testing.assert_allclose(new["head"]["bias"], alone(optim.sgd(0.1), jnp.zeros(3)))
    np.testing.assert_allclose(new["encoder"]["layers"][1]["weight"], alone(optim.adam(1e-4), jnp.full((2, 2), 2.0)))
    np.testing.assert_allclose(new["head"]["weight"], alone(optim.adam(1e-2), jnp.ones((2, 3))))


def test_frozen_parameters_have_no_state():
    sizes = [
        sum(x.size for x in phlox.tree.leaves(tx.init(PARAMS)))
        for tx in (optim.adam(1e-3), optim.by_path({"encoder": None, "*": optim.adam(1e-3)}))
    ]
    assert sizes[1] == sizes[0] - 2 * 10


def test_weight_decay_by_path():
    tx = optim.adamw(0.1, weight_decay=0.5, mask=optim.path_mask("*/bias", exclude=True))
    zeros = phlox.tree.map(jnp.zeros_like, PARAMS)
    new = after(tx, grads=zeros, steps=1)
    np.testing.assert_array_equal(new["encoder"]["layers"][0]["bias"], 1)
    np.testing.assert_allclose(new["head"]["weight"], 0.95, rtol=1e-6)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"encodr": None, "*": optim.sgd(0.1)}, "no parameter is meant by the pattern 'encodr'(.|\n)*'encoder.layers"),
        ({"encoder": None}, "no rule is for 'head.bias'(.|\n)*\"\\*\""),
        ({"encoder": 0.1, "*": optim.sgd(0.1)}, "rule for 'encoder' is 0.1(.|\n)*optim.adam"),
        ({}, "rules are"),
        ([("encoder", None)], "rules are"),
        ({3: optim.sgd(0.1)}, "a pattern is a glob"),
    ],
)
def test_wrong_rules(rules, message):
    with pytest.raises(ArgumentError, match=message):
        optim.by_path(rules).init(PARAMS)


def test_a_mask_that_means_nothing():
    with pytest.raises(ArgumentError, match="path_mask: no parameter is meant by the pattern 'baias'"):
        optim.adamw(0.1, mask=optim.path_mask("baias")).init(PARAMS)


def loss(params, x):
    hidden = x @ params["encoder"]["layers"][0]["weight"] + params["encoder"]["layers"][0]["bias"]
    return jnp.mean((hidden @ params["encoder"]["layers"][1]["weight"] @ params["head"]["weight"]) ** 2)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_frozen_parameters_of_a_step(accumulate):
    x = jnp.arange(8.0).reshape(4, 2) / 8
    step = optim.make_step(
        loss, optim.adamw(0.1, weight_decay=0.1), freeze=["encoder/layers/0", "head"], clip=100.0, accumulate=accumulate
    )
    train = step.init(PARAMS)
    train, figures = step(train, x)
    np.testing.assert_array_equal(train.params["head"]["weight"], 1)
    np.testing.assert_array_equal(train.params["encoder"]["layers"][0]["bias"], 1)
    assert not np.allclose(train.params["encoder"]["layers"][1]["weight"], 2)
    own = phlox.grad(loss)(PARAMS, x)["encoder"]["layers"][1]["weight"]
    assert float(figures["grad_norm"].value()) == pytest.approx(float(jnp.linalg.norm(own)), rel=1e-5)
    with pytest.raises(ArgumentError, match=r"no parameter is meant by the pattern 'haed'"):
        optim.make_step(loss, optim.sgd(0.1), freeze="haed").init(PARAMS)
    with pytest.raises(ArgumentError, match=r"make_step: the optimizer is 0\.1"):
        optim.make_step(loss, 0.1)
