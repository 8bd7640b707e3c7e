"""closure_convert, custom_gradient and linear_transpose do what jax's do."""

import jax
import jax.custom_derivatives
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

NEAR = row("closures")
X = np.arange(3.0, dtype=np.float32)
W = np.arange(6.0, dtype=np.float32).reshape(3, 2)


def tripled(m):
    return m.custom_gradient(lambda x: (m.numpy.sin(x), lambda ct: 3 * ct * x))


def several(m):
    return m.custom_gradient(lambda x, y: ({"a": x * y}, lambda ct: (3 * ct["a"] * x, ct["a"] + y)))


def doubled_by(m, y):
    converted, values = m.closure_convert(lambda x: x * y * 2, 1.0)
    return converted(2.0, *values) * len(values)


CASES = {
    "custom_gradient": lambda m: (tripled(m)(2.0), m.grad(tripled(m))(2.0)),
    "custom_gradient, two arguments": lambda m: m.grad(lambda x, y: several(m)(x, y)["a"], (0, 1))(2.0, 3.0),
    "custom_gradient under vmap": lambda m: m.vmap(m.grad(tripled(m)))(X),
    "custom_gradient under jit": lambda m: m.jit(m.value_and_grad(tripled(m)))(2.0),
    "custom_gradient, jvp": lambda m: m.jvp(tripled(m), (2.0,), (1.0,)),
    "custom_gradient, second order": lambda m: m.grad(m.grad(tripled(m)))(2.0),
    "closure_convert": lambda m: doubled_by(m, 3.0),
    "closure_convert, traced": lambda m: m.grad(lambda y: doubled_by(m, y))(3.0),
    "closure_convert under jit": lambda m: m.jit(lambda y: m.grad(lambda y: doubled_by(m, y))(y))(3.0),
    "linear_transpose": lambda m: m.linear_transpose(lambda x, y: {"o": m.numpy.dot(W, x) * 2 + y}, X[:2], X)({"o": X}),
    "linear_transpose, types": lambda m: m.linear_transpose(lambda x: x[::2], m.ShapeDtypeStruct((4,), "float32"))(
        X[:2]
    ),
    "linear_transpose under jit": lambda m: m.jit(lambda ct: m.linear_transpose(lambda x: W.T @ x, X)(ct))(X[:2]),
    "linear_transpose of integers": lambda m: m.linear_transpose(lambda x: x * 2, np.arange(3))(np.arange(3)),
    "linear_transpose of integers to floats": lambda m: m.linear_transpose(lambda x: x * 2.0, np.arange(3))(X),
    "linear_transpose, other structure": lambda m: m.linear_transpose(lambda x: (x, x), X)([X, X]),
}


@pytest.mark.parametrize("name", CASES)
def test_like_jax(name):
    run = CASES[name]
    agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, name, weak=False)


def test_what_is_not_linear_is_refused():
    with pytest.raises(phlox.errors.DerivativeError, match="not linear"):
        phlox.linear_transpose(lambda x: x * x, 1.0)(1.0)


def test_one_door_for_custom_derivatives():
    for name in phlox.custom_derivatives.__all__:
        assert getattr(phlox.custom_derivatives, name) is getattr(phlox, name, getattr(phlox.custom_derivatives, name))
        assert hasattr(jax.custom_derivatives, name)
