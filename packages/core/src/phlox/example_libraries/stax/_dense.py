"""The dense layer, inputs @ W + b."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp, random
from ..._base.errors import ArgumentError, ShapeError, TreeError
from ..._trace.trace import typeof
from ...nn.initializers import Initializer, glorot_normal, normal
from ._layer import Layer, Params, Shape, checked_shape, integer


def Dense(out_dim: int, W_init: Initializer = glorot_normal(), b_init: Initializer = normal()) -> Layer:  # noqa: B008
    """A layer that multiplies by a matrix and adds a vector: ``inputs @ W + b``.

    Maps inputs of shape (..., n), n known when parameters are made, to (..., out_dim). Parameters are ``(W, b)`` of
    shapes (n, out_dim) and (out_dim,), float32 unless an initializer makes another dtype.

    Args:
      out_dim: how many features the outputs have.
      W_init, b_init: functions ``init(key, shape)``, see `phlox.nn.initializers`.

    Raises:
      ArgumentError: `out_dim` is not a positive integer.
      ShapeError: `init` is not told the number of features, or `apply` gets another one.
      TreeError: the parameters are not a pair ``(W, b)``.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> init, apply = stax.Dense(3)
    >>> output_shape, (W, b) = init(phlox.random.key(0), (-1, 2))
    >>> output_shape, W.shape, b.shape
    ((-1, 3), (2, 3), (3,))
    >>> apply((W, b), phlox.numpy.ones((5, 2))).shape
    (5, 3)
    """
    name = f"Dense({out_dim})"
    width = integer(out_dim)
    if width is None or width < 1:
        raise ArgumentError(f"{name}: the number of features must be a positive integer", out_dim=out_dim)

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        shape = checked_shape(name, input_shape)
        if not shape or shape[-1] < 1:
            raise ShapeError(
                f"{name}: the last length of input_shape {shape} must be the number of features",
                instead="for example (-1, 64), a batch of any size with 64 features",
                shape=shape,
            )
        W_key, b_key = random.split(rng)
        return (*shape[:-1], width), (W_init(W_key, (shape[-1], width)), b_init(b_key, (width,)))

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        if not isinstance(params, tuple | list) or len(params) != 2:
            raise TreeError(
                f"{name}: the parameters must be a pair (W, b), got a {type(params).__name__}",
                instead="the parameters that init returned",
                path=(),
                expected="(W, b)",
                got=params,
            )
        W, b = params
        x = typeof(inputs)
        if not x.shape or x.shape[-1] != typeof(W).shape[0]:
            raise ShapeError(
                f"{name}: the last axis of the inputs, {x.short}, does not fit the weights, {typeof(W).short}",
                instead="inputs of the shape that init was given",
                shapes=[x.shape, W.shape],
            )
        return jnp.dot(inputs, W) + b

    return Layer(init, apply)
