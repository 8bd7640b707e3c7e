"""Functions of angles (degrees, radians, angle, unwrap), and sinc."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._api.jit.jit import jit, jitted_alias
from ..._base.errors import DtypeError
from ..._ir import dtypes
from ..._operands.checks import canonical_axis, check, check_one, type_of
from ..._operands.promotion import promote_dtypes, promoted_inexact, to_dtype
from ..._ops.elementwise import arithmetic as e, trigonometry
from ..._ops.elementwise.families import literal
from ..._ops.elementwise.formula import Formula, floor, nearest
from ..._ops.structure.slicing import along
from ...typing import Array, ArrayLike
from .._manipulation.joining import concatenate
from .._statistics.reductions import cumsum
from .binary import arctan2, remainder
from .choose import where
from .define import define_unary
from .unary import abs, imag, is_kind, real


def _scaled(factor: float) -> Any:
    return lambda x: e.mul(x, literal(x, factor))


def _sine_series(x: Formula) -> Formula:
    """sin(pi x) / (pi x) by its power series, for abs(x) up to 2 / pi; also the second derivative has all digits."""
    # The first term that is left out is below 1e-21 of float64 (1e-11 of float32) at 2 / pi.
    count = 14 if dtypes.real_part(type_of(x.x).dtype) == dtypes.float64 else 9
    square = x * x
    series = x.full(0.0)
    for k in reversed(range(count)):
        series = series * square + (-1) ** k * np.pi ** (2 * k) / math.factorial(2 * k + 1)
    return series


def sine_quotient(x: Any) -> Any:
    """sin(x) / x, which is 1 at 0, with derivatives of all orders."""
    y = Formula(x)
    near = Formula(e.abs_(x)) <= 2.0
    far = Formula(trigonometry.sin(x)) / near.where(1.0, y)
    return near.where(_sine_series(near.where(y, 0.0) * (1 / np.pi)), far).x


def _sinc(x: Any) -> Any:
    dtype = type_of(x).dtype
    if dtypes.kind(dtype) == "c":
        return _complex_sinc(Formula(x)).x
    # float16 overflows and rounds more in the series than in the result.
    y = Formula(to_dtype(x, dtypes.float32) if dtype.itemsize < 4 else x)
    whole, rest = _nearest_whole(y)
    series = _sine_series(rest)
    near = whole.equals(0.0)
    out = near.where(series, _alternating(whole) * rest * series / near.where(1.0, y))
    # The zeros at whole numbers are positive.
    out = rest.equals(0.0).where(Formula(e.abs_(out.x)), out)
    return to_dtype(out.x, dtype) if dtype.itemsize < 4 else out.x


def _complex_sinc(z: Formula) -> Formula:
    whole, rest = _nearest_whole(Formula(e.real(z.x)))
    near = Formula(e.abs_(z.x)) <= 2 / np.pi
    turned = Formula(e.complex_(rest.x, e.imag(z.x)))
    sine = Formula(trigonometry.sin((turned * np.pi).x))
    sign = Formula(to_dtype(_alternating(whole).x, type_of(z.x).dtype))
    return near.where(_sine_series(near.where(z, 0.0)), sign * sine / near.where(1.0, z * np.pi))


def _nearest_whole(x: Formula) -> tuple[Formula, Formula]:
    """The whole number next to `x`, and the exact rest. The product of pi and `x` itself would be rounded, and its sine
    would not be 0 at whole numbers. The rest of an infinity is 0: sinc ends there."""
    whole = Formula(e.stop_gradient(nearest(x).x))
    endless = Formula(e.abs_(x.x)).equals(np.inf)
    return whole, endless.where(0.0, x - whole)


def _alternating(whole: Formula) -> Formula:
    """(-1)**whole"""
    half = whole * 0.5
    return half.equals(floor(half)).where(half.full(1.0), -1.0)


degrees = define_unary("degrees", promoted_inexact, _scaled(180 / np.pi), "x, in radians, as degrees", "0.0", "0.")
radians = define_unary("radians", promoted_inexact, _scaled(np.pi / 180), "x, in degrees, as radians", "0.0", "0.")
rad2deg, deg2rad = jitted_alias(degrees, "rad2deg"), jitted_alias(radians, "deg2rad")
sinc = define_unary("sinc", promoted_inexact, _sinc, "sin(pi x) / (pi x), which is 1 at 0", "0.0", "1.")


@functools.partial(jit, static_argnames="deg", inline=True)
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle (argument) of complex numbers, elementwise (as ``numpy.angle``).

    Args:
      z: array or number, of any shape; real numbers have the angle 0 or pi.
      deg: True returns degrees, False radians.

    Returns:
      A float array of the shape of `z`, with values from -pi to pi, or from -180 to 180.

    >>> angle(1j, deg=True)
    Array(90., dtype=float32, weak_type=True)
    """
    z = check_one("angle", z)
    if is_kind(z, "c"):
        turned = arctan2(imag(z), real(z))
    else:
        if not type_of(z).ndim or not is_kind(z, "f"):  # as in JAX, a real scalar gives the default float dtype
            z = to_dtype(z, dtypes.canonical(dtypes.float64))
        z = e.stop_gradient(z)  # the angle is 0 or pi
        turned = arctan2(to_dtype(imag(z), type_of(z).dtype, type_of(z).weak_type), z)
    return _scaled(180 / np.pi)(turned) if deg else turned


@functools.partial(jit, static_argnames="axis")
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi) -> Array:
    """`p` with multiples of `period` added so that successive elements differ by at most half of it (as
    ``numpy.unwrap``).

    Args:
      p: real array with at least one axis.
      discont: threshold: successive elements that differ by less are not changed; None is half a period, and smaller
        values have the same effect.
      axis: axis along which successive elements are compared.
      period: size of the range over which values wrap around, a number; by default 2 pi.

    Returns:
      An array of the shape of `p`, of the dtype to which `p` and `period` are promoted.

    Raises:
      DtypeError: `p` is complex.
      AxisError: `axis` is out of bounds for `p`.

    >>> unwrap(np.array([0, 3, 5, 0]), period=6)
    Array([0, 3, 5, 6], dtype=int32)
    """
    p, period = promote_dtypes(*check("unwrap", p, period))
    if is_kind(p, "c"):
        raise DtypeError(f"unwrap does not accept {type_of(p).short}", instead="angle(p) first")
    at = canonical_axis(axis, type_of(p).ndim, "unwrap")
    n = type_of(p).shape[at]
    if n == 0:
        return p
    jumps = along(p, at, 1, n) - along(p, at, 0, n - 1)
    half = period // 2 if is_kind(p, "iu") else period / 2
    within = remainder(jumps + half, period) - half
    # A jump of exactly half a period keeps its sign, as in NumPy.
    within = where((within == -half) & (jumps > 0), half, within)
    turns = where(abs(jumps) < (half if discont is None else discont), 0, within - jumps)
    return concatenate([along(p, at, 0, 1), along(p, at, 1, n) + cumsum(turns, at)], at)
