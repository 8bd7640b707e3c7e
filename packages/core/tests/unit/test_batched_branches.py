"""`vmap` of branches and of loops inside of branches: each row gets what it gets alone, and what is not taken ends."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox
import phlox.export
from phlox import lax, numpy as jnp


def by_rows(fun: Callable[..., Any], *args: Any) -> Any:
    """The results of `fun` for each row alone, stacked."""
    rows = [fun(*row) for row in zip(*args, strict=True)]
    return phlox.tree.map(lambda *xs: np.stack([np.asarray(x) for x in xs]), *rows)


def check(fun: Callable[..., Any], *args: Any, rtol: float = 1e-5) -> None:
    """Compares `vmap` of `fun`, plain and compiled, with the rows alone."""
    expected = by_rows(fun, *args)
    for batched in (phlox.vmap(fun), phlox.jit(phlox.vmap(fun))):
        actual = batched(*args)
        phlox.tree.map(lambda a, b: np.testing.assert_allclose(np.asarray(a), b, rtol=rtol), actual, expected)


def up(x: Any) -> Any:
    """Ends for x <= 10 only; at 10."""
    return lax.while_loop(lambda v: v != 10, lambda v: v + 1, x)


def down(x: Any) -> Any:
    """Ends for x >= 10 only; at 10."""
    return lax.while_loop(lambda v: v != 10, lambda v: v - 1, x)


def to_ten(x: Any) -> Any:
    return lax.cond(x < 10, up, down, x)


START = np.array([3, 17, 10, -4, 12], np.int32)


# --- loops that end for the rows of their branch only ---------------------------------------------------


ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
ONE_SIDED = """
import phlox
import phlox.export
from phlox import lax, numpy as jnp

def to_ten(x):
    up = lambda y: lax.while_loop(lambda v: v != 10, lambda v: v + 1, y)
    down = lambda y: lax.while_loop(lambda v: v != 10, lambda v: v - 1, y)
    return lax.cond(x < 10, up, down, x)

print(phlox.vmap(to_ten)(jnp.array([3, 17, 10, -4])).tolist())
"""


def test_one_sided_loops_of_jax_issue_2947_end() -> None:
    # In a process of its own: nothing interrupts a compiled loop that does not end.
    run = subprocess.run(
        [sys.executable, "-c", ONE_SIDED], env=ENVIRONMENT, capture_output=True, text=True, timeout=100
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[10, 10, 10, 10]"
    check(to_ten, START)


@functools.partial(phlox.custom_jvp)
def _up_with_rule(x: Any) -> Any:
    return up(x)


@_up_with_rule.defjvp
def _up_jvp(primals: Any, tangents: Any) -> Any:
    return up(primals[0]), 2 * up(primals[0]) * tangents[0]


@phlox.custom_vjp
def _down_with_rule(x: Any) -> Any:
    return down(x)


_down_with_rule.defvjp(lambda x: (down(x), x), lambda x, ct: (3 * down(x) * ct,))

NESTED = {
    "jit": (phlox.jit(up), phlox.jit(down)),
    "checkpoint": (phlox.checkpoint(up), phlox.checkpoint(down)),
    "custom_jvp and custom_vjp": (_up_with_rule, _down_with_rule),
    "scan": (
        lambda x: lax.scan(lambda c, _: (up(c), c), x, None, length=3)[0],
        lambda x: lax.scan(lambda c, _: (down(c), c), x, None, length=3)[0],
    ),
    "cond": (
        lambda x: lax.cond(x < 5, up, lambda y: up(y) + 1, x),
        lambda x: lax.cond(x > 15, down, lambda y: down(y) - 1, x),
    ),
    "while": (
        lambda x: lax.while_loop(lambda v: v < 10, up, x),
        lambda x: lax.while_loop(lambda v: v > 10, down, x),
    ),
    "vmap": (lambda x: phlox.vmap(up)(x - jnp.arange(3)).sum(), lambda x: phlox.vmap(down)(x + jnp.arange(3)).sum()),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_loops_nested_in_a_branch_end(name: str, dtype: Any) -> None:
    check(lambda x: lax.cond(x < 10, *NESTED[name], x), START.astype(dtype))


def test_a_loop_in_a_branch_of_a_loop_ends() -> None:
    def fun(x: Any, n: Any) -> Any:
        turn = lambda s: (s[0] + 1, to_ten(s[1]) + s[0])
        return lax.while_loop(lambda s: s[0] < n, turn, (jnp.int32(0), x))

    check(fun, START, np.array([1, 3, 0, 2, 5], np.int32))


def test_branches_in_a_scan_end() -> None:
    check(lambda x: lax.scan(lambda c, d: (to_ten(c) + d, c), x, jnp.arange(-2, 3)), START)


def test_a_switch_of_many_branches_ends() -> None:
    branches = [
        lambda x, k=k: lax.while_loop(lambda v: v % 5 != k, lambda v: v + 5 if k == 9 else v + 1, x) for k in range(5)
    ]
    branches.append(lambda x: lax.while_loop(lambda v: v != 0, lambda v: v - 1, x))
    index = np.array([0, 1, 2, 3, 4, 5, 5], np.int32)
    check(lambda i, x: lax.switch(i, branches, x), index, np.array([3, 1, 4, 1, 5, 9, 2], np.int32))


def test_nested_vmap_ends() -> None:
    grid = np.arange(12, dtype=np.int32).reshape(3, 4) * 2
    expected = np.full((3, 4), 10)
    np.testing.assert_array_equal(phlox.vmap(phlox.vmap(to_ten))(grid), expected)
    shifted = phlox.vmap(lambda a: phlox.vmap(lambda b: to_ten(a + b))(jnp.arange(4)))(np.array([2, 9, 20]))
    np.testing.assert_array_equal(shifted, expected)
    one = phlox.vmap(lambda a: phlox.vmap(lambda p: lax.cond(p, up, down, a))(jnp.array([True, True])))(
        np.array([1, 2])
    )
    np.testing.assert_array_equal(one, np.full((2, 2), 10))


def test_a_loop_that_is_equal_for_all_rows_stays_unbatched() -> None:
    def fun(p: Any, x: Any, y: Any) -> Any:
        return lax.cond(p, lambda: up(y) * x, lambda: x)

    batched = phlox.vmap(fun, (0, 0, None))
    np.testing.assert_array_equal(batched(np.array([True, False]), np.array([1, 2]), 4), [10, 2])
    # No row takes the branch, so its loop must not run: it would not end.
    np.testing.assert_array_equal(batched(np.array([False, False]), np.array([1, 2]), 14), [1, 2])


def test_closed_over_batched_values_end() -> None:
    def fun(x: Any, limit: Any) -> Any:
        grow = lambda: lax.while_loop(lambda v: v != limit, lambda v: v + 1, x)
        shrink = lambda: lax.while_loop(lambda v: v != limit, lambda v: v - 1, x)
        return lax.cond(x < limit, grow, shrink)

    check(fun, START, START[::-1].copy())


def test_derivatives_of_loops_in_branches() -> None:
    def fun(x: Any) -> Any:
        more = lambda y: lax.while_loop(lambda v: v[0] < 10, lambda v: (v[0] + 1, v[1] * 1.5), (jnp.round(y), y))[1]
        less = lambda y: lax.while_loop(lambda v: v[0] != 10, lambda v: (v[0] - 1, v[1] * 0.5), (jnp.round(y), y))[1]
        return lax.cond(x < 10, more, less, x)

    def directional(x: Any) -> Any:
        return phlox.jvp(fun, (x,), (jnp.ones_like(x),))[1]

    x = np.array([8.2, 12.4, 3.0, 10.3], np.float32)
    check(directional, x)
    batched = phlox.jvp(phlox.vmap(fun), (x,), (np.ones_like(x),))[1]
    np.testing.assert_allclose(batched, by_rows(directional, x), rtol=1e-5)


def test_reverse_mode_of_custom_rules_with_loops() -> None:
    fun = lambda x: lax.cond(x < 10, _up_with_rule, _down_with_rule, x)
    x = START.astype(np.float32)
    expected = np.where(x < 10, 20.0, 30.0)
    np.testing.assert_allclose(phlox.vmap(phlox.grad(fun))(x), expected)
    np.testing.assert_allclose(phlox.grad(lambda v: phlox.vmap(fun)(v).sum())(x), expected)
    np.testing.assert_allclose(phlox.jit(phlox.grad(lambda v: phlox.vmap(fun)(v).sum()))(x), expected)


def test_effects_of_loops_that_no_row_needs() -> None:
    seen: list[int] = []

    def noisy(x: Any) -> Any:
        def turn(v: Any) -> Any:
            phlox.debug.callback(lambda value: seen.append(int(value)), v)
            return v + 1

        return lax.while_loop(lambda v: v < 3, turn, x)

    fun = phlox.vmap(lambda x: lax.cond(x < 0, noisy, lambda y: y, x))
    np.testing.assert_array_equal(fun(np.array([0, 1, 2], np.int32)), [0, 1, 2])
    phlox.effects_barrier()
    assert not seen


# --- rows in chunks, by branch --------------------------------------------------------------------------

ROWS = 150
RNG = np.random.default_rng(7)
X = RNG.standard_normal((ROWS, 3)).astype(np.float32)
W = RNG.standard_normal((3, 3)).astype(np.float32)
WHICH = RNG.integers(0, 4, ROWS).astype(np.int32)
BATCHINGS = ["select", "split", None]


def four_ways(batching: Any) -> Callable[..., Any]:
    def fun(i: Any, x: Any, w: Any = W) -> Any:
        branches = [
            lambda x: (jnp.tanh(x @ w), jnp.int32(0)),
            lambda x: (jnp.log(jnp.abs(x)) * x[::-1], jnp.int32(1)),
            lambda x: (jnp.zeros(3), jnp.argmax(x).astype(jnp.int32)),
            lambda x: (x, jnp.sum(x > 0).astype(jnp.int32)),
        ]
        return lax.switch(i, branches, x, batching=batching)

    return fun


@pytest.mark.parametrize("batching", BATCHINGS)
def test_switch_by_rows(batching: Any) -> None:
    check(four_ways(batching), WHICH, X)


@pytest.mark.parametrize(
    "which", [np.zeros(ROWS, np.int32), np.full(ROWS, 3, np.int32), np.arange(ROWS, dtype=np.int32) - 9]
)
def test_branches_without_rows_and_clamped_indices(which: Any) -> None:
    check(four_ways("split"), which, X)


@pytest.mark.parametrize("count", [1, 2, 8, 9, 64])
def test_few_rows(count: int) -> None:
    check(four_ways("split"), WHICH[:count], X[:count])


def loss(batching: Any) -> Callable[..., Any]:
    return lambda i, x, w: (four_ways(batching)(i, x, w)[0] ** 2).sum()


def test_gradients_of_split_branches() -> None:
    one = phlox.grad(loss("select"), (1, 2))
    by_x, by_w = by_rows(lambda i, x: one(i, x, W), WHICH, X)
    for transform in (lambda f: f, phlox.jit):
        inside = transform(phlox.vmap(phlox.grad(loss("split"), (1, 2)), (0, 0, None)))(WHICH, X, W)
        np.testing.assert_allclose(inside[0], by_x, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(inside[1], by_w, rtol=1e-4, atol=1e-5)
        total = lambda x, w: phlox.vmap(loss("split"), (0, 0, None))(WHICH, x, w).sum()
        outside = transform(phlox.grad(total, (0, 1)))(X, W)
        np.testing.assert_allclose(outside[0], by_x, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(outside[1], by_w.sum(0), rtol=1e-4, atol=1e-4)


def test_forward_and_second_derivatives_of_split_branches() -> None:
    def hessian(batching: Any) -> Any:
        return phlox.vmap(phlox.jacfwd(phlox.grad(loss(batching), 1), 1), (0, 0, None))(WHICH[:40], X[:40], W)

    np.testing.assert_allclose(hessian("split"), hessian("select"), rtol=1e-3, atol=1e-4)

    def tangent(batching: Any) -> Any:
        return phlox.jvp(lambda x: phlox.vmap(four_ways(batching))(WHICH, x)[0], (X,), (X[::-1].copy(),))[1]

    np.testing.assert_allclose(tangent("split"), tangent("select"), rtol=1e-4, atol=1e-5)


def test_split_branches_under_nested_vmap() -> None:
    which, x = WHICH[:144].reshape(3, 48), X[:144].reshape(3, 48, 3)
    expected = phlox.vmap(four_ways("split"))(WHICH[:144], X[:144])
    actual = phlox.jit(phlox.vmap(phlox.vmap(four_ways("split"))))(which, x)
    np.testing.assert_allclose(actual[0].reshape(144, 3), expected[0], rtol=1e-5)
    np.testing.assert_array_equal(actual[1].reshape(144), expected[1])
    shared = phlox.vmap(lambda x: phlox.vmap(four_ways("split"), (0, None))(which[0], x[0]))(x)
    for row, one in zip(shared[0], x, strict=True):
        np.testing.assert_allclose(row, phlox.vmap(four_ways("select"), (0, None))(which[0], one[0])[0], rtol=1e-5)


@pytest.mark.parametrize("batching", BATCHINGS)
def test_nan_of_a_branch_that_is_not_taken(batching: Any) -> None:
    def root(x: Any) -> Any:
        return lax.cond(x > 0, lambda v: jnp.sqrt(v), lambda v: v * 0, x, batching=batching)

    x = np.array([4.0, 0.0, -1.0, 9.0] * 5, np.float32)
    np.testing.assert_allclose(phlox.vmap(root)(x), np.array([2, 0, 0, 3] * 5))
    np.testing.assert_allclose(phlox.vmap(phlox.grad(root))(x), np.array([0.25, 0, 0, 1 / 6] * 5), rtol=1e-6)
    gradient = phlox.grad(lambda x: phlox.vmap(root)(x).sum())(x)
    np.testing.assert_allclose(gradient, np.array([0.25, 0, 0, 1 / 6] * 5), rtol=1e-6)


@pytest.mark.parametrize("batching", BATCHINGS)
def test_keys_none_and_integers(batching: Any) -> None:
    def fun(p: Any, key: Any, n: Any) -> Any:
        first = lambda key, n: (phlox.random.split(key)[0], None, n + 1, phlox.random.normal(key))
        second = lambda key, n: (key, None, n, jnp.float32(0))
        return lax.cond(p, first, second, key, n, batching=batching)

    keys, p, n = phlox.random.split(phlox.random.key(3), 20), WHICH[:20] > 1, WHICH[:20]
    actual = phlox.jit(phlox.vmap(fun))(p, keys, n)
    for i in range(20):
        key, none, number, draw = fun(p[i], keys[i], n[i])
        np.testing.assert_array_equal(phlox.random.key_data(actual[0][i]), phlox.random.key_data(key))
        assert none is None
        assert actual[1] is None
        assert actual[2][i] == number
        np.testing.assert_allclose(actual[3][i], draw, rtol=1e-6)


@pytest.mark.parametrize("batching", BATCHINGS)
def test_branches_by_rows_in_a_scan_and_a_while(batching: Any) -> None:
    def fun(i: Any, x: Any) -> Any:
        step = lambda c, k: (four_ways(batching)((i + k) % 4, c)[0], c[0])
        return lax.scan(step, x, jnp.arange(5))

    check(fun, WHICH[:30], X[:30], rtol=1e-4)

    def until(i: Any, x: Any) -> Any:
        turn = lambda s: (s[0] + 1, four_ways(batching)((i + s[0]) % 4, s[1])[0] * 0.5)
        return lax.while_loop(lambda s: s[0] < i, turn, (jnp.int32(0), x))

    check(until, WHICH[:30], X[:30], rtol=1e-4)


@pytest.mark.parametrize("batching", BATCHINGS)
def test_loops_in_branches_by_rows_end(batching: Any) -> None:
    check(lambda x: lax.cond(x < 10, up, down, x, batching=batching), np.arange(40, dtype=np.int32))


def test_references_in_branches_by_rows() -> None:
    def fun(p: Any, x: Any) -> Any:
        ref = phlox.new_ref(x)

        def double() -> None:
            ref[...] = ref[...] * 2

        def keep() -> None:
            pass

        lax.cond(p, double, keep, batching="split")
        return ref[...]

    p, x = WHICH[:20] > 1, X[:20]
    np.testing.assert_allclose(phlox.vmap(fun)(p, x), np.where(p[:, None], 2 * x, x))


def test_what_cannot_be_split_is_refused_by_name() -> None:
    def noisy(x: Any) -> Any:
        phlox.debug.print("{}", x)
        return x

    with pytest.raises(phlox.errors.OptionError, match="callbacks"):
        phlox.vmap(lambda p, x: lax.cond(p, noisy, lambda x: x, x, batching="split"))(WHICH > 1, X)
    total = lambda p, x: lax.cond(p, lambda x: lax.psum(x, "i"), lambda x: x, x, batching="split")
    with pytest.raises(phlox.errors.OptionError, match="collectives over the axis 'i'"):
        phlox.vmap(total, axis_name="i")(WHICH > 1, X)
    with pytest.raises(phlox.errors.OptionError, match="batching='both'"):
        lax.cond(True, lambda: 1, lambda: 2, batching="both")


def test_the_default_splits_expensive_branches_only() -> None:
    def is_split(branch: Any, count: int, **options: Any) -> bool:
        p, x = np.zeros(count, bool), np.zeros((count, 3), np.float32)
        fun = phlox.vmap(lambda p, x: lax.cond(p, branch, lambda x: x + 1, x, **options))
        return any(eqn.primitive.name == "scan" for eqn in phlox.make_jaxpr(fun)(p, x).eqns)

    heavy = lambda x: lax.fori_loop(0, 500, lambda _, v: jnp.tanh(v @ W) + jnp.cos(v), x)
    assert is_split(heavy, 4096)
    assert not is_split(heavy, 4096, batching="select")
    assert not is_split(heavy, 16)
    assert not is_split(jnp.sin, 4096)
    assert not is_split(jnp.sin, 100_000)


def test_a_cond_without_the_option_has_the_parameters_of_jax() -> None:
    (eqn,) = phlox.make_jaxpr(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))(True, 1.0).eqns[-1:]
    assert set(eqn.params) == {"branches"}


# --- loops whose rows finish at different times ---------------------------------------------------------

COUNTS = RNG.geometric(0.05, 200).astype(np.int32)
COUNTS[[3, 150]] = [400, 0]
STATES = RNG.standard_normal((200, 64)).astype(np.float32)
ORBIT = RNG.standard_normal((64, 64)).astype(np.float32) / 8


def orbit(n: Any, x: Any, w: Any = ORBIT) -> Any:
    """A loop of `n` expensive turns, with integers and constants in its state."""
    turn = lambda s: (s[0] + 1, 0.2 * jnp.sin(s[1] @ w) + 0.5 * jnp.cos(s[1]) / (1 + n) + s[1] / 3, s[2])
    return lax.while_loop(lambda s: s[0] < n, turn, (jnp.int32(0), x, n * 2))


def loops_in(fun: Callable[..., Any], *args: Any) -> int:
    return sum(eqn.primitive.name == "while" for eqn in phlox.make_jaxpr(fun)(*args).eqns)


def test_rows_of_a_loop_are_removed_when_they_have_finished() -> None:
    assert loops_in(phlox.vmap(orbit), COUNTS, STATES) == 3
    assert loops_in(phlox.vmap(orbit), COUNTS[:20], STATES[:20]) == 1
    assert loops_in(phlox.vmap(lambda n: lax.while_loop(lambda v: v < n, lambda v: v + 1, 0)), COUNTS) == 1


@pytest.mark.parametrize("counts", ["mixed", "none", "equal", "one"])
def test_compacted_loops_give_what_rows_give_alone(counts: str) -> None:
    only = np.zeros_like(COUNTS)
    only[7] = 30
    n = {"mixed": COUNTS, "none": 0 * COUNTS, "equal": 0 * COUNTS + 5, "one": only}[counts]
    alone = phlox.jit(orbit)
    i, x, twice = phlox.jit(phlox.vmap(orbit))(n, STATES)
    np.testing.assert_array_equal(i, n)
    np.testing.assert_array_equal(twice, 2 * n)
    for row in [0, 3, 7, 99, 150, 199]:
        np.testing.assert_allclose(x[row], alone(n[row], STATES[row])[1], rtol=2e-3, atol=2e-3)


def test_compacted_loops_under_jvp_nested_vmap_and_branches() -> None:
    n = np.minimum(COUNTS, 6)
    alone = phlox.jit(lambda n, x: phlox.jvp(lambda x: orbit(n, x)[1], (x,), (jnp.ones(64),))[1])
    expected = np.stack([alone(k, x) for k, x in zip(n, STATES, strict=True)])
    inside = phlox.vmap(lambda n, x: phlox.jvp(lambda x: orbit(n, x)[1], (x,), (jnp.ones(64),))[1])(n, STATES)
    outside = phlox.jvp(lambda x: phlox.vmap(orbit)(n, x)[1], (STATES,), (np.ones_like(STATES),))[1]
    np.testing.assert_allclose(inside, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(outside, expected, rtol=1e-3, atol=1e-3)
    nested = phlox.vmap(phlox.vmap(orbit))(n.reshape(2, 100), STATES.reshape(2, 100, 64))
    flat = phlox.vmap(orbit)(n, STATES)
    np.testing.assert_allclose(nested[1].reshape(200, 64), flat[1], rtol=1e-3, atol=1e-3)
    choose = lambda n, x: lax.cond(n > 2, lambda: orbit(n, x)[1], lambda: x, batching="select")
    np.testing.assert_allclose(
        phlox.vmap(choose)(n, STATES), np.where(n[:, None] > 2, flat[1], STATES), rtol=1e-3, atol=1e-3
    )


def test_gradients_of_loops_in_branches():
    """Rows of a batch share the counts of their loop, and rows that take the other branch have those of its loop."""

    def settled(x):
        up = lambda y: lax.while_loop(lambda v: v < 10.0, lambda v: v * 1.5 + 0.1, y)
        down = lambda y: lax.while_loop(lambda v: v > 1.0, lambda v: jnp.sin(v) * v / 2, y)
        return lax.cond(x < 5, up, down, x)

    x = jnp.array([3.0, 17.0, 10.0, 4.0, -0.1, 30.0])
    expected = [float(phlox.grad(settled)(v)) for v in x]
    np.testing.assert_allclose(phlox.vmap(phlox.grad(settled))(x), expected, rtol=1e-5)
    np.testing.assert_allclose(phlox.grad(lambda x: phlox.vmap(settled)(x).sum())(x), expected, rtol=1e-5)
    twice = phlox.jit(phlox.vmap(phlox.vmap(phlox.grad(settled))))(x.reshape(2, 3))
    np.testing.assert_allclose(twice.ravel(), expected, rtol=1e-5)


def test_pullbacks_of_separate_loops_in_one_batch():
    f = lambda x: lax.while_loop(lambda v: v < 100.0, lambda v: v * 1.5 + jnp.sin(v), x)
    x = jnp.array([3.0, 0.5, 50.0])
    stacked = lax.map(lambda x: phlox.vjp(f, x)[1], x)  # each row has a loop of its own
    together = phlox.vmap(lambda pullback: pullback(1.0)[0])(stacked)
    np.testing.assert_allclose(together, [float(phlox.grad(f)(v)) for v in x], rtol=1e-5)


def test_a_scan_of_symbolic_length_in_a_branch():
    def f(p, x):
        total = lambda r: lax.scan(lambda c, y: (c * y + jnp.sin(c), None), 1.0, r)[0]
        return phlox.vmap(lambda q, r: lax.cond(q, total, lambda r: r.sum(), r))(p, x)

    (n,) = phlox.export.symbolic_shape("n")
    p, x = np.arange(256) % 2 == 0, np.ones((256, 5), np.float32)
    types = phlox.ShapeDtypeStruct((256,), "bool"), phlox.ShapeDtypeStruct((256, n), "float32")
    exported = phlox.export.export(phlox.jit(f))(*types)
    np.testing.assert_allclose(exported.call(p, x), f(p, x), rtol=1e-6)


def with_batching_rule(f):
    fun = phlox.custom_batching.custom_vmap(f)
    fun.def_vmap(lambda size, batched, x: (phlox.vmap(f)(x), True))
    return fun


def with_saved_residuals(f):
    fun = phlox.custom_vjp(f)
    fun.defvjp(lambda x: (f(x), f(x)), lambda y, ct: (ct * y,), optimize_remat=True)
    return fun


def solved_by(f):
    def fun(x):
        known = lax.stop_gradient(x)
        return lax.custom_linear_solve(lambda v: 2 * v, x, lambda _, b: f(b), lambda _, b: f(known) * b)

    return fun


def on_devices(f):
    mesh = phlox.make_mesh((1,), ("x",), axis_types=(phlox.sharding.AxisType.Auto,))
    return phlox.shard_map(f, mesh=mesh, in_specs=phlox.P(), out_specs=phlox.P())


@pytest.mark.parametrize("wrap", [with_saved_residuals, solved_by, on_devices])
def test_loops_in_operations_of_a_branch_end(wrap: Any) -> None:
    """Loops that would not end for the rows of the other branch, in `remat_opt` and other holders of programs."""
    fun = lambda x: lax.cond(x < 10, wrap(up), wrap(down), x)
    x = START.astype(np.float32)
    check(fun, x)
    if wrap is not on_devices:  # its loops have no derivative of their own here: 10, whatever x is
        expected = by_rows(phlox.grad(fun), x)
        for gradient in (
            phlox.vmap(phlox.grad(fun)),
            phlox.vmap(phlox.grad(phlox.checkpoint(fun))),
            phlox.grad(lambda x: phlox.vmap(fun)(x).sum()),
        ):
            np.testing.assert_allclose(gradient(x), expected, rtol=1e-5)


def with_rule_of_vjp(f):
    fun = phlox.custom_vjp(lambda x: x)
    fun.defvjp(lambda x: (x, x), lambda x, ct: (ct * f(x),))
    return fun


def with_rule_of_jvp(f):
    fun = phlox.custom_jvp(lambda x: x)
    fun.defjvp(lambda primals, tangents: (primals[0], f(primals[0]) * tangents[0]))
    return fun


def with_rule_of_transpose(f):
    linear = phlox.custom_derivatives.linear_call
    return lambda x: linear(lambda r, y: y, lambda r, ct: ct * f(r), lax.stop_gradient(x), x)


@pytest.mark.parametrize("wrap", [with_rule_of_vjp, with_rule_of_jvp, with_rule_of_transpose])
def test_loops_in_rules_of_a_branch_end(wrap: Any) -> None:
    """The function has no loop, its derivative has one."""
    fun = lambda x: lax.cond(x < 10, wrap(up), wrap(down), x)
    x = START.astype(np.float32)
    expected = by_rows(phlox.grad(fun), x)
    np.testing.assert_allclose(expected, 10)
    for gradient in (
        phlox.vmap(phlox.grad(fun)),
        phlox.grad(lambda x: phlox.vmap(fun)(x).sum()),
        phlox.jit(phlox.grad(lambda x: phlox.vmap(phlox.checkpoint(fun))(x).sum())),
    ):
        np.testing.assert_allclose(gradient(x), expected)


def test_a_loop_for_each_element_of_a_reduction_is_refused() -> None:
    x, zero = np.float32([3, 17]), np.float32(0)
    combine = lambda a, b: up(jnp.maximum(a, b))
    reductions = {
        "reduce": lambda x: lax.reduce(x, zero, combine, (0,)),
        "reduce_window": lambda x: lax.reduce_window(x, zero, combine, (2,), (1,), "VALID"),
        "apply": lambda x: x.at[jnp.arange(2)].apply(up),
    }
    for fun in reductions.values():
        with pytest.raises(phlox.errors.UnsupportedError, match="a while_loop in"):
            phlox.jit(fun)(x)


@pytest.mark.parametrize("wrap", ["linear_call", "composite", "checkpoint", "custom_vmap"])
def test_loops_in_calls_of_a_branch_end(wrap):
    """A loop that would not end for the rows of the other branch."""
    linear = phlox.custom_derivatives.linear_call
    calls = {
        "linear_call": lambda f: lambda x: linear(lambda r, y: f(r) + 0 * y, lambda r, ct: ct, x, x),
        "composite": lambda f: lax.composite(f, "phlox.to_ten"),
        "custom_vmap": with_batching_rule,
        "checkpoint": lambda f: phlox.checkpoint(f, policy=phlox.checkpoint_policies.dots_saveable),
    }
    to_ten = lambda step: lambda x: lax.while_loop(lambda v: v != 10, lambda v: v + step, x)
    up, down = calls[wrap](to_ten(1)), calls[wrap](to_ten(-1))
    rows = phlox.jit(phlox.vmap(lambda x: lax.cond(x < 10, up, down, x)))(jnp.array([3, 17, 10, -4]))
    np.testing.assert_array_equal(rows, 10)
    np.testing.assert_array_equal(phlox.vmap(lambda x: lax.cond(x < 10, up, down, x))(jnp.array([11, 12])), 10)
