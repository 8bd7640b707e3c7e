"""``phlox.flatten_util``: trees as single vectors, as in ``jax.flatten_util``."""

from collections.abc import Callable
from typing import Any

from . import numpy as jnp
from ._base.errors import DtypeError, ShapeError
from ._base.pytree import flatten
from ._ir.promotion import promote
from ._trace.trace import typeof
from .numpy._promote import to_dtype

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All leaves of a tree along one axis of one dtype, and the function that makes the tree of such a vector.

    Where all leaves have the same dtype, that function takes vectors of any dtype and its leaves have that dtype.

    >>> flat, unravel = ravel_pytree({"a": jnp.ones(2), "b": 3.0})
    >>> flat
    Array([1., 1., 3.], dtype=float32)
    >>> unravel(flat)["b"]
    Array(3., dtype=float32)
    """
    leaves, tree = flatten(pytree)
    if not leaves:
        return jnp.zeros(0, jnp.float32), lambda _flat: tree.unflatten([])
    avals = [typeof(x) for x in leaves]
    dtype, _ = promote(tuple((a.dtype, False) for a in avals))
    flat = jnp.concatenate([jnp.ravel(to_dtype(x, dtype)) for x in leaves])
    mixed = any(a.dtype != dtype for a in avals)

    def unravel(vector: Any) -> Any:
        vector = jnp.asarray(vector)
        if vector.shape != flat.shape:
            raise ShapeError(
                f"this tree has {flat.size} elements, and the vector to unravel has shape {vector.shape}",
                instead=f"a vector of shape {flat.shape}",
                shapes=[flat.shape, vector.shape],
            )
        if mixed and vector.dtype != dtype:
            raise DtypeError(
                f"unravel was given an array of dtype {vector.dtype}, but expected dtype {dtype}, as its "
                "leaves have several",
                instead=f"flat.astype({str(dtype)!r})",
            )
        parts, start = [], 0
        for aval in avals:
            part = vector[start : start + aval.size].reshape(aval.shape)
            parts.append(part.astype(aval.dtype) if mixed else part)
            start += aval.size
        return tree.unflatten(parts)

    return flat, unravel
