"""Further activation functions: piecewise polynomial ones, smooth ones, and logarithms of sums."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .. import numpy as jnp
from .._api.derivatives.custom import custom_jvp
from .._api.jit.jit import jit
from .._base.docstrings import docs_from
from .._ir import dtypes
from .._operands.checks import check, check_one, type_of
from .._operands.short_floats import round_to
from ..typing import Array, ArrayLike
from ._functions import gated, logsumexp, prepared, relu6, softplus

# --- piecewise ------------------------------------------------------------------------------------------


@jit
def hard_tanh(x: ArrayLike) -> Array:
    """x limited to the interval [-1, 1], elementwise.

    Args:
      x: real array of any shape.

    Returns:
      An array of the shape and dtype of `x`; integers stay integers.

    >>> hard_tanh(jnp.array([-2.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    x = check_one("hard_tanh", x)
    # Unsigned integers do not hold -1, and are not below it.
    above = x if dtypes.kind(type_of(x).dtype) == "u" else jnp.where(x < -1, -1, x)
    return jnp.where(x > 1, 1, above)


@jit
@docs_from(relu6)
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6, elementwise: a piecewise linear approximation of `sigmoid`.

    >>> hard_sigmoid(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return relu6(check_one("hard_sigmoid", x) + 3.0) / 6.0


@jit
@docs_from(relu6)
def hard_silu(x: ArrayLike) -> Array:
    """x times `hard_sigmoid` of x, elementwise (Howard et al., 2019).

    >>> hard_silu(jnp.array([3.0]))
    Array([3.], dtype=float32)
    """
    x = check_one("hard_silu", x)
    return gated(x, hard_sigmoid(x))


hard_swish = hard_silu


@jit
@docs_from(relu6)
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, x from 1 on, and (x + 1)² / 4 between, elementwise.

    >>> sparse_plus(jnp.array([-1.0, 0.0, 1.0]))
    Array([0.  , 0.25, 1.  ], dtype=float32)
    """
    x = check_one("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@jit
def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of `sparse_plus`: 0 up to -1, 1 from 1 on, and (x + 1) / 2 between, elementwise.

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`.

    Raises:
      DtypeError: `x` is complex.

    >>> sparse_sigmoid(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return 0.5 * jnp.clip(check_one("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


# --- smooth ---------------------------------------------------------------------------------------------


@jit
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where positive, else alpha (exp(x / alpha) - 1), elementwise: its derivative is continuous (Barron, 2017).

    Args:
      x: real array of any shape; integers are converted to floats.
      alpha: scale of the negative part, not 0; a number or an array that broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> celu(jnp.array([2.0]))
    Array([2.], dtype=float32)
    """
    # Each summand is defined for all x, so that no derivative overflows in the other's domain.
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@jit
def mish(x: ArrayLike) -> Array:
    """x times tanh(softplus(x)), elementwise (Misra, 2019).

    Args:
      x: real or complex array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and inexact dtype of `x`.

    >>> mish(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    x = check_one("mish", x)
    return gated(x, jnp.tanh(softplus(x)))


@jit
@docs_from(celu)
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x² + b)) / 2, elementwise: a smooth approximation of relu without exponentials (Barron, 2021).

    Args:
      b: the larger, the smoother; a number or an array that broadcasts with `x`.

    >>> squareplus(jnp.array([0.0]))
    Array([1.], dtype=float32)
    """
    x, b = check("squareplus", x, b)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


# --- logarithms of sums ---------------------------------------------------------------------------------


@custom_jvp
@jit
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)), elementwise, for positive x; accurate for small and for large x (Mächler, 2012).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`; nan where x is negative.

    >>> log1mexp(jnp.array([50.0]))
    Array([-1.9287499e-22], dtype=float32)
    """
    x = check_one("log1mexp", x)
    return jnp.where(x < jnp.log(2.0), jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


# 1 / expm1(x), in a form whose own derivative has no quotient of infinities where exp(x) overflows.
log1mexp.defjvps(lambda t, out, x: -t * jnp.exp(-x) / jnp.expm1(-x))


@functools.partial(jit, static_argnames=("axis", "keepdims"))
def logmeanexp(
    x: ArrayLike, axis: int | Sequence[int] | None = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """log(mean(exp(x))) over `axis`, without overflow.

    Args:
      x: array of any shape; integers are converted to floats.
      axis: axis or axes of the mean; None: all.
      where: array of bools that broadcasts to `x`: elements where it is False are left out.
      keepdims: whether the axes of the mean stay, with length 1.

    Returns:
      An array without the axes of the mean, of the inexact dtype of `x`.

    Raises:
      AxisError: `x` has no such axis.

    >>> logmeanexp(jnp.array([1.0, 1.0]))
    Array(1., dtype=float32)
    """
    x, axes, dtype = prepared(x, axis, "logmeanexp")
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    if where is None:
        count: Any = jnp.asarray(1, total.dtype)
        for i in axes:
            count = count * type_of(x).shape[i]
    else:
        chosen = jnp.broadcast_to(where, type_of(x).shape)
        count = jnp.sum(chosen, axis=axis, keepdims=keepdims, dtype=total.dtype)
    return round_to(total - jnp.log(count), dtype)
