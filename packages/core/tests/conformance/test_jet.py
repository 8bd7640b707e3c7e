"""Taylor mode: as jax's where jax has rules, as nested jvp where it has none; and how much it computes."""

import functools

import jax
import jax.experimental.jet
import numpy as np
import pytest

import phlox
import phlox.experimental.jet
from conformance.harness import agree, outcome, row

NEAR = row("jet", tolerance=2e-4)
X = np.array([0.3, 0.7, 0.45], np.float32)
SERIES = [np.array(s, np.float32) for s in ([1.0, 0.5, -0.4], [0.2, -0.3, 0.6], [0.1, 0.4, -0.2], [-0.2, 0.3, 0.5])]
M = np.array([[0.5, -1.0, 0.3], [0.2, 0.8, -0.6], [1.0, 0.1, 0.4]], np.float32)


def nested(f, x, series, order):
    """Derivatives in t of f(x(t)), by jvp in jvp."""

    def path(t):
        powers = [t**k / float(np.prod(range(1, k + 1))) for k in range(1, order + 1)]
        return f(x + sum(p * s for p, s in zip(powers, series, strict=True)))

    derivative, found = path, []
    for _ in range(order):
        derivative = (lambda g: lambda t: phlox.jvp(g, (t,), (1.0,))[1])(derivative)
        found.append(derivative(0.0))
    return found


def run(m, f, *points):
    """Derivatives up to the fourth; x runs along SERIES, a second argument along the same turned round."""
    jet = m.experimental.jet.jet
    return jet(functools.partial(f, m), points or (X,), [SERIES, SERIES[::-1]][: len(points) or 1])


ELEMENTWISE = {
    name: (lambda name: lambda m, x: getattr(m.numpy, name)(x))(name)
    for name in [
        "sin",
        "cos",
        "exp",
        "log",
        "tanh",
        "sqrt",
        "sinh",
        "cosh",
        "arcsinh",
        "square",
        "reciprocal",
        "expm1",
        "log1p",
        "negative",
        "floor",
        "sign",
        "abs",
    ]
}
FUNCTIONS = {
    **ELEMENTWISE,
    "acosh": lambda m, x: m.numpy.arccosh(x + 2),
    "atanh": lambda m, x: m.numpy.arctanh(x),
    "rsqrt": lambda m, x: m.lax.rsqrt(x),
    "logistic": lambda m, x: m.nn.sigmoid(x),
    "erf": lambda m, x: m.lax.erf(x),
    "erfc": lambda m, x: m.lax.erfc(x),
    "erf_inv": lambda m, x: m.lax.erf_inv(x),
    "integer powers": lambda m, x: x**3 + x**-2 + m.lax.integer_pow(x, 0),
    "power": lambda m, x: x**2.5,
    "power of a constant": lambda m, x: 2.0**x,
    "product": lambda m, x: x * m.numpy.sin(x),
    "quotient": lambda m, x: m.numpy.sin(x) / (1 + x * x),
    "reciprocal of a sum": lambda m, x: 3 / x.sum(),
    "matrix": lambda m, x: m.numpy.tanh(M @ x) @ x,
    "batched product": lambda m, x: m.numpy.einsum("ij,ij->i", m.numpy.outer(x, x), M),
    "sum": lambda m, x: (x * x).sum(),
    "mean": lambda m, x: m.numpy.exp(x).mean(),
    "max": lambda m, x: m.numpy.sin(x * 2).max(),
    "min": lambda m, x: m.numpy.sin(x * 2).min(),
    "maximum": lambda m, x: m.numpy.maximum(x, x[::-1] * 1.5),
    "maximum of equals": lambda m, x: m.numpy.maximum(x * x, x * x),
    "cumsum": lambda m, x: m.numpy.cumsum(x * x),
    "cumprod": lambda m, x: m.numpy.cumprod(x),
    "cummax": lambda m, x: m.lax.cummax(x * x),
    "where": lambda m, x: m.numpy.where(x > 0.4, x * x, m.numpy.sin(x)),
    "shapes": lambda m, x: m.numpy.pad(m.numpy.concatenate([x, x[::-1] * 2]).reshape(2, 3).T, 1).sum(0),
    "indices": lambda m, x: (x * x)[np.array([2, 0, 1, 1])],
    "dynamic slice": lambda m, x: m.lax.dynamic_slice(x * x, (1,), (2,)),
    "dynamic update": lambda m, x: m.lax.dynamic_update_slice(M * x[0], x[None] ** 2, (1, 0)),
    "scatter-add": lambda m, x: m.numpy.zeros(3).at[np.array([0, 2, 2])].add(x * x),
    "stop_gradient": lambda m, x: m.lax.stop_gradient(x) * x,
    "comparison": lambda m, x: (x > 0.4) * x,
    "constant": lambda m, x: m.numpy.ones(2),
    "jit": lambda m, x: m.jit(lambda x: m.numpy.sin(x) * x)(x),
    "tree": lambda m, x: {"a": m.numpy.sin(x), "b": (x.sum(), x * 0 + 1)},
    "softmax": lambda m, x: m.nn.softmax(x * 2),
    "network": lambda m, x: (m.numpy.tanh(m.numpy.tanh(x @ M) @ M.T) ** 2).sum(),
    "loop of Python": lambda m, x: functools.reduce(lambda y, _: m.numpy.sin(y) + y * 0.5, range(40), x),
}
#: Where jax has no rule, or one that fails.
NO_RULE_IN_JAX = {
    "minimum": lambda m, x: m.numpy.minimum(x, 0.5),
    "clip": lambda m, x: m.numpy.clip(x * x, 0.1, 0.4),
    "custom_jvp": lambda m, x: m.nn.relu(x - 0.4) * x,
    "arctan": lambda m, x: m.numpy.arctan(x),
    "arcsin": lambda m, x: m.numpy.arcsin(x),
    "arccos": lambda m, x: m.numpy.arccos(x),
    "tan": lambda m, x: m.numpy.tan(x),
    "cbrt": lambda m, x: m.numpy.cbrt(x),
    "prod": lambda m, x: m.numpy.prod(x),
    "sort": lambda m, x: m.numpy.sort(m.numpy.sin(3 * x)),
    "scan": lambda m, x: m.lax.scan(lambda c, a: (c * a + m.numpy.sin(c), c), x[0], x),
    "while": lambda m, x: m.lax.while_loop(lambda c: c[1] < 3, lambda c: (m.numpy.sin(c[0]) + x, c[1] + 1), (x, 0))[0],
    "cond": lambda m, x: m.lax.cond(x[0] > 0, m.numpy.sin, m.numpy.cos, x),
    "logsumexp": lambda m, x: m.nn.logsumexp(x),
    "at zero": lambda m, x: (x - X) ** 2.0,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_like_jax(name):
    f = FUNCTIONS[name]
    theirs = outcome(lambda m: run(m, f), jax, ())
    agree(outcome(lambda m: run(m, f), phlox, ()), theirs, NEAR, name, weak=False)
    agree(outcome(lambda m: m.jit(lambda: run(m, f))(), phlox, ()), theirs, NEAR, name + " under jit", weak=False)


def test_bools_are_constants():
    yes, terms = np.array([True, False, True]), [np.ones(3, np.float32)] * 2
    x, y = (np.linspace(1, 2, 3, dtype=np.float32) * k for k in (1, 3))
    run = lambda m: m.experimental.jet.jet(m.numpy.where, (yes, x, y), (terms, terms, [y, x]))
    agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, "where")
    for j in (phlox.experimental.jet, jax.experimental.jet):
        assert j.jet(lambda x: 2.0, (x,), (terms,))[1] is not j.zero_series


@pytest.mark.parametrize("name", {**FUNCTIONS, **NO_RULE_IN_JAX})
def test_like_nested_jvp(name):
    f = functools.partial({**FUNCTIONS, **NO_RULE_IN_JAX}[name], phlox)
    out, series = phlox.experimental.jet.jet(f, (X,), (SERIES[:3],))
    expected = nested(f, X, SERIES[:3], 3)
    for x, y in zip(phlox.tree.leaves(out), phlox.tree.leaves(f(X)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)
    series = phlox.tree.leaves(series, is_leaf=lambda x: isinstance(x, list))
    for terms, *derivatives in zip(series, *map(phlox.tree.leaves, expected), strict=True):
        for term, derivative in zip(terms, derivatives, strict=True):
            np.testing.assert_allclose(term, derivative, rtol=2e-3, atol=2e-3)


def test_two_arguments():
    for f in (
        lambda m, x, y: x * y,
        lambda m, x, y: m.numpy.sin(x) / y,
        lambda m, x, y: x**y,
        lambda m, x, y: m.numpy.arctan2(x, y),
        lambda m, x, y: m.numpy.outer(x, y) @ (x + y),
        lambda m, x, y: m.numpy.maximum(x, y),
        lambda m, x, y: m.lax.rem(x, y),
        lambda m, x, y: m.lax.clamp(0 * x + 0.2, x * y, 0 * x + 0.5),
    ):
        mine, theirs = (run(m, f, X, X[::-1].copy() + 1) for m in (phlox, jax))
        agree((mine, None), (theirs, None), NEAR, "two arguments", weak=False)


def test_scaling():
    f = lambda m: lambda x: m.numpy.exp(m.numpy.sin(x))
    terms = ([0.5, 0.25, 0.125],)
    for m in (phlox, jax):
        j = m.experimental.jet
        value, derivatives = j.jet(f(m), (0.3,), terms)
        scaled = [t / j.fact(k) for k, t in enumerate(terms[0], 1)]
        again, coefficients = j.jet(f(m), (0.3,), (scaled,), factorial_scaled=False)
        _, same = j.jet2(f(m), (0.3,), (scaled,))
        np.testing.assert_allclose(value, again, rtol=1e-6)
        np.testing.assert_allclose(derivatives, [c * j.fact(k) for k, c in enumerate(coefficients, 1)], rtol=1e-5)
        np.testing.assert_allclose(coefficients, same, rtol=1e-6)
    agree(
        outcome(lambda m: m.experimental.jet.jet(f(m), (0.3,), terms), phlox, ()),
        outcome(lambda m: m.experimental.jet.jet(f(m), (0.3,), terms), jax, ()),
        NEAR,
        "scaling",
        weak=False,
    )


def test_with_other_transformations():
    def third(m):
        return lambda x: m.experimental.jet.jet(lambda y: m.numpy.sin(y) * y, (x,), ((1.0, 0.0, 0.0),))[1][2]

    point = np.float32(0.7)
    for case in (
        lambda m: third(m)(point),
        lambda m: m.jit(third(m))(point),
        lambda m: m.grad(third(m))(point),
        lambda m: m.vmap(third(m))(X),
        lambda m: m.jvp(third(m), (point,), (point,)),
        lambda m: m.vmap(m.grad(third(m)))(X),
        lambda m: m.experimental.jet.jet(third(m), (point,), ((point, point),)),
    ):
        agree(outcome(case, phlox, ()), outcome(case, jax, ()), NEAR, "composed", weak=False)
    inside = lambda x: phlox.vmap(phlox.grad(lambda y: phlox.numpy.sin(y) ** 3))(x)
    found = phlox.experimental.jet.jet(inside, (X,), (SERIES[:2],))[1]
    np.testing.assert_allclose(found, nested(inside, X, SERIES[:2], 2), rtol=1e-4)


def test_derivatives_of_tanh_in_one_pass():
    point, f, expected = 0.7, phlox.numpy.tanh, []
    for _ in range(5):
        f = phlox.grad(f)
        expected.append(float(f(point)))
    _, found = phlox.experimental.jet.jet(phlox.numpy.tanh, (point,), ((1.0, 0.0, 0.0, 0.0, 0.0),))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("name", ["sin", "tanh", "exp", "log", "sqrt", "quotient", "power", "network"])
def test_the_work_grows_with_the_square_of_the_order(name):
    def size(m, order):
        f = functools.partial(FUNCTIONS[name], m)
        jet = lambda x: m.experimental.jet.jet(f, (x,), ([x] * order,))
        return len(m.make_jaxpr(jet)(X).eqns)

    sizes = [size(phlox, k) for k in (4, 8, 16)]
    growth = (
        8 if name == "power" else 4.5
    )  # with the cube: powers go by their exponents, so that they are right at 0 too
    assert sizes[1] < growth * sizes[0] and sizes[2] < growth * sizes[1], sizes
    assert size(phlox, 8) <= size(jax, 8)


def test_a_missing_rule_is_named():
    with pytest.raises(phlox.errors.MissingRuleError, match="zeta"):
        phlox.experimental.jet.jet(lambda x: phlox.lax.zeta(x, 2.0), (3.0,), ((1.0,),))


REFUSED = {
    "lengths": lambda m: m.experimental.jet.jet(lambda x, y: x * y, (1.0, 2.0), ((1.0,), (1.0, 2.0))),
    "trees": lambda m: m.experimental.jet.jet(lambda x: x, ([1.0, 2.0],), ((1.0,),)),
    "a tree among the terms": lambda m: m.experimental.jet.jet(lambda x: x, (1.0,), (([1.0],),)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    agree(outcome(REFUSED[name], phlox, ()), outcome(REFUSED[name], jax, ()), NEAR, name)


def test_what_jax_finds_out_late_or_never():
    jet = phlox.experimental.jet.jet
    with pytest.raises(phlox.errors.ShapeError, match=r"term 2 of argument x has type f32\[2\]"):
        jet(lambda x: x, (X,), ((X, X[:2]),))
    with pytest.raises(phlox.errors.DerivativeError, match="argument n has type i32"):
        jet(lambda n: n * 2, (1,), ((1.0,),))
    with pytest.raises(phlox.errors.OptionError, match="2 primals"):
        jet(lambda x, y: x, (1.0, 2.0), ((1.0,),))
