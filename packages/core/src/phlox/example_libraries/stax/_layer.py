"""What a layer is: a pair of functions. Layers know nothing of each other; `serial` puts them together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
