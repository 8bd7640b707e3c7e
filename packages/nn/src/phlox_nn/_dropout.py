"""Dropout and DropPath: random elements, or examples, are zero in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox import random
from phlox.errors import AxisError

from . import _checks
from ._layer import Layer


class Dropout(Layer):
    """In training each element is zero with probability `rate`, and divided by ``1 - rate`` otherwise.

    Keeps shape and dtype. Outside of training, or with rate 0, nothing happens and no key is needed. Source:
    Srivastava et al., 2014.

    Args:
      rate: the part that is dropped, from 0 to 1.
      broadcast: axes along which all elements share their fate, as (1, 2) for whole channels of images.

    >>> import phlox
    >>> Dropout(0.5).apply({}, phlox.numpy.ones(4), key=phlox.random.key(2), train=True)
    Array([2., 0., 2., 0.], dtype=float32)
    >>> Dropout(0.5).apply({}, phlox.numpy.ones(4))
    Array([1., 1., 1., 1.], dtype=float32)
    """

    rate: float
    broadcast: int | tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _checks.part(self, rate=self.rate)

    def __call__(self, x: Any) -> Any:
        shape = list(jnp.shape(x))
        for axis in self.broadcast if isinstance(self.broadcast, Sequence) else [self.broadcast]:
            if not -len(shape) <= axis < len(shape):
                raise AxisError(
                    f"{self._name()}: inputs {phlox.typeof(x).short} have no axis {axis}", axis=axis, layer=self.path
                )
            shape[axis] = 1
        return _dropped(self, x, self.rate, tuple(shape))


class DropPath(Layer):
    """In training each example is zero with probability `rate`, and divided by ``1 - rate`` otherwise.

    For the branch of a residual block, which is thus left out for some examples (stochastic depth). Keeps shape and
    dtype; the first axis counts examples. Outside of training, or with rate 0, nothing happens and no key is needed.
    Source: Huang et al., 2016.

    Args:
      rate: the part of the examples that is dropped, from 0 to 1.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> block = nn.Residual(nn.Sequential(nn.Linear(4, 4), DropPath(0.1)))
    >>> DropPath(0.5).apply({}, phlox.numpy.ones((3, 2)), key=phlox.random.key(2), train=True)
    Array([[2., 2.],
           [0., 0.],
           [2., 2.]], dtype=float32)
    """

    rate: float

    def __post_init__(self) -> None:
        _checks.part(self, rate=self.rate)

    def __call__(self, x: Any) -> Any:
        return _dropped(self, x, self.rate, (*jnp.shape(x)[:1], *(1,) * (jnp.ndim(x) - 1)))


def _dropped(layer: Layer, x: Any, rate: float, shape: tuple[int, ...]) -> Any:
    """`x` in training with random zeros; elements share their fate along axes where `shape` is 1."""
    if not layer.train or rate == 0:
        return x
    keep_mask = random.bernoulli(layer.random_key(), 1 - rate, shape)
    # With rate 1 the divisor would be 0; the quotient is unused, but its derivative must not be nan.
    return jnp.where(keep_mask, x / (1 - rate or 1), jnp.zeros((), x.dtype))
