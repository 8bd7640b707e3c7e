"""``phlox.random``: random numbers from explicit keys, the same streams as ``jax.random``.

    key = random.key(0)
    key, subkey = random.split(key)
    x = random.normal(subkey, (3,))

Functions take new-style keys (`key`) and old-style ones (`PRNGKey`, arrays of two uint32).
"""

from .._base.public_names import publish
from .._ops.random.gamma import random_gamma as random_gamma_p
from ..typing import Key
from ._choices import categorical, choice, geometric, rademacher
from ._counts import binomial, multinomial, poisson
from ._distributions import (
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    triangular,
    wald,
    weibull_min,
)
from ._gammas import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from ._keys import PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data
from ._samplers import bernoulli, bits, normal, permutation, randint, truncated_normal, uniform
from ._vectors import multivariate_normal, orthogonal

__all__ = [
    "Key",
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "random_gamma_p",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]


publish(__name__)
