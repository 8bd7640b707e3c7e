"""The dense layer, inputs @ W + b."""

from __future__ import annotations

from typing import Any

from phlox import lax, numpy as jnp, random, typeof
from phlox.errors import ShapeError
from phlox.nn.initializers import Initializer, glorot_normal, normal

from ._checks import checked_shape, features, pair
from ._layer import Layer, Params, Shape


def Dense(out_dim: int, W_init: Initializer = glorot_normal(), b_init: Initializer = normal()) -> Layer:  # noqa: B008
    """A layer that multiplies by a matrix and adds a vector: ``inputs @ W + b``.

    It maps inputs of shape (..., n) to (..., out_dim); `init` needs to know n. Parameters are ``(W, b)`` of shapes
    (n, out_dim) and (out_dim,), float32 unless an initializer returns another dtype.

    Args:
      out_dim: the number of features of the outputs.
      W_init, b_init: functions ``init(key, shape)``, see `phlox.nn.initializers`.

    Raises:
      ArgumentError: `out_dim` is not a positive integer.
      ShapeError: the number of features in `input_shape` is -1, or `apply` gets another number of features.
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
    width = features(name, out_dim)

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
        W, b = pair(name, params, "(W, b)")
        x, weights = typeof(inputs), typeof(W)
        if not x.shape or not weights.shape or x.shape[-1] != weights.shape[-2:][0]:
            raise ShapeError(
                f"{name}: the last axis of the inputs, {x.short}, does not fit the weights, {weights.short}",
                instead="inputs of the shape that init was given",
                shapes=[x.shape, weights.shape],
            )
        y = jnp.dot(inputs, W)
        # Explicit, as `+` of different ranks would obey numpy_rank_promotion, which is for users' own expressions.
        return y + lax.broadcast_to_rank(b, y.ndim)

    return Layer(init, apply)
