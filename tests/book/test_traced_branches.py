"""`if` on a traced value: an error that shows the user's line, and the ways out of it."""

import pytest

import phlox.numpy as jnp
from phlox import grad, jit, vmap
from phlox.errors import TracerBoolConversionError


def relu(x):
    if x > 0:
        return x
    return 0.0 * x


def test_without_jit_a_branch_is_just_python():
    assert [relu(2.0), relu(-2.0)] == [2.0, 0.0]
    assert [grad(relu)(2.0), grad(relu)(-2.0)] == [1.0, 0.0]


@pytest.mark.parametrize("transform", [jit, vmap, lambda f: jit(grad(f))], ids=["jit", "vmap", "jit of grad"])
def test_under_jit_the_value_is_unknown(transform):
    with pytest.raises(TracerBoolConversionError) as caught:
        transform(relu)(jnp.ones(3) if transform is vmap else 2.0)
    message = str(caught.value)
    assert "if x > 0:" in message
    assert "test_traced_branches.py" in message
    assert "where" in message
    assert "argument x" in message or transform is vmap
    assert isinstance(caught.value, TypeError)


def test_the_way_out_is_where():
    f = jit(lambda x: jnp.where(x > 0, x, 0.0))
    assert [f(2.0), f(-2.0)] == [2.0, 0.0]


def test_or_a_static_argument():
    @jit
    def outer(x):
        return inner(x, True)

    def inner(x, flag):
        return x if flag else -x

    assert outer(2.0) == 2.0
    assert jit(inner, static_argnums=1)(2.0, False) == -2.0


def test_while_and_and():
    def f(x):
        while x < 10:
            x = x * 2
        return x

    assert f(1.0) == 16.0
    with pytest.raises(TracerBoolConversionError, match="while x < 10"):
        jit(f)(1.0)
    with pytest.raises(TracerBoolConversionError, match="x > 0 and x < 1"):
        jit(lambda x: x > 0 and x < 1)(0.5)
