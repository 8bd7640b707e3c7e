"""grad of Python functions: by hand, again and again, through loops, branches, recursion and closures."""

import pytest

import phlox.numpy as jnp
from phlox import grad, jit


def tanh_by_hand(x):
    y = jnp.exp(-2.0 * x)
    return (1.0 - y) / (1.0 + y)


def test_tanh_by_hand():
    assert grad(tanh_by_hand)(1.0) == pytest.approx(0.4199743, abs=1e-7)
    assert grad(jnp.tanh)(1.0) == pytest.approx(0.4199743, abs=1e-7)
    assert jit(grad(tanh_by_hand))(1.0) == pytest.approx(0.4199743, abs=1e-7)


def test_grad_of_grad():
    f = lambda x: x + 0.5 * x**2
    assert f(1.0) == 1.5
    assert grad(f)(1.0) == 2.0
    assert grad(grad(f))(1.0) == 1.0
    assert grad(grad(grad(f)))(1.0) == 0.0


def test_third_derivatives():
    f = lambda x: x**3 + 2 * x**2 - 3 * x + 1
    assert [grad(f)(1.0), grad(grad(f))(1.0), grad(grad(grad(f)))(1.0)] == [4.0, 10.0, 6.0]
    assert grad(grad(grad(jnp.sin)))(0.0) == -1.0
    assert grad(grad(grad(tanh_by_hand)))(1.0) == pytest.approx(0.62162673, abs=1e-5)


def test_through_a_loop():
    def power(x):
        result = 1.0
        for _ in range(4):
            result = result * x
        return result

    assert power(3.0) == 81.0
    assert grad(power)(3.0) == 108.0

    def until_large(x):
        while x < 100.0:  # a condition on the value: grad allows it, jit does not
            x = x * x
        return x

    assert grad(until_large)(2.0) == 8 * 2.0**7


def test_through_branches():
    def f(x):
        if x > 0:
            return x**2
        return -3.0 * x

    assert [grad(f)(2.0), grad(f)(-2.0)] == [4.0, -3.0]


def test_through_recursion():
    def factorial_like(x, n):
        return x if n == 0 else x * factorial_like(x + 1.0, n - 1)

    # x (x + 1) (x + 2) at 1
    assert factorial_like(1.0, 2) == 6.0
    assert grad(factorial_like)(1.0, 2) == 11.0


def test_through_closures():
    def scaled(scale):
        def f(x):
            return scale * jnp.sin(x)

        return f

    assert grad(scaled(3.0))(0.0) == 3.0
    outer = lambda y: grad(lambda x: x**2 * y)(3.0)  # the inner derivative, 2 x y, depends on y
    assert outer(2.0) == 12.0
    assert grad(outer)(2.0) == 6.0
