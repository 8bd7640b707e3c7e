"""phlox.scipy.interpolate.RegularGridInterpolator beside jax's."""

import functools

import jax
import jax.scipy.interpolate
import numpy as np
import pytest
import scipy.interpolate

import judge
import phlox
from conformance.harness import both, rotate
from phlox.scipy.interpolate import RegularGridInterpolator

FLOATS = ["float32", "float16", "bfloat16"]


def drawn(shape, dtype="float32", *seed, low=-3.0, high=3.0):
    return judge.array(judge.rng("interpolate", shape, dtype, *seed), shape, dtype, low, high)


def knots(n, dtype="float32"):
    """Increasing coordinates, about from -2 to 2."""
    return np.sort(np.linspace(-2, 2, n) + drawn((n,), "float32", n) / 10 / n).astype(drawn((), dtype).dtype)


GRID = [knots(4), knots(3)]
WHOLE = [np.array([-2, 0, 1]), np.array([-1, 2])]
PLACES = drawn((2, 5, 2), "float32", "places")
#: points, values, where, options
CALLS = {
    "line": ([knots(5)], drawn((5,)), drawn((7,)), {}),
    "plane": (GRID, drawn((4, 3)), PLACES, {}),
    "trailing axes": (GRID, drawn((4, 3, 2, 2)), PLACES, {"fill_value": 2.0}),
    "one axis of two": ([knots(4)], drawn((4, 3)), drawn((6, 1)), {}),
    "continued": (GRID, drawn((4, 3)), PLACES, {"fill_value": None}),
    "continued, nearest": (GRID, drawn((4, 3)), PLACES, {"fill_value": None, "method": "nearest"}),
    "integers": (WHOLE, drawn((3, 2), "int32"), np.array([[-1, 1], [0, 0], [1, 2], [4, 0]]), {}),
    "whole places": (WHOLE, drawn((3, 2)), np.round(PLACES), {"fill_value": np.int32(7)}),
    "a vector is a point": (GRID, drawn((4, 3)), np.array([0.3, -0.2], "float32"), {}),
    "a vector is three": (GRID, drawn((4, 3)), drawn((6,)), {}),
    "a tuple": (GRID, drawn((4, 3)), (drawn((5, 1)), drawn((1, 4))), {}),
    "a tuple of one": ([knots(5)], drawn((5,)), (drawn((3,)),), {}),
    "a tuple of integers": (WHOLE, drawn((3, 2)), (np.array([-1, 0]), 1), {}),
    "complex": (GRID, drawn((4, 3), "complex64"), PLACES, {"fill_value": 1j}),
    "a real number outside": (GRID, drawn((4, 3), "complex64"), PLACES, {}),
    "bools": (GRID, drawn((4, 3), "bool"), PLACES, {"fill_value": True}),
    "wide number outside": (GRID, drawn((4, 3), "float16"), PLACES, {"fill_value": np.float32(1)}),
    "not a number": (GRID, drawn((4, 3)), np.array([[np.nan, 0.0], [np.inf, 0.0]], "float32"), {}),
    "no points": (GRID, drawn((4, 3)), drawn((0, 2)), {}),
    "a matrix of points": (np.stack([knots(3), knots(3)]), drawn((3, 3)), PLACES, {}),
    "values that are a list": (GRID, [[1.0]], PLACES, {}),
    "points that are lists": ([[0.0, 1.0]], drawn((2,)), drawn((3,)), {}),
    "places that are a list": ([knots(5)], drawn((5,)), [0.5], {}),
    "more points than axes": ([*GRID, knots(2)], drawn((4, 3)), PLACES, {}),
    "a number": ([knots(5)], drawn((5,)), 0.5, {}),
    "too many coordinates": (GRID, drawn((4, 3)), drawn((4, 3)), {}),
    "an odd vector": (GRID, drawn((4, 3)), drawn((3,)), {}),
    "too many arrays": (GRID, drawn((4, 3)), (drawn(3),) * 3, {}),
    "unknown method": (GRID, drawn((4, 3)), PLACES, {"method": "cubic"}),
    "refused outside": (GRID, drawn((4, 3)), PLACES, {"bounds_error": True}),
    "complex outside": (GRID, drawn((4, 3)), PLACES, {"fill_value": 1j}),
    "text outside": (GRID, drawn((4, 3)), PLACES, {"fill_value": "x"}),
}


def call(m, points, values, xi, options, method=None):
    return m.scipy.interpolate.RegularGridInterpolator(points, values, **options)(xi, method)


@pytest.mark.parametrize("method", [None, "nearest"])
@pytest.mark.parametrize("name", CALLS)
def test_values(name, method):
    points, values, xi, options = CALLS[name]
    both(functools.partial(call, options=options, method=method), points, values, xi, what="eager", tolerance=1e-5)
    staged = lambda m, *xs: m.jit(functools.partial(call, m, options=options, method=method))(*xs)
    both(staged, points, values, xi, what="under jit", tolerance=1e-5)


@pytest.mark.parametrize("values", judge.ALL)
@pytest.mark.parametrize("places", FLOATS)
def test_dtypes(places, values):
    (points,) = rotate(FLOATS, 1, values, places)
    grid = [knots(4, points), knots(3, points)]
    xi = drawn((5, 2), places, points)
    both(
        lambda m, *xs: m.jit(functools.partial(call, m, options={}))(*xs),
        grid,
        drawn((4, 3), values),
        xi,
        tolerance=2e-2,
    )


def test_64_bits():
    with phlox.enable_x64(True), jax.enable_x64(True):
        for name in ("plane", "a tuple", "integers"):
            points, values, xi, options = CALLS[name]
            for dtype in ("float32", "float64"):
                both(functools.partial(call, options=options), points, values.astype(dtype), xi, tolerance=1e-5)


@pytest.mark.parametrize("method", ["nearest", "linear"])
@pytest.mark.parametrize("name", ["line", "plane", "trailing axes", "continued", "not a number"])
def test_derivatives(name, method):
    """By points, values and places, of the sum of squares, and second ones along a direction."""
    points, values, xi, options = CALLS[name]

    def total(m, *xs):
        found = call(m, *xs, options, method)
        return m.numpy.nansum(found**2 * judge.weights(found.shape))

    first = lambda m, *xs: m.jit(m.grad(functools.partial(total, m), (0, 1, 2)))(*xs)
    both(first, points, values, xi, tolerance=1e-4, weak=False)

    def second(m, *xs):
        gradient = m.grad(lambda values, xi: total(m, points, values, xi), (0, 1))
        return m.jvp(gradient, xs, tuple(np.ones_like(x) for x in xs))

    both(second, values, xi, tolerance=1e-3, weak=False)


@pytest.mark.parametrize("method", ["nearest", "linear"])
def test_batches(method):
    values, xi = drawn((3, 4, 3)), drawn((3, 5, 2))
    run = functools.partial(call, options={}, method=method)
    for axes in [(0, None), (None, 0), (0, 0), (1, 2)]:
        args = [x if d is None else np.moveaxis(x, 0, d) for x, d in zip((values, xi), axes, strict=True)]
        args = [x[0] if d is None else x for x, d in zip(args, axes, strict=True)]
        both(lambda m, v, at, axes=axes: m.vmap(functools.partial(run, m, GRID), axes)(v, at), *args, tolerance=1e-5)


def test_interpolators_are_trees():
    """An argument of `jit`, mapped over, differentiated; leaves and structure are jax's."""
    f = RegularGridInterpolator(GRID, drawn((4, 3)), "nearest", fill_value=2.0)
    theirs = jax.scipy.interpolate.RegularGridInterpolator(GRID, drawn((4, 3)), "nearest", fill_value=2.0)
    for mine, wanted in zip(phlox.tree.leaves(f), jax.tree.leaves(theirs), strict=True):
        judge.compare(mine, wanted, what="leaves")
    judge.compare(phlox.jit(lambda f, x: f(x))(f, PLACES), theirs(PLACES), what="jit")
    empty = phlox.tree.map(lambda x: None, f)
    assert (empty.method, empty.bounds_error, empty.values) == ("nearest", False, None)
    slope = phlox.grad(lambda f: f(np.array([[0.0, 0.0], [9.0, 0.0]], "float32")).sum())(f)
    assert isinstance(slope, RegularGridInterpolator)
    assert (float(slope.values.sum()), float(slope.fill_value)) == (1.0, 1.0)


@pytest.mark.parametrize("fill_value", [np.nan, None])
@pytest.mark.parametrize("method", ["nearest", "linear"])
def test_an_axis_of_one_point(method, fill_value):
    """jax has nan."""
    args = ([np.ones(1), np.arange(3.0)], np.array([[5.0, 6.0, 7.0]]), method, False, fill_value)
    at = np.array([[1.0, 0.7], [2.0, 0.4], [0.0, 1.0]])
    judge.same_values(
        np.asarray(RegularGridInterpolator(*args)(at)), np.float32(scipy.interpolate.RegularGridInterpolator(*args)(at))
    )


@pytest.mark.parametrize("points", [[np.arange(3.0)], [np.arange(5.0)] * 2, [np.ones((5, 1))]])
def test_points_that_do_not_fit(points):
    """jax takes the first of them."""
    with pytest.raises(phlox.errors.ShapeError, match="points of types"):
        RegularGridInterpolator(points, np.arange(5.0))


def test_strict_flags():
    """The expressions of an interpolator are not the user's."""
    with phlox.numpy_rank_promotion("raise"), phlox.numpy_dtype_promotion("strict"):
        RegularGridInterpolator(GRID, drawn((4, 3, 2)))(phlox.numpy.asarray(PLACES))


def test_the_nearest_of_unknown_points_is_nan():
    """As in SciPy, whatever is outside; jax takes the last element."""
    grid, values = (np.arange(3.0), np.arange(2.0)), np.arange(6.0).reshape(3, 2)
    points = np.array([[np.nan, 0], [1, np.nan], [1, 1]])
    for fill_value in (None, 7.0):
        result = RegularGridInterpolator(grid, values, "nearest", fill_value=fill_value)(points)
        np.testing.assert_array_equal(result, [np.nan, np.nan, 3])
