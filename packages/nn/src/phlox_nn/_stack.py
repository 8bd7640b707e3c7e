"""`Stack`: many equal blocks in sequence as one scan, so that the program does not grow with their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox.errors import ShapeError

from . import _checks, _paths
from ._layer import Binding, Layer, _fold
from ._paths import Path, Tree
from ._torch_layout import Tensor, inside


class Stack(Layer):
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

    def __post_init__(self) -> None:
        _checks.size(self, count=self.count, unroll=self.unroll)

    @property
    def _copies(self) -> tuple[int, ...]:
        return (self.count,)

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
        outer = self._bound_by
        path: Path = (*self._path, "block")
        (x,) = self.cast(x)

        def one(x: Any, at: Any) -> tuple[Any, Any]:
            params, state, key = at
            inner = Binding(key, outer.train, outer.dtype, outer.stateful, watch=outer.watch, running=outer.running)
            block = self._block._bound(params, state, inner, path)
            return getattr(block, method)(x, *args, **kwargs), block.updated_state()

        keys = None if outer.key is None else phlox.random.split(self.random_key(), self.count)
        step = phlox.checkpoint(one) if self.checkpoint else one
        x, states = lax.scan(step, x, (*self._arrays, keys), length=self.count, unroll=self.unroll)
        if outer.stateful:
            outer.changes.update({(*path, *below): value for below, value in _paths.leaves(states)})
        return x

    def _make(self, kind: str, key: Any, path: Path, dtype: Any, batch: int | None) -> Tree:
        keys = phlox.random.split(_fold(key, (*path, "block")), self.count)
        arrays = phlox.vmap(lambda key: self.block._make(kind, key, (), dtype, batch))(keys)
        return {"block": arrays} if arrays else {}

    def _bound(self, params: Any, state: Any, binding: Binding, path: Path) -> Any:
        # The block is not bound here but inside of the loop, to its slice of the arrays.
        for tree in (params, state):
            for below, leaf in _paths.leaves(tree):
                if jnp.shape(leaf)[:1] != (self.count,):
                    raise ShapeError(
                        f"{_paths.text((*path, *below))!r} has shape {jnp.shape(leaf)}, but a Stack of {self.count} "
                        f"needs a first axis of length {self.count}",
                        shapes=[jnp.shape(leaf)],
                        path=(*path, *below),
                    )
        bound = self._copied(params, state, binding, path)
        bound.__dict__["_arrays"] = (params.get("block", {}), state.get("block", {}))
        bound.__dict__["_block"] = self.block
        return bound
