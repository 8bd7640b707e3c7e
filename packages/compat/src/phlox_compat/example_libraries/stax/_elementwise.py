"""Elementwise functions as layers without parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phlox import nn, numpy as jnp
from phlox.errors import ArgumentError

from ._layer import Layer


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """The layer that applies a function that keeps the shape, with these keyword arguments.

    Raises:
      ArgumentError: `fun` is no function.

    >>> import phlox
    >>> from phlox.example_libraries import stax
    >>> stax.elementwise(phlox.numpy.clip, min=0, max=1).apply((), phlox.numpy.array([-2.0, 0.5]))
    Array([0. , 0.5], dtype=float32)
    """
    if not callable(fun):
        raise ArgumentError(
            f"elementwise: needs a function, got {fun!r}", instead="for example elementwise(phlox.numpy.tanh)", fun=fun
        )
    return Layer(lambda rng, shape: (shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs))


Identity = Layer(lambda rng, shape: (shape, ()), lambda params, inputs, **kwargs: inputs)
Tanh = elementwise(jnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)
