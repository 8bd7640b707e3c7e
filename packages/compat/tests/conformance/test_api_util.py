"""phlox.api_util beside jax's: helpers of transformations, which work on functions of leaves."""

import jax
import jax.api_util
import numpy as np
import pytest

import phlox

X = np.array([0.5, -1.0, 2.0], np.float32)
TREE = {"a": X, "b": (X * 2, np.float32(3))}


def tree_function(m, t):
    return {"o": [m.numpy.sin(t["a"]) * t["b"][0], t["b"][1] ** 2], "c": (t["a"].sum(),)}


def test_helpers_of_transformations():
    u, v = phlox.api_util, jax.api_util
    for donated, static in (((3, 4), (0, 1)), ((), ()), ((2,), ()), ((0, 5, 5), (3, 1))):
        assert u.rebase_donate_argnums(donated, static) == v.rebase_donate_argnums(donated, static)
    for m in (u, v):
        with pytest.raises(ValueError):
            m.rebase_donate_argnums((1,), (1,))
        with pytest.raises((AssertionError, ValueError)):
            m.safe_map(max, [1, 2], [1])
        assert m.safe_map(max, [1, 5], [4, 2]) == [4, 5]
    tree = (([0, 0], 0), {"c": 0, "b": [0, 0]})
    mine, theirs = phlox.tree.structure(tree), jax.tree.structure(tree)
    assert u.donation_vector((0,), ("b",), mine) == v.donation_vector((0,), ("b",), theirs)
    assert u.donation_vector((1,), (), phlox.tree.structure(tree[0]), kws=False) == v.donation_vector(
        (1,), (), jax.tree.structure(tree[0]), kws=False
    )
    axes = ((0, None), {"c": 1, "b": 2})
    assert u.flatten_axes("axes", mine, axes) == v.flatten_axes("axes", theirs, axes)
    for m, structure in ((u, mine), (v, theirs)):
        with pytest.raises(ValueError, match="axes"):
            m.flatten_axes("axes", structure, ((0, 0, 0), 1))
    assert str(u.shaped_abstractify(X)) == str(v.shaped_abstractify(X))
    made = u.debug_info("jit", tree_function, ("m", TREE), {}, static_argnums=(0,))
    wanted = v.debug_info("jit", tree_function, ("m", TREE), {}, static_argnums=(0,))
    assert (made.traced_for, made.func_name, made.arg_names) == (wanted.traced_for, wanted.func_name, wanted.arg_names)


def test_functions_of_leaves():
    leaves, tree = phlox.tree.flatten(((1, 2), {"c": 3}))
    flat, out_tree = phlox.api_util.flatten_fun(lambda a, b, c: {"s": a + b, "c": c}, tree)
    assert flat.call_wrapped(*leaves) == [3, 3] and out_tree() == phlox.tree.structure({"s": 0, "c": 0})
    flat, out_tree = phlox.api_util.flatten_fun_nokwargs(lambda a, b: [b, a], phlox.tree.structure((1, 2)))
    assert flat(5, 6) == [6, 5] and out_tree() == phlox.tree.structure([0, 0])
    power, given = phlox.api_util.argnums_partial(lambda x, n, y: x**n + y, (-1, 0), (3.0, 2, 1.0))
    assert given == (1.0, 3.0) and power(*given) == 10.0
    with pytest.raises(phlox.errors.StaticArgumentError):
        phlox.api_util.argnums_partial(lambda x, n: x, 0, (1.0, [2]))
    assert phlox.api_util.argnums_partial(lambda x, n: x, 0, (1.0, [2]), require_static_args_hashable=False)[1] == (
        1.0,
    )
    with pytest.raises(ValueError):
        phlox.api_util.argnums_partial(lambda x: x, 1, (1.0,))
