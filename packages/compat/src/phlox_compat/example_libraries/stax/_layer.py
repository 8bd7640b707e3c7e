"""`Layer`, the pair of functions that is a layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Shape = tuple[int, ...]
Params = Any


class Layer(NamedTuple):
    """A layer: `init` makes its parameters, `apply` uses them. A plain tuple of such functions is also a layer.

    Fields:
      init: ``init(rng, input_shape) -> (output_shape, params)``. `rng` is a PRNG key; `input_shape` is a tuple of
        lengths, of which -1 is one that is not known yet; `params` is any tree of arrays.
      apply: ``apply(params, inputs, *, rng=None, **kwargs) -> outputs``. `rng` is a key for layers that draw random
        numbers. `serial` passes all keyword arguments to all of its layers, so accept those you do not use.

    >>> from phlox.example_libraries import stax
    >>> double = stax.Layer(lambda rng, shape: (shape, ()), lambda params, inputs, **kwargs: 2 * inputs)
    >>> init, apply = stax.serial(double, double)
    >>> apply([(), ()], 3.0)
    12.0
    """

    init: Callable[[Any, Any], tuple[Any, Params]]
    apply: Callable[..., Any]
