"""Filters of phlox.scipy.ndimage, splines and quadrature, which jax has not: beside SciPy's in 64 bits."""

import functools

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.ndimage

import judge
import phlox
from phlox.scipy import integrate, interpolate, ndimage

MODES = ["reflect", "mirror", "nearest", "wrap", "constant"]


def drawn(*shape, dtype="float64", low=-3.0, high=3.0):
    return judge.array(judge.rng("filters", shape, dtype), shape, "float32", low, high).astype(dtype)


X = drawn(5, 7)
FILTERS = [
    ("correlate", (X, drawn(3, 3)), {}),
    ("correlate", (X, drawn(2, 4)), {"origin": (0, -1)}),
    ("convolve", (X, drawn(3, 2)), {}),
    ("convolve", (X, drawn(4, 3)), {"origin": 1, "cval": 2.0}),
    ("convolve", (drawn(3, 4, 5), drawn(2, 3, 2)), {}),
    ("correlate1d", (X, drawn(4)), {"axis": 0, "cval": 1.0}),
    ("convolve1d", (X, drawn(4)), {"origin": 1}),
    ("convolve1d", (X, drawn(3)), {"axis": 0}),
    ("gaussian_filter1d", (X, 1.2), {"cval": 0.5}),
    ("gaussian_filter1d", (X, 0.7), {"order": 1, "axis": 0}),
    ("gaussian_filter1d", (X, 0.9), {"order": 3}),
    ("gaussian_filter", (X, 0.8), {}),
    ("gaussian_filter", (X, (0.8, 0.5)), {"order": (1, 2), "truncate": 3.0}),
    ("gaussian_filter", (X, 1.0), {"radius": 2, "axes": (1,)}),
    ("gaussian_filter", (X, np.float64(0)), {}),
    ("gaussian_filter", (X, np.array([0.0, 1.0])), {}),
    ("uniform_filter1d", (X, 4), {"origin": -1}),
    ("uniform_filter", (X, 3), {}),
    ("uniform_filter", (X, (2, 5)), {"cval": 1.5}),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "args", "options"), FILTERS)
def test_filters(name, args, options, mode):
    wanted = getattr(scipy.ndimage, name)(*args, mode=mode, **options)
    function = functools.partial(getattr(ndimage, name), mode=mode, **options)
    with phlox.enable_x64(True):
        found = function(*args)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(function(args[0].astype("float32"), *args[1:]), wanted, rtol=1e-4, atol=1e-4)


def test_filters_of_integers():
    """The fraction is dropped."""
    x = np.int32([[1, 5, 2, 8], [3, 9, 4, 7]])
    np.testing.assert_array_equal(ndimage.uniform_filter1d(x, 3), scipy.ndimage.uniform_filter1d(x, 3))
    np.testing.assert_array_equal(
        ndimage.correlate1d(x, np.array([1, 2])), scipy.ndimage.correlate1d(x, np.array([1, 2]))
    )
    np.testing.assert_array_equal(
        ndimage.convolve(x, np.array([[1, 2], [0, 1]])), scipy.ndimage.convolve(x, np.array([[1, 2], [0, 1]]))
    )


@pytest.mark.parametrize("name", ["correlate", "convolve", "correlate1d", "convolve1d"])
@pytest.mark.parametrize("is_complex", [False, True])
def test_filters_with_complex_weights(name, is_complex):
    """They make the result complex, and a correlation conjugates them."""
    x = drawn(5, 4) + (1j * drawn(5, 4) if is_complex else 0)
    weights = drawn(*((3, 2) if name in ("correlate", "convolve") else (3,))) * (1 - 2j)
    with phlox.enable_x64(True):
        result = getattr(ndimage, name)(x, weights)
        assert result.dtype == np.complex128
        np.testing.assert_allclose(result, getattr(scipy.ndimage, name)(x, weights), rtol=1e-12)
        assert getattr(ndimage, name)(x.real.astype(np.float32), weights.astype(np.complex64)).dtype == np.complex64


@pytest.mark.parametrize("mode", MODES)
def test_filters_of_an_array_without_elements(mode):
    x = np.zeros((2, 0), np.float32)
    for result in (ndimage.correlate(x, np.ones((2, 2)), mode=mode), ndimage.uniform_filter(x, 3, mode=mode)):
        assert (result.shape, result.dtype) == ((2, 0), np.float32)


def test_filters_of_64_bit_integers_are_computed_in_float64():
    with phlox.enable_x64(True):
        x = np.array([2**40 + 1, 3, 5])
        np.testing.assert_array_equal(
            ndimage.correlate1d(x, np.array([1, 0, 0])), scipy.ndimage.correlate1d(x, [1, 0, 0])
        )


def beside_differences(function, *args, h=1e-4, tolerance=1e-6):
    """Gradients of a weighted sum by all arguments, eagerly and of a batch, beside differences in 64 bits."""
    with phlox.enable_x64(True):
        weights = judge.weights(np.shape(function(*args))).astype(float)
        total = lambda *xs: (function(*xs) * weights).sum()
        slopes = phlox.jit(phlox.grad(total, tuple(range(len(args)))))(*args)
        for n, (slope, x) in enumerate(zip(slopes, args, strict=True)):
            move = judge.weights(np.shape(x)).astype(float)
            at = lambda d, n=n, x=x, move=move: float(total(*args[:n], x + d * move, *args[n + 1 :]))
            difference = (8 * (at(h) - at(-h)) - at(2 * h) + at(-2 * h)) / (12 * h)
            assert float((slope * move).sum()) == pytest.approx(difference, rel=tolerance, abs=tolerance)
        stacked = [np.stack([x, x + 0.01]) for x in args]
        batch = phlox.jit(phlox.vmap(function))(*stacked)
        for i in range(2):
            single = function(*[x[i] for x in stacked])
            np.testing.assert_allclose(batch[i], single, rtol=1e-12, atol=1e-12)


def test_filters_have_derivatives_and_batches():
    beside_differences(lambda x, w: ndimage.convolve(x, w, mode="mirror"), X, drawn(3, 2))
    beside_differences(lambda x, w: ndimage.correlate1d(x, w, 0), X, drawn(3))
    beside_differences(lambda x, s: ndimage.gaussian_filter(x, s, radius=3), X, np.array(0.8))
    beside_differences(lambda x: ndimage.uniform_filter(x), X)


ONE, TWO = np.ones(1), np.arange(2.0)
WRONG = {
    "mode": (lambda: ndimage.correlate(X, X, mode="odd"), "OptionError"),
    "origin": (lambda: ndimage.convolve1d(X, TWO, origin=2), "OptionError"),
    "origins": (lambda: ndimage.convolve(X, X, origin=(0, 0, 0)), "ShapeError"),
    "weights": (lambda: ndimage.convolve(X, ONE), "ShapeError"),
    "a matrix of weights": (lambda: ndimage.convolve1d(X, X), "ShapeError"),
    "axis": (lambda: ndimage.convolve1d(X, ONE, axis=2), "AxisError"),
    "order": (lambda: ndimage.gaussian_filter1d(X, 1.0, order=-1), "OptionError"),
    "size": (lambda: ndimage.uniform_filter1d(X, -1), "OptionError"),
    "an axis twice": (lambda: ndimage.gaussian_filter(X, 1.0, axes=(0, 0)), "ShapeError"),
    "sizes": (lambda: ndimage.uniform_filter(X, (3,)), "ShapeError"),
    "trapezoids": (lambda: integrate.cumulative_trapezoid(X, x=np.arange(2.0)), "ShapeError"),
    "trapezoids of other rank": (lambda: integrate.cumulative_trapezoid(X[None], x=X), "ShapeError"),
    "sigma": (lambda: phlox.jit(ndimage.gaussian_filter)(X, 1.0), "ConcretizationTypeError"),
    "spline of one": (lambda: interpolate.CubicSpline(ONE, ONE), "ShapeError"),
    "spline ends": (lambda: interpolate.CubicSpline(TWO, TWO, bc_type="odd"), "OptionError"),
    "spline periodic": (lambda: interpolate.CubicSpline(TWO, TWO, bc_type="periodic"), "UnsupportedError"),
    "spline outside": (lambda: interpolate.CubicSpline(TWO, TWO, extrapolate="periodic"), "UnsupportedError"),
    "spline outside of a call": (
        lambda: interpolate.CubicSpline(TWO, TWO)(0.5, extrapolate="periodic"),
        "UnsupportedError",
    ),
    "spline lengths": (lambda: interpolate.CubicSpline(TWO, ONE), "ShapeError"),
    "spline order": (lambda: interpolate.CubicSpline(TWO, TWO)(0.5, -1), "OptionError"),
    "quad of complex numbers": (lambda: integrate.quad(lambda x: 1j * x, 0.0, 1.0), "DtypeError"),
    "quad parts": (lambda: integrate.quad(abs, 0.0, 1.0, limit=0), "OptionError"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name):
    call, error = WRONG[name]
    with pytest.raises(getattr(phlox.errors, error)):
        call()


# --- splines ---------------------------------------------------------------------------------------------

KNOTS = np.array([0.0, 0.3, 1.0, 1.2, 2.5, 4.0])
ENDS = ["not-a-knot", "natural", "clamped", ((1, np.full(2, 0.5)), (2, np.full(2, -1.0))), ("natural", "not-a-knot")]
PLACES = np.array([-0.5, 0.0, 0.1, 0.9, 1.0, 3.3, 4.0, 4.7])


@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_splines(count, ends):
    x, y = KNOTS[:count], drawn(count, 2)
    theirs = scipy.interpolate.CubicSpline(x, y, bc_type=ends)
    with phlox.enable_x64(True):
        mine = interpolate.CubicSpline(x, y, bc_type=ends)
        np.testing.assert_allclose(mine.c, theirs.c, rtol=1e-10, atol=1e-10)
        for nu in range(4):
            inside = PLACES[(PLACES != 1.0)]  # where the third derivative has a step
            np.testing.assert_allclose(mine(inside, nu), theirs(inside, nu), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(mine(PLACES, extrapolate=False), theirs(PLACES, extrapolate=False), rtol=1e-10)


def test_splines_along_other_axes():
    y = drawn(2, 6, 3)
    with phlox.enable_x64(True):
        mine = interpolate.CubicSpline(KNOTS, y, axis=1)(PLACES.reshape(2, 4))
        np.testing.assert_allclose(
            mine, scipy.interpolate.CubicSpline(KNOTS, y, axis=1)(PLACES.reshape(2, 4)), rtol=1e-9
        )


def test_splines_have_derivatives_and_batches():
    beside_differences(lambda x, y, at: interpolate.CubicSpline(x, y)(at), KNOTS, drawn(6), PLACES, h=1e-5)
    ends = lambda v: ((1, v), "natural")
    beside_differences(lambda y, v: interpolate.CubicSpline(KNOTS, y, bc_type=ends(v))(PLACES), drawn(6), np.array(0.3))
    f = interpolate.CubicSpline(np.float32(KNOTS), np.float32(drawn(6)))
    assert phlox.jit(lambda f, x: f(x))(f, np.float32(0.4)) == pytest.approx(float(f(0.4)), rel=1e-6)


# --- quadrature ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"dx": 0.5}, {"initial": 0}, {"axis": 0}, {"x": np.array([0, 1, 3, 4, 7.0, 8, 9])}]
)
def test_cumulative_trapezoid(options):
    with phlox.enable_x64(True):
        found = integrate.cumulative_trapezoid(X, **options)
        np.testing.assert_allclose(found, scipy.integrate.cumulative_trapezoid(X, **options), rtol=1e-12, atol=1e-13)


def _pair(m):
    return {
        "smooth": (lambda x: m.exp(-x) * m.sin(3 * x), 0.0, 2.0),
        "backwards": (lambda x: x**3, 2.0, -1.0),
        "nothing": (lambda x: x, 1.0, 1.0),
        "a peak": (lambda x: 1 / ((x - 0.3) ** 2 + 1e-4), -1.0, 2.0),
        "a corner": (lambda x: m.abs(x - 0.37), 0.0, 1.0),
        "a root": (lambda x: m.sqrt(x), 0.0, 1.0),
        "a pole": (lambda x: 1 / m.sqrt(x), 0.0, 1.0),
        "up to infinity": (lambda x: m.exp(-x * x), 1.0, np.inf),
        "from infinity": (lambda x: m.exp(x) * x, -np.inf, 0.5),
        "everywhere": (lambda x: m.exp(-((x - 3) ** 2)), -np.inf, np.inf),
        "back from infinity": (lambda x: m.exp(-x * x), np.inf, 1.0),
        "back to infinity": (lambda x: m.exp(x) * x, 0.5, -np.inf),
        "from infinity to infinity": (lambda x: m.exp(-x * x), np.inf, -np.inf),
        "infinity alone": (lambda x: m.exp(-x * x), np.inf, np.inf),
    }


@pytest.mark.parametrize("name", _pair(np))
def test_quad(name):
    function, a, b = _pair(np)[name]
    wanted = scipy.integrate.quad(function, a, b, epsabs=1e-12, epsrel=1e-11)[0]
    with phlox.enable_x64(True):
        function, a, b = _pair(phlox.numpy)[name]
        value, error = phlox.jit(lambda a, b: integrate.quad(function, a, b))(a, b)
        assert float(value) == pytest.approx(wanted, rel=1e-8, abs=1e-9)
        assert abs(float(value) - wanted) <= float(error) + 1e-9
    value, _ = integrate.quad(function, np.float32(a), np.float32(b))
    assert float(value) == pytest.approx(wanted, rel=2e-4, abs=1e-5)


def test_quad_takes_a_single_argument_of_the_function():
    assert float(integrate.quad(lambda x, k: k * x, 0.0, 1.0, 3.0)[0]) == pytest.approx(1.5)


def test_quad_has_derivatives_and_batches():
    run = lambda a, b, c, d: integrate.quad(lambda x, c: phlox.numpy.exp(-c * x) * phlox.numpy.cos(d * x), a, b, (c,))[
        0
    ]
    beside_differences(run, *map(np.asarray, (0.2, 1.7, 0.9, 2.0)))
    outwards = lambda a, c: integrate.quad(lambda x: phlox.numpy.exp(-c * x * x), a, np.inf)[0]
    beside_differences(outwards, *map(np.asarray, (0.2, 1.3)), tolerance=1e-5)
    inwards = lambda b, c: integrate.quad(lambda x: phlox.numpy.exp(-c * x * x), -np.inf, b)[0]
    beside_differences(inwards, *map(np.asarray, (0.2, 1.3)), tolerance=1e-5)
