"""``phlox.flatten_util``: pytrees flattened to one vector, as in ``jax.flatten_util``."""

from collections.abc import Callable
from typing import Any

from . import numpy as jnp
from ._base.errors import DtypeError, ShapeError
from ._base.public_names import publish
from ._base.pytree import PyTreeDef, flatten
from ._ir.avals import ShapedArray
from ._ir.promotion import promote
from ._operands.promotion import to_dtype
from ._trace.trace import typeof
from .typing import Array

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Any], Any]]:
    """Flattens all leaves of a tree to one vector, and returns a function that makes the tree from such a vector.

    Args:
      pytree: tree of arrays and numbers.

    Returns:
      (flat, unravel). `flat` has shape ``(n,)``, for n elements in total, and the promoted dtype of the leaves (float32
      without leaves). ``unravel(vector)`` returns a tree of the shapes and dtypes of the leaves. If all leaves have one
      dtype, `unravel` takes vectors of any dtype and returns leaves of that dtype; otherwise it raises `DtypeError` for
      another dtype. It raises `ShapeError` for another length.

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
    unravel = _Unravel(tree, avals, dtype)
    # Leaves of one dtype stay as they are: those that are all weakly typed give a weakly typed vector.
    rows = [jnp.ravel(to_dtype(x, dtype) if unravel.is_mixed else x) for x in leaves]
    return jnp.concatenate(rows), unravel


class _Unravel:
    """The function `unravel` for one treedef and its types. Objects for equal treedefs and types are equal, so that a
    jitted function with one as static argument is traced only once.
    """

    __slots__ = ("avals", "dtype", "is_mixed", "tree")

    def __init__(self, tree: PyTreeDef, avals: tuple[ShapedArray, ...], dtype: Any):
        self.tree, self.avals, self.dtype = tree, avals, dtype
        #: whether the leaves have several dtypes
        self.is_mixed = any(a.dtype != dtype for a in avals)

    def __call__(self, vector: Any) -> Any:
        vector = jnp.asarray(vector)
        size = sum(a.size for a in self.avals)
        if self.avals and vector.shape != (size,):
            raise ShapeError(
                f"this tree has {size} elements, and the vector to unravel has shape {vector.shape}",
                instead=f"a vector of shape {(size,)}",
                shapes=[(size,), vector.shape],
            )
        if self.is_mixed and vector.dtype != self.dtype:
            raise DtypeError(
                f"unravel was given an array of dtype {vector.dtype}, but expected dtype {self.dtype}, as its "
                "leaves have several",
                instead=f"flat.astype({str(self.dtype)!r})",
            )
        parts, start = [], 0
        for aval in self.avals:
            part = vector[start : start + aval.size].reshape(aval.shape)
            # Real leaves were made complex by `ravel_pytree`: what is dropped is zero.
            parts.append(to_dtype(part, aval.dtype, warns=False) if self.is_mixed else part)
            start += aval.size
        return self.tree.unflatten(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unravel) and (self.tree, self.avals) == (other.tree, other.avals)

    def __hash__(self) -> int:
        return hash((self.tree, self.avals))


publish(__name__)
