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
from phlox import lax
from phlox import numpy as jnp


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
from phlox import lax, numpy as jnp

def to_ten(x):
    up = lambda y: lax.while_loop(lambda v: v != 10, lambda v: v + 1, y)
    down = lambda y: lax.while_loop(lambda v: v != 10, lambda v: v - 1, y)
    return lax.cond(x < 10, up, down, x)

print(phlox.vmap(to_ten)(jnp.array([3, 17, 10, -4])).tolist())
"""


def test_one_sided_loops_of_jax_issue_2947_end() -> None:
    # In a process of its own: nothing interrupts a compiled loop that does not end.
    run = subprocess.run([sys.executable, "-c", ONE_SIDED], env=ENVIRONMENT, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == "[10, 10, 10, 10]".split()
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
    branches = [lambda x, k=k: lax.while_loop(lambda v: v % 5 != k, lambda v: v + 5 if k == 9 else v + 1, x) for k in range(5)]
    branches.append(lambda x: lax.while_loop(lambda v: v != 0, lambda v: v - 1, x))
    index = np.array([0, 1, 2, 3, 4, 5, 5], np.int32)
    check(lambda i, x: lax.switch(i, branches, x), index, np.array([3, 1, 4, 1, 5, 9, 2], np.int32))


def test_nested_vmap_ends() -> None:
    grid = np.arange(12, dtype=np.int32).reshape(3, 4) * 2
    expected = np.full((3, 4), 10)
    np.testing.assert_array_equal(phlox.vmap(phlox.vmap(to_ten))(grid), expected)
    shifted = phlox.vmap(lambda a: phlox.vmap(lambda b: to_ten(a + b))(jnp.arange(4)))(np.array([2, 9, 20]))
    np.testing.assert_array_equal(shifted, expected)
    one = phlox.vmap(lambda a: phlox.vmap(lambda p: lax.cond(p, up, down, a))(jnp.array([True, True])))(np.array([1, 2]))
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
