"""The layer that flattens images for dense layers."""

from __future__ import annotations

import math
from typing import Any

from phlox import numpy as jnp
from phlox.errors import ShapeError

from ._checks import checked_shape
from ._layer import Layer, Params, Shape


def _need_axes(shape: Shape) -> Shape:
    if not shape:
        raise ShapeError("Flatten: inputs need a first axis, the batch's, got a scalar", shape=shape)
    return shape


def _init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
    shape = _need_axes(checked_shape("Flatten", input_shape))
    if -1 in shape[1:]:
        raise ShapeError(
            f"Flatten: only the first length of input_shape {shape} may be -1",
            instead="the number of features must be known",
            shape=shape,
        )
    return (shape[0], math.prod(shape[1:])), ()


def _apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
    shape = _need_axes(jnp.shape(inputs))
    # Not reshape(n, -1): for an empty batch, -1 cannot be determined.
    return jnp.reshape(inputs, (shape[0], math.prod(shape[1:])))


#: A layer that merges all axes except the first: (batch, a, b, ...) becomes (batch, a b ...). It has no options and is
#: not called: ``serial(Flatten, Dense(10))``. Raises `ShapeError` for scalars.
Flatten = Layer(_init, _apply)
