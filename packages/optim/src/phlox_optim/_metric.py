"""The base of metrics, see `phlox_optim.metrics`."""

from __future__ import annotations

from typing import Any, ClassVar

import phlox
import phlox.numpy as jnp


class Metric:
    """The base of metrics: pytrees of sums. A subclass computes the metric from its sums in `value`."""

    #: whether two metrics are merged by adding their leaves
    additive: ClassVar[bool] = True

    def value(self) -> Any:
        """The value of the metric, an array."""
        raise NotImplementedError

    def merged(self, other: Any) -> Any:
        """The metric of the examples of both."""
        return phlox.tree.map(jnp.add, self, other)

    def __float__(self) -> float:
        return float(self.value())
