"""`RegularGridInterpolator`: functions that are known at the points of a grid."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.errors import AxisError, DtypeError, OptionError, ShapeError, UnsupportedError
from ..._base.strictness import lenient
from ..._ir import dtypes
from ..._operands.checks import check, check_one, type_of
from ..._operands.promotion import promote_inexact
from ...tree_util import register_pytree_node_class
from ...typing import Array, ArrayLike

_NAME = "RegularGridInterpolator"


def _cells(grid: Sequence[Any], points: Any) -> tuple[list[Any], list[Any], Any]:
    """For each axis the cell of each point and the place in it, from 0 to 1; and which points are outside."""
    cells, shares = [], []
    outside = jnp.zeros(type_of(points).shape[0], bool)
    for knots, at in zip(grid, points.T, strict=True):
        # Points outside take the first or the last cell, from which they are extrapolated.
        cell = jnp.minimum(jnp.maximum(jnp.searchsorted(knots, at) - 1, 0), type_of(knots).size - 2)
        left = knots[cell]
        cells.append(cell)
        # An axis of one point is constant, as in SciPy; its cell has no width.
        shares.append(0 * at if type_of(knots).size == 1 else (at - left) / (knots[cell + 1] - left))
        outside = outside | (at < knots[0]) | (at > knots[-1])
    return cells, shares, outside


@functools.partial(jit, inline=True, static_argnames="method")
def _interpolated(grid: Any, values: Any, fill_value: Any, points: Any, method: str) -> Any:
    """The values at points of shape [m, axes of the grid]."""
    cells, shares, outside = _cells(grid, points)
    trailing = (1,) * (type_of(values).ndim - len(cells))
    if method == "nearest":
        # A point in the middle goes to the lower neighbour, as in SciPy.
        result = values[tuple(jnp.where(share <= 0.5, i, i + 1) for i, share in zip(cells, shares, strict=True))]
        unknown = jnp.reshape(jnp.any(jnp.isnan(points), -1), (-1, *trailing))
        result = jnp.where(unknown, np.nan, result)
    else:
        edges = [[(i, 1 - share), (i + 1, share)] for i, share in zip(cells, shares, strict=True)]
        result = 0.0
        for corner in itertools.product(*edges):
            indices, weights = zip(*corner, strict=True)
            result = result + values[indices] * jnp.reshape(math.prod(weights, start=1.0), (-1, *trailing))
    if fill_value is not None:
        result = jnp.where(jnp.reshape(outside, (-1, *trailing)), fill_value, result)
    return result


def _checked_method(method: str) -> str:
    if method not in ("linear", "nearest"):
        raise OptionError(f"{_NAME}: method={method!r}", instead="'linear' or 'nearest'")
    return method


@register_pytree_node_class
class RegularGridInterpolator:
    """A function that interpolates values at the points of a rectangular grid (as
    ``scipy.interpolate.RegularGridInterpolator``).

    Interpolators are pytrees: they can be arguments and results of transformed functions.

    Args:
      points: for each axis of the grid a vector of coordinates in increasing order, which is not checked.
      values: the values at the points, an array whose first axes are those of the grid; integers become floats.
      method: 'linear' interpolates in the cell of the grid, 'nearest' takes the value of the nearest point of it.
      bounds_error: False: a compiled program cannot refuse points outside of the grid.
      fill_value: the number outside of the grid; None continues the outermost cells.

    Attributes:
      grid: the points, a tuple of vectors.
      values: the values, an array of floats or complex numbers.
      fill_value: the number outside of the grid as an array, or None.
      method, bounds_error: the options.

    Raises:
      OptionError: `method` is not one of the listed values.
      UnsupportedError: `bounds_error` is true.
      ShapeError: the vectors do not have the lengths of the first axes of the values.
      DtypeError: `fill_value` is complex, and the values are not.

    >>> f = RegularGridInterpolator([jnp.array([0.0, 2.0]), jnp.array([0.0, 1.0, 2.0])], jnp.arange(6.0).reshape(2, 3))
    >>> f(jnp.array([[1.0, 0.5], [2.0, 2.0], [3.0, 0.0]]))
    Array([ 2.,  5., nan], dtype=float32)
    """

    grid: tuple[Any, ...]
    values: Any
    fill_value: Any
    method: str
    bounds_error: bool

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ) -> None:
        self.method, self.bounds_error = _checked_method(method), bounds_error
        if bounds_error:
            raise UnsupportedError(f"{_NAME}: bounds_error={bounds_error!r}", instead="bounds_error=False")
        (self.values,) = promote_inexact(jnp.asarray(check_one(_NAME, values)))
        dtype = type_of(self.values).dtype
        self.grid = tuple(map(jnp.asarray, check(_NAME, *points)))
        shape = type_of(self.values).shape[: len(self.grid)]
        if [type_of(knots).shape for knots in self.grid] != [(n,) for n in shape]:
            listed = ", ".join(type_of(knots).short for knots in self.grid)
            raise ShapeError(
                f"{_NAME}: points of types {listed} for values of type {type_of(self.values).short}",
                instead="for each axis of the grid a vector of its length",
                shapes=[type_of(x).shape for x in (*self.grid, self.values)],
            )
        self.fill_value = fill_value if fill_value is None else jnp.asarray(check_one(_NAME, fill_value))
        if fill_value is not None and dtypes.kind(type_of(self.fill_value).dtype) == "c" and dtypes.kind(dtype) != "c":
            raise DtypeError(
                f"{_NAME}: fill_value is {type_of(self.fill_value).short}, the values are {type_of(self.values).short}",
                instead="a real fill_value, or complex values",
            )

    @lenient
    def __call__(self, xi: ArrayLike | tuple[ArrayLike, ...], method: str | None = None) -> Array:
        """The values at other points.

        Args:
          xi: the points: an array whose last axis has the coordinates of each, or a tuple of an array for each axis of
            the grid. A vector is one point, or on a grid of one axis several.
          method: a method other than that of the interpolator.

        Returns:
          An array with an axis for each of `xi` but the last, and those of the values that follow the axes of the grid.

        Raises:
          OptionError: `method` is unknown.
          ShapeError: the points do not have as many coordinates as the grid has axes.

        >>> f = RegularGridInterpolator([jnp.array([0.0, 1.0, 3.0])], jnp.array([0, 10, 20]))
        >>> f(jnp.array([0.5, 2.0])), f(jnp.array([2.5]), "nearest")
        (Array([ 5., 15.], dtype=float32), Array([20.], dtype=float32))
        """
        method = self.method if method is None else _checked_method(method)
        rank = len(self.grid)
        if isinstance(xi, tuple) and len(xi) == 1:
            (xi,) = xi
        if isinstance(xi, tuple):
            points = jnp.stack([x.astype(float) for x in jnp.broadcast_arrays(*xi)], -1)
        else:
            points = jnp.asarray(check_one(_NAME, xi))
            if type_of(points).ndim == 1:
                points = points.reshape(-1, rank)
        shape = type_of(points).shape
        if not shape or shape[-1] != rank:
            raise (ShapeError if shape else AxisError)(
                f"{_NAME}: points of type {type_of(points).short} for a grid of {rank} axes",
                instead=f"an array of shape [..., {rank}]",
                shapes=[shape],
            )
        result = _interpolated(self.grid, self.values, self.fill_value, points.reshape(-1, rank), method=method)
        return result.reshape(shape[:-1] + type_of(self.values).shape[rank:])

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[str, bool]]:
        """The arrays and the options, as `phlox.tree_util` asks for them.

        Returns:
          A pair: the points, the values and the number outside; the method and whether points outside are refused.

        >>> RegularGridInterpolator([jnp.array([0.0, 1.0])], jnp.array([0.0, 10.0])).tree_flatten()[1]
        ('linear', False)
        """
        return (self.grid, self.values, self.fill_value), (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, aux_data: tuple[str, bool], children: Any) -> RegularGridInterpolator:
        """The interpolator of these arrays.

        Args:
          aux_data: the options, as `tree_flatten` returns them.
          children: the points, the values and the number outside.

        Returns:
          An interpolator. Nothing is checked.

        >>> f = RegularGridInterpolator([jnp.array([0.0, 1.0])], jnp.array([0.0, 10.0]))
        >>> RegularGridInterpolator.tree_unflatten(("nearest", False), f.tree_flatten()[0])(jnp.array([0.75]))
        Array([10.], dtype=float32)
        """
        interpolator = object.__new__(cls)
        interpolator.grid, interpolator.values, interpolator.fill_value = children
        interpolator.method, interpolator.bounds_error = aux_data
        return interpolator
