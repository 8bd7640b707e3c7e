"""`TrainState`: the state of training as one pytree, which can be saved, sharded, and passed to jitted functions."""

from __future__ import annotations

import dataclasses
from typing import Any

import phlox


@phlox.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """The state that a training step takes and returns. ``make_step(...).init`` makes the first one.

    Attributes:
      params: the parameters.
      opt_state: the state of the optimizer.
      state: state of the network that is not trained, such as batch statistics; None: there is none.
      step: the number of steps so far, an int32.
      key: the key from which the keys of all steps are derived; None: nothing is random.
      ema: the moving average of the parameters, in 32 bits where they have 16; None: not computed.
      scale: the scale of the loss, and the number of steps since it changed; None: the loss is not scaled.
      ema_state: the moving average of `state`; None: not computed, or no state.
      skipped: the number of steps that were skipped, and how many of them are the latest in a row, int32; None: no step
        is skipped.
      rate_scale: a factor of all updates, a float32, see `ReduceOnPlateau`; None: 1.

    >>> import phlox.numpy as jnp, phlox_optim as optim
    >>> step = optim.make_step(lambda params, batch: jnp.sum((params - batch) ** 2), optim.sgd(0.1))
    >>> train = step.init(jnp.zeros(2))
    >>> train.replace(step=jnp.int32(7)).step
    Array(7, dtype=int32)
    """

    params: Any
    opt_state: Any
    state: Any
    step: Any
    key: Any
    ema: Any
    scale: Any
    ema_state: Any = None
    skipped: Any = None
    rate_scale: Any = None

    def replace(self, **changes: Any) -> TrainState:
        """A copy with other values of some attributes."""
        return dataclasses.replace(self, **changes)
