"""What training carries from step to step, as one pytree: it can be saved, sharded, and given to a jitted function."""

from __future__ import annotations

import dataclasses
from typing import Any

import phlox


@phlox.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """All that a training step reads and gives back. ``make_step(...).init`` makes the first one.

    Attributes:
      params: the parameters.
      opt_state: the state of the optimizer.
      state: what the network remembers and does not learn, such as batch statistics; None: nothing.
      step: how many batches were taken, an int32.
      key: the key that the keys of all steps come from; None: nothing is random.
      ema: the average of the parameters over the past steps; None: none is kept.
      scale: the scale of the loss, and for how many steps it has held; None: the loss is not scaled.

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

    def replace(self, **changes: Any) -> TrainState:
        """The same with other values of some attributes."""
        return dataclasses.replace(self, **changes)
