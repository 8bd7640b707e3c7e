"""`map_coordinates`: values of an array between its elements.

Each coordinate is interpolated along its own axis, between one or two elements; the result is the sum over all choices
of one element for each axis.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.jit.jit import jit
from ..._base.errors import ShapeError, UnsupportedError
from ..._base.strictness import lenient
from ..._ir import dtypes
from ..._operands.checks import type_of
from ...typing import Array, ArrayLike


def _mirrored(index: Any, size: int) -> Any:
    """Reflected at the centres of the first and the last element: a wave of period ``2 * (size - 1)``."""
    last = size - 1
    # An axis of one element has the period 1, as its wave would have none.
    return jnp.abs((index + last) % max(2 * last, 1) - last)


def _reflected(index: Any, size: int) -> Any:
    """Reflected at the outer edges of the first and the last element: mirrored on a grid that is twice as fine."""
    return (_mirrored(2 * index + 1, 2 * size + 1) - 1) // 2


#: by mode, which element stands for a place outside of the array
_ELEMENTS: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}


def _rounded(x: Any) -> Any:
    """The nearest whole numbers, halves away from zero."""
    return x if dtypes.kind(type_of(x).dtype) in "iu" else lax.round(x)


def _neighbours(at: Any, order: int) -> list[tuple[Any, Any]]:
    """The index and the weight of each element that a coordinate lies at or between."""
    if order == 0:
        return [(_rounded(at).astype(np.int32), np.ones((), at.dtype)[()])]
    below = jnp.floor(at)
    share = at - below
    index = below.astype(np.int32)
    return [(index, 1 - share), (index + 1, share)]


@functools.partial(jit, inline=True, static_argnames=("order", "mode"))
def _interpolated(x: Any, coordinates: Any, order: int, mode: str, cval: Any) -> Any:
    shape, dtype = type_of(x).shape, type_of(x).dtype
    parts = []
    for corner in itertools.product(*(_neighbours(at, order) for at in coordinates)):
        indices, weights = zip(*corner, strict=True)
        values = x[tuple(_ELEMENTS[mode](index, size) for index, size in zip(indices, shape, strict=True))]
        if mode == "constant":
            inside = [(index >= 0) & (index < size) for index, size in zip(indices, shape, strict=True)]
            values = jnp.where(functools.reduce(jnp.logical_and, inside), values, cval)
        parts.append(math.prod(weights[1:], start=weights[0]) * values)
    total = functools.reduce(operator.add, parts)
    return (_rounded(total) if dtypes.kind(dtype) in "iu" else total).astype(dtype)


@lenient
def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Values of an array at positions between its elements (as ``scipy.ndimage.map_coordinates``).

    Args:
      input: array with at least one axis.
      coordinates: for each axis of `input` an array of positions on it, counted in elements; or one array of them all,
        whose first axis is that of the axes.
      order: 0 takes the nearest element, 1 interpolates linearly.
      mode: what is outside of the array: 'constant', `cval` everywhere; 'nearest', the element at the edge; 'wrap', the
        array again; 'mirror', the array reflected at the centre of its last element; 'reflect', at the edge of it.
        'constant' and 'wrap' are what SciPy calls 'grid-constant' and 'grid-wrap'.
      cval: the number outside of the array for mode 'constant'.

    Returns:
      An array of the shape of the coordinates and the dtype of `input`; integers are rounded.

    Raises:
      ShapeError: the number of coordinates is not that of the axes of `input`, or is 0; or `input` has no elements and
        `mode` is not 'constant'.
      UnsupportedError: `order` or `mode` is not one of the listed values.

    >>> map_coordinates(jnp.array([[0.0, 1.0], [2.0, 3.0]]), [jnp.array([0.5, 1.0]), jnp.array([0.5, 0.25])], order=1)
    Array([1.5 , 2.25], dtype=float32)
    """
    x = jnp.asarray(input)
    positions = [jnp.asarray(at) for at in coordinates]
    if len(positions) != type_of(x).ndim or not positions:
        raise ShapeError(
            f"map_coordinates: {len(positions)} coordinates for an input of type {type_of(x).short}",
            instead="an array of coordinates for each axis of the input",
            shapes=[type_of(x).shape],
        )
    if mode not in _ELEMENTS:
        raise UnsupportedError(f"map_coordinates: mode={mode!r}", instead="one of " + ", ".join(map(repr, _ELEMENTS)))
    if order not in (0, 1):
        raise UnsupportedError(f"map_coordinates: order={order!r}", instead="0 or 1")
    cval = jnp.asarray(cval, type_of(x).dtype)
    if type_of(x).size == 0:
        if mode != "constant":
            raise ShapeError(
                f"map_coordinates: mode={mode!r} reads elements, and an input of type {type_of(x).short} has none",
                instead="mode='constant'",
                shapes=[type_of(x).shape],
            )
        return jnp.broadcast_to(cval, jnp.broadcast_shapes(*(type_of(at).shape for at in positions)))
    return _interpolated(x, positions, order=int(order), mode=mode, cval=cval)
