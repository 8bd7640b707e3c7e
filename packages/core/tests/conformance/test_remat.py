"""checkpoint: the same values and derivatives as jax's, under every policy, and as much computed again."""

import functools

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import agree, outcome, row
from conformance.test_jaxprs import normal

NEAR = row("checkpoint", tolerance=1e-5)
X = np.array([0.3, 0.5, 0.9], np.float32)
W = judge.array(judge.rng("remat"), (3, 3), "float32")

POLICIES = {
    "none": lambda p: None,
    "nothing_saveable": lambda p: p.nothing_saveable,
    "everything_saveable": lambda p: p.everything_saveable,
    "dots_saveable": lambda p: p.dots_saveable,
    "checkpoint_dots": lambda p: p.checkpoint_dots,
    "dots_with_no_batch_dims_saveable": lambda p: p.dots_with_no_batch_dims_saveable,
    "checkpoint_dots_with_no_batch_dims": lambda p: p.checkpoint_dots_with_no_batch_dims,
    "save_only_these_names": lambda p: p.save_only_these_names("h"),
    "save_any_names_but_these": lambda p: p.save_any_names_but_these("h"),
    "save_anything_except_these_names": lambda p: p.save_anything_except_these_names("h", "s"),
    "save_from_both_policies": lambda p: p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("s")),
}


def network(m):
    name = m.ad_checkpoint.checkpoint_name

    def f(x, w):
        h = name(m.numpy.tanh(x @ w), "h")
        g = m.nn.selu(h @ w)
        return name(m.numpy.sin(g), "s").sum() * m.numpy.exp(h).sum()

    return f


USES = {
    "value": lambda m, f: f(X, W),
    "jit": lambda m, f: m.jit(f)(X, W),
    "grad": lambda m, f: m.grad(f, (0, 1))(X, W),
    "grad under jit": lambda m, f: m.jit(m.value_and_grad(f, (0, 1)))(X, W),
    "jvp": lambda m, f: m.jvp(f, (X, W), (X, W)),
    "vmap of grad": lambda m, f: m.vmap(m.grad(f, (0, 1)), (0, None))(np.stack([X, -X]), W),
    "grad of grad": lambda m, f: m.grad(lambda x: (m.grad(f)(x, W) * X).sum())(X),
    "hessian": lambda m, f: m.jit(m.hessian(f))(X, W),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("policy", POLICIES)
def test_values_and_derivatives(policy, use):
    run = lambda m: USES[use](m, m.checkpoint(network(m), policy=POLICIES[policy](m.checkpoint_policies)))
    agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, policy, weak=False)


@pytest.mark.parametrize("policy", POLICIES)
def test_as_much_is_computed_again(policy):
    """Operations of the optimised program, as the compiler removes what is computed for nothing."""

    def count(m, operation):
        f = m.checkpoint(network(m), policy=POLICIES[policy](m.checkpoint_policies))
        text = m.jit(m.value_and_grad(f, (0, 1))).lower(X, W).as_text()
        return text.count(operation)

    for operation in ("stablehlo.tanh", "stablehlo.dot_general"):
        assert count(phlox, operation) == count(jax, operation), operation


def test_layers_of_a_scan():
    def deep(m):
        layer = m.checkpoint(lambda c, w: (m.numpy.tanh(c @ w), None), prevent_cse=False)
        return lambda x: m.lax.scan(layer, x, np.stack([W] * 6))[0].sum()

    for run in (lambda m: m.grad(deep(m))(X), lambda m: m.jit(m.grad(deep(m)))(X)):
        agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, "scan")


def test_static_and_named_arguments():
    for run in (
        lambda m: m.grad(lambda x: m.remat(lambda x, n: x**n, static_argnums=1)(x, 3).sum())(X),
        lambda m: m.grad(lambda x: m.checkpoint(lambda x, k=1.0: (x * k).sum())(x, k=3.0))(X),
        lambda m: m.jit(m.checkpoint(lambda t: {"out": t["a"] * t["b"]}))({"a": X, "b": 2.0}),
    ):
        agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, "")


def test_as_printed():
    f = lambda m: m.checkpoint(lambda x: m.numpy.sin(m.numpy.sin(x)))
    mine, theirs = (normal(str(m.make_jaxpr(f(m))(1.0))) for m in (phlox, jax))
    assert mine == theirs
    named = lambda m: functools.partial(m.ad_checkpoint.checkpoint_name, name="a")
    assert str(phlox.make_jaxpr(named(phlox))(1.0)) == str(jax.make_jaxpr(named(jax))(1.0))


def test_wrong_use():
    for run in (
        lambda m: m.grad(m.checkpoint(lambda x: x.sum(), static_argnums=0))(X),
        lambda m: m.jit(m.checkpoint(lambda x: "a"))(X),
    ):
        agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, "")
