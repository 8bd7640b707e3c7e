"""Backends, devices, donated and unused arguments."""

import pytest

import phlox
import phlox.numpy as jnp
from phlox import device_put, devices, jit


def f(x):
    return 2 * x + 1


def test_a_backend():
    assert jit(f, backend="cpu")(3.0) == 7.0
    with pytest.raises((RuntimeError, ValueError), match="nonsense"):
        jit(f, backend="nonsense")(3.0)


def test_a_chosen_device():
    x = device_put(jnp.arange(3.0), devices()[2])
    assert x.devices() == {devices()[2]}
    assert jit(f)(x).devices() == {devices()[2]}  # programs run where their arguments are
    assert (x + 1).devices() == {devices()[2]}
    assert jit(f, device=devices()[5])(jnp.arange(3.0)).devices() == {devices()[5]}


def test_donated_arguments():
    update = jit(f, donate_argnums=0)
    x = jnp.arange(4.0)
    y = update(x)
    assert y.tolist() == [1.0, 3.0, 5.0, 7.0]
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted") as caught:
        x + 1
    assert isinstance(caught.value, phlox.errors.DeletedArrayError)
    assert "donate_argnums" in str(caught.value)


def test_unused_arguments_are_left_out():
    unused = lambda x, y: x * 2
    parameters = lambda compiled: compiled.lower(1.0, 2.0).as_text().count("%arg1")
    assert parameters(jit(unused)) == 0
    assert parameters(jit(unused, keep_unused=True)) == 1
    assert jit(unused)(3.0, 4.0) == jit(unused, keep_unused=True)(3.0, 4.0) == 6.0
