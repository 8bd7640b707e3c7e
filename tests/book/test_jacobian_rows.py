"""The rows of a Jacobian by vjp, and what is said of a cotangent whose structure is wrong."""

import pytest

import phlox.numpy as jnp
from phlox import jacfwd, jacrev, vjp


def f(x):
    return [x[0] ** 2 + x[1] ** 2 - x[1] * x[2], x[0] ** 2 - x[1] ** 2 + 3 * x[0] * x[2]]


X = jnp.array([1.0, 2.0, 3.0])


def test_each_cotangent_gives_a_row():
    values, pull_back = vjp(f, X)
    assert values == [-1.0, 6.0]
    assert pull_back([1.0, 0.0])[0].tolist() == [2.0, 1.0, -2.0]
    assert pull_back([0.0, 1.0])[0].tolist() == [11.0, -4.0, 3.0]
    assert [row.tolist() for row in jacrev(f)(X)] == [[2.0, 1.0, -2.0], [11.0, -4.0, 3.0]]
    assert [row.tolist() for row in jacfwd(f)(X)] == [[2.0, 1.0, -2.0], [11.0, -4.0, 3.0]]


def test_arguments_may_be_trees():
    values, pull_back = vjp(f, (1.0, 2.0, 3.0))
    assert values == [-1.0, 6.0]
    assert pull_back([1.0, 0.0]) == ((2.0, 1.0, -2.0),)
    assert pull_back([0.0, 1.0]) == ((11.0, -4.0, 3.0),)


@pytest.mark.parametrize("cotangent", [1.0, (1.0, 0.0), [1.0], {"a": 1.0}], ids=str)
def test_a_cotangent_of_another_structure(cotangent):
    _, pull_back = vjp(f, X)
    with pytest.raises((TypeError, ValueError)) as caught:
        pull_back(cotangent)
    shown = {float: "*", tuple: "(*, *)", list: "[*]", dict: "{'a': *}"}[type(cotangent)]
    assert "PyTreeDef([*, *])" in str(caught.value)
    assert f"PyTreeDef({shown})" in str(caught.value)
