"""A mixture of experts: a router sends each token to a few of many copies of a layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox.errors import ArgumentError
from phlox.nn import initializers

from . import _checks, _paths
from ._copies import Copies
from ._layer import Layer
from ._linear import Linear


class MoE(Copies):
    """A mixture of experts: the sum of the results of the `top_k` experts that a router prefers for each token.

    Maps (..., features) to (..., features). Sources: Shazeer et al., 2017; Fedus et al., 2022.

    Args:
      expert: the layer that each expert is a copy of, with its own arrays, such as `MLP` or `GLU`. It maps
        (tokens, features) to (tokens, other features).
      num_experts: the number of experts.
      features: the length of the last axis, which the router sees.
      top_k: how many experts a token is sent to.
      capacity_factor: an expert takes at most ``capacity_factor * tokens * top_k / num_experts`` tokens. What is
        above adds nothing. None: every expert has room for all tokens, so that results do not depend on other
        tokens; this takes the time of all experts for each token.
      normalize: whether the weights of the chosen experts sum to 1 (Mixtral), or are the router's probabilities
        (Switch).

    Its parts are `router` and `expert`, whose arrays have a first axis of length `num_experts`. Variables, if the call
    has ``state``: balance (), the load-balancing loss, which is 1 for an even load (see `balance_loss`), and load
    (num_experts,), the fraction of tokens for each expert.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = MoE(nn.MLP((8, 16, 8)), num_experts=4, features=8, top_k=2)
    >>> params, state = model.init(phlox.random.key(0)), model.init_state()
    >>> params["expert"]["layers"]["0"]["weight"].shape
    (4, 8, 16)
    >>> y, state = model.apply(params, phlox.numpy.ones((5, 3, 8)), state=state)
    >>> y.shape, state["load"].shape
    ((5, 3, 8), (4,))
    """

    expert: Layer
    num_experts: int
    features: int
    top_k: int = 2
    capacity_factor: float | None = None
    normalize: bool = True

    _copied = "expert"

    def __post_init__(self) -> None:
        _checks.size(self, num_experts=self.num_experts, features=self.features, top_k=self.top_k)
        if self.top_k > self.num_experts:
            raise ArgumentError(
                f"MoE: top_k={self.top_k} is more than num_experts={self.num_experts}",
                instead=f"top_k of 1 to {self.num_experts}",
                top_k=self.top_k,
            )
        if self.capacity_factor is not None and not self.capacity_factor > 0:
            raise ArgumentError(
                f"MoE: capacity_factor is {self.capacity_factor!r}",
                instead="a positive number such as 1.25, or None",
                capacity_factor=self.capacity_factor,
            )

    @property
    def _count(self) -> int:
        return self.num_experts

    def parts(self) -> Mapping[str, Any]:
        return {"router": Linear(self.features, self.num_experts, use_bias=False)}

    def variables(self) -> Mapping[str, Any]:
        return {
            "balance": (initializers.ones, (), jnp.float32),
            "load": (initializers.constant(1 / self.num_experts), (self.num_experts,), jnp.float32),
        }

    def __call__(self, x: Any) -> Any:
        _checks.features(self, x, self.features)
        x = jnp.asarray(x)
        lead = x.shape[:-1]
        tokens = x.reshape((math.prod(lead), self.features))
        probabilities = phlox.nn.softmax(_checks.wide(self.router(tokens)))
        weights, chosen = lax.top_k(probabilities, self.top_k)
        if self.normalize:
            weights = weights / weights.sum(-1, keepdims=True)
        places = phlox.nn.one_hot(chosen, self.num_experts, dtype=jnp.int32)  # (tokens, top_k, experts)
        if self._bound_by.stateful:
            load = places.sum((0, 1)) / jnp.float32(places.shape[0] * self.top_k)
            self.update(balance=self.num_experts * (load * probabilities.mean(0)).sum(), load=load)
        y = self._dispatched(tokens, weights, chosen, places)
        return y.reshape((*lead, *y.shape[1:]))

    def _dispatched(self, tokens: Any, weights: Any, chosen: Any, places: Any) -> Any:
        """The weighted sums of the experts' results, for each token."""
        count = len(tokens)
        capacity = count
        if self.capacity_factor is not None:
            capacity = min(count, math.ceil(self.capacity_factor * count * self.top_k / self.num_experts))
        # First choices of all tokens come before second ones.
        ordered = jnp.swapaxes(places, 0, 1).reshape((-1, self.num_experts))
        before = jnp.cumsum(ordered, axis=0) - ordered
        slots = (before * ordered).sum(-1).reshape((self.top_k, count)).T  # (tokens, top_k)
        # Slots from the capacity on are outside of the array and dropped.
        owners = (
            jnp.full((self.num_experts, capacity), count).at[chosen, slots].set(jnp.arange(count)[:, None], mode="drop")
        )
        inputs = tokens.at[owners].get(mode="fill", fill_value=0)
        run = phlox.vmap(lambda arrays, key, x: self._copy_call("__call__", arrays, key, x))
        results, states = run(self._arrays, self._copy_keys(), inputs)
        self._set_states(states)
        parts = results.at[chosen, slots].get(mode="fill", fill_value=0)  # (tokens, top_k, other features)
        return (parts * jnp.asarray(weights, parts.dtype)[..., None]).sum(1)


def balance_loss(state: Any) -> Any:
    """The sum of the load-balancing losses of all `MoE` layers of a model, from the new state of a call.

    Each is ``num_experts * sum(load * probability)``, with the router's mean probability of an expert: 1 if the
    load is even, up to `num_experts`. Added to the loss times about 0.01, it keeps experts in use.
    Source: Fedus et al., 2022.

    Args:
      state: the state that ``apply(params, x, state=state)`` returns.

    Returns:
      A float32 scalar, which can be differentiated.

    Raises:
      ArgumentError: no `MoE` has left a loss in the state.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = nn.MoE(nn.MLP((8, 16, 8)), num_experts=4, features=8)
    >>> params = model.init(phlox.random.key(0))
    >>> def loss(params, x, state):
    ...     y, state = model.apply(params, x, state=state, train=True)
    ...     return (y**2).mean() + 0.01 * nn.balance_loss(state), state
    >>> x = phlox.numpy.ones((5, 8))
    >>> grads, state = phlox.grad(loss, has_aux=True)(params, x, model.init_state())
    """
    losses = [
        jnp.sum(leaf)
        for path, leaf in _paths.leaves(state)
        if path and path[-1] == "balance" and jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    ]
    if not losses:
        raise ArgumentError(
            "balance_loss: the state has no losses of MoE layers",
            instead="y, state = model.apply(params, x, state=state); loss + 0.01 * nn.balance_loss(state)",
        )
    return sum(losses[1:], losses[0])
