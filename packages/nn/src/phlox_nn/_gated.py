"""Gated linear units: a linear map multiplied by an activation of another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _activations, _checks
from ._layer import Layer
from ._linear import Linear


class GLU(Layer):
    """A perceptron with a gate: ``out(activation(gate(x)) * value(x))``. Source: Shazeer, 2020.

    With the sigmoid this is the gated linear unit, with `phlox.nn.silu` (the default) SwiGLU, with `phlox.nn.gelu`
    GEGLU, with `phlox.nn.relu` ReGLU.

    Args:
      features: the length of the last axis of inputs and outputs.
      hidden_features: the length between.
      activation: the function of the gate.
      use_bias: whether the linear maps add something.

    Its parts are the linear maps `gate`, `value` and `out`.

    >>> import phlox
    >>> layer = GLU(8, 16)
    >>> layer.apply(layer.init(phlox.random.key(0)), phlox.numpy.ones((5, 8))).shape
    (5, 8)
    """

    features: int
    hidden_features: int
    activation: Callable[[Any], Any] = _activations.silu
    use_bias: bool = False

    def __post_init__(self) -> None:
        _checks.size(self, features=self.features, hidden_features=self.hidden_features)

    def parts(self) -> Mapping[str, Any]:
        inner = Linear(self.features, self.hidden_features, self.use_bias)
        return {"gate": inner, "value": inner, "out": Linear(self.hidden_features, self.features, self.use_bias)}

    def __call__(self, x: Any) -> Any:
        return self.out(self.activation(self.gate(x)) * self.value(x))
