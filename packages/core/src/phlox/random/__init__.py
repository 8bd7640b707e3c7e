"""``phlox.random``: random numbers from explicit keys, the same streams as ``jax.random``.

    key = random.key(0)
    key, subkey = random.split(key)
    x = random.normal(subkey, (3,))

Functions take new-style keys (`key`) and old-style ones (`PRNGKey`, arrays of two uint32).
"""

from ._choices import categorical, choice, geometric, rademacher
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
from ._keys import PRNGKey, clone, fold_in, key, key_data, key_impl, split, wrap_key_data
from ._samplers import bernoulli, bits, normal, permutation, randint, truncated_normal, uniform

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "clone",
    "double_sided_maxwell",
    "exponential",
    "fold_in",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_impl",
    "laplace",
    "logistic",
    "lognormal",
    "maxwell",
    "normal",
    "pareto",
    "permutation",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]
