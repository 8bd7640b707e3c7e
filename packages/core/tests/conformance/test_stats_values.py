"""Distributions of phlox.scipy.stats over their whole domain, float32 and float64: within the budget, or as near as jax.

The table of docs/special-functions.md names the worst points. Beside it, test_scipy_stats_domain.py holds bounds of
float32 with locations and scales.
"""

import jax
import jax.scipy.stats
import numpy as np
import pytest

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
