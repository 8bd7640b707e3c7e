"""Distributions and statistics of phlox.scipy.stats: types, values, derivatives and batches beside jax."""

import jax.scipy.stats  # (so that it is an attribute of jax)
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import A, B, S, Special, batches, call, gradients, row, rows, values

FLOATS = ["float32", "int32"]
X = A(3)
SCALE = A(3, low=0.4, high=2.0, dtype="float32")


def distribution(name, functions, *shape, x=X, dtypes=FLOATS, **options):
    """The functions of one distribution: with its parameters alone, with location and scale, and of a Python number."""
    point = x.high * 0.25 if x is not X else 0.5
    numbers = [S((p.low + p.high) / 2) for p in shape]
    calls = [call(x, *shape), call(x, *shape, A(2, 1), SCALE), call(S(point), *numbers)]
    return rows(f"scipy.stats.{name}", functions, *calls, dtypes=dtypes, **options)


def counts(name, functions, *shape, high=6, **options):
    numbers = [S((p.low + p.high) / 2) for p in shape]
    calls = [call(A(4, low=0, high=high, dtype="int32"), *shape), call(A(4, low=-2, high=high, whole=True), *shape), call(S(2), *numbers)]
    return rows(f"scipy.stats.{name}", functions, *calls, dtypes=["float32"], **options)


P = A(4, low=0.1, high=0.9, dtype="float32")
Q = A(3, low=0.05, high=0.95, dtype="float32")
ALL = "pdf logpdf cdf logcdf sf logsf"


def positive(n=3, low=0.4, high=4.0):
    return A(n, low=low, high=high, dtype="float32")


CONTINUOUS = [
    *distribution("norm", ALL),
    *distribution("norm", "ppf isf", x=Q),
    *distribution("cauchy", ALL, tolerance=5e-5),
    *distribution("cauchy", "ppf isf", x=Q, tolerance=1e-4),
    *distribution("expon", ALL),
    *distribution("expon", "ppf", x=Q),
    *distribution("laplace", "pdf logpdf cdf"),
    *distribution("logistic", "pdf logpdf cdf sf"),
    *distribution("logistic", "ppf isf", x=Q),
    *distribution("uniform", "pdf logpdf cdf"),
    *distribution("uniform", "ppf", x=Q),
    *distribution("gumbel_l", ALL),
    *distribution("gumbel_l", "ppf", x=Q),
    *distribution("gumbel_r", ALL),
    *distribution("gumbel_r", "ppf", x=Q),
    *distribution("beta", ALL, positive(), positive(), x=P_ if (P_ := A(3, low=0.05, high=0.95)) else P, grad=False, tolerance=5e-5),
    *distribution("gamma", ALL, positive(), x=positive(), grad=False, tolerance=5e-5),
    *distribution("chi2", ALL, positive(), x=positive(), grad=False, tolerance=5e-5),
    *distribution("pareto", ALL, positive(), x=positive(3, 1.2, 5.0), grad=False),
    *distribution("pareto", "ppf", positive(), x=Q, grad=False),
    *distribution("t", "pdf logpdf", positive(), tolerance=5e-5),
    *distribution("truncnorm", ALL, A(3, low=-3, high=-2, dtype="float32"), A(3, low=1, high=3, dtype="float32"), x=A(3, low=-1.0, high=1.0), dtypes=["float32"], grad=False, tolerance=5e-5),
]  # fmt: skip
