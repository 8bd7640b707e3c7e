"""Parts of floats (sign, mantissa, exponent, fraction, neighbours), and extrema that ignore nan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import DtypeError
from ..._ir import dtypes
from ..._operands.checks import check, check_one, refuse_out, type_of
from ..._operands.promotion import promoted, promoted_inexact, to_dtype
from ..._ops.elementwise import arithmetic as e, logic
from ..._ops.elementwise.families import literal
from ..._ops.structure.shape import bitcast_convert_type
from ...typing import Array, ArrayLike
from .._manipulation.broadcasting import broadcast_arrays
from .binary import logaddexp
from .choose import where
from .define import AS_FLOAT, PROMOTED_AS_FLOAT, define_binary, define_unary
from .unary import by_parts, imag, is_kind, isinf, isnan, signbit, trunc


def _real_numbers(function: str, *args: Any) -> Sequence[Any]:
    """Like `promoted_inexact`, with operands broadcast. Raises `DtypeError` for complex numbers."""
    ready = promoted_inexact(function, *args)
    if is_kind(ready[0], "c"):
        raise DtypeError(f"{function} does not accept {type_of(ready[0]).short}", instead="x.real or x.imag")
    return broadcast_arrays(*ready) if len(ready) > 1 else ready


def _with_sign(x: Any, y: Any) -> Any:
    return where(logic.ne(signbit(x), signbit(y)), e.neg(x), x)


def _step(x: Any, middle: Any) -> Any:
    zero, one = literal(x, 0), literal(x, 1)
    nonzero = where(logic.eq(x, zero), middle, x)  # nan stays
    return where(logic.lt(x, zero), zero, where(logic.gt(x, zero), one, nonzero))


def _gap(x: Any) -> Any:
    dtype = type_of(x).dtype
    if dtype == dtypes.float16:  # NumPy returns the distance to the next greater number
        return to_dtype(e.sub(e.nextafter(*broadcast_arrays(x, literal(x, np.inf))), x), dtype)
    away = where(signbit(x), literal(x, dtypes.lowest(dtype)), literal(x, dtypes.highest(dtype)))
    gap = e.sub(e.nextafter(*broadcast_arrays(x, away)), x)
    # On processors that flush subnormal numbers to zero the difference would be zero.
    least = to_dtype(dtypes.finfo(dtype).smallest_subnormal, dtype)
    gap = where(logic.eq(gap, literal(x, 0)), _with_sign(least, x), gap)
    return to_dtype(where(logic.eq(x, away), literal(x, np.nan), gap), dtype)


def _logaddexp2(x: Any, y: Any) -> Any:
    # log2(2**x + 2**y) = log(exp(x log 2) + exp(y log 2)) / log 2
    scale = by_parts(lambda part: e.mul(part, literal(part, np.log(2))))
    back = by_parts(lambda part: e.div(part, literal(part, np.log(2))))
    return back(logaddexp(scale(x), scale(y)))


#: arguments of `define_binary` for docstrings
_options: dict[str, Any] = {"dtype": PROMOTED_AS_FLOAT, "raises": "an operand is complex"}
copysign = define_binary(
    "copysign", _real_numbers, _with_sign, "The absolute value of x with the sign of y", "2.0, -0.0", "-2.", **_options
)
heaviside = define_binary(
    "heaviside", _real_numbers, _step, "0 where x is negative, 1 where positive, else y", "0.0, 0.5", "0.5", **_options
)
logaddexp2 = define_binary(
    "logaddexp2", promoted_inexact, _logaddexp2, "log2(2**x + 2**y) without overflow", "3.0, 3.0", "4.", is_ufunc=True
)
spacing = define_unary(
    "spacing",
    _real_numbers,
    _gap,
    "The distance from x to the next representable number away from 0",
    "1.0",
    "1.1920929e-07",
    weak=False,
    dtype=AS_FLOAT,
    raises="`x` is complex",
)


@jit(inline=True)
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of `x1` and `x2`, elementwise; of a number and a nan, the number (as ``numpy.fmax``).

    Args:
      x1, x2: arrays or numbers that broadcast against each other.

    Returns:
      An array of the broadcast shape, of the promoted dtype.

    >>> fmax(np.float32(1.0), np.float32(np.nan))
    Array(1., dtype=float32)
    """
    x1, x2 = promoted("fmax", x1, x2)
    # If x1 is nan the comparison is false and x2 is taken.
    return where(_or_missing(x1 > x2, x2), x1, x2)


@jit(inline=True)
@docs_from(fmax)
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of `x1` and `x2`, elementwise; of a number and a nan, the number (as ``numpy.fmin``).

    >>> fmin(np.float32(1.0), np.float32(np.nan))
    Array(1., dtype=float32)
    """
    x1, x2 = promoted("fmin", x1, x2)
    return where(_or_missing(x1 < x2, x2), x1, x2)


def _or_missing(chosen: Any, other: Any) -> Any:
    return chosen | isnan(other)


# --- mantissa and exponent ------------------------------------------------------------------------------


def _scalable(x: Any) -> Any:
    """`x`, as float32 if it is a float of 8 bits or less, whose powers of two are too few for `_powers_of_two`."""
    return to_dtype(x, dtypes.float32) if dtypes.bits(type_of(x).dtype) <= 8 else x


def _powers_of_two(x: Any, exponent: Any) -> Any:
    """``x * 2**exponent``, by three factors, so that no factor overflows or underflows unless the product does."""
    info = dtypes.finfo(type_of(x).dtype)
    for _ in range(3):
        part = e.max_(e.min_(exponent, literal(exponent, info.maxexp - 1)), literal(exponent, info.minexp))
        x = e.mul(x, _power_of_two(part, type_of(x).dtype))
        exponent = e.sub(exponent, part)
    return x


def _power_of_two(exponent: Any, dtype: Any) -> Any:
    """2 to the power of an exponent of normal numbers of this dtype, made from its bits."""
    info = dtypes.finfo(dtype)
    # The smallest normal number has the biased exponent 1.
    biased = to_dtype(e.add(exponent, literal(exponent, 1 - info.minexp)), np.dtype(f"int{dtypes.bits(dtype)}"))
    return bitcast_convert_type(logic.shift_left(biased, literal(biased, info.nmant)), new_dtype=dtype)


@jit(inline=True)
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """``x1 * 2**x2`` for integers `x2`, elementwise (as ``numpy.ldexp``).

    Args:
      x1: real array of any shape, or a number; integers become floats.
      x2: integer array or number that broadcasts to `x1`.

    Returns:
      A float array of the broadcast shape.

    Raises:
      DtypeError: `x1` is complex, or `x2` is not of integers.

    >>> ldexp(0.75, 4)
    Array(12., dtype=float32)
    """
    x1, x2 = check("ldexp", x1, x2)
    if is_kind(x1, "c") or is_kind(x2, "fc"):
        raise DtypeError(f"ldexp does not accept {type_of(x1).short} and {type_of(x2).short}", instead="x1 * 2.0**x2")
    (x1,) = promoted_inexact("ldexp", x1)
    # Each finite number times 2 to the power of ±4 maxexp is 0 or infinite, so that larger exponents, which int32 may
    # not hold, are not needed.
    limit = 4 * dtypes.finfo(type_of(x1).dtype).maxexp
    exponent = x2 if dtypes.bits(type_of(x2).dtype) >= 32 else to_dtype(x2, dtypes.int32)
    exponent = e.min_(exponent, literal(exponent, limit))
    if not is_kind(exponent, "u"):
        exponent = e.max_(exponent, literal(exponent, -limit))
    exponent = to_dtype(exponent, dtypes.int32)
    return to_dtype(_powers_of_two(*broadcast_arrays(_scalable(x1), exponent)), type_of(x1).dtype)


@jit(inline=True)
def frexp(x: ArrayLike, /) -> tuple[Any, Any]:
    """(mantissa, exponent) with ``x == mantissa * 2**exponent``, elementwise (as ``numpy.frexp``).

    For 0, infinities and nan the exponent is 0 and the mantissa `x`.

    Args:
      x: real array of any shape, or a number; integers become floats.

    Returns:
      Two arrays of the shape of `x`: the mantissa, of its dtype, whose absolute value is at least 0.5 and below 1, and
      the exponent, an int32.

    Raises:
      DtypeError: `x` is complex.

    >>> frexp(np.float32(12.0))
    (Array(0.75, dtype=float32), Array(4, dtype=int32))
    """
    (x,) = _real_numbers("frexp", x)
    out_dtype = type_of(x).dtype
    x = _scalable(x)
    dtype = type_of(x).dtype
    info = dtypes.finfo(dtype)
    word = np.dtype(f"uint{dtypes.bits(dtype)}")
    # Subnormal numbers, which processors take as zeros, are whole multiples of the smallest one.
    small = e.abs_(x) < literal(x, info.smallest_normal)
    bits = bitcast_convert_type(e.stop_gradient(x), new_dtype=word)
    multiple = to_dtype(logic.and_(bits, literal(bits, 2**info.nmant - 1)), dtype)
    scaled = where(small, copysign(multiple, x), x)
    special = (small & (multiple == 0)) | isinf(x) | isnan(x)
    bits = bitcast_convert_type(e.stop_gradient(scaled), new_dtype=word)
    biased = logic.shift_right_logical(bits, literal(bits, info.nmant))
    # The bias of the format is maxexp - 1, and the mantissas of frexp are from 0.5 to 1, not from 1 to 2.
    biased = to_dtype(logic.and_(biased, literal(bits, 2 * info.maxexp - 1)), dtypes.int32)
    exponent = where(special, 0, biased - (info.maxexp - 2))
    # The mantissa is a product and not made of bits, which have no derivative.
    mantissa = where(special, x, _powers_of_two(scaled, -exponent))
    exponent = where(small & ~special, exponent + (2 - info.maxexp - info.nmant), exponent)
    return to_dtype(mantissa, out_dtype), to_dtype(exponent, dtypes.int32)


@jit(static_argnames="out", inline=True)
def modf(x: ArrayLike, /, out: None = None) -> tuple[Any, Any]:
    """The fractional and the integral part of `x`, both with its sign, elementwise (as ``numpy.modf``).

    Args:
      x: real array of any shape, or a number; integers become floats.
      out: not supported, must be None.

    Returns:
      Two arrays of the shape and dtype of `x`.

    Raises:
      DtypeError: `x` is complex.
      UnsupportedError: `out` is not None.

    >>> modf(2.5)
    (Array(0.5, dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    (x,) = _real_numbers("modf", x)
    refuse_out("modf", out)
    whole = trunc(x)
    # Of negative numbers the difference of the opposites is taken, so that a fraction of zero is negative.
    below = signbit(x)
    rest = where(below, e.neg(e.sub(e.neg(x), e.neg(whole))), e.sub(x, whole))
    fraction = where(isinf(x), where(below, literal(x, -0.0), literal(x, 0)), rest)
    return to_dtype(fraction, type_of(x).dtype, type_of(x).weak_type), whole


# --- tests of elements ----------------------------------------------------------------------------------


def _infinite(function: str, x: Any, sign: float) -> Any:
    x = check_one(function, x)
    if is_kind(x, "c"):
        raise DtypeError(f"{function} does not accept {type_of(x).short}", instead="x.real or x.imag")
    return x == to_dtype(sign * np.inf, type_of(x).dtype) if is_kind(x, "f") else isinf(x)


@docs_from(modf)
def fix(x: ArrayLike, out: None = None) -> Array:
    """`x` rounded towards zero, elementwise (as ``numpy.fix``).

    Args:
      x: real array of any shape, or a number.

    Returns:
      An array of the shape and dtype of `x`; integers and bools are returned unchanged.

    >>> fix(np.array([1.5, -1.5]))
    Array([ 1., -1.], dtype=float32)
    """
    refuse_out("fix", out)
    return trunc(x)


@jit(static_argnames="out", inline=True)
@docs_from(fix)
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Where `x` is minus infinity, elementwise (as ``numpy.isneginf``).

    Args:
      out: not supported, must be None.

    Returns:
      An array of bools, of the shape of `x`.

    Raises:
      DtypeError: `x` is complex.
      UnsupportedError: `out` is not None.

    >>> isneginf(np.array([-np.inf, 1.0]))
    Array([ True, False], dtype=bool)
    """
    refuse_out("isneginf", out)
    return _infinite("isneginf", x, -1.0)


@jit(static_argnames="out", inline=True)
@docs_from(isneginf)
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Where `x` is plus infinity, elementwise (as ``numpy.isposinf``).

    >>> isposinf(np.array([np.inf, 1.0]))
    Array([ True, False], dtype=bool)
    """
    refuse_out("isposinf", out)
    return _infinite("isposinf", x, 1.0)


@jit(inline=True)
def iscomplex(x: ArrayLike) -> Array:
    """Where the imaginary part of `x` is not zero, elementwise (as ``numpy.iscomplex``).

    Args:
      x: array of any shape, or a number; the imaginary part of real ones is zero.

    Returns:
      An array of bools, of the shape of `x`.

    >>> iscomplex(np.array([1.0, 2j]))
    Array([False,  True], dtype=bool)
    """
    part = imag(x)
    return logic.ne(part, literal(part, 0))


@jit(inline=True)
@docs_from(iscomplex)
def isreal(x: ArrayLike) -> Array:
    """Where the imaginary part of `x` is zero, elementwise (as ``numpy.isreal``).

    >>> isreal(np.array([1.0, 2j]))
    Array([ True, False], dtype=bool)
    """
    part = imag(x)
    return logic.eq(part, literal(part, 0))
