"""``phlox.flatten_util``: trees as single vectors, as in ``jax.flatten_util``."""

from collections.abc import Callable
from typing import Any

from . import numpy as jnp
from ._base import pytree
from ._ir.promotion import promote
from ._trace.trace import typeof
from .numpy._promote import to_dtype

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree_: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves of a tree along one axis of one dtype, and the function that makes the tree of such a vector.

    >>> flat, unravel = ravel_pytree({"a": jnp.ones(2), "b": 3.0})
    >>> flat
    Array([1., 1., 3.], dtype=float32)
    >>> unravel(flat)["b"]
    Array(3., dtype=float32)
    """
    leaves, tree = pytree.flatten(pytree_)
    if not leaves:
        return jnp.zeros(0), lambda _flat: tree.unflatten([])
    avals = [typeof(x) for x in leaves]
    dtype, _ = promote(tuple((a.dtype, a.weak_type) for a in avals))
    flat = jnp.concatenate([jnp.ravel(to_dtype(x, dtype)) for x in leaves])

    def unravel(vector: Any) -> Any:
        parts, start = [], 0
        for aval in avals:
            part = vector[start : start + aval.size].reshape(aval.shape)
            parts.append(part.astype(aval.dtype))
            start += aval.size
        return tree.unflatten(parts)

    return flat, unravel
