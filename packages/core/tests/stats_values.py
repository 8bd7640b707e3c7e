"""How far the distributions of phlox.scipy.stats are from SciPy's in 64 bits over their whole domain, beside jax.

    python packages/core/tests/stats_values.py [NAME ...]     the table of docs/special-functions.md

Errors are relative, in units of the last place (eps) of the dtype; those of logarithms of densities and probabilities
are those of the density where its logarithm is near 0. SciPy's own errors in 64 bits are in the columns of float64.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import scipy.stats

import special_values
from special_values import BUDGET, Worst

X = np.array([0, 1e-30, 1e-8, 1e-3, 0.1, 0.25, 0.5, 0.7, 0.9, 0.99, 1, 1.0001, 1.5, 2, 3, 5, 8, 12, 30, 100, 1e5, 1e15])
X = np.concatenate([X, -X, [np.inf, -np.inf, np.nan]])
Q = np.array([-0.1, 0, 1e-30, 1e-10, 1e-4, 0.01, 0.2, 0.3, 0.499, 0.5, 0.7, 0.9, 0.99, 0.9999, 1, 1.1, np.nan])
K = np.array([-1, 0, 1, 2, 3, 5, 10, 30, 100, 1000, -np.inf, np.nan])
ANGLES = np.concatenate([np.linspace(-3, 3, 25), [np.nan]])

#: the points and the parameters of shape of each distribution
DOMAINS: dict[str, tuple[np.ndarray, list[tuple[float, ...]]]] = {
    "bernoulli": (K, [(0.0,), (0.3,), (1.0,), (-0.1,), (1.2,)]),
    "beta": (X, [(2, 3), (0.5, 0.5), (1, 1), (3, 0.2), (-1, 1), (0, 1)]),
    "betabinom": (K, [(0, 1, 1), (10, 2, 3), (10, -1, 2), (-1, 1, 1)]),
    "binom": (K, [(0, 0.3), (10, 0.3), (10, 0), (10, 1), (-1, 0.3), (10, 1.2)]),
    "cauchy": (X, [()]),
    "chi2": (X, [(0.1,), (1,), (5,), (-1,)]),
    "expon": (X, [()]),
    "gamma": (X, [(0.1,), (1,), (2.5,), (8,), (-1,)]),
    "gennorm": (X, [(0.5,), (1,), (2,), (5,)]),
    "geom": (K, [(0.01,), (0.3,), (1,), (-0.1,)]),
    "gumbel_l": (X, [()]),
    "gumbel_r": (X, [()]),
    "laplace": (X, [()]),
    "logistic": (X, [()]),
    "nbinom": (K, [(1, 0.3), (5, 0.9), (0.5, 0.2), (20, 1)]),
    "norm": (X, [()]),
    "pareto": (X, [(0.5,), (1,), (3,), (-1,)]),
    "poisson": (K, [(0,), (0.1,), (3,), (-1,)]),
    "t": (X, [(0.1,), (1,), (3,), (100,), (-1,)]),
    "truncnorm": (X, [(-1, 2), (1, 3), (-5, -3), (0.25, np.inf), (-2, -2), (3, 1)]),
    "uniform": (X, [()]),
    "vonmises": (ANGLES, [(0.1,), (1,), (8,), (60,)]),
    "wrapcauchy": (ANGLES + np.pi, [(0.1,), (0.5,), (0.95,)]),
}


def methods(library: Any, name: str) -> list[str]:
    """The functions of a point and parameters that the distribution has."""
    module = importlib.import_module(f"{library.__name__}.scipy.stats.{name}")
    known = {"pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"}
    return [n for n in sorted(known) if inspect.isfunction(inspect.unwrap(getattr(module, n, None)))]


def points_of(name: str, method: str) -> list[np.ndarray]:
    points, parameters = DOMAINS[name]
    x = (Q if method in ("ppf", "isf") else points).astype("float32").astype(float)
    rows = np.array(parameters, "float32").reshape(len(parameters), -1).astype(float)
    return [np.tile(x, len(rows)), *(np.repeat(column, len(x)) for column in rows.T)]


def _beta_below(x: Any, a: Any, b: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def _beta_above(x: Any, a: Any, b: Any) -> Any:
    return mpmath.betainc(a, b, x, 1, regularized=True)


def _truncated_below(x: Any, a: Any, b: Any) -> Any:
    # In the upper tail, where ncdf is near 1, by symmetry.
    low, here, high = (-b, -x, -a) if a > 0 else (a, x, b)
    parts = mpmath.ncdf(here) - mpmath.ncdf(low), mpmath.ncdf(high) - mpmath.ncdf(here)
    return parts[a > 0] / (parts[0] + parts[1])


def _gamma_density(x: Any, a: Any) -> Any:
    return x ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)


def _logarithm(probability: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: mpmath.log(probability(*args))


#: Exact values of methods in which SciPy itself is off by more than the budget: it takes differences of numbers near 1,
#: and exponentials of large logarithms.
EXACT: dict[tuple[str, str], Callable[..., Any]] = {
    ("beta", "cdf"): _beta_below,
    ("beta", "logcdf"): _logarithm(_beta_below),
    ("beta", "sf"): _beta_above,
    ("beta", "logsf"): _logarithm(_beta_above),
    ("cauchy", "ppf"): lambda q: -1 / mpmath.tan(mpmath.pi * q),
    ("cauchy", "isf"): lambda q: 1 / mpmath.tan(mpmath.pi * q),
    ("chi2", "cdf"): lambda x, df: mpmath.gammainc(df / 2, 0, x / 2, regularized=True),
    ("chi2", "sf"): lambda x, df: mpmath.gammainc(df / 2, x / 2, regularized=True),
    ("chi2", "pdf"): lambda x, df: _gamma_density(x / 2, df / 2) / 2,
    ("gamma", "cdf"): lambda x, a: mpmath.gammainc(a, 0, x, regularized=True),
    ("gamma", "sf"): lambda x, a: mpmath.gammainc(a, x, regularized=True),
    ("gamma", "pdf"): _gamma_density,
    ("logistic", "isf"): lambda q: mpmath.log1p(-q) - mpmath.log(q),
    ("logistic", "ppf"): lambda q: mpmath.log(q) - mpmath.log1p(-q),
    ("nbinom", "pmf"): lambda k, n, p: mpmath.rf(n, k) / mpmath.factorial(k) * p**n * (1 - p) ** k,
    ("pareto", "cdf"): lambda x, b: 1 - x**-b,
    ("pareto", "logcdf"): lambda x, b: mpmath.log1p(-(x**-b)),
    ("poisson", "pmf"): lambda k, mu: mu**k * mpmath.exp(-mu) / mpmath.factorial(k),
    ("truncnorm", "cdf"): _truncated_below,
    ("truncnorm", "logcdf"): _logarithm(_truncated_below),
    ("vonmises", "pdf"): lambda x, kappa: (
        mpmath.exp(kappa * mpmath.cos(x)) / (2 * mpmath.pi * mpmath.besseli(0, kappa))
    ),
}


def truths(name: str, method: str, points: list[np.ndarray]) -> np.ndarray:
    """SciPy's values in 64 bits, and exact ones where SciPy is off and its values are finite, and neither 0 nor 1."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = np.array(getattr(getattr(scipy.stats, name), method)(*points), float)
    exact = EXACT.get((name, method))
    for i, at in enumerate(zip(*points, strict=True) if exact else ()):
        if exact and np.isfinite(values[i]) and values[i] not in (0, 1) and np.isfinite(at).all():
            values[i] = float(exact(*map(special_values.mpf, at)))
    return values


def worst(library: Any, name: str, method: str, dtype: str) -> Worst:
    points = points_of(name, method)
    truth = truths(name, method, points)
    function = getattr(importlib.import_module(f"{library.__name__}.scipy.stats.{name}"), method)
    with np.errstate(all="ignore"):
        found = np.asarray(library.jit(lambda *xs: function(*xs))(*[x.astype(dtype) for x in points])).astype(float)
    least = 1.0 if method.startswith("log") else 0.0
    distance = special_values.errors(found, truth, dtype, least)
    # There SciPy takes the logarithm of a probability that is too small for 64 bits.
    distance[(truth == -np.inf) & (found < -700)] = 0
    odd = np.isinf(distance) & ~np.isfinite(truth)
    at = int(np.where(odd, -1, distance).argmax())
    return Worst(
        float(distance[at]), tuple(float(x[at]) for x in points), float(found[at]), float(truth[at]), int(odd.sum())
    )


def table(names: list[str]) -> None:
    """Prints the rows of the page: for each distribution the methods, and the worst of them."""
    import jax

    import phlox

    print("| distribution | float32: phlox | jax | float64: phlox | jax |\n|---|---|---|---|---|")
    for name in names:
        cells = []
        for dtype in BUDGET:
            with phlox.enable_x64(dtype == "float64"), jax.enable_x64(dtype == "float64"):
                for library in (phlox, jax):
                    found = {m: worst(library, name, m, dtype) for m in methods(library, name)}
                    at = max(found, key=lambda m: found[m].error)
                    cells.append(f"{at} {found[at]}")
        print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    table(sys.argv[1:] or list(DOMAINS))
