"""SELU on a million normal numbers: plain and compiled, rounded and full constants, Greek names of parameters."""

import functools

import numpy as np
import pytest

import phlox.numpy as jnp
from phlox import jit, nn, random

ROUNDED = {"α": 1.67, "λ": 1.05}
FULL = {"α": 1.6732632423543772848170429916717, "λ": 1.0507009873554804934193349852946}


def selu_of_the_book(x, alpha=1.67, scale=1.05):
    return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def selu(x, α=1.67, λ=1.05):
    return λ * jnp.where(x > 0, x, α * jnp.exp(x) - α)


@functools.cache
def numbers():
    return random.normal(random.PRNGKey(42), (1_000_000,))


def test_the_numbers():
    x = numbers()
    np.testing.assert_allclose(x[:3], [-0.02830462, 0.46713185, 0.29570296], rtol=1e-6)
    assert x.shape == (1_000_000,) and x.dtype == jnp.float32


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "jit"])
@pytest.mark.parametrize(
    ("constants", "first"),
    [(ROUNDED, [-0.04893636, 0.4904884, 0.3104881]), (FULL, [-0.04906461, 0.4908159, 0.3106954])],
    ids=["rounded", "full"],
)
def test_selu(constants, first, compiled):
    f = jit(selu) if compiled else selu
    y = f(numbers(), **constants).block_until_ready()
    np.testing.assert_allclose(y[:3], first, rtol=1e-6)
    x = np.asarray(numbers(), np.float64)
    α, λ = constants.values()
    np.testing.assert_allclose(y, λ * np.where(x > 0, x, α * np.expm1(x)), rtol=1e-4, atol=1e-6)


def test_constants_keep_mean_and_variance():
    y = jit(selu)(numbers(), **FULL)
    assert y.mean() == pytest.approx(0.0, abs=2e-3)
    assert y.std() == pytest.approx(1.0, abs=2e-3)
    np.testing.assert_allclose(nn.selu(numbers()), y, rtol=1e-4, atol=1e-6)


def test_parameters_by_their_english_names():
    x = numbers()
    np.testing.assert_array_equal(selu_of_the_book(x), selu(x))
    decorated = jit(selu_of_the_book)
    np.testing.assert_allclose(decorated(x), selu(x), rtol=1e-6, atol=1e-7)


def test_greek_names_as_static_arguments():
    power = jit(lambda x, β: x**β, static_argnames="β")
    assert power(3.0, β=2) == 9.0
