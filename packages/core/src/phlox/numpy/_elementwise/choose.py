"""Elementwise selection and rounding: where, clip, round, rint, nan_to_num."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._api.jit.jit import jit, jitted_alias
from ..._base.errors import DtypeError
from ..._ir import dtypes
from ..._operands.broadcasting import where as select_elements
from ..._operands.checks import check, check_one, integer, refuse_out, type_of
from ..._operands.integers import saturated, unheld
from ..._operands.promotion import promote_shapes, to_dtype
from ..._ops.elementwise import arithmetic as e, logic
from ..._ops.elementwise.families import literal
from ...typing import Array, ArrayLike
from .binary import maximum, minimum
from .unary import as_bool, is_kind, isnan


@jit
def _where(condition: Any, x: Any, y: Any) -> Any:
    return select_elements(as_bool(condition), x, y)


def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition` is true, `y` elsewhere: `phlox.numpy.where` with three arguments."""
    return _where(*check("where", condition, x, y))


@jit
def _clip(arr: Any, min: Any, max: Any) -> Any:
    for x in check("clip", *(v for v in (arr, min, max) if v is not None)):
        if is_kind(x, "c"):
            raise DtypeError(
                "clip: Complex values have no ordering and cannot be clipped", instead="clip x.real, x.imag"
            )
    # The upper bound comes last, so that it wins where min > max, as in NumPy.
    for bound, apply in ((min, maximum), (max, minimum)):
        if bound is not None:
            # A bound that the dtype of `arr` does not hold becomes its nearest number, which clips the same elements.
            if unheld(arr, bound) == 1:
                bound, _ = saturated(bound, type_of(arr).dtype)
            arr = apply(*promote_shapes("clip", bound, arr))
    return arr


_jitted_clip = jitted_alias(_clip, "clip")


def clip(arr: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """`arr` with values below `min` raised to it and values above `max` lowered to it (as ``numpy.clip``).

    A nan in any argument gives nan. Where `min` is larger than `max`, the result is `max`. An integer bound may be out
    of the range of the dtype of `arr`, on the side where it does not bound.

    Args:
      arr: real array of any shape, or a number.
      min, max: lower and upper bound, arrays or numbers that broadcast against `arr`; None means no bound.

    Returns:
      An array of the broadcast shape, of the dtype to which the arguments are promoted.

    Raises:
      DtypeError: an argument is complex.
      NumberRangeError: `min` or `max` is a Python integer by which all results would be out of the range of the dtype.

    >>> jnp.clip(jnp.array([-1.0, 0.5, 2.0]), 0, 1)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    if type(min) is int or type(max) is int:
        dtype = type_of(check_one("clip", arr)).dtype
        if dtypes.kind(dtype) in "iu":
            limits = dtypes.iinfo(dtype)
            if type(min) is int and min > limits.max:
                raise dtypes.too_large(min, dtype, "clip: ")
            if type(max) is int and max < limits.min:
                raise dtypes.too_large(max, dtype, "clip: ")
    return _jitted_clip(arr, min, max)


@jit(inline=True, static_argnames=("decimals", "out"))
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """`a` rounded to `decimals` decimal places; halves go to the even neighbour (as ``numpy.round``).

    Args:
      a: array or number, of any shape, not of bools; the real and imaginary parts of complex numbers are rounded
        separately.
      decimals: number of decimal places to keep; negative numbers round to tens, hundreds, ….
      out: not supported, must be None.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      DtypeError: `a` is of bools.
      UnsupportedError: `out` is not None.

    >>> jnp.round(jnp.array([0.5, 1.5, 2.25]), 1)
    Array([0.5, 1.5, 2.2], dtype=float32)
    """
    a, decimals = check_one("round", a), integer("round", "decimals", decimals)
    refuse_out("round", out)
    aval = type_of(a)
    if is_kind(a, "c"):
        return e.complex_(round(e.real(a), decimals), round(e.imag(a), decimals))
    if is_kind(a, "b"):
        raise DtypeError(f"round does not accept {aval.short}", instead="x.astype(float)")
    if is_kind(a, "iu"):
        if decimals >= 0:
            return a
        factor = np.asarray(10**-decimals, dtypes.canonical(dtypes.float64))
        scaled = e.div(to_dtype(a, factor.dtype), factor)
        return to_dtype(e.mul(e.round_(scaled, rounding_method=1), factor), aval.dtype, aval.weak_type)
    if decimals == 0:
        return e.round_(a, rounding_method=1)
    # The factor would be infinite.
    if decimals > np.log10(float(dtypes.finfo(aval.dtype).max)):
        return a
    # In float16 the scaled numbers could overflow.
    wide = to_dtype(a, dtypes.float32) if aval.dtype == dtypes.float16 else a
    factor = literal(wide, 10.0**decimals)
    rounded = e.div(e.round_(e.mul(wide, factor), rounding_method=1), factor)
    return to_dtype(rounded, aval.dtype) if aval.dtype == dtypes.float16 else rounded


around = jitted_alias(round, "around")


@jit(inline=True)
def rint(x: ArrayLike, /) -> Array:
    """`x` rounded to the nearest integer, as a float; halves go to the even neighbour (as ``numpy.rint``).

    Args:
      x: array or number, of any shape; the real and imaginary parts of complex numbers are rounded separately.

    Returns:
      An array of the shape of `x`, of its dtype; of integers and bools the default float dtype.

    >>> rint(1.5)
    Array(2., dtype=float32, weak_type=True)
    """
    x = check_one("rint", x)
    return to_dtype(x, dtypes.canonical(dtypes.float64)) if is_kind(x, "biu") else round(x)


@jit(inline=True)
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """`x` with nan and infinities replaced, by default by 0 and the largest finite numbers (as ``numpy.nan_to_num``).

    Args:
      x: array or number, of any shape; complex numbers have their real and imaginary parts replaced separately.
      copy: has no effect: arrays are not changed in place.
      nan: value that replaces nan; a number.
      posinf, neginf: values that replace positive and negative infinity; None is the largest or the smallest finite
        number of the dtype.

    Returns:
      An array of the shape and dtype of `x`; integers and bools are returned unchanged.

    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan]))
    Array([1., 0.], dtype=float32)
    """
    x = check_one("nan_to_num", x)
    dtype = type_of(x).dtype
    if is_kind(x, "c"):
        parts = [nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (e.real(x), e.imag(x))]
        return e.complex_(*parts)
    if not is_kind(x, "f"):
        return x
    limits = dtypes.finfo(dtype)
    highest = limits.max if posinf is None else posinf
    lowest = limits.min if neginf is None else neginf
    x = where(isnan(x), to_dtype(nan, dtype), x)
    x = where(logic.eq(x, to_dtype(np.inf, dtype)), to_dtype(highest, dtype), x)
    return where(logic.eq(x, to_dtype(-np.inf, dtype)), to_dtype(lowest, dtype), x)
