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
from typing import Any

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


def truths(name: str, method: str, points: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(getattr(getattr(scipy.stats, name), method)(*points), float)


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
