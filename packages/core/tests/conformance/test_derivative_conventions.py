"""Derivatives where there is none, or more than one: jax has a convention, and it is kept.

Values, jvp, gradients and products with the Hessian, at ties, at zero, at the edges of domains, at repeated eigenvalues.
"""

import math

import jax
import mpmath
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import outcome, row
from phlox.test_util import check_grads

INF, NAN = np.inf, np.nan
NEAR = row("awkward")


def f32(*numbers):
    return np.array(numbers, np.float32)


ZEROS = f32(0.0, -0.0, 1.0, -2.0)
TIES = f32(2.0, 1.0, 2.0, 2.0, 1.0)
GRID = np.array([[1, 3, 3], [2, 2, 0], [0, 0, 0]], np.float32)
HOLES = f32(NAN, 1.0, NAN, 1.0)
EYE = np.eye(3, dtype=np.float32)
RANK2 = np.diag(f32(2, 1, 0))
RANK1 = np.outer(f32(1, 2, 3), f32(1, 0, 1)).astype(np.float32)
TWICE = np.diag(f32(2, 2, 1))


def on(path, *args, **kwargs):
    """A call of one function of the library."""
    names = path.split(".")

    def case(m, *xs):
        for name in names:
            m = getattr(m, name)
        return m(*xs, **kwargs)

    return case, args


def rule(case, *args):
    return case, args


ELEMENTS = {
    "abs at 0": on("numpy.abs", ZEROS),
    "abs at 0, complex": on("numpy.abs", np.array([0, 1j, 1], np.complex64)),
    "sign": on("numpy.sign", ZEROS),
    "sqrt at 0": on("numpy.sqrt", f32(0, 1, -1, INF)),
    "rsqrt at 0": on("lax.rsqrt", f32(0, 1, INF)),
    "cbrt at 0": on("numpy.cbrt", f32(0, 1, -1)),
    "log at 0": on("numpy.log", f32(0, 1, -1)),
    "log1p at -1": on("numpy.log1p", f32(-1, 0)),
    "reciprocal at 0": on("numpy.reciprocal", f32(0, 1)),
    "division by 0": on("numpy.divide", f32(0, 1, 1), f32(0, 0, INF)),
    "power of 0": on("numpy.power", f32(0, 0, 0, 0, 0), f32(0, 1, 2, 0.5, -1)),
    "power of negative numbers": on("numpy.power", f32(-2, -2, -1), f32(2, 3, 0.5)),
    "lax.pow of 0": on("lax.pow", f32(0, 0, 0), f32(0, 1, 2)),
    "power of 0, a number": rule(lambda m, x: [x**n for n in (0, 1, 2, 3, -1, 0.5, 0.0, 1.0, 2.0)], f32(0, 1)),
    "number to the power of 0": rule(lambda m, y: [n**y for n in (0, 1, 2.0, 0.0)], f32(0, 1, 2)),
    "integer_pow at 0": rule(lambda m, x: [m.lax.integer_pow(x, n) for n in (0, 1, 2, -1)], f32(0, 2)),
    "float_power of 0": on("numpy.float_power", f32(0, 0), f32(0, 2)),
    "power of an array of integers": on("numpy.power", f32(0, 0, 0, -1), np.array([0, 1, 2, 3])),
    "arcsin at the edge": on("numpy.arcsin", f32(1, -1, 0)),
    "arccos at the edge": on("numpy.arccos", f32(1, -1, 0)),
    "arccosh at the edge": on("numpy.arccosh", f32(1, 2)),
    "arctanh at the edge": on("numpy.arctanh", f32(1, -1, 0)),
    "arctan2 at 0": on("numpy.arctan2", f32(0, 0, 0, 1), f32(0, 1, -1, 0)),
    "hypot at 0": on("numpy.hypot", f32(0, 0, 3), f32(0, 1, 4)),
    "sinc at 0": on("numpy.sinc", f32(0, 1)),
    "logaddexp": on("numpy.logaddexp", f32(-INF, 0), f32(1, 0)),
    "logaddexp2": on("numpy.logaddexp2", f32(-INF, 0), f32(1, 0)),
    "maximum, ties": on("numpy.maximum", f32(1, 2, 0, NAN), f32(1, 1, -0.0, 1)),
    "minimum, ties": on("numpy.minimum", f32(1, 2, 0, NAN), f32(1, 1, -0.0, 1)),
    "fmax, ties": on("numpy.fmax", f32(1, 2, NAN), f32(1, 1, 1)),
    "fmin, ties": on("numpy.fmin", f32(1, 2, NAN), f32(1, 1, 1)),
    "clip at the edges": rule(lambda m, x: m.numpy.clip(x, 0.0, 1.0), f32(0, 1, 0.5, 2, -1)),
    "clip by arrays": on("numpy.clip", f32(0, 1, 2), f32(0, 0, 2), f32(1, 1, 2)),
    "clamp at the edges": on("lax.clamp", f32(0, 0, 2), f32(0, 1, 2), f32(1, 1, 2)),
    "floor, ceil, round, trunc": rule(
        lambda m, x: [m.numpy.floor(x), m.numpy.ceil(x), m.numpy.round(x), m.numpy.trunc(x)], f32(0, 1, 0.5)
    ),
    "remainder": on("numpy.remainder", f32(3, -3, 1, 0), f32(3, 2, 0, 1)),
    "fmod": on("numpy.fmod", f32(3, -3, 1, 0), f32(3, 2, 0, 1)),
    "divmod": on("numpy.divmod", f32(3, -3, 0), f32(3, 2, 1)),
    "floor_divide": on("numpy.floor_divide", f32(3, -3, 0), f32(3, 2, 1)),
    "heaviside at 0": on("numpy.heaviside", f32(0, 1, -1), f32(0.5, 0.5, 0.5)),
    "copysign at 0": on("numpy.copysign", f32(0, 1, 1), f32(1, 0, -0.0)),
    "ldexp": rule(lambda m, x: m.numpy.ldexp(x, np.array([0, 3])), f32(0, 1)),
    "frexp": rule(lambda m, x: m.numpy.frexp(x)[0], f32(0, 1, 3)),
    "modf": on("numpy.modf", f32(0, 1, -1.5)),
    "nan_to_num": on("numpy.nan_to_num", f32(NAN, INF, -INF, 1)),
    "angle at 0": on("numpy.angle", np.array([0, 1j, -1], np.complex64)),
    "exp of -inf": on("numpy.exp", f32(-INF, 0)),
    "tanh far out": on("numpy.tanh", f32(100, -INF, 0)),
    "log of complex 0": on("numpy.log", np.array([0, 1], np.complex64)),
    "sqrt of complex 0": on("numpy.sqrt", np.array([0, -1], np.complex64)),
    "lgamma at poles": on("lax.lgamma", f32(-1, 1)),
    "digamma at poles": on("lax.digamma", f32(-1, 1)),
    "erf_inv at the edge": on("lax.erf_inv", f32(1, -1, 0)),
    "bessel_i1e at 0": on("lax.bessel_i1e", f32(0, 1)),
    "igamma at 0": on("lax.igamma", f32(1, 2), f32(0, 1)),
    "spence of where": rule(lambda m, x: m.numpy.where(x > 0, m.numpy.log(x), 0.0), f32(0, 1, -1)),
    "where, nan in the branch not taken": rule(lambda m, x: m.numpy.where(x > 0, m.numpy.sqrt(x), x), f32(0, 1, -1)),
    "where, twice": rule(
        lambda m, x: m.numpy.where(x > 0, m.numpy.sqrt(m.numpy.where(x > 0, x, 1.0)), 0.0), f32(0, 1, -1)
    ),
    "select, nan in the branch not taken": rule(
        lambda m, x: m.numpy.select([x > 1, x > 0], [1 / x, m.numpy.log(x)], 0.0), f32(0, 1, 2)
    ),
    "piecewise": rule(lambda m, x: m.numpy.piecewise(x, [x < 0, x >= 0], [lambda x: -x, m.numpy.sqrt]), ZEROS),
}

REDUCTIONS = {
    "max, ties": on("numpy.max", TIES),
    "min, ties": on("numpy.min", TIES),
    "max of rows, ties": on("numpy.max", GRID, axis=1),
    "max with where": rule(lambda m, x: m.numpy.max(x, axis=0, where=GRID > 0, initial=1.0), GRID),
    "max with nan": on("numpy.max", HOLES),
    "amin of rows, ties": on("numpy.amin", GRID, axis=0),
    "ptp, ties": on("numpy.ptp", GRID, axis=0),
    "reduce_max, ties": rule(lambda m, x: m.lax.reduce_max(x, (0,)), GRID),
    "nanmax": on("numpy.nanmax", HOLES),
    "nanmin of nan": on("numpy.nanmin", f32(NAN, NAN)),
    "nansum": on("numpy.nansum", HOLES),
    "nanmean": on("numpy.nanmean", HOLES),
    "nanprod": on("numpy.nanprod", HOLES),
    "nanstd": on("numpy.nanstd", HOLES),
    "prod with a zero": on("numpy.prod", f32(0, 2, 3)),
    "prod with zeros": on("numpy.prod", GRID, axis=0),
    "std of equal numbers": on("numpy.std", f32(1, 1, 1)),
    "std of one number": on("numpy.std", f32(1)),
    "var of one number, ddof 1": on("numpy.var", f32(1), ddof=1),
    "mean of nothing": on("numpy.mean", np.zeros((0,), np.float32)),
    "sum of nothing": on("numpy.sum", np.zeros((2, 0), np.float32), axis=1),
    "median, ties": on("numpy.median", TIES),
    "quantile at an element": rule(lambda m, x: m.numpy.quantile(x, np.float32(0.5)), TIES),
    "quantile, by q": on("numpy.quantile", TIES, f32(0, 0.25, 1)),
    "percentile, nearest": rule(lambda m, x: m.numpy.percentile(x, 50.0, method="nearest"), f32(1, 2, 3, 4)),
    "sort, ties": on("numpy.sort", TIES),
    "sort of rows, ties": on("numpy.sort", GRID, axis=0),
    "sort, backwards": rule(lambda m, x: m.numpy.sort(x, descending=True), TIES),
    "sort, with nan": on("numpy.sort", HOLES),
    "sort of complex numbers": on("numpy.sort", np.array([1 + 1j, 1, 1 - 1j], np.complex64)),
    "lax.sort, several": rule(lambda m, x, y: m.lax.sort([x, y], num_keys=1), TIES, f32(1, 2, 3, 4, 5)),
    "lax.sort, two keys": rule(lambda m, x, y: m.lax.sort([x, y], num_keys=2), TIES, f32(1, 2, 3, 1, 5)),
    "sort_key_val": on("lax.sort_key_val", TIES, f32(1, 2, 3, 4, 5)),
    "argsort": rule(lambda m, x: x[m.numpy.argsort(x)] * m.numpy.argsort(x), TIES),
    "argmax": rule(lambda m, x: x[m.numpy.argmax(x)] + m.numpy.argmax(x), TIES),
    "lexsort": rule(lambda m, x, y: x[m.numpy.lexsort([x, y])], TIES, f32(1, 1, 1, 2, 2)),
    "top_k, ties": rule(lambda m, x: m.lax.top_k(x, 2)[0], TIES),
    "unique": rule(lambda m, x: m.numpy.unique(x, size=3), TIES),
    **{
        f"{name}, reverse={reverse}": rule(
            lambda m, x, n=name, r=reverse: getattr(m.lax, n)(x, axis=1, reverse=r), GRID
        )
        for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
        for reverse in (False, True)
    },
    "cumprod with zeros": on("numpy.cumprod", f32(2, 0, 3, 0)),
    "cumlogsumexp of -inf": rule(lambda m, x: m.lax.cumlogsumexp(x), f32(-INF, 1, 2)),
    "nancumsum": on("numpy.nancumsum", HOLES),
    **{
        f"norm {ord}": rule(lambda m, x, o=ord: m.numpy.linalg.norm(x, o), f32(0, 0, 2))
        for ord in (0, 1, 2, 3, -1, INF, -INF)
    },
    **{
        f"norm {ord} at 0": rule(lambda m, x, o=ord: m.numpy.linalg.norm(x, o), f32(0, 0)) for ord in (1, INF)
    },  # the others: unit/test_equal_eigenvalues.py
    **{
        f"matrix norm {ord}": rule(lambda m, x, o=ord: m.numpy.linalg.norm(x, o), GRID)
        for ord in ("fro", 1, -1, 2, INF)
    },
    "segment_max, ties": rule(lambda m, x: m.ops.segment_max(x, np.array([0, 1, 0, 0, 3]), 4), TIES),
    "segment_prod, zeros": rule(lambda m, x: m.ops.segment_prod(x, np.array([0, 0, 1]), 2), f32(0, 2, 0)),
    "at.max, ties": rule(lambda m, x, y: x.at[np.array([0, 0, 1])].max(y), f32(1, 1, 1), f32(1, 1, 2)),
    "at.min, ties": rule(lambda m, x, y: x.at[np.array([0, 1])].min(y), f32(1, 1, 1), f32(1, 2)),
    "at.set, twice": rule(lambda m, x: x.at[np.array([0, 0])].set(2.0), f32(1, 1, 1)),
    "at.power": rule(lambda m, x: x.at[0].power(2.0), f32(0, 1)),
    "at.multiply by 0": rule(
        lambda m, x, y: x.at[np.array([0, 1])].multiply(y, unique_indices=True), f32(1, 0), f32(0, 1)
    ),
    "at.get outside": rule(lambda m, x: x.at[np.array([0, 5])].get(mode="fill", fill_value=0.0), f32(1, 2)),
    "pooling, ties": rule(lambda m, x: m.lax.reduce_window(x, -INF, m.lax.max, (2, 2), (1, 1), "VALID"), GRID),
    "vander at 0": on("numpy.vander", f32(0, 1, 2)),
    "polyfit at 0": rule(lambda m, x, y: m.numpy.polyfit(x, y, 1), f32(0, 1, 2), f32(1, 2, 2)),
    "interp at a knot": rule(lambda m, x: m.numpy.interp(x, f32(0, 1, 2), f32(0, 2, 2)), f32(-1, 0, 1, 2, 3)),
    "unwrap": on("numpy.unwrap", f32(0, np.pi, 4)),
    "trapezoid": on("numpy.trapezoid", f32(0, 1, 0), f32(0, 0, 1)),
    "logsumexp of -inf": rule(lambda m, x: m.nn.logsumexp(x), f32(-INF, -INF)),
    "correlation of equal numbers": on("numpy.corrcoef", f32(1, 1, 1), f32(1, 2, 3)),
    "average with weights 0": on("numpy.average", f32(1, 2), axis=0, weights=f32(1, 0)),
}

MATRICES = {
    "eigvals, distinct": rule(lambda m, x: m.numpy.linalg.eigvals(x), np.diag(f32(3, 2, 1))),
    "cholesky, singular": on("numpy.linalg.cholesky", RANK2),
    "cholesky, not positive": on("numpy.linalg.cholesky", np.array([[1, 2], [2, 1]], np.float32)),
    "qr, rank 2": on("numpy.linalg.qr", RANK2),
    "det, rank 2": on("numpy.linalg.det", RANK2),
    "det, rank 1": on("numpy.linalg.det", RANK1),
    "det of 2 by 2, rank 1": on("numpy.linalg.det", np.ones((2, 2), np.float32)),
    "det of 4 by 4, rank 3": on("numpy.linalg.det", np.diag(f32(1, 2, 3, 0))),
    "slogdet, rank 2": on("numpy.linalg.slogdet", RANK2),
    "inv, singular": on("numpy.linalg.inv", RANK2),
    "solve, singular": on("numpy.linalg.solve", RANK2, f32(1, 1, 1)),
    "pinv, rank 2": on("numpy.linalg.pinv", RANK2),
    "pinv, wide": on("numpy.linalg.pinv", np.array([[1, 2, 3], [0, 1, 1]], np.float32)),
    "lstsq": rule(
        lambda m, x, y: m.numpy.linalg.lstsq(x, y)[0], np.array([[1, 2], [0, 1], [1, 1]], np.float32), f32(1, 2, 3)
    ),
    "matrix_power 0": rule(lambda m, x: m.numpy.linalg.matrix_power(x, 0), TWICE),
    "matrix_power -1": rule(lambda m, x: m.numpy.linalg.matrix_power(x, -1), TWICE),
    "cond of the identity": on("numpy.linalg.cond", EYE),
    "matrix_rank": on("numpy.linalg.matrix_rank", RANK2),
    "lu, rank 2": rule(lambda m, x: m.lax.linalg.lu(x)[0], TWICE + 1),
    "triangular_solve, 0 on the diagonal": rule(lambda m, a, b: m.lax.linalg.triangular_solve(a, b), RANK2, EYE),
    "multi_dot": rule(lambda m, x: m.numpy.linalg.multi_dot([x, x, x]), RANK1),
    "cross of parallel vectors": on("numpy.cross", f32(1, 2, 3), f32(2, 4, 6)),
}

TABLE = {**ELEMENTS, **REDUCTIONS, **MATRICES}

#: Where jax has nan by 0 * inf, and the derivative is a number: x**0 is 1 for every x.
MENDED = {
    *("power of 0", "power of 0, a number", "power of an array of integers", "lax.pow of 0", "float_power of 0"),
    *("vander at 0", "polyfit at 0", "igamma at 0", "cond of the identity"),
}
#: Second derivatives where the first one jumps: any number between both sides is right, and jax takes another one.
KINKS = {"bessel_i1e at 0"}
#: jax refuses to differentiate them, or twice; test_products_of_repeated_indices and test_special_values know numbers.
REFUSED_BY_JAX = {"segment_prod, zeros", "igamma at 0"}


def derivatives(m, case, args, twice):
    """Values, tangents, gradients and Hessian products of a case, as far as its arguments are of floats."""
    floats = [i for i, x in enumerate(args) if x.dtype.kind in "fc"]

    def run(*xs):
        def at(*chosen):
            filled = list(xs)
            for i, x in zip(floats, chosen, strict=True):
                filled[i] = x
            return [
                y for y in m.tree_util.tree_leaves(case(m, *filled)) if m.numpy.issubdtype(y.dtype, m.numpy.inexact)
            ]

        def total(*chosen):
            return sum((m.numpy.real(y) * judge.weights(y.shape).astype(np.float32)).sum() for y in at(*chosen))

        chosen = [xs[i] for i in floats]
        along = [m.numpy.asarray(judge.weights(np.shape(x)).astype(x.dtype)) for x in chosen]
        gradient = m.grad(total, tuple(range(len(chosen))))
        if not twice:
            return m.jvp(at, chosen, along), gradient(*chosen)
        return m.jvp(gradient, chosen, along)[1]

    return run


@pytest.mark.parametrize("twice", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("name", TABLE)
def test_convention(name, twice):
    case, args = TABLE[name]
    if twice and name in KINKS:
        assert np.isfinite(derivatives(phlox, case, args, twice)(*args)).all()
        return
    mine, theirs = (outcome(lambda m: m.jit(derivatives(m, case, args, twice))(*args), m, ()) for m in (phlox, jax))
    if isinstance(theirs[1], NotImplementedError) and mine[1] is None:
        assert name in REFUSED_BY_JAX
        return
    if name in MENDED:
        fill = lambda x, y: np.where(np.isnan(y), y, x)
        mine = phlox.tree.map(fill, mine[0], phlox.tree.map(np.asarray, jax.tree.map(np.asarray, theirs[0]))), mine[1]
    if theirs[1] is None and mine[1] is None:
        judge.compare(mine[0], theirs[0], weak=False, what=name)
        return
    assert theirs[1] is not None and mine[1] is not None, (mine[1], theirs[1])


def test_partitions_have_each_element_once():
    """jax, which picks both halves by themselves, counts one of several equal elements twice."""
    slopes = phlox.jacobian(lambda x: phlox.numpy.partition(x, 2))(TIES)
    np.testing.assert_array_equal(np.sort(np.argmax(slopes, 1)), np.arange(5))
    np.testing.assert_array_equal(np.sum(slopes, 1), np.ones(5))


def test_i0_is_smooth_at_0():
    """In jax its second derivative is zero there."""
    f = phlox.grad(phlox.grad(phlox.numpy.i0))
    np.testing.assert_allclose([f(0.0), f(1e-3)], [0.5, 0.5], rtol=1e-4)


@pytest.mark.parametrize("derivative", [phlox.jacfwd, phlox.jacrev])
def test_second_derivatives_of_powers_at_exponent_0(derivative):
    """By x, y x**(y - 1) is 0 at y = 0, and its derivative by y is 1 / x."""
    x = f32(0.5, 4.0)
    for i, j in ((0, 1), (1, 0)):
        mixed = derivative(derivative(lambda x, y: phlox.numpy.power(x, y).sum(), i), j)(x, f32(0, 0))
        np.testing.assert_allclose(mixed, np.diag(1 / x), rtol=1e-6)
    table = phlox.jacfwd(lambda x: phlox.numpy.power(x[:, None], f32(0, 1, 2)))(f32(0, 3))
    np.testing.assert_allclose(table.sum(-1), [[0, 1, 0], [0, 1, 6]], rtol=1e-6)


@pytest.mark.parametrize("f", [phlox.numpy.expm1, phlox.nn.elu, phlox.nn.celu], ids=["expm1", "elu", "celu"])
def test_derivatives_of_expm1_keep_their_digits_where_they_are_small(f):
    x = f32(-0.5, -5, -20, -80)
    np.testing.assert_allclose(phlox.vmap(phlox.grad(f))(x), np.exp(np.float64(x)), rtol=2e-6)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_cholesky_are_of_the_triangle_that_is_read(dtype):
    with phlox.enable_x64():
        matrix = phlox.numpy.array([[2, 0.3, 9], [0.7, 1.5, 9], [0.1, 0.4, 1]], dtype)
        matrix = matrix + 1j * phlox.numpy.tril(matrix, -1) if "complex" in dtype else matrix
        for f in (
            lambda a: phlox.lax.linalg.cholesky(a, symmetrize_input=False),
            lambda a: phlox.scipy.linalg.cholesky(a.T, lower=False),
        ):
            check_grads(f, (matrix,), order=2)
            gradient = phlox.grad(lambda a, f=f: phlox.numpy.real(f(a)).sum())(matrix)
            np.testing.assert_array_equal(np.triu(gradient, 1), 0)


def slopes(f, *xs):
    """The gradient, compiled as a whole: then XLA rewrites quotients of quotients."""
    return np.asarray(phlox.jit(phlox.grad(f, tuple(range(len(xs)))))(*map(np.float32, xs))).ravel()


def test_derivatives_at_corners():
    """Numbers where jax has nan, infinity or 0 because an intermediate result overflows or is 0 * inf."""
    np_ = phlox.numpy
    np.testing.assert_allclose(slopes(np_.power, 0, 0), [0, 0])
    np.testing.assert_allclose(slopes(np_.divide, 0, 1e-30), [1e30, 0], rtol=1e-6)
    np.testing.assert_allclose(slopes(np_.divide, 1e30, 1e30), [1e-30, -1e-30], rtol=1e-6)
    np.testing.assert_allclose(slopes(np_.hypot, INF, 1), [1, 0])
    np.testing.assert_allclose(slopes(np_.hypot, -INF, INF), [-np.sqrt(0.5), np.sqrt(0.5)], rtol=1e-6)
    np.testing.assert_allclose(slopes(np_.hypot, 1e-30, 1e-30), [np.sqrt(0.5)] * 2, rtol=1e-6)
    np.testing.assert_allclose(slopes(np_.arctan2, 1e30, 1e30), [5e-31, -5e-31], rtol=1e-6)
    np.testing.assert_allclose(slopes(np_.arctan2, 1e-30, 1e-30), [5e29, -5e29], rtol=1e-6)
    np.testing.assert_allclose(slopes(np_.arctan2, 1, INF), [0, 0])
    for x in (INF, -INF, 1e30):
        np.testing.assert_allclose(slopes(np_.logaddexp, x, x), [0.5, 0.5])
    np.testing.assert_allclose(phlox.grad(phlox.grad(np_.logaddexp))(1.0, 1.0), 0.25)
    np.testing.assert_allclose([phlox.grad(np_.angle)(x) for x in (0.0, -1.0, INF)], 0)


def test_derivatives_at_complex_infinities():
    for name, expected in {"abs": [1, 1j, np.sqrt(0.5) * (1 - 1j), -1], "angle": [0, 0, 0, 0]}.items():
        points = np.array([complex(INF, 1), complex(1, -INF), complex(INF, INF), complex(-INF, 2)], np.complex64)
        result = phlox.vmap(phlox.grad(getattr(phlox.numpy, name)))(points)
        np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("order", range(4))
def test_sinc_has_all_digits_of_its_derivatives_near_0(order):
    """Those of jax 0.10 have none left at 1e-4: they are a difference of numbers of the size of 1/x."""
    f = phlox.numpy.sinc
    for _ in range(order):
        f = phlox.grad(f)
    x = np.float32([0, 1e-38, 1e-6, 1e-4, 0.01, 0.3])
    terms = [(-1) ** k * np.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(20)]  # by powers of x²
    exact = np.polynomial.Polynomial([c for term in terms for c in (term, 0)]).deriv(order)
    np.testing.assert_allclose(phlox.vmap(f)(x), exact(x.astype(float)), rtol=2e-6, atol=1e-36)


@pytest.mark.parametrize("order", range(4))
def test_sinc_and_its_derivatives_at_whole_numbers_and_infinity(order):
    """The zeros are exact, and numbers beside them keep their digits: pi x is not rounded first."""
    f = phlox.numpy.sinc
    for _ in range(order):
        f = phlox.grad(f)
    x = np.float32([1, -1, 2, 3, 1000, 2**24, 1.0001, -2.9999, 1e5 + 1 / 128, 0.5, -1.5])
    with mpmath.workdps(40):
        exact = [float(mpmath.diff(mpmath.sincpi, float(v), order)) for v in x]
    result = np.asarray(phlox.vmap(f)(x))
    np.testing.assert_allclose(result, exact, rtol=4e-6, atol=1e-30)
    if order == 0:
        assert not result[:6].any() and not np.signbit(result[:6]).any()
    np.testing.assert_array_equal(phlox.vmap(f)(np.float32([INF, -INF])), 0)


# --- products of repeated indices: jax refuses them, and the derivative is that of the product written out

REPEATED = np.array([1, 0, 1, 1, 3, 7, -1])  # 7 is out of bounds and dropped
FACTORS = {
    "no zero": [2.0, 3.0, -1.5, 0.5, 4.0, 5.0, 6.0],
    "one zero": [0.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
    "two zeros": [0.0, 2.0, 0.0, 4.0, 5.0, 6.0, 7.0],
    "three zeros": [0.0, 0.0, 0.0, 0.0, 5.0, 6.0, 0.0],
}


def written_out(x, y):
    out = list(x)
    for k, i in enumerate(REPEATED):
        if i < len(out):
            out[i] = out[i] * y[k]
    return phlox.numpy.stack(out)


DERIVATIVES = {
    "forward": lambda f: phlox.jacfwd(f, (0, 1)),
    "reverse": lambda f: phlox.jacrev(f, (0, 1)),
    "second": lambda f: phlox.hessian(lambda x, y: (f(x, y) * np.arange(1.0, 6.0)).sum(), (0, 1)),
}


@pytest.mark.whole
@pytest.mark.parametrize("order", DERIVATIVES)
@pytest.mark.parametrize("factors", FACTORS)
def test_products_of_repeated_indices(factors, order):
    with phlox.enable_x64(True):
        args = phlox.numpy.array([1.0, -2.0, 3.0, 0.0, 0.5]), phlox.numpy.array(FACTORS[factors])
        derivative = DERIVATIVES[order]
        found = derivative(lambda x, y: x.at[REPEATED].multiply(y))(*args)
        for x, y in zip(phlox.tree.leaves(found), phlox.tree.leaves(derivative(written_out)(*args)), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)


@pytest.mark.whole
def test_functions_made_of_products_of_repeated_indices():
    with phlox.enable_x64(True):
        jnp = phlox.numpy
        y = jnp.asarray(np.random.default_rng(0).normal(size=(7, 2)) + 3)
        segments = np.array([0, 2, 2, 0, 1, 2, 5])
        functions = [
            lambda y: phlox.ops.segment_prod(y, segments, num_segments=4),
            lambda y: phlox.vmap(lambda c: phlox.ops.segment_prod(c, segments, num_segments=4), in_axes=1)(y),
            phlox.jit(lambda y: jnp.ones((5, 2)).at[REPEATED].multiply(y, mode="clip")),
            lambda y: jnp.ones((5, 2)).at[REPEATED, 1:].divide(y[:, 1:]),
            lambda y: jnp.full((5, 2), 1.1).at[REPEATED].power(y / 3),
            lambda y: jnp.ones((5, 2), complex).at[REPEATED].multiply(y * (1 + 2j)),
        ]
        for f in functions:
            check_grads(f, (y,), 2)
