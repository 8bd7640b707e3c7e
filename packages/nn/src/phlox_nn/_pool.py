"""Pooling: the maximum or the mean of each window, or over all spatial axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import phlox.numpy as jnp
from phlox import lax, typeof
from phlox.errors import ArgumentError

from . import _checks
from ._conv import AXES, Lengths, Padding, padding_pairs
from ._layer import Layer


class _Pool(Layer):
    """The base of pooling layers: one value for each window over the spatial axes, for each feature."""

    window: Lengths
    strides: Lengths | None = None
    padding: Padding = "VALID"

    def __post_init__(self) -> None:
        count = self._count()
        _checks.lengths(self, "window", self.window, count)
        if self.strides is not None:
            _checks.lengths(self, "strides", self.strides, count)
        padding_pairs(self, self.padding, count)

    def _count(self) -> int:
        if isinstance(self.window, tuple | list):
            return len(self.window)
        if not _checks.is_index(self.window):
            name = "max_pool" if type(self).__name__ == "MaxPool" else "avg_pool"
            if hasattr(self.window, "shape"):
                raise ArgumentError(
                    f"{name} makes a layer from the lengths of a window, and got the array {typeof(self.window).short}",
                    instead=f"Sequential(..., nn.{name}((2, 2))) as a part, or nn.{name}((2, 2)).apply({{}}, x)",
                    argument="window",
                )
            raise ArgumentError(
                f"{name}: window must be lengths, got {self.window!r}", instead="(2, 2) for images", argument="window"
            )
        return 1

    def _reduce(self, x: Any, first: Any, function: Any) -> Any:
        count = self._count()
        _checks.rank(self, x, (..., *AXES[-count:], "features"))
        window = _checks.lengths(self, "window", self.window, count)
        strides = window if self.strides is None else _checks.lengths(self, "strides", self.strides, count)
        padding = padding_pairs(self, self.padding, count)
        before = (1,) * (x.ndim - count - 1)
        zeros = [(0, 0)] * len(before)
        full = padding if isinstance(padding, str) else [*zeros, *padding, (0, 0)]
        return lax.reduce_window(x, first, function, (*before, *window, 1), (*before, *strides, 1), full)


class MaxPool(_Pool):
    """The largest element of each window. Made by `max_pool`."""

    def __call__(self, x: Any) -> Any:
        is_float = jnp.issubdtype(x.dtype, jnp.inexact)
        least = np.asarray(-np.inf if is_float else jnp.iinfo(x.dtype).min, x.dtype)
        if is_float and not np.isinf(least):  # a type without infinity, such as float8_e4m3fn
            least = np.asarray(jnp.finfo(x.dtype).min)
        return self._reduce(x, least, lax.max)

    def __repr__(self) -> str:
        return super().__repr__().replace("MaxPool", "max_pool")


class AvgPool(_Pool):
    """The mean of each window. Made by `avg_pool`."""

    count_padding: bool = False

    def __call__(self, x: Any) -> Any:
        (x,) = self.cast(x)
        wide, dtype = _checks.wide(x), _checks.inexact(x)
        # A NumPy array stays concrete under jit; a sum with a traced initial value has no vjp.
        zero = np.zeros((), wide.dtype)
        sums = self._reduce(wide, zero, lax.add)
        if self.count_padding:
            counts: Any = math.prod(_checks.lengths(self, "window", self.window, self._count()))
        else:
            ones = jnp.ones((*(1,) * (x.ndim - self._count() - 1), *x.shape[-self._count() - 1 : -1], 1), wide.dtype)
            counts = self._reduce(ones, zero, lax.add)
        return jnp.asarray(sums / counts, dtype)

    def __repr__(self) -> str:
        return super().__repr__().replace("AvgPool", "avg_pool")


def max_pool(window: Lengths, strides: Lengths | None = None, padding: Padding = "VALID") -> MaxPool:
    """The layer that maps (..., *space, features) to the largest element of each window.

    Args:
      window: the window's lengths, one for each axis of space; a number for one axis.
      strides: how far the window moves; by default its own lengths.
      padding: "SAME", "VALID", numbers or pairs of numbers, see `Conv`.

    >>> import phlox
    >>> max_pool((2, 2)).apply({}, phlox.numpy.arange(16.0).reshape(4, 4, 1))[..., 0]
    Array([[ 5.,  7.],
           [13., 15.]], dtype=float32)
    """
    return MaxPool(window, strides, padding)


def avg_pool(
    window: Lengths, strides: Lengths | None = None, padding: Padding = "VALID", count_padding: bool = False
) -> AvgPool:
    """The layer that maps (..., *space, features) to the mean of each window.

    Args:
      window, strides, padding: as for `max_pool`.
      count_padding: whether zeros at the edge count as elements, as PyTorch does by default.

    >>> import phlox
    >>> avg_pool((2, 2)).apply({}, phlox.numpy.arange(16.0).reshape(4, 4, 1))[..., 0]
    Array([[ 2.5,  4.5],
           [10.5, 12.5]], dtype=float32)
    """
    return AvgPool(window, strides, padding, count_padding)


def global_max_pool(x: Any) -> Any:
    """The largest element over all axes but the first (examples) and the last (features).

    >>> import phlox
    >>> global_max_pool(phlox.numpy.arange(8.0).reshape(1, 2, 2, 2))
    Array([[6., 7.]], dtype=float32)
    """
    return jnp.max(x, axis=tuple(range(1, jnp.ndim(x) - 1)))


def global_avg_pool(x: Any) -> Any:
    """The mean over all axes but the first (examples) and the last (features).

    >>> import phlox
    >>> global_avg_pool(phlox.numpy.arange(8.0).reshape(1, 2, 2, 2))
    Array([[3., 4.]], dtype=float32)
    """
    return jnp.mean(x, axis=tuple(range(1, jnp.ndim(x) - 1)))


def flatten(x: Any) -> Any:
    """All axes but the first (examples) joined: (n, a, b, …) becomes (n, a b …).

    >>> import phlox
    >>> flatten(phlox.numpy.ones((5, 2, 3))).shape
    (5, 6)
    """
    shape = jnp.shape(x)
    return jnp.reshape(x, (*shape[:1], math.prod(shape[1:])))  # reshape(n, -1) fails for an empty batch
