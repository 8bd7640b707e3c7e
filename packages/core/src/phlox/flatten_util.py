"""``phlox.flatten_util``: trees as single vectors, as in ``jax.flatten_util``."""

from collections.abc import Callable
from typing import Any

from . import numpy as jnp
from ._base.errors import DtypeError, ShapeError
from ._base.pytree import PyTreeDef, flatten
from ._ir.avals import ShapedArray
from ._ir.promotion import promote
from ._operands.promotion import to_dtype
from ._trace.trace import typeof
from .typing import Array

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Any], Any]]:
    """All leaves of a tree along one axis of one dtype, and the function that makes the tree of such a vector.

    Args:
      pytree: tree of arrays and numbers.

    Returns:
      (flat, unravel). `flat` is an array of shape ``(n,)`` for n elements in all, of the promoted dtype of the leaves
      (float32 without leaves). ``unravel(vector)`` returns a tree of the shapes and dtypes of the leaves. Where all
      leaves have one dtype, it takes vectors of any dtype, and its leaves have that. It raises `ShapeError` for vectors
      of another length, and `DtypeError` for those of another dtype otherwise.

    Raises:
      ArgumentError: a leaf is no array.

    >>> flat, unravel = ravel_pytree({"a": jnp.ones(2), "b": 3.0})
    >>> flat
    Array([1., 1., 3.], dtype=float32)
    >>> unravel(flat)["b"]
    Array(3., dtype=float32)
    """
    leaves, tree = flatten(pytree)
    if not leaves:
        return jnp.zeros(0, jnp.float32), _Unravel(tree, (), None)
    avals = tuple(typeof(x) for x in leaves)
    dtype, _ = promote(tuple((a.dtype, False) for a in avals))
    flat = jnp.concatenate([jnp.ravel(to_dtype(x, dtype)) for x in leaves])
    return flat, _Unravel(tree, avals, dtype)


class _Unravel:
    """Makes trees of one structure of vectors. Two for equal trees are equal, so that a jitted function that has one as
    static argument is traced once for all of them.
    """

    __slots__ = ("avals", "dtype", "tree")

    def __init__(self, tree: PyTreeDef, avals: tuple[ShapedArray, ...], dtype: Any):
        self.tree, self.avals, self.dtype = tree, avals, dtype

    def __call__(self, vector: Any) -> Any:
        vector = jnp.asarray(vector)
        size = sum(a.size for a in self.avals)
        if self.avals and vector.shape != (size,):
            raise ShapeError(
                f"this tree has {size} elements, and the vector to unravel has shape {vector.shape}",
                instead=f"a vector of shape {(size,)}",
                shapes=[(size,), vector.shape],
            )
        mixed = any(a.dtype != self.dtype for a in self.avals)
        if mixed and vector.dtype != self.dtype:
            raise DtypeError(
                f"unravel was given an array of dtype {vector.dtype}, but expected dtype {self.dtype}, as its "
                "leaves have several",
                instead=f"flat.astype({str(self.dtype)!r})",
            )
        parts, start = [], 0
        for aval in self.avals:
            part = vector[start : start + aval.size].reshape(aval.shape)
            parts.append(part.astype(aval.dtype) if mixed else part)
            start += aval.size
        return self.tree.unflatten(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unravel) and (self.tree, self.avals) == (other.tree, other.avals)

    def __hash__(self) -> int:
        return hash((self.tree, self.avals))


def __dir__() -> list[str]:
    return __all__
