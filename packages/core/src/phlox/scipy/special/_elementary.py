"""Error functions, logistic functions, entropies, and Box-Cox transforms."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._ir import dtypes
from ..._operands.checks import check, check_one, type_of
from ..._operands.promotion import promote_inexact, promoted_inexact, to_dtype
from ..._ops.elementwise.families import literal
from ...nn._functions import log_softmax as nn_log_softmax, sigmoid, softmax as nn_softmax
from ...typing import Array, ArrayLike
from ._shared import polynomial, real_inexact


def erf(x: ArrayLike) -> Array:
    """The error function, elementwise (as ``scipy.special.erf``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`.

    Raises:
      DtypeError: `x` is complex.

    >>> erf(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.erf(*real_inexact("erf", x))


@docs_from(erf)
def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), elementwise, accurate where erf(x) is close to 1 (as ``scipy.special.erfc``).

    >>> erfc(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.erfc(*real_inexact("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """The inverse of erf, elementwise (as ``scipy.special.erfinv``).

    Args:
      x: real array of any shape, between -1 and 1; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`: -inf at -1, inf at 1, and nan outside.

    Raises:
      DtypeError: `x` is complex.

    >>> erfinv(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.erf_inv(*real_inexact("erfinv", x))


def erfcinv(y: ArrayLike) -> Array:
    """The inverse of erfc, elementwise (as ``scipy.special.erfcinv``).

    It is accurate for tiny `y`, where ``erfinv(1 - y)`` is infinite.

    Args:
      y: real array of any shape, between 0 and 2; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `y`: inf at 0, -inf at 2, and nan outside.

    Raises:
      DtypeError: `y` is complex.

    >>> erfcinv(1e-30).round(4)
    Array(8.1486, dtype=float32, weak_type=True)
    """
    return _erfcinv(*real_inexact("erfcinv", y))


@jit(inline=True)
def _erfcinv(y: Any) -> Any:
    from ._normal import ndtri  # here, as that module imports this one

    dtype, weak = type_of(y).dtype, type_of(y).weak_type
    # `ndtri`, as JAX's, takes float32 and float64 only.
    wide = to_dtype(y, dtypes.float32) if dtype.itemsize < 4 else y
    # The quantile of the normal distribution: erfc(z) = 2 ndtr(-z √2). Subtracted from 0, so that 1 gives no -0.
    quantile = ndtri(wide * 0.5)
    return to_dtype(0 - quantile * float(np.sqrt(0.5)), dtype, weak)


def expit(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), elementwise (as ``scipy.special.expit``).

    Args:
      x: real or complex array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and inexact dtype of `x`.

    >>> expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return sigmoid(check_one("expit", x))


# A rule of its own, as through the quotient the derivative at 1 is 0 * inf = nan.
@custom_jvp
def _logit(x: Any) -> Any:
    one = literal(x, 1)
    if dtypes.kind(type_of(x).dtype) == "c":
        return lax.log(x / (one - x))
    # log(x / (1 - x)) with all digits near 1/2 too. The difference is exact there, and the quotient is not negative.
    nearer = jnp.where(x == 0, literal(x, 0), jnp.minimum(x, one - x))  # without the sign of -0
    size = lax.log1p(abs(2 * x - one) / nearer)
    return jnp.where(x < 0.5, -size, size)


_logit.defjvps(lambda t, out, x: t / (x * (1 - x)))


@jit(inline=True)
def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)), elementwise (as ``scipy.special.logit``); the inverse of `expit`.

    Args:
      x: real or complex array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and inexact dtype of `x`: -inf at 0, inf at 1, and nan for other reals outside of (0, 1).

    >>> logit(0.5)
    Array(0., dtype=float32, weak_type=True)
    """
    return _logit(*promote_inexact(*check("logit", x)))


# --- x log y --------------------------------------------------------------------------------------------


def _times_log(log: Any, shift: int) -> Any:
    # Through `where` the derivative by x at x = 0 would be 0 and not log(y).
    @custom_jvp
    def function(x: Any, y: Any) -> Any:
        return jnp.where((x != 0.0) | jnp.isnan(y), x * log(y), jnp.zeros_like(x))

    @function.defjvp
    def _(primals: Any, tangents: Any) -> tuple[Any, Any]:
        (x, y), (s, t) = primals, tangents
        out = function(x, y)
        return out, (s * log(y) + t * x / (shift + y if shift else y)).astype(out.dtype)

    return function


_xlogy, _xlog1py = _times_log(lax.log, 0), _times_log(lax.log1p, 1)


@jit(inline=True)
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x * log(y), elementwise, and 0 where x is 0 (as ``scipy.special.xlogy``).

    Args:
      x, y: real or complex arrays that broadcast with each other; integers are converted to floats.

    Returns:
      An array of the broadcast shape, of the promoted inexact dtype; nan where `y` is nan.

    >>> xlogy(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _xlogy(*promoted_inexact("xlogy", x, y))


@jit(inline=True)
@docs_from(xlogy)
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x * log(1 + y), elementwise, and 0 where x is 0 (as ``scipy.special.xlog1py``).

    >>> xlog1py(0.0, -1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _xlog1py(*promoted_inexact("xlog1py", x, y))


# By the rule of xlogy the derivative at 0 would contain 0 / 0.
@custom_jvp
def _xlogx(x: Any) -> Any:
    return _xlogy(x, x)


_xlogx.defjvps(lambda t, out, x: t * (lax.log(x) + 1))


@jit(inline=True)
def entr(x: ArrayLike) -> Array:
    """-x * log(x), elementwise, 0 at 0 and -inf below (as ``scipy.special.entr``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`.

    Raises:
      DtypeError: `x` is complex.

    >>> entr(1.0)
    Array(-0., dtype=float32, weak_type=True)
    """
    (x,) = real_inexact("entr", x)
    return jnp.where(x < 0, -jnp.inf, -_xlogx(x))


@jit(inline=True)
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p * log(p / q), elementwise, 0 where p is 0, inf where either is negative (as ``scipy.special.rel_entr``).

    Args:
      p, q: real arrays that broadcast with each other; integers are converted to floats.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; inf also where `q` is 0 and `p` is not.

    Raises:
      DtypeError: an argument is complex.

    >>> rel_entr(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    p, q = real_inexact("rel_entr", p, q)
    # Numbers outside of the domain are replaced before the logarithms: where `where` drops a nan afterwards, reverse
    # mode still multiplies its derivative by 0.
    both = (p > 0) & (q > 0)
    safe_p, safe_q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    return _outside_of_both(p, q, _rel_entr(safe_p, safe_q), literal(p, 0))


def _outside_of_both(p: Any, q: Any, value: Any, at_zero: Any) -> Any:
    """`value` where both are positive, `at_zero` where p is 0, and inf where there is no entropy; nan stays."""
    value = jnp.where((p > 0) & (q > 0), value, jnp.where((p == 0) & (q >= 0), at_zero, np.inf))
    return jnp.where((p == p) & (q == q), value, np.nan)


def _distance(p: Any, q: Any) -> tuple[Any, Any]:
    """The mask of p / q from 0.5 to 2, and p / q - 1 under it, whose rounding error is relative."""
    # Within this factor of two p - q is exact (Sterbenz), so log1p of the quotient keeps the digits that log(p / q)
    # loses.
    close = (p > 0.5 * q) & (p < 2 * q)
    return close, jnp.where(close, p - q, 0) / q


@custom_jvp
def _rel_entr(p: Any, q: Any) -> Any:
    close, d = _distance(p, q)
    # The quotient may be too large or too small where the logarithms are not.
    return p * jnp.where(close, jnp.log1p(d), lax.log(p) - lax.log(q))


@_rel_entr.defjvp
def _rel_entr_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (p, q), (s, t) = primals, tangents
    close, d = _distance(p, q)
    return _rel_entr(p, q), s * (1 + jnp.where(close, jnp.log1p(d), lax.log(p) - lax.log(q))) - t * (p / q)


#: of (1 + d) log(1 + d) - d, the sum of (-1)**k d**k / (k (k - 1)), without the factor d**2, highest power first
_NEAR_ONE = [(-1.0) ** k / (k * (k - 1)) for k in range(20, 1, -1)]


@custom_jvp
def _kl_div(p: Any, q: Any) -> Any:
    close, d = _distance(p, q)
    # Close to p = q the three terms cancel to q d**2 / 2; the series has this factor in front.
    near = jnp.abs(d) < 0.125
    d = jnp.where(near, d, 0)
    # The coefficients have the type that JAX gives the result, weak for numbers alone: `polynomial` has no such.
    series = functools.reduce(lambda total, c: total * d + literal(d, c), _NEAR_ONE, jnp.zeros_like(d))
    series = q * (d * d * series)
    return jnp.where(close & near, series, _rel_entr(p, q) + (q - p))


@_kl_div.defjvp
def _kl_div_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (p, q), (s, t) = primals, tangents
    close, d = _distance(p, q)
    log = jnp.where(close, jnp.log1p(d), lax.log(p) - lax.log(q))
    return _kl_div(p, q), s * log - t * jnp.where(close, d, p / q - 1)


@jit(inline=True)
@docs_from(rel_entr)
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p * log(p / q) - p + q, elementwise (as ``scipy.special.kl_div``).

    Returns:
      An array of the broadcast shape, of the promoted floating dtype: `q` where `p` is 0, and inf where either is
      negative, or `q` is 0 and `p` is not.

    >>> kl_div(1.0, 1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    p, q = real_inexact("kl_div", p, q)
    both = (p > 0) & (q > 0)
    return _outside_of_both(p, q, _kl_div(jnp.where(both, p, 1), jnp.where(both, q, 1)), q)


# --- powers ---------------------------------------------------------------------------------------------


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _box(origin: int, x: Any, lmbda: Any) -> Any:
    """((x + origin)**lmbda - 1) / lmbda for an origin of 0 or 1."""
    log = jnp.log1p(x) if origin else jnp.log(x)
    # For such small products the result is log(x) to rounding, and lmbda = 0 would divide by 0.
    linear = (lmbda == 0) | (jnp.abs(lmbda * log) < dtypes.finfo(type_of(x).dtype).eps)
    safe = jnp.where(linear, 1, lmbda)
    return jnp.where(linear, log, jnp.expm1(safe * log) / safe)


@_box.defjvp
def _box_jvp(origin: int, primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    # By lmbda not by the quotient, whose digits cancel where lmbda is small.
    (x, lmbda), (t_x, t_lmbda) = primals, tangents
    # With L = log(x), (x**lmbda - 1) / lmbda is L times the integral of exp(s lmbda L) over s from 0 to 1.
    log = jnp.log1p(x) if origin else jnp.log(x)
    # At -inf the product is inf * 0. There the function is -1 / lmbda.
    edge = (log == -jnp.inf) & (lmbda > 0)
    log = jnp.where(edge, 0, log)
    by_lmbda = jnp.square(log) * _mean_of_powers(1, lmbda * log)
    by_lmbda = jnp.where(edge, 1 / jnp.square(jnp.where(edge, lmbda, 1)), by_lmbda)
    by_x = (x + origin) ** (lmbda - 1)
    return _box(origin, x, lmbda), t_x * by_x + t_lmbda * by_lmbda


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _mean_of_powers(n: int, u: Any) -> Any:
    """The integral of s**n exp(s * u) over s from 0 to 1; the derivative is that for n + 1."""
    near = jnp.abs(u) < 1
    small, safe = jnp.where(near, u, 0), jnp.where(near, 1, u)
    # 18 terms suffice for abs(u) < 1, as 1 / 18! is less than the rounding error of float64.
    series = polynomial(small, [1 / (math.factorial(k) * (k + n + 1)) for k in reversed(range(18))])
    # Integration by parts gives the recurrence in n; its numerator cancels for small u, hence the series.
    before = jnp.expm1(safe) / safe if n == 1 else _mean_of_powers(n - 1, safe)
    return jnp.where(near, series, (jnp.exp(safe) - n * before) / safe)


@_mean_of_powers.defjvp
def _mean_of_powers_jvp(n: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    return _mean_of_powers(n, *primals), tangents[0] * _mean_of_powers(n + 1, *primals)


@jit(inline=True)
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """(x**lmbda - 1) / lmbda, elementwise, and log(x) where lmbda is 0 (as ``scipy.special.boxcox``).

    Args:
      x: array of any shape; integers are converted to floats.
      lmbda: exponent, a number or an array that broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted inexact dtype; nan where `x` is negative.

    >>> boxcox(3.0, 2.0)
    Array(4., dtype=float32, weak_type=True)
    """
    x, lmbda = promoted_inexact("boxcox", x, lmbda)
    return _box(0, x, lmbda)


@jit(inline=True)
@docs_from(boxcox)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """`boxcox` of 1 + x, elementwise (as ``scipy.special.boxcox1p``), accurate for small x.

    Returns:
      An array of the broadcast shape, of the promoted inexact dtype; nan where `x` is less than -1.

    >>> boxcox1p(0.0, 2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x, lmbda = promoted_inexact("boxcox1p", x, lmbda)
    return _box(1, x, lmbda)


# --- normalized exponentials ----------------------------------------------------------------------------


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """exp(x) divided by its sum over `axis`, by default over all (as ``scipy.special.softmax``).

    Args:
      x: array of any shape; integers are converted to floats.
      axis: axis or axes to sum over; None means all axes.

    Returns:
      An array of the shape and inexact dtype of `x`.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: `axis` names an axis twice.

    >>> softmax(np.zeros(2, np.float32))
    Array([0.5, 0.5], dtype=float32)
    """
    return nn_softmax(x, axis=axis)


@docs_from(softmax)
def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """The logarithm of `softmax`, computed without overflow (as ``scipy.special.log_softmax``).

    >>> log_softmax(np.zeros(2, np.float32))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    return nn_log_softmax(x, axis=axis)
