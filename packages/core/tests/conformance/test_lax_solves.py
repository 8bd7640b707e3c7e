"""custom_root and custom_linear_solve: solutions, their derivatives of all kinds, and what is refused, as in jax."""

import functools
import re

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import agree, outcome, row

NEAR = row("solves", tolerance=2e-4)
A = (np.eye(3) * 4 + judge.rng("matrix").uniform(-1, 1, (3, 3))).astype(np.float32)
B = np.array([1.0, -2.0, 0.5], np.float32)


def both(case, *args, jit=True, what=""):
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, NEAR, what)
    if jit:
        agree(
            outcome(lambda m, *xs: m.jit(functools.partial(case, m))(*xs), phlox, args),
            theirs,
            NEAR,
            what + " under jit",
        )


def gauss(m, a, b):
    """Elimination without pivots: good enough for matrices with a strong diagonal."""
    n = len(b)
    for i in range(n):
        b = b.at[i].set(b[i] / a[i, i])
        a = a.at[i].set(a[i] / a[i, i])
        for j in set(range(n)) - {i}:
            b = b.at[j].add(-a[j, i] * b[i])
            a = a.at[j].add(-a[j, i] * a[i])
    return b


def dense(m):
    """Solves with the matrix of a linear function."""
    return lambda f, b: gauss(m, m.jacfwd(f)(m.numpy.zeros_like(b)), b)


def iterated(m):
    """Solves by steps in a while_loop, which has no derivative in reverse in JAX."""

    def solve(f, b):
        go_on = lambda carry: (carry[1] < 60) & (m.numpy.abs(f(carry[0]) - b).max() > 0)
        step = lambda carry: (carry[0] + (b - f(carry[0])) / 4.5, carry[1] + 1)
        return m.lax.while_loop(go_on, step, (m.numpy.zeros_like(b), 0))[0]

    return solve


def solution(m, solver=dense, **options):
    def x(a, b):
        return m.lax.custom_linear_solve(lambda x: a @ x, b, solver(m), solver(m), **options)

    return x


def symmetric(m, a, b):
    a = a + a.T
    return m.lax.custom_linear_solve(lambda x: a @ x, b, dense(m), symmetric=True)


def with_aux(m, a, b):
    def solve(f, b):
        x = dense(m)(f, b)
        return x, {"residual": ((f(x) - b) ** 2).sum(), "rounds": m.numpy.int32(3)}

    return m.lax.custom_linear_solve(lambda x: a @ x, b, solve, solve, has_aux=True)


def of_trees(m, a, b):
    """[[2, a], [0, 4]] in two leaves."""
    apply = lambda t: {"x": 2 * t["x"] + a @ t["y"], "y": 4 * t["y"]}
    solve = lambda f, b: {"y": b["y"] / 4, "x": (b["x"] - a @ b["y"] / 4) / 2}
    back = lambda f, c: {"x": c["x"] / 2, "y": (c["y"] - a.T @ c["x"] / 2) / 4}
    return m.lax.custom_linear_solve(apply, {"x": b, "y": b[::-1]}, solve, back)


SYSTEMS = {
    "dense": lambda m: solution(m),
    "iterated": lambda m: solution(m, iterated),
    "symmetric": lambda m: functools.partial(symmetric, m),
    "aux": lambda m: lambda a, b: with_aux(m, a, b),
    "trees": lambda m: functools.partial(of_trees, m),
}


def weighted(m, x):
    return sum((leaf * np.arange(1.0, 4.0, dtype=np.float32)).sum() for leaf in m.tree.leaves(x) if leaf.ndim)


@pytest.mark.parametrize("name", SYSTEMS)
def test_linear_systems(name):
    f = SYSTEMS[name]
    total = lambda m: lambda a, b: weighted(m, f(m)(a, b))
    both(lambda m, a, b: f(m)(a, b), A, B, what="value")
    both(lambda m, a, b: m.jvp(f(m), (a, b), (a[::-1], b[::-1])), A, B, what="jvp")
    both(lambda m, a, b: m.jvp(lambda b: f(m)(a, b), (b,), (b[::-1],)), A, B, what="jvp of b")
    both(lambda m, a, b: m.jvp(lambda a: f(m)(a, b), (a,), (a[::-1],)), A, B, what="jvp of the matrix")
    both(lambda m, a, b: m.grad(total(m), (0, 1))(a, b), A, B, what="grad")
    if name != "trees":  # where jax fails on leaves without derivative, see below
        both(lambda m, a, b: m.jvp(m.grad(total(m)), (a, b), (a, b)), A, B, what="forward over reverse")
        both(lambda m, a, b: m.grad(lambda a: (m.grad(total(m))(a, b) ** 2).sum())(a), A, B, what="reverse twice")


def test_second_derivatives_of_trees():
    """Compared with what jax makes of the solution itself."""

    def direct(m, a, b):
        return {"y": b[::-1] / 4, "x": (b - a @ b[::-1] / 4) / 2}

    f = lambda m: functools.partial(of_trees if m is phlox else direct, m)
    total = lambda m: lambda a, b: (weighted(m, f(m)(a, b)) ** 2).sum()
    both(lambda m, a, b: m.jvp(m.grad(total(m), (0, 1)), (a, b), (a, b)), A, B, what="forward over reverse")
    both(lambda m, a, b: m.grad(lambda a: (m.grad(total(m))(a, b) ** 2).sum())(a), A, B, what="reverse twice")


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("in_axes", [(0, 0), (None, 0), (0, None), (2, 1)])
def test_batches_of_systems(name, in_axes):
    f = SYSTEMS[name]
    a, b = (x if d is None else np.stack([x, x * 1.25], d) for x, d in zip((A, B), in_axes, strict=True))
    both(lambda m, a, b: m.vmap(f(m), in_axes)(a, b), a, b, what="vmap")
    total = lambda m: lambda a, b: weighted(m, f(m)(a, b))
    both(lambda m, a, b: m.vmap(m.grad(total(m), (0, 1)), in_axes)(a, b), a, b, what="vmap of grad")
    both(
        lambda m, a, b: m.grad(lambda a, b: m.vmap(total(m), in_axes)(a, b).sum(), (0, 1))(a, b),
        a,
        b,
        what="grad of vmap",
    )


def test_without_a_solver_for_the_transpose():
    def f(m):
        return lambda a, b: m.lax.custom_linear_solve(lambda x: a @ x, b, dense(m)).sum()

    both(lambda m, a, b: f(m)(a, b), A, B)
    both(lambda m, a, b: m.jvp(f(m), (a, b), (a, b)), A, B)
    both(lambda m, a, b: m.vmap(f(m), (None, 0))(a, m.numpy.stack([b, b])), A, B)
    both(lambda m, a, b: m.grad(f(m))(a, b), A, B, jit=False)


def test_the_program():
    for m in (phlox, jax):
        eqns = m.make_jaxpr(solution(m))(A, B).eqns
        assert [e.primitive.name for e in eqns] == ["custom_linear_solve"]
        jaxprs = eqns[0].params["jaxprs"]
        assert jaxprs._fields == ("matvec", "vecmat", "solve", "transpose_solve")
        assert tuple(eqns[0].params["const_lengths"])[:2] == (1, 1)


def wrong(m, role, result, **options):
    """A system where the function of one role returns `result(x)`."""
    roles = {"matvec": lambda x: 2 * x, "solve": lambda f, b: b / 2, "transpose_solve": lambda f, b: b / 2}
    inner = roles[role]
    roles[role] = lambda *args: result(m, inner(*args))
    return m.lax.custom_linear_solve(roles["matvec"], B, roles["solve"], roles["transpose_solve"], **options)


RESULTS = {
    "structure": lambda m, x: (x, x),
    "shape": lambda m, x: x[1:],
    "dtype": lambda m, x: x.astype("int32"),
    "no array": lambda m, x: "x",
}


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("role", ["matvec", "solve", "transpose_solve"])
def test_wrong_functions_are_named(role, result):
    if result != "dtype":  # jax takes it, and fails later
        both(lambda m: wrong(m, role, RESULTS[result]), jit=False)
    with pytest.raises(phlox.errors.PhloxError) as caught:
        wrong(phlox, role, RESULTS[result])
    assert result == "no array" or re.search(rf"{role}\(\) output \w+ (is|are) unlike b", str(caught.value))


def test_aux_that_is_missing_is_named():
    for role in ("solve", "transpose_solve"):
        both(lambda m, role=role: wrong(m, role, lambda m, x: x, has_aux=True), jit=False)
        both(lambda m, role=role: wrong(m, role, lambda m, x: (x, x, x), has_aux=True), jit=False)
    with pytest.raises(phlox.errors.TreeError, match="solve must return a pair"):
        wrong(phlox, "solve", lambda m, x: x, has_aux=True)


def test_a_transpose_solve_that_is_missing_is_named():
    for m in (jax, phlox):
        with pytest.raises(TypeError, match="transpose_solve required"):
            m.grad(lambda b, m=m: m.lax.custom_linear_solve(lambda x: 2 * x, b, lambda f, b: b / 2).sum())(B)


def test_a_matrix_that_is_not_linear():
    with pytest.raises(phlox.errors.DerivativeError, match="not linear"):
        phlox.lax.custom_linear_solve(lambda x: x * x, B, dense(phlox), dense(phlox))


# --- custom_root ----------------------------------------------------------------------------------------


def newton(m):
    """A number where a function is zero, by steps in a loop."""

    def solve(f, x):
        return m.lax.fori_loop(0, 20, lambda _, x: x - f(x) / m.grad(f)(x), x)

    return solve


def cube_root(m):
    return lambda a: m.lax.custom_root(lambda x: x**3 - a, 1.0, newton(m), lambda g, y: y / g(1.0))


def several(m, a, b):
    """x with A x + tanh(x) = b."""

    def f(x):
        return a @ x + m.numpy.tanh(x) - b

    def solve(f, x):
        def step(_, x):
            return x - gauss(m, m.jacfwd(f)(x), f(x))

        return m.lax.fori_loop(0, 10, step, x)

    return m.lax.custom_root(f, m.numpy.zeros_like(b), solve, lambda g, y: gauss(m, m.jacfwd(g)(y), y))


def root_with_aux(m):
    def solve(f, x):
        x = newton(m)(f, x)
        return x, {"error": f(x), "rounds": m.numpy.float32(20)}

    return lambda a: m.lax.custom_root(lambda x: x**3 - a, 1.0, solve, lambda g, y: y / g(1.0), has_aux=True)


def root_of_trees(m, a, b):
    f = lambda t: {"x": t["x"] * 2 - a.sum(), "y": t["y"] * b.sum() - t["x"]}
    solve = lambda f, t: {"x": a.sum() / 2, "y": a.sum() / 2 / b.sum()}

    def tangent_solve(g, t):
        x = t["x"] / 2
        return {"x": x, "y": (t["y"] + x) / b.sum()}

    return m.lax.custom_root(f, {"x": 1.0, "y": 1.0}, solve, tangent_solve)


def test_roots_of_one_number():
    for f in (cube_root, root_with_aux):
        value = lambda m, f=f: (lambda a: f(m)(a)) if f is cube_root else (lambda a: f(m)(a)[0])
        both(lambda m, a, f=f: f(m)(a), 5.0)
        both(lambda m, a, f=f: m.jvp(f(m), (a,), (2.0,)), 5.0)
        both(lambda m, a, v=value: m.grad(v(m))(a), 5.0)
        both(lambda m, a, v=value: m.grad(m.grad(v(m)))(a), 5.0)
        both(lambda m, a, v=value: m.grad(m.grad(m.grad(v(m))))(a), 5.0, jit=False)
        both(lambda m, a, v=value: m.vmap(m.grad(v(m)))(a), np.arange(1.0, 4.0, dtype=np.float32))
        both(lambda m, a, v=value: m.grad(lambda a: m.vmap(v(m))(a).sum())(a), np.arange(1.0, 4.0, dtype=np.float32))


def test_roots_of_systems():
    total = lambda m: lambda a, b: (several(m, a, b) * np.arange(1.0, 4.0, dtype=np.float32)).sum()
    both(lambda m, a, b: several(m, a, b), A, B)
    both(lambda m, a, b: m.jvp(functools.partial(several, m), (a, b), (a, b)), A, B)
    both(lambda m, a, b: m.grad(total(m), (0, 1))(a, b), A, B)
    both(lambda m, a, b: m.vmap(m.grad(total(m)), (None, 0))(a, b), A, np.stack([B, B * 2]))
    trees = lambda m: lambda a, b: root_of_trees(m, a, b)["y"]
    both(lambda m, a, b: root_of_trees(m, a, b), A, B)
    both(lambda m, a, b: m.grad(trees(m), (0, 1))(a, b), A, B)


def test_a_guess_that_is_an_integer():
    both(lambda m, a: m.lax.custom_root(lambda x: x - a, 0, lambda f, x: a * 1, lambda g, y: y), np.float32(5))


def wrong_root(m, role, result, **options):
    roles = {"f": lambda x: x - 1, "solve": lambda f, x: x, "tangent_solve": lambda g, y: y}
    inner = roles[role]
    roles[role] = lambda *args: result(m, inner(*args))
    return m.lax.custom_root(roles["f"], B, roles["solve"], roles["tangent_solve"], **options)


@pytest.mark.parametrize("result", ["structure", "shape", "no array"])
@pytest.mark.parametrize("role", ["f", "solve", "tangent_solve"])
def test_wrong_functions_of_roots_are_named(role, result):
    if result != "shape":  # jax takes it
        both(lambda m: wrong_root(m, role, RESULTS[result]), jit=False)
    with pytest.raises(phlox.errors.PhloxError) as caught:
        wrong_root(phlox, role, RESULTS[result])
    assert result == "no array" or re.search(rf"{role}\(\) output \w+ (is|are) unlike init", str(caught.value))
    both(lambda m: wrong_root(m, "solve", lambda m, x: x, has_aux=True), jit=False)
