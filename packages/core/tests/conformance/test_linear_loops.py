"""Transposes of loops, branches and calls that are linear in some of their values, with counters and others beside."""

import jax
import jax.numpy
import numpy as np
import pytest

import phlox

LOW = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
S = np.array([1.0, 2.0, -1.0, 0.5], np.float32)
EDGES = np.array([[[1, 0]], [[2, 1]], [[3, 2]]])


def tree_solve(m, s):
    """The solve of a tridiagonal system on a tree, with the edges in the carry, as jaxley has it."""

    def body(i, carry):
        s, low, edges = carry
        child, parent = edges[i][:, 0], edges[i][:, 1]
        return s.at[child].add(-s[parent] * low[child]), low, edges

    return m.lax.fori_loop(0, 3, body, (s, m.numpy.asarray(LOW), m.numpy.asarray(EDGES)))[0]


def counted(m, s):
    step = lambda c, x: ((c[0] * 2.0, c[1] + 1), c[0][c[1] % 4])
    return m.lax.scan(step, (s, 0), None, 3)


def flags_and_factors(m, s):
    """A bool, a factor that changes, and a matrix that does not; slices that are linear and others that are not."""

    def step(carry, x):
        flag, factor, matrix, y = carry
        slope, row = x
        y = matrix @ y * factor + m.numpy.where(flag, row, 2 * row)
        return (~flag, factor * slope, matrix, y), (y.sum() * slope, flag)

    start = (True, m.numpy.float32(1.5), m.numpy.asarray(np.outer(LOW, S)), s)
    rows = m.numpy.stack([s, 2 * s, m.numpy.cumsum(s)])
    (_, _, _, y), (sums, _) = m.lax.scan(step, start, (m.numpy.asarray(LOW[:3]), rows), reverse=True, unroll=2)
    return y, sums


def nested(m, s):
    def inner(i, c):
        k, y = c
        return k + 1, y * m.numpy.cos(k * 0.1) + m.numpy.roll(y, 1) * i

    def outer(c, _):
        n, y = c
        k, y = m.lax.fori_loop(0, 2, inner, (n, y))
        return (k, y), None

    return m.lax.scan(outer, (0, s), None, length=3)[0][1]


def branches(m, s):
    def step(c, _):
        i, y = c
        i, y = m.lax.switch(
            i % 3, [lambda i, y: (i + 1, 2 * y), lambda i, y: (i + 2, -y), lambda i, y: (i + 1, y)], i, y
        )
        return (i, y), m.lax.cond(i > 2, lambda y: y[::-1], lambda y: 3 * y, y)

    return m.lax.scan(step, (0, s), None, length=4)[1]


def calls(m, s):
    @m.jit
    def step(i, y):
        return i + 1, y * i

    @m.checkpoint
    def again(i, y):
        return i * 2, m.numpy.cumsum(y) / i

    i, y = step(3, s)
    i, z = again(i, y)
    return z * i, y[i % 4]


def keys(m, s):
    def step(c, _):
        key, y = c
        key, used = m.random.split(key)
        return (key, y * m.random.normal(used, y.shape)), None

    return m.lax.scan(step, (m.random.key(0), s), None, length=3)[0][1]


PROGRAMS = [tree_solve, counted, flags_and_factors, nested, branches, calls, keys]


def floats(tree):
    return [np.asarray(x) for x in jax.tree.leaves(tree) if jax.numpy.issubdtype(x.dtype, jax.numpy.inexact)]


def check(of):
    for mine, theirs in zip(floats(of(phlox)), floats(of(jax)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=1e-6)


def only_floats(m, program):
    tree = phlox.tree if m is phlox else jax.tree
    return lambda s: [x for x in tree.leaves(program(m, s)) if m.numpy.issubdtype(x.dtype, m.numpy.floating)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_transposes(program):
    def transposed(m):
        fun = only_floats(m, program)
        cotangents = [m.numpy.cos(1 + m.numpy.arange(float(x.size)).reshape(x.shape)) for x in fun(S)]
        transpose = lambda *cts: m.linear_transpose(fun, S)(list(cts))[0]
        return transpose(*cotangents), m.jit(transpose)(*cotangents), m.vmap(transpose)(*[x[None] for x in cotangents])

    check(transposed)


@pytest.mark.parametrize("program", PROGRAMS)
def test_tangents_of_custom_rules(program):
    def gradients(m):
        fun = only_floats(m, program)

        @m.custom_jvp
        def solve(s):
            return fun(s)

        @solve.defjvp
        def _(primals, tangents):
            return solve(*primals), fun(*tangents)

        loss = lambda s: sum((x**2).sum() for x in solve(s))
        in_scan = lambda s: m.lax.scan(lambda c, _: (c + solve(c)[0].sum(), c.sum()), s, None, 3)[1].sum()
        return m.grad(loss)(S), m.jit(m.grad(loss))(S), m.grad(in_scan)(S), m.hessian(loss)(S)

    check(gradients)


def test_linear_solve():
    def gradient(m):
        def solve(_, b):
            return m.lax.fori_loop(0, 2, lambda i, c: (c[0] * (i + 1.0) / (i + 1.0), c[1] + 1), (b / 2, 0))[0]

        fun = lambda s: m.lax.custom_linear_solve(lambda x: 2 * x, s, solve, transpose_solve=lambda _, b: b / 2)
        return m.grad(lambda s: (fun(s) ** 2).sum())(S), m.grad(lambda s: m.grad(lambda s: (fun(s) ** 3).sum())(s)[0])(
            S
        )

    check(gradient)


@pytest.mark.parametrize("turns", [0, 5, 100])
def test_loops_of_unknown_length(turns):
    """jax does not transpose them; their linear part has the transpose that reverse mode finds."""
    jnp = phlox.numpy

    def fun(n, s):
        turn = lambda c: (c[0] + 1, c[1], jnp.roll(c[2], 1) * c[1] / 2 + c[2] * jnp.cos(c[0]), None)
        return phlox.lax.while_loop(lambda c: c[0] < n, turn, (0, jnp.asarray(LOW), s, None), checkpoints=8)[2]

    expected = phlox.vjp(lambda s: fun(turns, s), S)[1](S)[0]
    transposed = phlox.jit(lambda n, ct: phlox.linear_transpose(lambda s: fun(n, s), S)(ct)[0])
    np.testing.assert_allclose(transposed(turns, S), expected, rtol=1e-6)
    pairs = phlox.vmap(transposed)(jnp.array([turns, 3]), jnp.stack([S, S]))
    np.testing.assert_allclose(pairs[0], expected, rtol=1e-6)


def test_conditions_are_not_linear():
    fun = lambda s: phlox.lax.while_loop(lambda c: c.sum() < 3, lambda c: c * 2, s)
    with pytest.raises(phlox.errors.DerivativeError, match="condition depends"):
        phlox.linear_transpose(fun, S)(S)
