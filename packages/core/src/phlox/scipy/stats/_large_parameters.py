"""Logarithms of gamma and beta densities, without differences of large numbers where parameters are large.

``(a - 1) log(x) - x - gammaln(a)`` of a million is a difference of numbers of 13 million, of which float32 has no
fractions.
"""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._ops.elementwise import large_parameters
from ..._ops.elementwise.formula import Formula
from ..._ops.elementwise.large_parameters import STIRLING
from ..special import betaln, gammaln, xlog1py, xlogy


def log_gamma_density(x: Any, a: Any) -> Any:
    """``log(x**(a - 1) exp(-x) / gamma(a))`` for x of 0 and more."""
    a, x = jnp.broadcast_arrays(a, x)
    # At infinity (a - 1) log(x) - x would be inf - inf.
    near = jnp.where(x == jnp.inf, -jnp.inf, xlogy(a - 1, x) - x) - gammaln(a)
    is_large = _is_large(a) & (x > 0) & (x < jnp.inf)
    y = jnp.where(is_large, x, 1)
    return jnp.where(is_large, _gamma_factor(jnp.where(is_large, a, STIRLING), y) - jnp.log(y), near)


def log_beta_density(x: Any, a: Any, b: Any, shift: Any = 0, near: Any = None) -> Any:
    """``log(x**(a - 1) (1 - x)**(b - 1) / beta(a, b)) + shift`` for x from 0 to 1.

    `near` is the same computed otherwise, for parameters that are not both large.
    """
    a, b, x = jnp.broadcast_arrays(a, b, x)
    if near is None:
        near = xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b) + shift
    is_large = _is_large(a) & _is_large(b) & (x > 0) & (x < 1)
    y = jnp.where(is_large, x, 0.5)
    factor = _beta_factor(jnp.where(is_large, a, STIRLING), jnp.where(is_large, b, STIRLING), y)
    return jnp.where(is_large, factor - jnp.log(y) - jnp.log1p(-y) + shift, near)


def _is_large(a: Any) -> Any:
    return (a >= STIRLING) & (a < jnp.inf)


@custom_jvp
def _gamma_factor(a: Any, x: Any) -> Any:
    return large_parameters.log_gamma_factor(Formula(a), Formula(x)).x


@custom_jvp
def _beta_factor(a: Any, b: Any, x: Any) -> Any:
    return large_parameters.log_beta_factor(Formula(a), Formula(b), Formula(x)).x


def _along(slopes: tuple[Formula, ...], tangents: Any) -> Any:
    return sum(slope.x * t for slope, t in zip(slopes, tangents, strict=True))


@_gamma_factor.defjvp
def _gamma_factor_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    return _gamma_factor(*primals), _along(large_parameters.log_gamma_factor_slopes(*map(Formula, primals)), tangents)


@_beta_factor.defjvp
def _beta_factor_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    return _beta_factor(*primals), _along(large_parameters.log_beta_factor_slopes(*map(Formula, primals)), tangents)
