"""Layers one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import phlox.numpy as jnp
from phlox import random
from phlox.errors import ArgumentError, ShapeError, TreeError

from ._layer import Layer, Params, Shape, checked_shape


def serial(*layers: Any) -> Layer:
    """The layer that applies `layers` one after the other.

    Args:
      layers: pairs ``(init, apply)``, see `Layer`; or functions of one array that keep its shape, such as `selu`.

    Parameters are a list with those of each layer, ``()`` for functions. Each layer gets a key of its own, in `init`
    and, when `rng` is given, in `apply`.

    Raises:
      ArgumentError: something is neither a pair nor a function.
      TreeError: `apply` gets parameters of another number of layers.
      ShapeError: a function changes the shape.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> init, apply = nn.serial(nn.Dense(4), nn.relu, nn.Dense(2))
    >>> output_shape, params = init(phlox.random.key(0), (-1, 3))
    >>> phlox.jit(apply)(params, phlox.numpy.ones((5, 3))).shape
    (5, 2)
    """
    made = [_layer(number, layer) for number, layer in enumerate(layers)]

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        shape, params = checked_shape("serial", input_shape), []
        for layer in made:
            # Also for layers without parameters: stax's numbers depend on it.
            rng, key = random.split(rng)
            shape, part = layer.init(key, shape)
            params.append(part)
        return shape, params

    def apply(params: Params, inputs: Any, *, rng: Any = None, **kwargs: Any) -> Any:
        if not isinstance(params, list | tuple) or len(params) != len(made):
            got = f"{len(params)}" if isinstance(params, list | tuple) else f"a {type(params).__name__}"
            raise TreeError(
                f"serial: the parameters must be a list with a part for each of {len(made)} layers, got {got}",
                instead="the parameters that init returned",
                path=(),
                expected=len(made),
                got=params,
            )
        keys = [None] * len(made) if rng is None or not made else random.split(rng, len(made))
        for layer, part, key in zip(made, params, keys, strict=True):
            inputs = layer.apply(part, inputs, rng=key, **kwargs)
        return inputs

    return Layer(init, apply)


def _layer(number: int, layer: Any) -> Layer:
    """`layer` as a pair; a function becomes one."""
    if isinstance(layer, tuple) and len(layer) == 2 and all(map(callable, layer)):
        return Layer(*layer)
    if getattr(layer, "__module__", "").split(".")[0] == __package__:
        raise ArgumentError(
            f"serial: layer {number} is {layer.__name__} itself, which makes layers",
            instead=f"{layer.__name__}(...)",
            layer=layer,
        )
    if not callable(layer):
        raise ArgumentError(
            f"serial: layer {number} is {layer!r}, neither a pair (init, apply) nor a function",
            instead="for example serial(Dense(10), selu)",
            layer=layer,
        )
    return _function(number, layer)


def _function(number: int, function: Callable[[Any], Any]) -> Layer:
    name = f"layer {number} of serial, {getattr(function, '__name__', 'a function')}"

    def apply(params: Params, inputs: Any, **kwargs: Any) -> Any:
        outputs = function(inputs)
        before, after = jnp.shape(inputs), jnp.shape(outputs)
        if before != after:
            raise ShapeError(
                f"{name}, turns shape {before} into {after}, but functions used as layers must keep the shape",
                instead="a pair (init, apply) whose init tells the new shape",
                shapes=[before, after],
            )
        return outputs

    return Layer(lambda rng, input_shape: (input_shape, ()), apply)
