"""Distributions of phlox.scipy.stats over their whole domain beside SciPy in 64 bits, with edges, infinities and nan.

Compared are the inputs rounded to float32, so that SciPy's own rounding does not count; the message names the worst point.
"""

import numpy as np
import pytest
import scipy.stats

import phlox
from phlox.scipy import stats

X = np.array(
    [0, 1e-30, 1e-8, 1e-3, 0.1, 0.25, 0.5, 0.7, 0.9, 0.99, 1, 1.0001, 1.5, 2, 3, 5, 8, 12, 30, 100, 1e5, 1e15, np.inf]
)
X = np.concatenate([X, -X, [np.nan]])
Q = np.array([-0.1, 0, 1e-30, 1e-10, 1e-4, 0.01, 0.2, 0.3, 0.499, 0.5, 0.7, 0.9, 0.99, 0.9999, 1, 1.1, np.nan])
K = np.array([-1, 0, 1, 2, 3, 5, 10, 30, 100, 1000, -np.inf, np.nan])

#: Parameters, and how far values may be from SciPy's in units of the last place of float32. Above 4 are those that are
#: the exponential of a large number, or of functions of lax that are no better.
DOMAINS = {
    "norm": ([()], 70, "pdf logpdf cdf logcdf sf logsf ppf isf"),
    "cauchy": ([()], 4, "pdf logpdf cdf logcdf sf logsf ppf isf"),
    "expon": ([()], 12, "pdf logpdf cdf logcdf sf logsf ppf"),
    "gumbel_l": ([()], 30, "cdf logcdf sf logsf ppf"),
    "gumbel_r": ([()], 30, "cdf sf logsf ppf"),
    "laplace": ([()], 12, "pdf cdf"),
    "logistic": ([()], 12, "pdf logpdf cdf sf"),
    "uniform": ([()], 4, "pdf logpdf cdf ppf"),
    "beta": ([(2, 3), (0.5, 0.5), (1, 1), (3, 0.2), (-1, 1), (0, 1)], 550, "pdf logpdf cdf sf"),
    "gamma": ([(0.1,), (1,), (2.5,), (8,), (-1,)], 100, "cdf sf"),
    "chi2": ([(0.1,), (1,), (5,), (-1,)], 100, "cdf sf"),
    "pareto": ([(0.5,), (1,), (3,), (-1,)], 24, "cdf logcdf sf ppf"),
    "t": ([(0.1,), (1,), (3,), (100,), (-1,)], 24, "pdf logpdf"),
    "truncnorm": ([(-1, 2), (1, 3), (-5, -3), (0.25, np.inf), (-2, -2), (3, 1)], 300, "cdf logcdf sf logsf logpdf"),
    "bernoulli": ([(0,), (0.3,), (1,), (-0.1,), (1.2,)], 4, "pmf logpmf cdf"),
    "binom": ([(0, 0.3), (10, 0.3), (10, 0), (10, 1), (-1, 0.3), (10, 1.2)], 24, "pmf logpmf"),
    "betabinom": ([(0, 1, 1), (10, 2, 3), (10, -1, 2), (-1, 1, 1)], 24, "pmf logpmf"),
    "geom": ([(0.01,), (0.3,), (1,), (-0.1,)], 24, "pmf logpmf"),
    "poisson": ([(0,), (0.1,), (3,), (-1,)], 40, "pmf logpmf cdf"),
}
CASES = [(name, function) for name, (_, _, functions) in DOMAINS.items() for function in functions.split()]


@pytest.mark.whole
@pytest.mark.parametrize(("name", "function"), CASES)
def test_beside_scipy(name, function):
    parameters, bound, _ = DOMAINS[name]
    discrete = hasattr(getattr(phlox.scipy.stats, name), "logpmf")
    x = np.float32(Q if function in ("ppf", "isf") else K if discrete else X)
    # In 64 bits SciPy knows location and scale; there is no distribution for a scale that is not positive.
    placed = [()] if discrete else [(0, 1), (0.5, 2), (0, -1), (0, 0)]
    rows = np.float32([(*p, *more) for p in parameters for more in placed]).reshape(len(parameters) * len(placed), -1)
    points = [np.tile(x, len(rows)), *(np.repeat(column, len(x)) for column in rows.T)]
    mine = np.asarray(phlox.jit(getattr(getattr(phlox.scipy.stats, name), function))(*points)).astype(float)
    with np.errstate(all="ignore"):
        theirs = getattr(getattr(scipy.stats, name), function)(*[p.astype(float) for p in points])
        theirs = theirs.astype(np.float32).astype(float)
        tiny = np.finfo(np.float32).tiny
        # The error of the logarithm of a density is that of the density, where this is near 1.
        size = np.maximum(abs(theirs), 1 if function in ("logpdf", "logpmf") else tiny)
        same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs)) | (np.maximum(abs(mine), abs(theirs)) < tiny)
        # There SciPy takes the logarithm of a probability that is too small for 64 bits.
        same = same | ((theirs == -np.inf) & (mine < -700))
        distance = np.where(same, 0, abs(mine - theirs) / size / np.finfo(np.float32).eps)
    distance = np.where(same | (np.isfinite(mine) & np.isfinite(theirs)), distance, np.inf)
    at = int(distance.argmax())
    where = [float(p[at]) for p in points]
    assert distance[at] <= bound, (
        f"{name}.{function}{where}: {mine[at]}, SciPy has {theirs[at]}: {distance[at]:.3g} ulp"
    )


def test_entropy_of_the_poisson_distribution():
    mu = np.array([0, 1e-3, 0.1, 1, 5, 30, 99, 101, 300, 1e4, -1, np.nan])
    with phlox.enable_x64(True):
        mine = np.asarray(phlox.scipy.stats.poisson.entropy(mu))
    np.testing.assert_allclose(mine[:9], scipy.stats.poisson.entropy(mu[:9]), rtol=1e-9)
    np.testing.assert_allclose(mine[9:], [0.5 * np.log(2 * np.pi * np.e * 1e4) - 1 / 12e4, np.nan, np.nan], rtol=1e-9)


#: the derivative of each function by x, from the density and the probabilities at and above x
SLOPES = {
    "cdf": lambda pdf, cdf, sf: pdf,
    "sf": lambda pdf, cdf, sf: -pdf,
    "logcdf": lambda pdf, cdf, sf: pdf / cdf,
    "logsf": lambda pdf, cdf, sf: -pdf / sf,
}
SLOPE_CASES = [
    (name, function)
    for name in [*(name for name in DOMAINS if hasattr(getattr(scipy.stats, name), "pdf")), "gennorm"]
    for function in SLOPES
    if hasattr(getattr(phlox.scipy.stats, name), function)
]


@pytest.mark.whole
@pytest.mark.parametrize(("name", "function"), SLOPE_CASES)
def test_slopes_of_probabilities_are_densities(name, function):
    x = X[np.isfinite(X) & (abs(X) < 20)]
    for shape in DOMAINS[name][0] if name in DOMAINS else [(0.5,), (1.0,), (2.0,)]:
        theirs = getattr(scipy.stats, name)(*shape)
        with phlox.enable_x64(True), np.errstate(all="ignore"):
            f = getattr(getattr(phlox.scipy.stats, name), function)
            mine = np.asarray(phlox.vmap(phlox.grad(lambda x, f=f, shape=shape: f(x, *map(float, shape))))(x))
            expected = SLOPES[function](*[getattr(theirs, part)(x) for part in ("pdf", "cdf", "sf")])
            ends = np.isin(x, theirs.support())
        # Where the logarithm is that of 0 its slope is not defined; at the ends densities jump.
        compared = np.isfinite(expected) & ~ends
        np.testing.assert_allclose(
            mine[compared], expected[compared], rtol=1e-6, atol=1e-25, err_msg=f"{name}.{function}{shape}"
        )


@pytest.mark.parametrize("name", ["gumbel_l", "gumbel_r"])
def test_slopes_of_densities_by_arrays(name):
    """By location and scale, which jax fails to compute."""
    f, x, loc, scale = (
        getattr(phlox.scipy.stats, name).logpdf,
        0.4,
        np.array([[-0.2], [0.1]]),
        np.array([0.5, 0.9, 2.0]),
    )
    with phlox.enable_x64(True):
        total = lambda *xs: f(*xs).sum()
        slopes = phlox.grad(total, (0, 1, 2))(x, loc, scale)
        along = [np.float64(0.3), np.array([[0.7], [-0.4]]), np.array([0.2, -0.5, 0.6])]
        ends = [float(total(*(v + s * t for v, t in zip((x, loc, scale), along, strict=True)))) for s in (1e-5, -1e-5)]
        slope = sum(float((np.asarray(g) * t).sum()) for g, t in zip(slopes, along, strict=True))
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-7)


def test_parameters_at_and_outside_of_their_domain():
    """jax has nan for endless degrees of freedom, and densities for shapes that are not positive."""
    x = np.array([-40.0, -1.0, 0.0, 2.0], np.float32)
    np.testing.assert_allclose(stats.t.logpdf(x, np.inf, 1.0, 2.0), scipy.stats.norm.logpdf(x, 1, 2), rtol=1e-6)
    assert [float(phlox.grad(stats.t.logpdf, i)(1.0, np.inf)) for i in (0, 1)] == [-1, 0]
    for shape in (0.0, -1.0):
        for function in (
            stats.gennorm.pdf,
            stats.gennorm.logpdf,
            stats.gennorm.cdf,
            stats.pareto.pdf,
            stats.pareto.logpdf,
        ):
            assert np.isnan(function(x, shape)).all(), (function, shape)
