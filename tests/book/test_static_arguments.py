"""Arguments that are no arrays: jit says which one, and static_argnums makes them part of the program."""

from functools import partial

import pytest

import phlox.numpy as jnp
from phlox import jit


def dense(x, w, b, activation):
    return activation(jnp.dot(x, w) + b)


x, w, b = jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.zeros(4)


def test_a_function_is_no_array():
    with pytest.raises(TypeError) as caught:
        jit(dense)(x, w, b, jnp.tanh)
    message = str(caught.value)
    assert "activation" in message
    assert "static_argnums=3" in message
    assert "test_static_arguments.py" in message


def test_as_a_static_argument():
    compiled = jit(dense, static_argnums=3)
    assert compiled(x, w, b, jnp.tanh).shape == (2, 4)
    assert compiled(x, w, b, jnp.tanh)[0, 0] == pytest.approx(0.9950548, abs=1e-6)
    assert compiled(x, w, b, lambda v: v)[0, 0] == 3.0
    by_name = jit(dense, static_argnames="activation")
    assert by_name(x, w, b, activation=jnp.negative)[0, 0] == -3.0


def minkowski_distance(x, y, order):
    return jnp.sum(jnp.abs(x - y) ** order) ** (1.0 / order)


def test_minkowski_distance():
    distance = jit(minkowski_distance, static_argnums=2)
    origin, point = jnp.array([0.0, 0.0]), jnp.array([2.0, 2.0])
    assert distance(origin, point, 1) == 4.0
    assert distance(origin, point, 2) == pytest.approx(2.828427, abs=1e-6)


def test_each_value_is_traced_once():
    orders = []

    @partial(jit, static_argnums=0)
    def power(order, x):
        orders.append(order)
        return x**order

    assert [power(2, 3.0), power(3, 3.0), power(2, 4.0)] == [9.0, 27.0, 16.0]
    assert orders == [2, 3]


def test_static_arguments_must_hash():
    with pytest.raises((TypeError, ValueError), match="hash"):
        jit(lambda order, x: x, static_argnums=0)([1, 2], 3.0)
