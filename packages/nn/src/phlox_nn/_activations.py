"""Activations: the functions of `phlox.nn`, which also say what to write when they are called without an array."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import phlox
from phlox.errors import ArgumentError

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


def _activation(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """The function, with an error for a call such as ``relu()``, which other libraries take for a layer."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
        if not args and "x" not in kwargs:
            name = function.__name__
            options = "".join(f", {option}={value!r}" for option, value in kwargs.items())
            raise ArgumentError(
                f"{name} is a function of an array, and got none",
                instead=f"Sequential(..., lambda x: nn.{name}(x{options}))"
                if options
                else f"Sequential(..., nn.{name})",
                argument="x",
            )
        return function(*args, **kwargs)

    call.__module__, call.__qualname__ = "phlox_nn", function.__name__  # by which pickle finds it
    return call


celu = _activation(phlox.nn.celu)
elu = _activation(phlox.nn.elu)
gelu = _activation(phlox.nn.gelu)
glu = _activation(phlox.nn.glu)
hard_sigmoid = _activation(phlox.nn.hard_sigmoid)
hard_swish = _activation(phlox.nn.hard_swish)
hard_tanh = _activation(phlox.nn.hard_tanh)
leaky_relu = _activation(phlox.nn.leaky_relu)
log_sigmoid = _activation(phlox.nn.log_sigmoid)
log_softmax = _activation(phlox.nn.log_softmax)
mish = _activation(phlox.nn.mish)
relu = _activation(phlox.nn.relu)
relu6 = _activation(phlox.nn.relu6)
selu = _activation(phlox.nn.selu)
sigmoid = _activation(phlox.nn.sigmoid)
silu = _activation(phlox.nn.silu)
soft_sign = _activation(phlox.nn.soft_sign)
softmax = _activation(phlox.nn.softmax)
softplus = _activation(phlox.nn.softplus)
squareplus = _activation(phlox.nn.squareplus)
swish = _activation(phlox.nn.swish)
tanh = _activation(phlox.nn.tanh)
