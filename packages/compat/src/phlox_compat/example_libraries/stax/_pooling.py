"""Pooling layers: the largest element, the sum or the mean of each window over the spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phlox import lax, numpy as jnp
from phlox.errors import ArgumentError

from ._checks import lengths, output_shape, shape_with_axes
from ._layer import Layer, Params, Shape


def MaxPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: str | None = None
) -> Layer:
    """The largest element of each window.

    Args:
      window_shape: the lengths of the window along the spatial axes.
      strides: the strides of the window, by default 1.
      padding: 'VALID', 'SAME' or 'SAME_LOWER'.
      spec: the order of the axes, such as ``"NCHW"``: N is the batch axis, C that of the features; by default they are
        the first and the last axis.

    Raises:
      ArgumentError: sizes are no positive integers, or `spec` lacks N or C.
      ShapeError: lengths of `input_shape` other than the batch's are -1, or inputs have another number of axes.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.MaxPool((2,)).apply((), phlox.numpy.arange(4.0).reshape(1, 4, 1)).shape
    (1, 3, 1)
    """
    return _pool("MaxPool", _largest, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: str | None = None
) -> Layer:
    """The sum of each window; arguments and errors as for `MaxPool`.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.SumPool((2,)).apply((), phlox.numpy.arange(4.0).reshape(1, 4, 1))[0, :, 0]
    Array([1., 3., 5.], dtype=float32)
    """
    return _pool("SumPool", _sum, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: str | None = None
) -> Layer:
    """The mean of each window, without padding elements; arguments and errors as for `MaxPool`.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.AvgPool((2,)).apply((), phlox.numpy.arange(4.0).reshape(1, 4, 1))[0, :, 0]
    Array([0.5, 1.5, 2.5], dtype=float32)
    """
    return _pool("AvgPool", _mean, window_shape, strides, padding, spec)


def _largest(x: Any, window: Shape, strides: Shape, padding: Any) -> Any:
    return lax.reduce_window(x, -np.inf, lax.max, window, strides, padding)


def _sum(x: Any, window: Shape, strides: Shape, padding: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, window, strides, padding)


def _mean(x: Any, window: Shape, strides: Shape, padding: Any) -> Any:
    sums = _sum(x, window, strides, padding)
    # The number of elements of a window depends only on its position along the spatial axes; other axes get length 1.
    space = [1 if k == 1 else n for n, k in zip(jnp.shape(x), window, strict=True)]
    return sums / _sum(jnp.ones_like(x, shape=space), window, strides, padding)


def _pool(
    name: str,
    reduce: Callable[[Any, Shape, Shape, Any], Any],
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    spec: str | None,
) -> Layer:
    space = lengths(name, "window_shape", window_shape)
    moves = lengths(name, "strides", strides or (1,) * len(space), len(space))
    if spec is not None and not (isinstance(spec, str) and {"N", "C"} <= set(spec)):
        raise ArgumentError(
            f"{name}: spec must be a word with letters N and C for batch and features, got {spec!r}",
            instead="for example 'NCHW'",
            spec=spec,
        )
    batch, channels = (0, len(space) + 1) if spec is None else (spec.index("N"), spec.index("C"))
    window, steps = list(space), list(moves)
    for place in sorted((batch, channels)):
        window.insert(place, 1)
        steps.insert(place, 1)

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        return reduce(inputs, tuple(window), tuple(steps), padding)

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        in_shape = shape_with_axes(name, input_shape, len(window), batch)
        return output_shape(lambda x: apply((), x), in_shape, batch, batch), ()

    return Layer(init, apply)
