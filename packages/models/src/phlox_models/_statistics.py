"""Models with batch statistics whose parameters may contain them, so that a loaded model needs no separate state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import phlox
import phlox_nn as nn
from phlox import lax
from phlox.errors import ArgumentError

_Self = TypeVar("_Self", bound="WithStatistics")


class WithStatistics(nn.Layer):
    """The base of models with `phlox_nn.BatchNorm`, whose variables `mean` and `var` may be part of the parameters.

    For evaluation, ``model.apply(params, images)`` takes the statistics from the parameters, as `phlox_models.load`
    returns them. Training separates them: ``state, params = phlox_nn.partition(params, ("*.mean", "*.var"))``, then
    ``out, state = model.apply(params, images, state=state, train=True)``; ``phlox_nn.merge(params, state)`` joins them
    again.
    """

    def bind(self: _Self, params: Any, *, state: Any = None, train: bool = False, **options: Any) -> _Self:
        """A copy of this layer that can be called. Arguments as for `phlox_nn.Layer.bind`."""
        if state is None and isinstance(params, Mapping):
            params, state = _separated(self, params)
            if state and train:
                raise ArgumentError(
                    f"{type(self).__name__}: a step of training changes the batch statistics, which are among params",
                    instead='state, params = nn.partition(params, ("*.mean", "*.var")), then apply(..., state=state)',
                )
            state = lax.stop_gradient(state) if state else None
        return super().bind(params, state=state, train=train, **options)


def _separated(model: nn.Layer, params: Any) -> tuple[Any, Any]:
    """Parameters, and the statistics that were among them."""
    state: dict[str, Any] = {}
    return _without(params, phlox.eval_shape(model.init_state), state), state


def _without(params: Any, variables: Any, state: dict[str, Any]) -> Any:
    """`params` without the leaves that are in `variables` too, which are put into `state`."""
    rest = {}
    for name, value in params.items():
        inner = variables.get(name)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            below: dict[str, Any] = {}
            rest[name] = _without(value, inner, below)
            state.update({name: below} if below else {})
        elif inner is None:
            rest[name] = value
        else:
            state[name] = value
    return rest
