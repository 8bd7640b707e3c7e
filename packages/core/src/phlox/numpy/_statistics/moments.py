"""Moments over axes: means, variances, standard deviations, weighted averages."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import DtypeError, OptionError, ShapeError
from ..._ir import dtypes
from ..._ir.dimensions import is_symbolic
from ..._operands.checks import canonical_axes, check, check_one, hashable, refuse_out, type_of
from ..._operands.promotion import promote_inexact, to_dtype
from ..._operands.short_floats import round_to, summing_dtype, widen
from ..._ops.elementwise import arithmetic as e, logic
from ..._ops.structure.numbers import scalar_of
from ..._ops.structure.shape import reshape, transpose
from ...typing import Array, ArrayLike, DTypeLike
from .._elementwise.binary import divide, multiply, subtract
from .._elementwise.choose import where as select_elements
from .._elementwise.unary import is_kind
from .._manipulation.broadcasting import broadcast_to
from .reductions import STATIC_OPTIONS, Axis, apply_mask, sum, sum_as


def _count(a: Any, axes: tuple[int, ...], mask: Any, dtype: Any, keepdims: bool) -> Any:
    """The number of elements that each result reduces."""
    if mask is None:
        count = math.prod(type_of(a).shape[i] for i in axes)
        return to_dtype(count.as_value(), dtype) if is_symbolic(count) else scalar_of(count, dtype)
    return sum_as(broadcast_to(mask, type_of(a).shape), axes, dtype, keepdims)


@functools.partial(jit, inline=True, static_argnames=("computed", *STATIC_OPTIONS))
def _mean(a: Any, axis: Any, computed: Any, dtype: Any, keepdims: bool, where: Any = None) -> Any:
    axes = canonical_axes(axis, type_of(a).ndim, "mean")
    count = _count(a, axes, where, computed, keepdims)
    return to_dtype(e.div(sum_as(a, axes, computed, keepdims, where=where), count), dtype)


def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The arithmetic mean of `a` over `axis` (as ``numpy.mean``).

    Args:
      a: array of any dtype and shape.
      axis: axis or axes to reduce over; None reduces over all axes.
      dtype: dtype of the accumulator and of the result; None is the dtype of `a`, or a float dtype for integers and
        bools; 16-bit floats are summed in float32.
      out: not supported, must be None: arrays cannot be changed in place.
      keepdims: True keeps the reduced axes, with length one.
      where: array of bools that broadcasts to `a`, True for the elements to include; None includes all.

    Returns:
      An array without the reduced axes; nan where there are no elements.

    Raises:
      DtypeError: `where` is not of bools.

    >>> jnp.mean(jnp.array([1, 2, 3, 4]))
    Array(2.5, dtype=float32)
    """
    a = check_one("mean", a)
    if out is not None:
        refuse_out("mean", out)
    if axis is not None:
        axis = hashable(axis)
    if dtype is None:
        result = dtypes.to_inexact(type_of(a).dtype)
        computed = summing_dtype(result)
    else:
        result = computed = dtypes.user_dtype(dtype, "mean")
    if where is None:
        return _mean(a, axis, computed, result, keepdims)
    return _mean(a, axis, computed, result, keepdims, where)


@functools.partial(jit, static_argnames=("function", "computed", "root", *STATIC_OPTIONS))
def _var(
    a: Any,
    function: str,
    axis: Any,
    computed: Any,
    dtype: Any,
    ddof: Any,
    keepdims: bool,
    where: Any,
    middle: Any,
    root: bool,
) -> Any:
    """The variance, or its square root."""
    axes = canonical_axes(axis, type_of(a).ndim, function)
    # Replaced here and not only in the sums: 0 times the distance of a masked nan is nan in the derivative.
    a = apply_mask(function, to_dtype(a, computed), where, 0)
    # Two passes, as the mean of the squares minus the square of the mean cancels
    centered = subtract(a, _mean(a, axes, computed, computed, True, where) if middle is None else middle)
    squares = e.real(e.mul(centered, e.conj(centered))) if is_kind(centered, "c") else e.square(centered)
    real = type_of(squares).dtype
    freedom = e.sub(_count(a, axes, where, real, keepdims), to_dtype(ddof, real))
    quotient = e.div(sum_as(squares, axes, real, keepdims, where=where), freedom)
    if not root:
        quotient = to_dtype(quotient, dtype)
    # No more observations than `ddof`: nan, where the quotient may be infinite or negative.
    inexact = type_of(quotient).dtype
    nothing = to_dtype(np.nan, inexact) if dtypes.is_inexact(inexact) else np.nan
    quotient = select_elements(logic.gt(freedom, to_dtype(0, real)), quotient, nothing)
    # The variance of float16 may be out of the range of its root.
    return to_dtype(e.sqrt(quotient), dtype) if root else quotient


def _variance_dtypes(function: str, aval: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtype in which to compute a variance, and the dtype of the result."""
    if dtype is None:
        inexact = dtypes.to_inexact(aval.dtype)
        return summing_dtype(inexact), dtypes.real_part(inexact)
    result = dtypes.user_dtype(dtype, function)
    if dtypes.kind(aval.dtype) == "c" and dtypes.kind(result) != "c":
        raise DtypeError(
            f"{function}: {aval.short} cannot be computed in {result.name}", instead="a complex dtype, or none"
        )
    return summing_dtype(result), result


@docs_from(mean)
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | None = None,
) -> Array:
    """The variance of `a` over `axis`: the mean square distance from the mean (as ``numpy.var``).

    The sum of the squares is divided by the number of elements less `ddof`.

    Args:
      dtype: dtype of the computation and of the result; None is the dtype of `a`, or a float dtype for integers and
        bools; 16-bit floats are computed in float32.
      ddof: delta degrees of freedom: the sum of squares is divided by the number of elements minus `ddof`.
      mean: precomputed mean, an array that broadcasts against `a`; None computes the mean.
      correction: another name for `ddof`, from the array API standard.

    Returns:
      An array without the reduced axes, real unless `dtype` is complex; nan where the divisor is not positive.

    Raises:
      OptionError: both `ddof` and `correction` are given.
      DtypeError: `a` is complex and `dtype` is not; `where` is not of bools.

    >>> jnp.var(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    refuse_out("var", out)
    freedom = _freedom("var", ddof, correction)
    return variance("var", a, axis, dtype, freedom, keepdims, where, mean, root=False)


def _freedom(function: str, ddof: Any, correction: Any) -> Any:
    """The number subtracted from the number of elements: `ddof` or `correction`, which are one option."""
    if correction is None:
        return ddof
    if not isinstance(ddof, int) or ddof != 0:
        raise OptionError(
            f"{function}: ddof and correction can't be provided simultaneously.", instead="correction=..."
        )
    return correction


def variance(
    function: str, a: Any, axis: Axis, dtype: Any, ddof: Any, keepdims: bool, where: Any, mean: Any, root: bool
) -> Any:
    """The variance of `a`, or its square root, for the public function of this name."""
    if root and dtype is not None and not dtypes.is_inexact(dtypes.user_dtype(dtype, function)):
        raise DtypeError(f"{function}: dtype={dtype!r} has no roots", instead="a float or complex dtype")
    a = check_one(function, a)
    computed, result = _variance_dtypes(function, type_of(a), dtype)
    middle = None if mean is None else check(function, mean)[0]
    options = {"computed": computed, "dtype": result, "ddof": ddof, "keepdims": keepdims, "root": root}
    return _var(a, function, axis=hashable(axis), where=where, middle=middle, **options)


@docs_from(var)
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | None = None,
) -> Array:
    """The standard deviation of `a` over `axis`: the square root of `var` (as ``numpy.std``).

    Args:
      dtype: float or complex dtype of the computation and of the result; None chooses it as for `var`.

    Raises:
      DtypeError: `dtype` is neither a float nor complex; `a` is complex and `dtype` is not; `where` is not of bools.

    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    refuse_out("std", out)
    freedom = _freedom("std", ddof, correction)
    return variance("std", a, axis, dtype, freedom, keepdims, where, mean, root=True)


def average(
    a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Array | tuple[Array, Array]:
    """The weighted mean of `a` over `axis` (as ``numpy.average``).

    Args:
      a: array of any dtype; integers and bools become floats.
      axis: axis or axes to reduce over; None reduces over all axes.
      weights: weights of the elements: an array of the shape of `a`, or of the lengths of the axes in `axis`; None
        gives all elements equal weights.
      returned: True also returns the sum of the weights.
      keepdims: True keeps the reduced axes, with length one.

    Returns:
      An array of floats without the reduced axes, or with `returned` a pair of it and the sums of weights.

    Raises:
      ShapeError: the shape of `weights` matches neither `a` nor the lengths of `axis`.

    >>> jnp.average(jnp.array([1.0, 3.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.5, dtype=float32)
    """
    return _average(check_one("average", a), weights, axis=hashable(axis), returned=returned, keepdims=keepdims)


@functools.partial(jit, inline=True, static_argnames=("axis", "returned", "keepdims"))
def _average(a: Any, weights: Any, axis: Any, returned: bool, keepdims: bool) -> Any:
    axes = canonical_axes(axis, type_of(a).ndim, "average")
    total: Any
    if weights is None:
        (a,) = promote_inexact(a)
        out = mean(a, axes, keepdims=keepdims)
        total = _count(a, axes, None, type_of(out).dtype, False)
    else:
        a, weights = promote_inexact(a, *check("average", weights))
        if type_of(weights).shape != type_of(a).shape:
            weights = weights_along("average", a, weights, axis, axes)
        dtype = type_of(a).dtype
        a, weights = widen(a), widen(weights)
        total = sum(weights, axes, keepdims=keepdims)
        out = round_to(divide(sum(multiply(a, weights), axes, keepdims=keepdims), total), dtype)
        total = round_to(total, dtype)
    return (out, broadcast_to(total, type_of(out).shape)) if returned else out


def weights_along(function: str, a: Any, weights: Any, axis: Axis, axes: tuple[int, ...]) -> Any:
    """Weights for some axes of `a`, with axes of length one inserted for the others."""
    if axis is None or type_of(weights).shape != tuple(type_of(a).shape[i] for i in axes):
        raise ShapeError(
            f"{function}: weights {type_of(weights).short} do not fit {type_of(a).short}",
            instead="weights of the shape of a, or one for each element along axis",
        )
    order = tuple(int(i) for i in np.argsort(axes))
    sizes = tuple(n if i in axes else 1 for i, n in enumerate(type_of(a).shape))
    return reshape(transpose(weights, permutation=order), new_sizes=sizes, dimensions=None)
