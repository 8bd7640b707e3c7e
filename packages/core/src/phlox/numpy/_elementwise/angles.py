"""Functions of angles (degrees, radians, angle, unwrap), and sinc."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._base.errors import DtypeError
from ..._ir import dtypes
from ..._operands.checks import canonical_axis, check, check_one, type_of
from ..._operands.promotion import promote_dtypes, promoted_inexact, to_dtype
from ..._ops.elementwise import arithmetic as e, trigonometry
from ..._ops.elementwise.families import literal
from ..._ops.elementwise.formula import Formula
from ..._ops.structure.slicing import along
from ...typing import Array, ArrayLike
from .._manipulation.joining import concatenate
from .._statistics.reductions import cumsum
from .binary import arctan2, remainder
from .choose import where
from .define import float_32, unary
from .unary import abs, imag, is_kind, real


def _scaled(factor: float) -> Any:
    return lambda x: e.mul(x, literal(x, factor))


def _sinc(x: Any) -> Any:
    return _spherical(0, e.mul(x, literal(x, np.pi)))


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _spherical(n: int, x: Any) -> Any:
    """j_n(x) / x**n of the spherical Bessel function j_n: sin(x) / x for n = 0. The derivative is -x times the next."""
    y = Formula(x)
    if n == 0:
        at_zero = y.equals(0)
        safe = at_zero.where(1, y)
        return at_zero.where(1, Formula(trigonometry.sin(safe.x)) / safe).x
    # The recurrence below cancels for small x. For abs(x) <= 2, 14 terms of the power series reach double precision:
    # the sum of (-x**2 / 2)**k / (k! (2 n + 2 k + 1)!!).
    near = Formula(e.abs_(x)) <= 2.0
    square = near.where(y, 0.0) * near.where(y, 0.0)
    series = y.full(0.0)
    for k in reversed(range(14)):
        odd = math.prod(range(1, 2 * (n + k) + 2, 2))
        series = series * square + (-0.5) ** k / (math.factorial(k) * odd)
    # cos(x) is x j_{-1}(x), which begins the recurrence in n.
    before = Formula(trigonometry.cos(x) if n == 1 else _spherical(n - 2, x))
    safe = near.where(1.0, y)
    far = ((2.0 * n - 1) * Formula(_spherical(n - 1, x)) - before) / safe / safe
    return near.where(series, far).x


@_spherical.defjvp
def _spherical_jvp(n: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return _spherical(n, x), (Formula(t) * -(Formula(x) * Formula(_spherical(n + 1, x)))).x


degrees = unary("degrees", promoted_inexact, _scaled(180 / np.pi), "x, in radians, as degrees", "0.0", float_32("0."))
rad2deg = unary("rad2deg", promoted_inexact, _scaled(180 / np.pi), "x, in radians, as degrees", "0.0", float_32("0."))
radians = unary("radians", promoted_inexact, _scaled(np.pi / 180), "x, in degrees, as radians", "0.0", float_32("0."))
deg2rad = unary("deg2rad", promoted_inexact, _scaled(np.pi / 180), "x, in degrees, as radians", "0.0", float_32("0."))
sinc = unary("sinc", promoted_inexact, _sinc, "sin(pi x) / (pi x), which is 1 at 0", "0.0", float_32("1."))


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
    return turned * (180 / np.pi) if deg else turned


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
