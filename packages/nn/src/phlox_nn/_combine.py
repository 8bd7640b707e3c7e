"""Layers composed of layers: Sequential, Parallel, Residual."""

from __future__ import annotations

import dataclasses
from typing import Any

from phlox.errors import ArgumentError

from . import _code
from ._layer import INLINE, Layer


class _Several(Layer, init=False):
    """The base of layers whose parts are named by their position."""

    layers: tuple[Any, ...] = dataclasses.field(metadata={INLINE: True})

    def __init__(self, *layers: Any):
        for number, layer in enumerate(layers):
            if isinstance(layer, type) and issubclass(layer, Layer):
                name = layer.__name__
                instead = f"{name}(...)"
            elif not callable(layer):
                name = repr(layer)
                instead = f"{type(self).__name__}(Linear(4, 8), relu)"
            else:
                continue
            raise ArgumentError(
                f"{type(self).__name__}: layer {number} is {name}, which is neither a layer nor a function of an array",
                instead=instead,
                layer=layer,
            )
        self.__dict__["layers"] = layers

    def __repr__(self) -> str:
        return _code.call(type(self).__name__, [_code.value(layer) for layer in self.layers])

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, place: Any) -> Any:
        return type(self)(*self.layers[place]) if isinstance(place, slice) else self.layers[place]


class Sequential(_Several, init=False):
    """Layers applied in sequence; each gets the result of the one before it.

    Args:
      layers: layers, and functions of an array.

    Parameters are named by position: ``0.weight``. The first layer gets all arguments of the call. The method `decode`
    calls that of the layers that have one.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = Sequential(nn.Linear(4, 8), nn.relu, nn.Linear(8, 2))
    >>> model
    Sequential(Linear(4, 8), relu, Linear(8, 2))
    >>> model.apply(model.init(phlox.random.key(0)), phlox.numpy.ones((5, 4))).shape
    (5, 2)
    """

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        for layer in self.layers:
            x = layer(x, *args, **kwargs)
            args, kwargs = (), {}
        return x

    def decode(self, x: Any) -> Any:
        """Like the call, but for layers that process tokens step by step with a cache: `MultiHeadAttention.decode`."""
        for layer in self.layers:
            x = getattr(layer, "decode", layer)(x)
        return x


class Parallel(_Several, init=False):
    """Layers applied in parallel: each gets the same arguments, and the results are a list.

    Args:
      layers: layers, and functions of arrays.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = Parallel(nn.Linear(4, 8), nn.relu)
    >>> [y.shape for y in model.apply(model.init(phlox.random.key(0)), phlox.numpy.ones((5, 4)))]
    [(5, 8), (5, 4)]
    """

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        return [layer(*args, **kwargs) for layer in self.layers]


class Residual(Layer):
    """The sum of the input and the output of a layer: ``x + layer(x)``. Source: He et al., 2015.

    Args:
      layer: a layer, or a function, that keeps the shape.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = Residual(nn.Linear(4, 4))
    >>> model.apply(model.init(phlox.random.key(0)), phlox.numpy.ones((5, 4))).shape
    (5, 4)
    """

    layer: Any

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return x + self.layer(x, *args, **kwargs)

    def decode(self, x: Any) -> Any:
        """Like the call, but the layer processes tokens step by step: `Sequential.decode`."""
        return x + getattr(self.layer, "decode", self.layer)(x)
