"""What a layer is: a pair of functions. Layers know nothing of each other; `serial` puts them together."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._base.errors import ShapeError

Shape = tuple[int, ...]
Params = Any


class Layer(NamedTuple):
    """A layer: `init` makes its parameters, `apply` uses them. A plain pair of such functions is as good.

    Fields:
      init: ``init(rng, input_shape) -> (output_shape, params)``. `rng` is a PRNG key; `input_shape` is a tuple of
        lengths, where -1 stands for one that is not known yet; `params` is any tree of arrays.
      apply: ``apply(params, inputs, *, rng=None, **kwargs) -> outputs``. `rng` is a key for layers that draw random
        numbers. `serial` hands every keyword argument to all of its layers, so accept those you do not use.

    >>> from phlox.example_libraries import stax
    >>> double = stax.Layer(lambda rng, shape: (shape, ()), lambda params, inputs, **kwargs: 2 * inputs)
    >>> init, apply = stax.serial(double, double)
    >>> apply([(), ()], 3.0)
    12.0
    """

    init: Callable[[Any, Any], tuple[Any, Params]]
    apply: Callable[..., Any]


def checked_shape(layer: str, shape: Any) -> Shape:
    """`shape` as a tuple of lengths; `layer` names the layer in the error."""
    lengths = [integer(n) for n in shape] if isinstance(shape, tuple | list) else [None]
    if not all(n is not None and n >= -1 for n in lengths):
        raise ShapeError(
            f"{layer}: input_shape must be a tuple of lengths (or -1 for one not known yet), got {shape!r}",
            instead="for example (-1, 64), a batch of any size with 64 features",
            shape=shape,
        )
    return tuple(n for n in lengths if n is not None)


def integer(n: Any) -> int | None:
    """An integer of Python's, NumPy's or phlox's as one of Python's; None for all else, True and False included."""
    try:
        return None if isinstance(n, bool) else operator.index(n)
    except TypeError:
        return None
