"""What loops store for their derivative: light functions of what is stored are computed again."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax, nn


def stored(f, *args):
    """The types of what the first scan of the gradient leaves behind, and the value of the gradient."""
    jaxpr = phlox.make_jaxpr(phlox.grad(f))(*args).jaxpr
    first = next(eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan")
    return sorted(v.aval.short for v in first.outvars[first.params["num_carry"] :])


WEIGHTS = 0.5 * phlox.random.normal(phlox.random.key(0), (3, 4, 8))
BACK = 0.5 * phlox.random.normal(phlox.random.key(1), (3, 8, 4))


def layers(weights, body, scan=lax.scan):
    """Both weights are scanned, and multiplied so that both have a derivative."""
    x = phlox.random.normal(phlox.random.key(2), (5, 4))
    return (scan(body, x, (weights, (1 + weights.mean()) * BACK))[0] ** 2).sum()


def written_out(body, x, xs):
    for i in range(len(xs[0])):
        x, _ = body(x, (xs[0][i], xs[1][i]))
    return x, None


@pytest.mark.parametrize(
    "activation, kept",
    [
        # The input of the step, the product, and the tanh; neither powers of the product nor the transposed weights.
        (nn.gelu, ["f32[3,5,4]", "f32[3,5,8]", "f32[3,5,8]"]),
        (jnp.tanh, ["f32[3,5,4]", "f32[3,5,8]"]),
        (lambda x: 2 * x + 1, ["f32[3,5,4]", "f32[3,5,8]"]),
        (lambda x: jnp.where(x > 0, x, 0.1 * x), ["f32[3,5,4]", "f32[3,5,8]"]),
    ],
)
def test_light_functions_are_computed_again(activation, kept):
    def body(x, w):
        return activation(x @ w[0]) @ w[1], None

    assert stored(lambda w: layers(w, body), WEIGHTS) == kept
    gradient, expected = (phlox.grad(lambda w: layers(w, body, scan))(WEIGHTS) for scan in (lax.scan, written_out))
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5 * abs(expected).max())


def test_what_is_smaller_is_stored():
    def body(x, w):
        bias = (x @ w[0]).sum(0)[:1] * 2.0  # one of eight numbers
        return x * bias, None

    kept = stored(lambda w: layers(w, body), WEIGHTS)
    assert "f32[3,1,1]" in kept and "f32[3,8]" not in kept


def test_chains_are_cut():
    def body(x, _):
        for _ in range(40):
            x = x * x + 0.1
        return x, None

    def loss(x):
        return lax.scan(body, x, None, length=3)[0].sum()

    assert 1 < len(stored(loss, jnp.full(4, 0.1))) < 40


def test_what_is_scanned_or_returned_is_not_stored_twice():
    def body(c, x):
        y = jnp.sin(x)
        return c * y + x * 3, y

    def loss(xs):
        c, ys = lax.scan(body, 1.0, xs)
        return c + ys.sum()

    assert stored(loss, jnp.arange(3.0)) == ["f32[3]"] * 3  # the results, the carry, and the cosine


def test_the_gradient_of_a_product_transposes_nothing():
    x = jnp.ones((2, 3, 4))
    jaxpr = phlox.make_jaxpr(phlox.grad(lambda w: (x @ w).sum()))(jnp.ones((4, 5)))
    assert "transpose" not in [eqn.primitive.name for eqn in jaxpr.eqns]
