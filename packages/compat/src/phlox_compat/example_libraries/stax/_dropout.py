"""The dropout layer, the only one here whose `apply` draws random numbers."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from phlox import numpy as jnp, random
from phlox.errors import ArgumentError
from phlox.typing import Array

from ._checks import checked_shape
from ._layer import Layer, Params, Shape


def Dropout(rate: Any, mode: str = "train") -> Layer:
    """A layer that keeps each element with probability `rate`, divided by `rate`, and replaces the others by zero.

    `rate` is the fraction that is *kept*, as in ``jax.example_libraries.stax``: ``Dropout(0.9)`` drops a tenth. Shape
    and dtype are those of the inputs. The layer has no parameters. Source: Srivastava et al., 2014.

    Args:
      rate: a number greater than 0 and at most 1; or an array, which may be traced, so its elements are not checked.
      mode: 'train'; or 'test', which returns the inputs unchanged.

    Raises:
      ArgumentError: `rate` or `mode` has another value, or `apply` gets no `rng` in mode 'train'.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> init, apply = stax.Dropout(0.5)
    >>> apply((), phlox.numpy.ones(4), rng=phlox.random.key(0))
    Array([0., 0., 2., 2.], dtype=float32)
    """
    name = f"Dropout({rate})"
    number = isinstance(rate, Real) and not isinstance(rate, bool)
    if not (isinstance(rate, Array | np.ndarray) or (number and 0 < rate <= 1)):
        raise ArgumentError(
            f"{name}: the rate must be a number above 0, and at most 1",
            instead="the part to keep: Dropout(0.9) drops a tenth",
            rate=rate,
        )
    if mode not in ("train", "test"):
        raise ArgumentError(f"{name}: unknown mode {mode!r}", instead="'train' or 'test'", mode=mode)

    def init(rng: Any, input_shape: Shape) -> tuple[Shape, Params]:
        return checked_shape(name, input_shape), ()

    def apply(params: Params, inputs: Any, *, rng: Any = None, **kwargs: Any) -> Any:
        if mode == "test":
            return inputs
        if rng is None:
            raise ArgumentError(
                f"{name} draws random numbers and got no key",
                instead="apply(params, inputs, rng=key), or a network made with mode='test'",
            )
        keep_mask = random.bernoulli(rng, rate, jnp.shape(inputs))
        return jnp.where(keep_mask, inputs / rate, 0)

    return Layer(init, apply)
