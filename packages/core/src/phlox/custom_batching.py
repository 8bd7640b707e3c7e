"""``phlox.custom_batching``: functions with batching rules of their own, as in ``jax.custom_batching``."""

from collections.abc import Callable
from typing import Any

from . import tree
from ._api.batching.custom_vmap import custom_vmap
from ._base.public_names import publish
from .lax import map as _map

__all__ = ["custom_vmap", "sequential_vmap"]


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """`f` with a batching rule that computes one example after the other, in a loop.

    It is for functions that cannot take batches, or need too much memory for a batch.

    Args:
      f: function of positional arguments, trees of arrays.

    Returns:
      A function that is called as `f` is and returns the same; its batches have the batch axis in front.

    >>> phlox.vmap(sequential_vmap(lambda x: 2 * x))(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    function = custom_vmap(f)

    @function.def_vmap
    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> tuple[Any, Any]:
        leaves, structure = tree.flatten(args)
        batched = tree.leaves(in_batched)

        def example(rows: list[Any]) -> Any:
            batched_args = iter(rows)
            return function(
                *structure.unflatten([next(batched_args) if b else x for x, b in zip(leaves, batched, strict=True)])
            )

        out = _map(example, [x for x, b in zip(leaves, batched, strict=True) if b])
        return out, tree.map(lambda _: True, out)

    return function


publish(__name__)
