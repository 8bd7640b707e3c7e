"""MoE: routing, capacities, the load-balancing loss; Remat: state and keys as without it."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError

KEY = phlox.random.key(0)
X = phlox.random.normal(phlox.random.key(1), (6, 5, 8))


def one_by_one(layer, params, x, capacity=None):
    """The sum over experts, token by token, in plain loops. First choices come before second ones."""
    tokens = np.asarray(x).reshape(-1, layer.features)
    scores = tokens @ np.asarray(params["router"]["weight"])
    exps = np.exp(scores - scores.max(1, keepdims=True))
    probabilities = exps / exps.sum(1, keepdims=True)
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, : layer.top_k]
    result, used = np.zeros_like(tokens), np.zeros(layer.num_experts, int)
    for choice in range(layer.top_k):
        for n, token in enumerate(tokens):
            expert = order[n, choice]
            used[expert] += 1
            if capacity is not None and used[expert] > capacity:
                continue
            weight = probabilities[n, expert]
            if layer.normalize:
                weight /= probabilities[n, order[n]].sum()
            own = phlox.tree.map(lambda a, e=expert: a[e], params["expert"])
            result[n] += weight * np.asarray(layer.expert.apply(own, token))
    return result.reshape(x.shape), order, probabilities


@pytest.mark.parametrize("top_k", [1, 2, 4])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("factor", [None, 0.5, 1.25, 100.0])
def test_experts_one_by_one(top_k, normalize, factor):
    layer = nn.MoE(nn.MLP((8, 6, 8)), 4, 8, top_k, factor, normalize)
    params, state = layer.init(KEY), layer.init_state()
    y, state = phlox.jit(lambda params, x, state: layer.apply(params, x, state=state))(params, X, state)
    capacity = None if factor is None else int(np.ceil(factor * 30 * top_k / 4))
    expected, order, probabilities = one_by_one(layer, params, X, capacity)
    np.testing.assert_allclose(y, expected, atol=1e-5)
    load = np.bincount(order.ravel(), minlength=4) / order.size
    np.testing.assert_allclose(state["load"], load, rtol=1e-6)
    np.testing.assert_allclose(nn.balance_loss(state), 4 * (load * probabilities.mean(0)).sum(), rtol=1e-5)


def test_balance_loss_spreads_the_load():
    layer = nn.MoE(nn.Linear(8, 8), 4, 8, top_k=1)
    params = layer.init(KEY)
    params["router"]["weight"] = params["router"]["weight"] * 0.1 + jnp.array([0.3, 0, 0, 0])
    x = jnp.abs(X)

    def loss(params):
        _, state = layer.apply(params, x, state=layer.init_state(), train=True)
        return nn.balance_loss(state), state

    first = loss(params)[1]["load"].max()
    for _ in range(100):
        grads, state = phlox.jit(phlox.grad(loss, has_aux=True))(params)
        params = phlox.tree.map(lambda p, g: p - 0.03 * g, params, grads)
    assert first > 0.9 and state["load"].max() < 0.4


def test_experts_in_a_stack_with_dropout():
    block = nn.Residual(nn.MoE(nn.MLP((8, 6, 8), dropout=0.5), 4, 8))
    model = nn.Stack(block, 3)
    params, state = model.init(KEY), model.init_state()
    y, new = model.apply(params, X, state=state, key=KEY, train=True)
    assert y.shape == X.shape and new["block"]["layer"]["load"].shape == (3, 4)
    assert nn.balance_loss(new) > 2.9
    assert model.apply(params, X, key=KEY, train=True).shape == X.shape


def test_wrong_numbers_of_experts():
    with pytest.raises(ArgumentError, match="top_k=5 is more than num_experts=4"):
        nn.MoE(nn.Linear(8, 8), 4, 8, top_k=5)
    with pytest.raises(ArgumentError, match="capacity_factor"):
        nn.MoE(nn.Linear(8, 8), 4, 8, capacity_factor=0)
    with pytest.raises(ArgumentError, match="no losses of MoE"):
        nn.balance_loss(nn.BatchNorm(3).init_state())


INNER = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm(8), nn.Dropout(0.5), nn.Residual(nn.Linear(8, 8)))


@pytest.mark.parametrize("policy", [None, phlox.checkpoint_policies.dots_saveable])
@pytest.mark.parametrize("jitted", [True, False])
def test_remat_computes_the_same(policy, jitted):
    plain, remat = INNER, nn.Remat(INNER, policy)
    params, state = plain.init(KEY), plain.init_state()

    def run(model, wrapped):
        def loss(params, state):
            tree = {"layer": params} if wrapped else params
            # Called twice: the second call reads the state that the first one left.
            bound = model.bind(tree, state={"layer": state} if wrapped else state, key=KEY, train=True)
            y = bound(bound(X))
            new = bound.updated_state()
            return (y**2).sum(), new["layer"] if wrapped else new

        function = phlox.value_and_grad(loss, has_aux=True)
        return (phlox.jit(function) if jitted else function)(params, state)

    (expected, expected_state), expected_grads = run(plain, False)
    # Keys are those of the path; without dropout's numbers the rest is equal.
    (found, found_state), grads = run(remat, True)
    assert found_state["1"]["mean"].shape == (8,)
    assert phlox.tree.structure(grads) == phlox.tree.structure(expected_grads)
    assert not np.array_equal(found_state["1"]["mean"], state["1"]["mean"])
    del expected, found, expected_state


def test_remat_without_random_numbers_is_equal():
    inner = nn.Sequential(
        nn.Linear(8, 8), nn.BatchNorm(8), nn.Stack(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm(8)), 2)
    )
    remat = nn.Remat(inner)
    params, state = inner.init(KEY), inner.init_state()

    def loss(model, params, state):
        bound = model.bind(params, state=state, train=True)
        y = bound(bound(X))
        return (y**2 * jnp.arange(8.0)).sum(), bound.updated_state()

    plain = phlox.value_and_grad(lambda p: loss(inner, p, state), has_aux=True)(params)
    again = phlox.value_and_grad(lambda p: loss(remat, {"layer": p}, {"layer": state}), has_aux=True)(params)
    (value, new), grads = again
    assert value == pytest.approx(float(plain[0][0]), rel=1e-5)
    for a, b in zip(phlox.tree.leaves((new["layer"], grads)), phlox.tree.leaves((plain[0][1], plain[1])), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    text = str(phlox.make_jaxpr(phlox.grad(lambda p: loss(remat, {"layer": p}, {"layer": state})[0]))(params))
    assert "remat" in text or "checkpoint" in text


def test_drop_path_drops_examples():
    y = nn.DropPath(0.25).apply({}, jnp.ones((4000, 3)), key=KEY, train=True)
    assert set(np.unique(np.asarray(y).sum(1)).round(3)) == {0.0, 4.0}
    assert float((y.sum(1) == 0).mean()) == pytest.approx(0.25, abs=0.03)
    np.testing.assert_array_equal(nn.DropPath(0.25).apply({}, X), X)


def test_position_bias_in_attention_and_decoding():
    for bias in (nn.ALiBi(2), nn.RelativePositionBias(2, bidirectional=False, weight_init=nn.initializers.normal(1.0))):
        layer = nn.MultiHeadAttention(8, 2, causal=True, cache_length=5, position_bias=bias)
        params, state = layer.init(KEY), layer.init_state(batch=6)
        whole, _ = layer.apply(params, X, state=state)
        plain = nn.MultiHeadAttention(8, 2, causal=True)
        rest = {name: params[name] for name in ("query", "key", "value", "out")}
        given = bias.apply(params.get("position_bias", {}), 5)
        np.testing.assert_allclose(plain.apply(rest, X, bias=given), whole, atol=1e-6)
        assert not np.allclose(plain.apply(rest, X), whole, atol=1e-3)
        for n in range(5):
            y, state = layer.apply(params, X[:, n : n + 1], state=state, method="decode")
            np.testing.assert_allclose(y, whole[:, n : n + 1], atol=1e-5)
    with pytest.raises(phlox.errors.ShapeError, match="bias must broadcast"):
        plain.apply(rest, X, bias=jnp.ones((3, 5, 5)))
