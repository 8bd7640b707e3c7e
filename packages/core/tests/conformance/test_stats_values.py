"""Distributions of phlox.scipy.stats over their whole domain, float32 and float64: within the budget, or as near as jax.

The table of docs/special-functions.md names the worst points. Beside it, test_scipy_stats_domain.py holds bounds of
float32 with locations and scales.
"""

import jax
import jax.scipy.stats
import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats

import phlox
import stats_values

#: What phlox may be off by where jax's own error at other points happens to be less, in units of the last place. A last
#: place of the logarithm of the smallest density (-114) is 64 units of the density.
BOUNDS = {("vonmises", "pdf", "float64"): 100}
#: Where jax 0.12 happens to be nearer: its sums of logarithms round otherwise.
BEHIND_JAX_0_12 = {
    ("binom", "logpmf", "float32"): 5,
    ("binom", "pmf", "float32"): 7,
}
CASES = [
    (name, method, dtype)
    for name in stats_values.DOMAINS
    for method in stats_values.methods(phlox, name)
    for dtype in stats_values.BUDGET
]


@pytest.mark.parametrize(("name", "method", "dtype"), CASES)
def test_whole_domain(name, method, dtype):
    with phlox.enable_x64(dtype == "float64"), jax.enable_x64(dtype == "float64"):
        mine = stats_values.worst(phlox, name, method, dtype)
        budget = BOUNDS.get((name, method, dtype), stats_values.BUDGET[dtype])
        if jax.__version_info__ >= (0, 12):
            budget = BEHIND_JAX_0_12.get((name, method, dtype), budget)
        if mine.error <= budget:
            return
        theirs = stats_values.worst(jax, name, method, dtype)
    assert mine.error <= max(budget, 1.01 * theirs.error), f"{mine}, jax: {theirs}"


def test_where_scipy_is_off():
    """It has 1.000065916144647e-04 for the first, the difference of 1 and the quotient."""
    mpf, mpmath = stats_values.special_values.mpf, stats_values.special_values.mpmath
    stats = phlox.scipy.stats
    with phlox.enable_x64(True):
        x, p = float(np.float32(1.0001)), float(np.float32(0.9))
        results = [
            stats.pareto.cdf(x, 1.0),
            stats.truncnorm.cdf(x, 1.0, 3.0),
            stats.beta.cdf(p, 3.0, 0.2),
            stats.cauchy.ppf(0.499),
            stats.gamma.pdf(1e-30, 8.0),
        ]
    normal = mpmath.ncdf
    exact = [
        1 - 1 / mpf(x),
        (normal(mpf(x)) - normal(1)) / (normal(3) - normal(1)),
        mpmath.betainc(3, mpf(0.2), 0, mpf(p), regularized=True),
        -1 / mpmath.tan(mpmath.pi * mpf(0.499)),
        mpf(1e-30) ** 7 / mpmath.factorial(7),
    ]
    np.testing.assert_allclose(np.array(results, float), np.array(exact, float), rtol=3e-15)


def test_results_do_not_depend_on_other_elements():
    """Elements whose fraction has converged wait for the others without further factors, which would round."""
    with phlox.enable_x64(True):
        alone = phlox.scipy.stats.beta.cdf(0.9, 3.0, 0.2)
        among = phlox.scipy.stats.beta.cdf(np.array([0.9, 0.5]), np.array([3.0, 3e4]), np.array([0.2, 3e4]))
    assert float(among[0]) == pytest.approx(float(alone), rel=1e-15)


@pytest.mark.parametrize(
    "distribution, method, arguments",
    [
        ("gamma", "logpdf", (99_700, 1e5)),
        ("chi2", "logpdf", (99_700, 1e5)),
        ("poisson", "logpmf", (99_700, 1e5)),
        ("beta", "logpdf", (0.248, 2e4, 6e4)),
        ("binom", "logpmf", (50_100, 1e5, 0.5)),
        ("nbinom", "logpmf", (30_300, 7e4, 0.7)),
        ("betabinom", "logpmf", (50_100, 1e5, 300, 280)),
    ],
)
def test_logarithms_for_large_parameters(distribution, method, arguments):
    """In float32, jax's are differences of numbers near a million, and off by 1e-3 to 0.1."""
    single = [np.float32(x) for x in arguments]
    double = [float(x) for x in single]
    exact = getattr(getattr(scipy.stats, distribution), method)
    function = getattr(getattr(phlox.scipy.stats, distribution), method)
    np.testing.assert_allclose(function(*single), exact(*double), rtol=0, atol=2e-5)
    for i in range(len(arguments)):
        if method == "logpmf" and (i == 0 or (i == 1 and "binom" in distribution and distribution != "nbinom")):
            continue  # whole numbers
        step = [1e-4 * x * (j == i) for j, x in enumerate(double)]
        above, below = (exact(*(x + sign * h for x, h in zip(double, step, strict=True))) for sign in (1, -1))
        np.testing.assert_allclose(phlox.grad(function, i)(*single), (above - below) / (2 * step[i]), rtol=2e-4)


@pytest.mark.parametrize("size", [1, 30, 1e4, 1e6])
def test_logarithms_of_shares_and_counts(size):
    """In float32, jax's Dirichlet density is off by 0.1 for alphas of 1e6, and its derivatives by alpha have no digit."""
    x, alpha = np.float32([0.25, 0.5, 0.25]), np.float32([0.275, 0.5, 0.225]) * np.float32(size)
    alphas, digamma = alpha.astype(float), scipy.special.digamma
    function = phlox.scipy.stats.dirichlet.logpdf
    np.testing.assert_allclose(function(x, alpha), scipy.stats.dirichlet.logpdf(x.astype(float), alphas), rtol=2e-6)
    by_alpha = np.log(x.astype(float)) - digamma(alphas) + digamma(alphas.sum())
    slopes = phlox.grad(function, (0, 1))(x, alpha)
    np.testing.assert_allclose(slopes[0], (alpha - 1) / x, rtol=1e-6)
    np.testing.assert_allclose(slopes[1], by_alpha, rtol=2e-5)

    n, p = int(size), np.float32([0.25, 0.0, 0.5, 0.25])
    counts = np.array([n // 3, 0, n // 2, n - n // 3 - n // 2])
    function = phlox.scipy.stats.multinomial.logpmf
    exact = scipy.stats.multinomial.logpmf(counts, n, p.astype(float))
    np.testing.assert_allclose(function(counts, n, p), exact, rtol=2e-6)
    slopes = np.where(counts == 0, 0, counts / np.where(p == 0, 1, p))
    np.testing.assert_allclose(phlox.grad(function, 2)(counts, n, p), slopes, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("a", "x"),
    [(0.5, 80), (3, 72), (3, 2e-30), (30, 578), (30, 3e-7), (300, 127), (300, 4e3), (1e4, 8700), (1e4, 14e3)],
)
def test_logarithms_of_tails_that_underflow(a, x, dtype):
    """In jax they are -inf, and their derivatives nan: of `gamma` and `chi2`."""
    with phlox.enable_x64(dtype == "float64"), mpmath.workdps(60):
        point = [np.dtype(dtype).type(v) for v in (x, a)]
        exact = [mpmath.mpf(float(v)) for v in point]
        limits = (lambda x: (x, mpmath.inf)) if x > a else (lambda x: (0, x))
        truth = lambda x, a: mpmath.log(mpmath.gammainc(a, *limits(x), regularized=True))
        first, second = ([mpmath.diff(truth, exact, n) for n in orders] for orders in (((1, 0), (0, 1)), ((2, 0),)))
        rel = 1e-5 if dtype == "float32" else 1e-11
        for distribution, factor in ((phlox.scipy.stats.gamma, 1), (phlox.scipy.stats.chi2, 2)):
            method = distribution.logsf if x > a else distribution.logcdf
            function = lambda x, a, method=method, factor=factor: method(factor * x, factor * a)
            assert float(function(*point)) == pytest.approx(float(truth(*exact)), rel=rel)
            slope = phlox.grad(function)
            slopes = slope(*point), phlox.grad(function, 1)(*point)
            np.testing.assert_allclose(slopes, [float(v) for v in first], rtol=rel)
            if abs(second[0]) < 1e37:
                assert float(phlox.grad(slope)(*point)) == pytest.approx(float(second[0]), rel=1e3 * rel)


def test_generalized_normal_where_the_power_underflows():
    """0.001**30 is 0 in float32, where jax and SciPy have 1/2, and jax derivatives of nan."""
    function = phlox.scipy.stats.gennorm.cdf
    for beta in (2.0, 8.0, 30.0, 300.0):
        for x in (-0.6, -1e-3, -1e-8, 0.0, 1e-30, 0.02, 0.9):
            share = mpmath.gammainc(mpmath.mpf(1) / beta, 0, abs(mpmath.mpf(x)) ** beta, regularized=True)
            exact = [0.5 + np.sign(x) * float(share) / 2, scipy.stats.gennorm.pdf(x, beta)]
            result = [f(np.float32(x), np.float32(beta)) for f in (function, phlox.grad(function))]
            np.testing.assert_allclose(result, exact, rtol=5e-6)
            assert np.isfinite(phlox.grad(function, 1)(np.float32(x), np.float32(beta)))


def test_slopes_at_ends():
    """Those of counts: where the number of ways is 1, it still depends on the number of trials. And of an interval."""
    stats, digamma = phlox.scipy.stats, phlox.scipy.special.digamma
    slope = phlox.grad(stats.binom.logpmf, 1)(np.float32(7), np.float32(7), np.float32(0.25))
    np.testing.assert_allclose(slope, digamma(8.0) - digamma(1.0) + np.log(0.75), rtol=1e-5)
    slope = phlox.grad(stats.nbinom.logpmf)(np.float32(0), np.float32(3), np.float32(0.25))
    np.testing.assert_allclose(slope, digamma(3.0) - digamma(1.0) + np.log(0.75), rtol=1e-5)
    slopes = phlox.vmap(phlox.grad(lambda z: stats.truncnorm.logpdf(z, -1.0, 2.0)))(np.float32([-2, -1, 0.5, 2, 3]))
    np.testing.assert_array_equal(slopes, [0, 1, -0.5, -2, 0])
    assert stats.binom.logpmf(0, 1, 1e-9) == np.float32(-1e-9)
    np.testing.assert_allclose(stats.poisson.pmf(np.float32(10), np.float32(1e-3)), 2.752979e-37, rtol=1e-5)


def test_slopes_of_the_incomplete_beta_function():
    """By x, which are densities; jax's are off by up to 1e-2."""
    random = np.random.default_rng(1)
    a, b = np.exp(random.uniform(np.log(0.05), np.log(1e4), (2, 300))).astype(np.float32)
    x = np.clip(random.beta(a, b), 1e-6, 1 - 1e-6).astype(np.float32)
    exact = scipy.stats.beta.pdf(x.astype(float), a.astype(float), b.astype(float))
    inside = (exact > 1e-30) & (exact < 1e30)
    slopes = phlox.vmap(phlox.grad(phlox.scipy.special.betainc, 2))(a, b, x)
    np.testing.assert_allclose(np.asarray(slopes)[inside], exact[inside], rtol=2e-5)
