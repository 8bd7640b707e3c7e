"""Approximate samples of gamma and Poisson distributions without loops, for ``method="approximate"``.

Sources: R. B. Goldstein, Algorithm 451: chi-square quantiles, CACM 16 (1973); A. Stuart, Biometrika 49 (1962), for
small shape parameters; D. B. Peizer and J. W. Pratt, JASA 63 (1968), for Poisson distributions of large means.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import lax, numpy as jnp
from .._api.jit.jit import jit
from .._base.errors import OptionError
from .._ir import dtypes
from .._operands.checks import type_of
from .._ops.random import keys as ops
from .._ops.structure.shape import convert
from ._distributions import exponential
from ._samplers import normal


def check_method(function: str, method: str) -> None:
    """Raises `OptionError` unless `method` is ``"exact"`` or ``"approximate"``."""
    if method not in ("exact", "approximate"):
        raise OptionError(f"{function}: method must be 'exact' or 'approximate', got {method!r}")


# --- gamma ----------------------------------------------------------------------------------------------

#: Goldstein's coefficients of z^i nu^(-i/2 - j). The first is 1 instead of 1.0000886, so that large nu have no bias.
_QUANTILE = (
    (1.0, -0.2237368, -0.01513904),
    (0.4713941, 0.02607083, -0.008986007),
    (0.0001348028, 0.01128186, 0.02277679),
    (-0.008553069, -0.01153761, -0.01323293),
    (0.00312558, 0.005169654, -0.006950356),
    (-0.0008426812, 0.00253001, 0.001060438),
    (0.00009780499, -0.001450117, 0.001565326),
)
#: The shape parameter is raised by 4, from where on the quantiles are accurate.
_RAISED = 4


def _log_of_large(key: Any, a: Any) -> Any:
    """Logarithms of gamma samples for shape parameters above 4, as the cubes of polynomials of normal numbers."""
    degrees = 2 * a
    z = normal(key, type_of(a).shape, type_of(a).dtype)
    inverse = 1 / degrees
    scaled = z * lax.rsqrt(degrees)
    root = lax.polynomial(scaled, [lax.polynomial(inverse, row) for row in _QUANTILE])
    # Far in the lower tail the polynomial may be negative.
    root = jnp.maximum(root, dtypes.finfo(type_of(a).dtype).tiny)
    return jnp.log(a) + 3 * jnp.log(root)


@functools.partial(jit, static_argnums=(2, 3, 4))
def approximate_gamma(key: Any, a: Any, shape: tuple[int, ...], dtype: Any, log_space: bool) -> Any:
    """Approximate gamma samples, or their logarithms if `log_space`.

    If G has the shape parameter a + 4, then G U0^(1/a) U1^(1/(a + 1)) ... U3^(1/(a + 3)) has the parameter a, for
    independent uniform numbers U.
    """
    wide = np.dtype(np.float32) if dtypes.finfo(dtype).bits < 32 else dtype
    a = jnp.broadcast_to(convert(a, wide), shape)
    large, small = ops.random_split(key, shape=(2,))
    log_large = _log_of_large(large, a + _RAISED)
    # A gamma number of a is one of a + 4 times the product of u**(1 / (a + k)) for k = 0 … 3, each with its own uniform
    # u.
    steps = jnp.arange(_RAISED, dtype=wide).reshape((_RAISED,) + (1,) * len(shape))
    log_uniform = -exponential(small, (_RAISED, *shape), wide)
    out = log_large + jnp.sum(log_uniform / (a[None, ...] + steps), axis=0)
    return convert(out if log_space else lax.exp(out), dtype)


# --- Poisson --------------------------------------------------------------------------------------------

#: the mean from which on the normal approximation is used: its error of the distribution function is then 6e-5
_LARGE_MEAN = 7.0
#: the number of counts below that; larger ones have a probability of 4e-5 at the mean 7
_COUNTS = 20


def _by_inversion(u: Any, mean: Any) -> Any:
    """The number of values of the distribution function that are less than `u`."""
    probability = lax.exp(-mean)
    total = probability
    count = convert(total < u, type_of(u).dtype)
    for k in range(1, _COUNTS - 1):
        probability = probability * (mean / k)
        total = total + probability
        count = count + convert(total < u, type_of(u).dtype)
    return count


def _variance_term(y: Any) -> Any:
    """Peizer and Pratt's (1 - y² + 2 y log y) / (1 - y)², by its series around 1, where it cancels."""
    d = y - 1
    near = jnp.abs(d) < 0.25
    series = d * lax.polynomial(d, [2 * (-1) ** k / ((k + 1) * (k + 2)) for k in range(1, 10)], unroll=9)
    far, step = jnp.where(near, 2.0, y), jnp.where(near, 1.0, d)
    return jnp.where(near, series, (1 - jnp.square(far) + 2 * far * jnp.log(far)) / jnp.square(step))


def _normal_score(x: Any, mean: Any) -> Any:
    """Peizer and Pratt's z, for which the probability of at most `x` is the normal distribution function at z."""
    spread = _variance_term((x + 0.5) / mean)
    return (x - mean + 2 / 3 + 0.02 / (x + 1)) * jnp.sqrt((1 + spread) / mean)


def _by_normal_score(z: Any, mean: Any) -> Any:
    """The least integer whose score is at least `z`, among three around a Cornish-Fisher approximation."""
    root = jnp.sqrt(mean)
    guess = mean + root * z - 2 / 3 + jnp.square(z) / 6 + z * (1 - jnp.square(z)) / (72 * root)
    middle = jnp.ceil(guess + 0.6)  # the error of the guess is between -0.4 and 1.6

    def reaches(x: Any) -> Any:
        score = jnp.where(x < 0, -np.inf, _normal_score(jnp.maximum(x, 0.0), mean))
        return convert(score >= z, type_of(middle).dtype)

    return jnp.maximum(middle + 1 - reaches(middle) - reaches(middle - 1), 0.0)


@functools.partial(jit, static_argnums=(2, 3))
def approximate_poisson(key: Any, lam: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Approximate Poisson counts: a normal number each, mapped to the count of the same quantile."""
    from ..scipy.special import ndtr  # here, as the modules of distributions import `phlox.random`

    lam_dtype = type_of(lam).dtype
    is_wide = (dtypes.kind(lam_dtype) == "f" and dtypes.bits(lam_dtype) > 32) or np.dtype(dtype).itemsize > 4
    wide = np.dtype(np.float64 if is_wide else np.float32)
    mean = lax.broadcast_to_rank(convert(lam, wide), len(shape))
    z = normal(key, shape, wide)
    counts = jnp.where(mean < _LARGE_MEAN, _by_inversion(ndtr(z), mean), _by_normal_score(z, mean))
    return convert(counts, dtype)
