"""Types of what optimizers and training exchange, for editors and type checkers.

At run time optimizers are the classes of the private copy of optax, which these protocols describe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Optimizer(Protocol):
    """An optimizer, or a transformation for `chain`: two functions."""

    @property
    def init(self) -> Callable[..., Any]:
        """``init(params)``: the state before the first step."""

    @property
    def update(self) -> Callable[..., Any]:
        """``update(grads, state, params)``: the changes of the parameters, and the new state."""
