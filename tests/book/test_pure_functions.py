"""jit runs a function's Python once and keeps what it saw: a function must depend on its arguments alone."""

import phlox.numpy as jnp
from phlox import jit

bias = jnp.array(0)


def impure(x):
    return x + bias


def pure(x, bias):
    return x + bias


def test_a_global_is_read_when_the_function_is_traced():
    global bias
    bias = jnp.array(0)
    compiled = jit(impure)
    assert compiled(1.0) == 1.0
    bias = jnp.array(10)
    assert impure(1.0) == 11.0
    assert compiled(1.0) == 1.0  # still the bias of before
    assert compiled(jnp.ones(2)).tolist() == [11.0, 11.0]  # another type of argument is traced anew


def test_the_pure_form_takes_it_as_an_argument():
    compiled = jit(pure)
    assert compiled(1.0, jnp.array(0)) == 1.0
    assert compiled(1.0, jnp.array(10)) == 11.0


def test_python_effects_happen_once():
    seen = []

    @jit
    def double(x):
        seen.append(x)
        return 2 * x

    assert [double(1.0), double(2.0), double(3.0)] == [2.0, 4.0, 6.0]
    assert len(seen) == 1
