"""Layers made of other layers: `serial`, `parallel`, `shape_dependent`, and layers that split and join inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phlox import numpy as jnp, random
from phlox.errors import ArgumentError, ShapeError

from ._checks import checked_shapes, integer, one_for_each
from ._layer import Layer, Params, Shape

_FAN_OUT = "for one input of all layers, FanOut before: serial(FanOut(2), parallel(Dense(3), Identity))"


def serial(*layers: Any) -> Layer:
    """The layer that applies `layers` one after the other.

    Args:
      layers: pairs ``(init, apply)``, see `Layer`; or functions of one array that keep its shape, such as `selu`.

    The parameters are a list of the parameters of each layer, ``()`` for functions. Each layer gets its own key in
    `init` and, when `rng` is given, in `apply`.

    Raises:
      ArgumentError: one of `layers` is neither a pair nor a function.
      TreeError: `apply` gets parameters of another number of layers.
      ShapeError: a function changes the shape.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(4), stax.relu, stax.Dense(2))
    >>> output_shape, params = init(phlox.random.key(0), (-1, 3))
    >>> phlox.jit(apply)(params, phlox.numpy.ones((5, 3))).shape
    (5, 2)
    """
    members = [_layer("serial", f"layer {number}", layer) for number, layer in enumerate(layers)]

    def init(rng: Any, input_shape: Any) -> tuple[Any, Params]:
        shape, params = checked_shapes("serial", input_shape), []
        for layer in members:
            # Layers without parameters get a key, too, so that the parameters are equal to those of JAX's stax.
            rng, key = random.split(rng)
            shape, part = layer.init(key, shape)
            params.append(part)
        return shape, params

    def apply(params: Params, inputs: Any, *, rng: Any = None, **kwargs: Any) -> Any:
        parts = one_for_each("serial", "the parameters", params, len(members), "the parameters that init returned")
        keys = [None] * len(members) if rng is None or not members else random.split(rng, len(members))
        for layer, part, key in zip(members, parts, keys, strict=True):
            inputs = layer.apply(part, inputs, rng=key, **kwargs)
        return inputs

    return Layer(init, apply)


def parallel(*layers: Any) -> Layer:
    """The layer that applies each of `layers` to its own input: a list of inputs becomes a list of outputs.

    It is used with `FanOut` before it, and `FanInSum` or `FanInConcat` after it. Layers and keys are as for `serial`.

    Raises:
      ArgumentError: one of `layers` is neither a pair nor a function.
      TreeError: there are not as many inputs, shapes or parameters as layers.
      ShapeError: `init` gets one shape, or a function changes the shape.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> init, apply = stax.parallel(stax.Dense(4), stax.Identity)
    >>> shapes, params = init(phlox.random.key(0), [(-1, 3), (-1, 3)])
    >>> shapes, [y.shape for y in apply(params, [phlox.numpy.ones((5, 3))] * 2)]
    (((-1, 4), (-1, 3)), [(5, 4), (5, 3)])
    """
    members = [_layer("parallel", f"layer {number}", layer) for number, layer in enumerate(layers)]

    def init(rng: Any, input_shapes: Any) -> tuple[Any, Params]:
        shapes = one_for_each("parallel", "the input shapes", input_shapes, len(members), _FAN_OUT)
        if any(integer(shape) is not None for shape in shapes):
            raise ShapeError(
                f"parallel: needs a list of shapes, one for each of {len(members)} layers, got one, {input_shapes}",
                instead=_FAN_OUT,
                shape=input_shapes,
            )
        keys = random.split(rng, len(members))
        pairs = [layer.init(key, shape) for layer, key, shape in zip(members, keys, shapes, strict=True)]
        return tuple(shape for shape, _ in pairs), tuple(params for _, params in pairs)

    def apply(params: Params, inputs: Any, *, rng: Any = None, **kwargs: Any) -> Any:
        parts = one_for_each("parallel", "the parameters", params, len(members), "the parameters that init returned")
        layer_inputs = one_for_each("parallel", "the inputs", inputs, len(members), _FAN_OUT)
        keys = [None] * len(members) if rng is None or not members else random.split(rng, len(members))
        together = zip(members, parts, layer_inputs, keys, strict=True)
        return [layer.apply(part, x, rng=key, **kwargs) for layer, part, x, key in together]

    return Layer(init, apply)


def shape_dependent(make_layer: Callable[[Any], Any]) -> Layer:
    """The layer ``make_layer(input_shape)``, which is made in each call of `init` and `apply`.

    Raises:
      ArgumentError: the result of `make_layer` is neither a pair nor a function.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
    >>> init(phlox.random.key(0), (-1, 3))[0]
    (-1, 6)
    """

    def build(shape: Any) -> Layer:
        return _layer("shape_dependent", "the layer", make_layer(shape))

    return Layer(
        lambda rng, input_shape: build(input_shape).init(rng, input_shape),
        lambda params, inputs, **kwargs: build(jnp.shape(inputs)).apply(params, inputs, **kwargs),
    )


def FanOut(num: int) -> Layer:
    """The layer that returns a list with its input `num` times.

    Raises:
      ArgumentError: `num` is no integer, or is negative.

    >>> from phlox.example_libraries import stax
    >>> stax.FanOut(2).apply((), 3.0)
    [3.0, 3.0]
    """
    count = integer(num)
    if count is None or count < 0:
        raise ArgumentError(f"FanOut: the number of outputs must be an integer, and not negative, got {num!r}", num=num)
    return Layer(lambda rng, shape: ([shape] * count, ()), lambda params, inputs, **kwargs: [inputs] * count)


#: The layer that adds a list of inputs of one shape.
FanInSum = Layer(lambda rng, shapes: (shapes[0], ()), lambda params, inputs, **kwargs: sum(inputs))


def FanInConcat(axis: int = -1) -> Layer:
    """The layer that concatenates a list of inputs along an axis.

    >>> from phlox.example_libraries import stax
    >>> stax.FanInConcat().init(None, [(-1, 2), (-1, 3)])
    ((-1, 5), ())
    """

    def init(rng: Any, shapes: Any) -> tuple[Shape, Params]:
        place = axis % len(shapes[0])
        parts = [shape[place] for shape in shapes]
        joined = -1 if -1 in parts else sum(parts)
        return (*shapes[0][:place], joined, *shapes[0][place + 1 :]), ()

    return Layer(init, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis))


def _layer(owner: str, label: str, layer: Any) -> Layer:
    """`layer` as a pair of functions. `owner` and `label`, such as 'layer 2', name it in errors."""
    if isinstance(layer, tuple | list) and len(layer) == 2 and all(map(callable, layer)):
        return Layer(*layer)
    if (getattr(layer, "__module__", None) or "").startswith(__package__):
        raise ArgumentError(
            f"{owner}: {label} is {layer.__name__} itself, which makes layers",
            instead=f"{layer.__name__}(...)",
            layer=layer,
        )
    if not callable(layer):
        raise ArgumentError(
            f"{owner}: {label} is {layer!r}, neither a pair (init, apply) nor a function",
            instead="for example Dense(10), or selu",
            layer=layer,
        )
    return _function(f"{label} of {owner}, {getattr(layer, '__name__', 'a function')}", layer)


def _function(name: str, function: Callable[[Any], Any]) -> Layer:
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
