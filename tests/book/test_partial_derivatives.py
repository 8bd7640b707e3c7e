"""f(x1, x2) = x1 x2 + sin(x1 x2): its value and both partial derivatives, by grad and by vjp."""

import pytest

import phlox.numpy as jnp
from phlox import grad, jit, jvp, value_and_grad, vjp


def f(x1, x2):
    return x1 * x2 + jnp.sin(x1 * x2)


AT = (7.0, 2.0)
SLOPES = pytest.approx((2.2734745, 7.9571605), abs=1e-6)


def test_value():
    assert f(*AT) == pytest.approx(14.990607, abs=1e-6)
    assert jit(f)(*AT) == pytest.approx(14.990607, abs=1e-6)


def test_grad():
    assert grad(f)(*AT) == pytest.approx(2.2734745, abs=1e-6)
    assert grad(f, argnums=(0, 1))(*AT) == SLOPES
    value, slopes = value_and_grad(f, argnums=(0, 1))(*AT)
    assert value == pytest.approx(14.990607, abs=1e-6)
    assert slopes == SLOPES


def test_vjp():
    value, pull_back = vjp(f, *AT)
    assert value == pytest.approx(14.990607, abs=1e-6)
    assert pull_back(1.0) == SLOPES


def test_jvp_gives_one_direction_at_a_time():
    assert jvp(f, AT, (1.0, 0.0))[1] == pytest.approx(2.2734745, abs=1e-6)
    assert jvp(f, AT, (0.0, 1.0))[1] == pytest.approx(7.9571605, abs=1e-6)
