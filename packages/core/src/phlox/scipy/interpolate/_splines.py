"""`CubicSpline`: piecewise cubic functions with continuous second derivatives.

The slopes at the points solve a tridiagonal system, of which both ends decide the first and the last equation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._base.errors import OptionError, ShapeError, UnsupportedError
from ..._base.strictness import lenient
from ..._operands.checks import canonical_axis, check, check_one, type_of
from ..._operands.promotion import promote_inexact
from ...tree_util import register_pytree_node_class
from ...typing import Array, ArrayLike

_NAMED = {"natural": (2, 0.0), "clamped": (1, 0.0)}


def _ends(bc_type: Any) -> list[Any]:
    """The conditions of both ends: None for the same cubic on both sides of the neighbour, or (order, value)."""
    both = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
    if "periodic" in [x for x in both if isinstance(x, str)]:
        raise UnsupportedError("CubicSpline: bc_type='periodic' is not there")
    conditions = []
    for end in both:
        if isinstance(end, str) and end in ("not-a-knot", *_NAMED):
            conditions.append(_NAMED.get(end))
        elif isinstance(end, tuple | list) and len(end) == 2 and end[0] in (1, 2):
            conditions.append(tuple(end))
        else:
            raise OptionError(
                f"CubicSpline: bc_type={bc_type!r:.60}",
                instead="'not-a-knot', 'natural', 'clamped', (order, value), or a pair of these",
            )
    if len(conditions) != 2:
        raise OptionError(f"CubicSpline: bc_type={bc_type!r:.60}", instead="a condition for each of both ends")
    return conditions


def _checked_extrapolate(extrapolate: Any) -> bool:
    if isinstance(extrapolate, str):
        raise UnsupportedError(f"CubicSpline: extrapolate={extrapolate!r} is not there", instead="True or False")
    return bool(extrapolate)


def _end(h: Any, slope: Any, condition: Any) -> tuple[Any, Any, Any]:
    """The equation of the first point: the factors of its own and of the next slope, and the right-hand side.

    `h` are the first distances and `slope` the first slopes of chords; for the last point all are reversed.
    """
    if condition is None:
        wide = h[0] + h[1]
        right = ((h[0] + 2 * wide) * h[1] * slope[0] + h[0] * h[0] * slope[1]) / wide
        return h[1], wide, right
    order, value = condition
    value = jnp.broadcast_to(jnp.asarray(value, type_of(slope).dtype), type_of(slope).shape[1:])
    if order == 1:
        return jnp.ones_like(h[0]), jnp.zeros_like(h[0]), value
    return 2 * jnp.ones_like(h[0]), jnp.ones_like(h[0]), 3 * slope[0] - 0.5 * h[0] * value


def _slopes(x: Any, y: Any, conditions: list[Any]) -> Any:
    """The slopes of the spline at the points; `y` is a matrix of a column for each function."""
    h = jnp.diff(x)
    chord = jnp.diff(y, axis=0) / h[:, None]
    count = type_of(x).size
    if count == 2:  # without a third point the chord is all there is
        conditions = [(1, chord[0]) if c is None else c for c in conditions]
    # Here both conditions say the same, so the system would be singular.
    if count == 3 and conditions == [None, None]:  # one parabola
        second = (chord[1] - chord[0]) / (h[0] + h[1])
        return jnp.stack([chord[0] - h[0] * second, chord[0] + h[0] * second, chord[1] + h[1] * second])
    first, up, right_first = _end(h, chord, conditions[0])
    value = conditions[1]
    # The last point is the first of the reversed points. Their slopes keep the sign, so second derivatives change it.
    if value is not None and value[0] == 2:
        value = (2, -jnp.asarray(value[1]))
    last, down, right_last = _end(h[::-1], chord[::-1], value)
    inner = 3 * (h[1:, None] * chord[:-1] + h[:-1, None] * chord[1:])
    diagonal = jnp.concatenate([first[None], 2 * (h[:-1] + h[1:]), last[None]])
    upper = jnp.concatenate([up[None], h[:-1], jnp.zeros_like(up)[None]])
    lower = jnp.concatenate([jnp.zeros_like(up)[None], h[1:], down[None]])
    right = jnp.concatenate([right_first[None], inner, right_last[None]])
    return lax.linalg.tridiagonal_solve(lower, diagonal, upper, right)


@register_pytree_node_class
class CubicSpline:
    """The piecewise cubic function through some points, with a continuous second derivative (as
    ``scipy.interpolate.CubicSpline``).

    Splines are pytrees: they can be arguments and results of transformed functions. They have derivatives by the
    points, the values, and the positions.

    Args:
      x: at least two increasing numbers, a vector, which is not checked to increase.
      y: the values there, an array with as many elements along `axis`.
      axis: the axis of `y` along which the points lie.
      bc_type: the condition at both ends, or a pair of conditions: 'not-a-knot', the first two pieces are one cubic;
        'natural', the second derivative is 0; 'clamped', the first is 0; ``(order, value)``, the derivative of order 1
        or 2 has this value.
      extrapolate: whether the first and the last piece go on outside of the points, where the result is nan otherwise.

    Attributes:
      x: the points.
      c: the coefficients, of shape [4, pieces, ...], the highest power first.
      axis, extrapolate: the options.

    Raises:
      ShapeError: `x` is not a vector of two points or more, or `y` has not as many.
      OptionError: `bc_type` is unknown.
      UnsupportedError: `bc_type` or `extrapolate` is 'periodic'.

    >>> f = CubicSpline(jnp.array([0.0, 1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 8.0, 27.0]))
    >>> round(float(f(1.5)), 3), round(float(f(1.5, 1)), 3)
    (3.375, 6.75)
    """

    x: Any
    c: Any
    axis: int
    extrapolate: bool

    @lenient
    def __init__(
        self, x: ArrayLike, y: ArrayLike, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: bool | None = None
    ) -> None:
        x, y = (jnp.asarray(v) for v in promote_inexact(*check("CubicSpline", x, y)))
        self.axis = canonical_axis(axis, type_of(y).ndim, "CubicSpline")
        self.extrapolate = extrapolate is None or _checked_extrapolate(extrapolate)
        count = type_of(y).shape[self.axis]
        if type_of(x).ndim != 1 or type_of(x).size < 2 or type_of(x).size != count:
            raise ShapeError(
                f"CubicSpline: x is {type_of(x).short}, y is {type_of(y).short}",
                instead=f"a vector of at least two points, as many as y has along axis {self.axis}",
                shapes=[type_of(x).shape, type_of(y).shape],
            )
        y = jnp.moveaxis(y, self.axis, 0)
        columns = jnp.reshape(y, (count, -1))
        conditions = _ends(bc_type)
        conditions = [c if c is None else (c[0], jnp.ravel(jnp.asarray(c[1]))) for c in conditions]
        slopes = _slopes(x, columns, conditions)
        h = jnp.diff(x)[:, None]
        chord = jnp.diff(columns, axis=0) / h
        bend = (slopes[:-1] + slopes[1:] - 2 * chord) / h
        coefficients = jnp.stack([bend / h, (chord - slopes[:-1]) / h - bend, slopes[:-1], columns[:-1]])
        self.x, self.c = x, jnp.reshape(coefficients, (4, count - 1, *type_of(y).shape[1:]))

    @lenient
    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: bool | None = None) -> Array:
        """The values of the function or of a derivative.

        Args:
          x: positions, an array of any shape.
          nu: the order of the derivative, 0 for the function.
          extrapolate: whether the outer pieces go on; None means what was said for the spline.

        Returns:
          An array with the axes of `x` in place of the axis of the points.

        Raises:
          OptionError: `nu` is negative.
          UnsupportedError: `extrapolate` is 'periodic'.

        >>> [round(float(y), 3) for y in CubicSpline(jnp.arange(4.0), jnp.arange(4.0) ** 3)(jnp.array([0.5, 4.0]))]
        [0.125, 64.0]
        """
        if nu < 0:
            raise OptionError(f"CubicSpline: nu={nu}", instead="an order that is not negative")
        at = jnp.asarray(check_one("CubicSpline", x), type_of(self.x).dtype)
        piece = jnp.clip(jnp.searchsorted(self.x, at, side="right") - 1, 0, type_of(self.x).size - 2)
        more = (1,) * (type_of(self.c).ndim - 2)
        t = jnp.reshape(at - self.x[piece], type_of(at).shape + more)
        chosen = self.c[:, piece]
        values = jnp.zeros_like(chosen[0])
        for power in range(3, nu - 1, -1):
            # power! / (power - nu)!, from the derivative
            factor = float(np.prod(np.arange(power - nu + 1, power + 1)))
            values = values * t + factor * chosen[3 - power]
        if not (self.extrapolate if extrapolate is None else _checked_extrapolate(extrapolate)):
            outside = (at < self.x[0]) | (at > self.x[-1])
            values = jnp.where(jnp.reshape(outside, type_of(at).shape + more), np.nan, values)
        rank = type_of(at).ndim
        return jnp.moveaxis(values, range(rank), range(self.axis, self.axis + rank))

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[int, bool]]:
        """The arrays and the options, as `phlox.tree_util` asks for them.

        Returns:
          A pair: the points and the coefficients; the axis and whether outer pieces go on.

        >>> CubicSpline(jnp.arange(3.0), jnp.arange(3.0)).tree_flatten()[1]
        (0, True)
        """
        return (self.x, self.c), (self.axis, self.extrapolate)

    @classmethod
    def tree_unflatten(cls, aux_data: tuple[int, bool], children: Any) -> CubicSpline:
        """The spline of these arrays.

        Args:
          aux_data: the options, as `tree_flatten` returns them.
          children: the points and the coefficients.

        Returns:
          A spline. Nothing is checked.

        >>> f = CubicSpline(jnp.arange(3.0), jnp.arange(3.0))
        >>> CubicSpline.tree_unflatten((0, True), f.tree_flatten()[0])(0.5)
        Array(0.5, dtype=float32)
        """
        spline = object.__new__(cls)
        spline.x, spline.c = children
        spline.axis, spline.extrapolate = aux_data
        return spline
