"""`Stack`: many equal blocks in sequence as one scan, so that the program does not grow with their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import phlox
from phlox import lax

from . import _checks
from ._copies import Copies
from ._layer import Layer
from ._torch_layout import Tensor, inside


class Stack(Copies):
    """`count` copies of a layer, each with its own arrays, applied in sequence by `phlox.lax.scan`.

    Computes the same as ``Sequential(block, block, ...)``, for a layer that keeps the shape and dtype of its input. The
    block is traced and compiled once, whatever `count` is.

    Args:
      block: the layer.
      count: the number of copies.
      checkpoint: whether to save only the inputs of blocks for the backward pass and recompute the rest
        (`phlox.checkpoint`): less memory, about a third more time.
      unroll: the number of blocks in one iteration of the loop.

    Its part is `block`; each of its parameters and variables has a first axis of length `count`.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> model = Stack(nn.Residual(nn.MLP((8, 16, 8))), 12)
    >>> params = model.init(phlox.random.key(0))
    >>> params["block"]["layer"]["layers"]["0"]["weight"].shape
    (12, 8, 16)
    >>> model.apply(params, phlox.numpy.ones((5, 8))).shape
    (5, 8)
    """

    block: Layer
    count: int
    checkpoint: bool = False
    unroll: int = 1

    _copied = "block"

    def __post_init__(self) -> None:
        _checks.size(self, count=self.count, unroll=self.unroll)

    @property
    def _count(self) -> int:
        return self.count

    def torch_layout(self) -> Sequence[Tensor]:
        """PyTorch has the blocks in a list: ``0.weight``, ``1.weight``, …"""
        block = self.block.torch_layout()
        return [inside(part, ("block",), str(n), (n,)) for n in range(self.count) for part in block]

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Applies all blocks; further arguments are passed to each."""
        return self._run("__call__", x, args, kwargs)

    def decode(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Applies the method `decode` of all blocks."""
        return self._run("decode", x, args, kwargs)

    def _run(self, method: str, x: Any, args: Any, kwargs: Any) -> Any:
        (x,) = self.cast(x)

        def one(x: Any, at: Any) -> tuple[Any, Any]:
            arrays, key = at
            return self._copy_call(method, arrays, key, x, *args, **kwargs)

        step = phlox.checkpoint(one) if self.checkpoint else one
        x, states = lax.scan(step, x, (self._arrays, self._copy_keys()), length=self.count, unroll=self.unroll)
        self._set_states(states)
        return x
