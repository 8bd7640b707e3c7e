"""Batch normalization by the statistics of each batch, without running statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phlox import nn, numpy as jnp, random
from phlox.errors import ArgumentError, ShapeError
from phlox.nn.initializers import Initializer, ones, zeros

from ._checks import checked_shape, integer, pair
from ._layer import Layer, Params, Shape


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Initializer = zeros,
    gamma_init: Initializer = ones,
) -> Layer:
    """Normalizes to mean 0 and standard deviation 1 over `axis`, then multiplies by gamma and adds beta.

    The statistics are always those of the given batch. Parameters are ``(beta, gamma)``, with () for one that is not
    used. Source: Ioffe and Szegedy, 2015.

    Args:
      axis: the axes over which statistics are computed, counted from 0.
      epsilon: added to the variance.
      center, scale: whether to use beta and gamma.
      beta_init, gamma_init: initializers.

    Raises:
      ArgumentError: `axis` is neither an integer nor a tuple or list of integers.
      ShapeError: a length of `input_shape` along another axis is -1.
      TreeError: the parameters are not a pair ``(beta, gamma)``.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> init, apply = stax.BatchNorm(axis=0)
    >>> shape, params = init(phlox.random.key(0), (-1, 3))
    >>> apply(params, phlox.numpy.ones((5, 3))).shape
    (5, 3)
    """
    axes = _checked_axes(axis)

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        in_shape = checked_shape("BatchNorm", input_shape)
        shape = tuple(n for i, n in enumerate(in_shape) if i not in axes)
        if -1 in shape:
            raise ShapeError(
                f"BatchNorm: of input_shape {in_shape} only the lengths along axis {axes} may be -1",
                instead="the number of features must be known",
                shape=in_shape,
            )
        beta_key, gamma_key = random.split(rng)
        beta = beta_init(beta_key, shape) if center else ()
        gamma = gamma_init(gamma_key, shape) if scale else ()
        return in_shape, (beta, gamma)

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        beta, gamma = pair("BatchNorm", params, "(beta, gamma)")
        spread = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(inputs)))
        y = nn.standardize(inputs, axes, epsilon=epsilon)
        y = gamma[spread] * y if scale else y
        return y + beta[spread] if center else y

    return Layer(init, apply)


def _checked_axes(axis: Any) -> tuple[int, ...]:
    one = integer(axis)
    axes = [one] if one is not None else [integer(i) for i in axis] if isinstance(axis, tuple | list) else [None]
    if None in axes:
        raise ArgumentError(
            f"BatchNorm: axis must be an integer or a tuple of them, got {axis!r}", instead="axis=(0, 1, 2)", axis=axis
        )
    return tuple(i for i in axes if i is not None)
