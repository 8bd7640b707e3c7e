"""Activation functions, softmax and its relatives, one_hot, standardize."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import numpy as jnp
from .._api.derivatives.custom import custom_jvp
from .._api.devices.out_sharding import OutSharding, takes_out_sharding
from .._api.jit.jit import jit
from .._base.docstrings import docs_from
from .._base.errors import ArgumentError, DtypeError, OptionError, ShapeError
from .._base.source import warn
from .._ir import dtypes
from .._ir.avals import shaped
from .._operands.checks import canonical_axes, canonical_axis, check, hashable, integer, type_of
from .._operands.indices import from_front
from .._operands.promotion import common_dtype, promote_inexact, promoted_inexact, to_dtype
from .._operands.short_floats import round_to, widen
from .._ops.elementwise import arithmetic as e, logic
from .._ops.elementwise.error_functions import erfc
from .._ops.reductions.reduce import fast_max
from .._ops.structure.shape import as_array_or_tracer
from ..numpy._creation.from_data import listed
from ..typing import Array, ArrayLike, DTypeLike


@custom_jvp
@jit
def relu(x: ArrayLike) -> Array:
    """The larger of x and 0, elementwise. Its derivative at 0 is 0.

    Args:
      x: real array of any shape.

    Returns:
      An array of the shape and dtype of `x`; integers stay integers.

    >>> relu(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return jnp.maximum(x, 0)


# A rule of its own, because the derivative of the maximum at 0 is 1/2: both operands have a share in it.
relu.defjvps(lambda t, out, x: logic.select_n(x > 0, jnp.zeros_like(t), t))


@custom_jvp
@jit
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6), elementwise. Its derivative at 0 and 6 is 0.

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`.

    >>> relu6(jnp.array([-1.0, 7.0]))
    Array([0., 6.], dtype=float32)
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


# As for relu, at both ends
relu6.defjvps(lambda t, out, x: logic.select_n((x > 0) & (x < 6), jnp.zeros_like(t), t))


@jit
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where positive, else alpha (exp(x) - 1), elementwise (Clevert et al., 2015).

    Args:
      x: real array of any shape; integers are converted to floats.
      alpha: factor of the negative part, a number or an array that broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> elu(jnp.array([2.0]))
    Array([2.], dtype=float32)
    """
    x, alpha = check("elu", x, alpha)
    # The inner `where` avoids the exponential of large x, whose derivative would overflow.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@jit
@docs_from(relu6)
def selu(x: ArrayLike) -> Array:
    """1.0507 * elu(x, 1.6733), elementwise; the constants keep mean 0 and variance 1 (Klambauer et al., 2017).

    >>> selu(jnp.array([1.0]))
    Array([1.0507...], dtype=float32)
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def gated(x: Any, gate: Any) -> Any:
    """x times a gate that closes at -inf, where the product would be nan."""
    return jnp.where(x == -np.inf, 0, x) * gate


@functools.partial(jit, static_argnames="approximate", inline=True)
@docs_from(relu6)
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the distribution function of the standard normal distribution at x (Hendrycks and Gimpel, 2016).

    Args:
      approximate: True approximates that function by a formula with tanh; False computes it by the error function.

    >>> gelu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    (x,) = promote_inexact(*check("gelu", x))
    dtype = type_of(x).dtype
    if approximate:
        root = np.sqrt(2 / np.pi).astype(dtype)
        return gated(x, 0.5 * (1.0 + jnp.tanh(root * (x + 0.044715 * (x**3)))))
    half_root = np.sqrt(0.5).astype(dtype)
    # erfc(-y) is 1 + erf(y) without its cancellation for negative y.
    return gated(0.5 * x, erfc(-x * half_root))


@functools.partial(jit, inline=True)
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), elementwise.

    Args:
      x: real or complex array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and inexact dtype of `x`.

    >>> sigmoid(jnp.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return e.logistic(*promote_inexact(*check("sigmoid", x)))


@functools.partial(jit, inline=True)
@docs_from(sigmoid)
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), elementwise, without overflow.

    >>> softplus(jnp.array([0.0]))
    Array([0.6931...], dtype=float32)
    """
    return jnp.logaddexp(x, 0)


@functools.partial(jit, inline=True)
@docs_from(sigmoid)
def silu(x: ArrayLike) -> Array:
    """x times sigmoid(x), elementwise; also called swish.

    >>> silu(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    (x,) = promote_inexact(*check("silu", x))
    return gated(x, sigmoid(x))


swish = silu


@functools.partial(jit, inline=True)
@docs_from(sigmoid)
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)), elementwise, without overflow.

    >>> log_sigmoid(jnp.array([0.0]))
    Array([-0.6931...], dtype=float32)
    """
    # Not the logarithm of sigmoid(x), which underflows far below 0
    return jnp.negative(softplus(jnp.negative(x)))


@functools.partial(jit, inline=True)
@docs_from(sigmoid)
def soft_sign(x: ArrayLike) -> Array:
    """x / (1 + |x|), elementwise.

    >>> soft_sign(jnp.array([1.0]))
    Array([0.5], dtype=float32)
    """
    # inf / inf would be nan.
    finite = jnp.where(jnp.isinf(x), 0, x)
    return jnp.where(jnp.isinf(x), jnp.sign(x + 0), finite / (jnp.abs(finite) + 1))


@functools.partial(jit, inline=True)
@docs_from(elu)
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x where not negative, else negative_slope times x, elementwise.

    Args:
      negative_slope: factor of the negative part, a number or an array that broadcasts with `x`.

    >>> leaky_relu(jnp.array([-1.0, 1.0]))
    Array([-0.01,  1.  ], dtype=float32)
    """
    x, negative_slope = check("leaky_relu", x, negative_slope)
    return jnp.where(x >= 0, x, negative_slope * x)


@functools.partial(jit, inline=True)
@docs_from(sigmoid)
def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent, elementwise.

    >>> tanh(jnp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return jnp.tanh(x)


@functools.partial(jit, inline=True)
def identity(x: ArrayLike) -> Array:
    """x itself, as an array.

    Args:
      x: array of any shape and dtype, or a number.

    Returns:
      An array of the shape and dtype of `x`.

    >>> identity(jnp.array([1.0]))
    Array([1.], dtype=float32)
    """
    return as_array_or_tracer(*check("identity", x))


# --- softmax --------------------------------------------------------------------------------------------


def _shifted(x: Any, axes: tuple[int, ...], where: Any) -> Any:
    """x minus its largest element, so that exponentials do not overflow; the maximum is not differentiated."""
    x = x if where is None else jnp.where(where, x, dtypes.lowest(type_of(x).dtype))
    return x - _top(x, axes)


def _top(x: Any, axes: tuple[int, ...]) -> Any:
    """The largest elements of `x`, along axes that are kept. Not differentiated; the terms keep what is nan."""
    return jnp.expand_dims(fast_max(e.stop_gradient(x), axes=axes), axes)


def prepared(x: Any, axis: Any, function: str) -> Any:
    """`x` as floats, the axes as non-negative numbers, and the dtype of the result."""
    (x,) = promote_inexact(*check(function, x))
    dtype = type_of(x).dtype
    # Sums of exponentials, and in derivatives of cotangents, are beyond 65,504, the largest number of float16.
    if dtypes.finfo(dtype).maxexp < dtypes.finfo(dtypes.bfloat16).maxexp:
        x = to_dtype(x, dtypes.float32)
    return x, canonical_axes(axis, type_of(x).ndim, function), dtype


def softmax(x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) divided by its sum over `axis`: positive numbers that add up to one.

    Args:
      x: array of any shape; integers are converted to floats.
      axis: axis or axes of the sum, by default the last; None: all.
      where: array of bools that broadcasts to `x`: elements where it is False are left out, and become 0.

    Returns:
      An array of the shape and inexact dtype of `x`.

    Raises:
      AxisError: `x` has no such axis.
      ShapeError: `axis` names an axis twice.

    >>> softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    axis = hashable(axis)
    return _softmax(x, axis) if where is None else _softmax(x, axis, where)


@functools.partial(jit, static_argnames="axis", inline=True)
def _softmax(x: Any, axis: Any, where: Any = None) -> Any:
    x, axes, dtype = prepared(x, axis, "softmax")
    unnormalized = jnp.exp(_shifted(x, axes, where))
    result = unnormalized / jnp.sum(unnormalized, axes, where=where, keepdims=True)
    return round_to(result if where is None else jnp.where(where, result, 0), dtype)


@functools.partial(jit, static_argnames="axis")
@docs_from(softmax)
def log_softmax(x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax`, computed without overflow.

    Args:
      where: array of bools that broadcasts to `x`: elements where it is False are left out, and become -inf.

    >>> log_softmax(jnp.array([0.0, 0.0]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    x, axes, dtype = prepared(x, axis, "log_softmax")
    # Not the logarithm of softmax, which underflows for elements far below the largest
    shifted = _shifted(x, axes, where)
    result = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axes, where=where, keepdims=True))
    return round_to(result if where is None else jnp.where(where, result, -jnp.inf), dtype)


def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """log(sum(b exp(a))) over `axis`, without overflow.

    Args:
      a: array of any shape; integers are converted to floats.
      axis: axis or axes of the sum; None: all.
      b: weights of the terms, an array that broadcasts with `a`; 1 by default.
      keepdims: whether the axes of the sum stay, with length 1.
      return_sign: whether the result is the logarithm of the absolute value of the sum, and the sign of the sum.
      where: array of bools that broadcasts to `a`: terms where it is False are left out.

    Returns:
      An array without the axes of the sum, of the promoted inexact dtype; with `return_sign` two such arrays, of which
      the first is real. An empty sum gives -inf; without `return_sign`, a negative one gives nan.

    Raises:
      AxisError: `a` has no such axis.
      ShapeError: `axis` names an axis twice, or `b` does not broadcast with `a`.

    >>> logsumexp(jnp.array([0.0, 0.0]))
    Array(0.6931472, dtype=float32)
    """
    return _logsumexp(a, hashable(axis), b, keepdims, return_sign, where)


@functools.partial(jit, static_argnames=("axis", "keepdims", "return_sign"), inline=True)
def _logsumexp(a: Any, axis: Any, b: Any, keepdims: bool, return_sign: bool, where: Any) -> Any:
    if b is not None:
        a, b = promoted_inexact("logsumexp", a, b)
        # Where b is 0 the exponential may overflow, and 0 * inf is nan.
        a = jnp.where(b != 0, a, dtypes.lowest(type_of(a).dtype))
    a, axes, dtype = prepared(a, axis, "logsumexp")
    # Replaced here and not only in the sum: 0 times an infinite or nan exponential is nan in the derivative.
    a = a if where is None else jnp.where(where, a, dtypes.lowest(type_of(a).dtype))
    top = _top(jnp.real(a), axes)
    # inf - inf would be nan where the largest element is infinite.
    top = jnp.where(jnp.isfinite(top), top, 0)
    terms = jnp.exp(a - top)
    terms = terms if b is None else terms * round_to(b, type_of(a).dtype)
    total = jnp.sum(terms, axes, keepdims=keepdims, where=where)
    sign = jnp.sign(total) if return_sign else None
    total = jnp.abs(total) if return_sign else total
    out = jnp.log(total) + (top if keepdims else jnp.squeeze(top, axes))
    if return_sign:
        return round_to(out, dtypes.real_part(dtype)), round_to(sign, dtype)
    return round_to(out, dtype)


@functools.partial(jit, static_argnames=("num_classes", "dtype", "axis"), inline=True)
def _one_hot(x: Any, num_classes: int, dtype: Any, axis: int) -> Any:
    (x,) = listed("one_hot", x)
    if dtypes.kind(type_of(x).dtype) in "iu":
        x = from_front(x, None)  # int8 cannot hold the numbers of 200 classes
    rank = type_of(x).ndim
    at = canonical_axis(axis, rank + 1, "one_hot")
    classes = jnp.arange(num_classes, dtype=type_of(x).dtype).reshape(
        [num_classes if i == at else 1 for i in range(rank + 1)]
    )
    return (jnp.expand_dims(x, at) == classes).astype(dtype)


@takes_out_sharding
def one_hot(
    x: ArrayLike | Sequence[Any],
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    out_sharding: OutSharding = None,
) -> Array:
    """Each integer as a vector with a one at that position and zeros elsewhere; all zeros for an integer out of range.

    Args:
      x: integers from 0 to ``num_classes - 1``, an array of any shape or a list; floats cause a `DeprecationWarning`.
      num_classes: length of the vectors.
      dtype: of the result; float32 by default (float64 in x64 mode).
      axis: where the axis of the vectors lies in the result, by default last.

    Returns:
      An array of this dtype, of the shape of `x` with an axis of length `num_classes` inserted.

    Raises:
      ArgumentError: `num_classes` is no integer.
      AxisError: the result has no axis `axis`.
      ShapeError: `num_classes` is negative.

    >>> one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    out_dtype = dtypes.float_dtype(dtype, "one_hot")
    if not hasattr(num_classes, "__index__"):
        raise ArgumentError(f"one_hot: num_classes must be an integer, got {num_classes!r}")
    length = integer("one_hot", "num_classes", num_classes)
    shaped((length,), out_dtype)  # refuses negative lengths
    x = jnp.asarray(x)
    label_dtype = type_of(x).dtype
    if dtypes.kind(label_dtype) not in "iu":
        warn(
            f"jax.nn.one_hot input should be integer-typed; got dtype={label_dtype}: elements that are not whole "
            "numbers have no class",
            DeprecationWarning,
        )
    return _one_hot(x, num_classes=length, dtype=out_dtype, axis=axis)


@functools.partial(jit, static_argnames=("axis", "algorithm"), inline=True)
def standardize(
    x: ArrayLike,
    axis: int | Sequence[int] | None = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / sqrt(variance + epsilon), with mean and variance over `axis` unless given.

    Args:
      x: array of any shape; integers are converted to floats.
      axis: axis or axes of mean and variance, by default the last; None: all.
      mean, variance: arrays that broadcast with `x`; None: those of `x`.
      epsilon: added to the variance.
      where: array of bools that broadcasts to `x`: mean and variance are taken over the elements where it is True.
      algorithm: 'fast' computes the variance as the mean of squares less the square of the mean; 'stable' as the mean
        of squared differences from the mean.

    Returns:
      An array of the broadcast shape (that of `x`, unless `mean` or `variance` has more axes), of the promoted dtype.

    Raises:
      OptionError: there is no such `algorithm`.
      AxisError: `x` has no such axis.
      DtypeError: `x` is complex and there is no `variance`.

    >>> standardize(jnp.array([1.0, -1.0]), epsilon=0.0)
    Array([ 1., -1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise OptionError(f"standardize: unknown algorithm {algorithm!r}", instead="'fast' or 'stable'")
    if variance is None and dtypes.kind(type_of(x).dtype) == "c":
        raise DtypeError(f"standardize: x has type {type_of(x).short}", instead="real numbers, or variance=")
    (x,) = promote_inexact(*check("standardize", x))
    dtype, _ = common_dtype(x, *(v for v in (mean, variance, epsilon) if v is not None))
    x, lost = widen(x), None
    if where is not None and (mean is None or variance is None):
        # Numbers whose result is nan are replaced, so that they do not reach the derivatives of the others.
        where = jnp.broadcast_to(where, np.shape(x))
        empty = jnp.logical_not(jnp.any(where, axis, keepdims=True))
        lost = jnp.logical_or(empty, jnp.logical_not(jnp.logical_or(where, jnp.isfinite(x))))
        x, where = jnp.where(lost, 0, x), where | empty
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable":
        variance = jnp.mean(jnp.square(jnp.subtract(x, mean)), axis, keepdims=True, where=where)
    elif variance is None:
        # Rounding errors may make the difference negative.
        variance = jnp.mean(jnp.square(x), axis, keepdims=True, where=where) - jnp.square(mean)
        variance = jnp.maximum(variance, 0)
    result = jnp.subtract(x, mean) * e.rsqrt(jnp.asarray(variance) + epsilon)
    return round_to(result if lost is None else jnp.where(lost, jnp.nan, result), dtype)


@functools.partial(jit, static_argnames="axis", inline=True)
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of `x` times the sigmoid of the second (Dauphin et al., 2016).

    Args:
      x: array with at least one axis; integers are converted to floats.
      axis: the axis that is cut in halves, of even length; by default the last.

    Returns:
      An array of the shape of `x` with half the length of `axis`, of its inexact dtype.

    Raises:
      ShapeError: the length of `axis` is odd.
      AxisError: `x` has no axis `axis`.

    >>> glu(jnp.array([1.0, 0.0]))
    Array([0.5], dtype=float32)
    """
    axis = canonical_axis(axis, type_of(x).ndim, "glu")
    if type_of(x).shape[axis] % 2:
        raise ShapeError(f"glu: axis {axis} of {type_of(x).short} must have an even length")
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)
