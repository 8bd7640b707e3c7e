"""``phlox.interpreters.batching``: batching rules of primitives in JAX's form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phlox.extend import Primitive, insert_axis, move_axis as moveaxis, publish

from .._core import register_vmappable, unregister_vmappable
from ._tables import RuleTable

__all__ = [
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defvectorized",
    "moveaxis",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]

#: rules ``(args, dims, **params) -> (outputs, output dims)``, where the dim of a value that is not mapped is None
primitive_batchers = RuleTable(
    "batch",
    adapt=lambda rule: lambda axis, args, dims, **params: rule(args, dims, **params),
    restore=lambda rule: lambda args, dims, **params: rule(None, args, dims, **params),
)


def defvectorized(prim: Primitive) -> None:
    """Sets the batching rule of an elementwise primitive of one argument, which applies it to the whole batch.

    Args:
      prim: the primitive, with one argument and one result.

    Returns:
      None.

    >>> from phlox.extend.core import Primitive
    >>> negated_p = Primitive("documentation_negated")
    >>> _ = negated_p.def_impl(lambda x: -x)
    >>> _ = negated_p.def_abstract_eval(lambda x: x)
    >>> defvectorized(negated_p)
    >>> phlox.vmap(negated_p.bind)(jnp.arange(3))
    Array([ 0, -1, -2], dtype=int32)
    """
    prim.batch = lambda axis, args, dims, **params: (prim.bind(*args, **params), dims[0])


def defbroadcasting(prim: Primitive) -> None:
    """Sets the batching rule of an elementwise primitive of several arguments: it is applied to the whole batch.

    Args:
      prim: the primitive, whose arguments have one shape, or none.

    Returns:
      None.

    >>> from phlox.extend.core import Primitive
    >>> plus_p = Primitive("documentation_plus")
    >>> _ = plus_p.def_impl(lambda x, y: x + y)
    >>> _ = plus_p.def_abstract_eval(lambda x, y: x)
    >>> defbroadcasting(plus_p)
    >>> phlox.vmap(plus_p.bind, (0, None))(jnp.ones((3, 2)), jnp.ones(2)).shape
    (3, 2)
    """

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple[Any, Any]:
        size = next(x.shape[dim] for x, dim in zip(args, dims, strict=True) if dim is not None)
        rank = max(x.ndim - (dim is not None) for x, dim in zip(args, dims, strict=True))
        operands = []
        for x, dim in zip(args, dims, strict=True):
            if x.ndim:  # a scalar that is not mapped broadcasts by itself
                x = bdim_at_front(x, dim, size)
                x = x.reshape(x.shape + (1,) * (rank + 1 - x.ndim))
            operands.append(x)
        out = prim.bind(*operands, **params)
        return out, (0,) * len(out) if prim.multiple_results else 0

    prim.batch = batch


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """`x`, repeated along a new axis.

    Args:
      x: array, which may be traced.
      sz: length of the new axis.
      axis: its number.
      mesh_axis: not used.

    Returns:
      An array of the same dtype.

    >>> broadcast(jnp.ones((2, 3)), 4, 1).shape
    (2, 4, 3)
    """
    return insert_axis(x, sz, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """`x` with its mapped axis in front; a value that is not mapped is repeated along a new axis.

    Args:
      x: array, which may be traced.
      bdim: the mapped axis, counted from 0; None for a value that is not mapped.
      size: length of the mapped axis.
      mesh_axis: not used.

    Returns:
      An array of the same dtype, whose first axis has length `size`.

    >>> bdim_at_front(jnp.ones((2, 3)), 1, 3).shape, bdim_at_front(jnp.ones(2), None, 3).shape
    ((3, 2), (3, 2))
    """
    return insert_axis(x, size, 0) if bdim is None else moveaxis(x, bdim, 0)


publish(__name__)
