"""``phlox.interpreters.batching``: batching rules of primitives in JAX's form."""

from __future__ import annotations

from typing import Any

from phlox.extend import Primitive, insert_axis, move_axis as moveaxis, publish

from .._core import register_vmappable, unregister_vmappable
from ._tables import RuleTable

__all__ = [
    "bdim_at_front",
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


def defvectorized(primitive: Primitive) -> None:
    """Sets the batching rule of an elementwise primitive of one argument, which applies it to the whole batch.

    Args:
      primitive: the primitive, with one argument and one result.

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
    primitive.batch = lambda axis, args, dims, **params: (primitive.bind(*args, **params), dims[0])


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """`x` with its mapped axis in front; a value that is not mapped is repeated along a new axis.

    Args:
      x: array, which may be traced.
      bdim: the mapped axis, counted from 0; None for a value that is not mapped.
      size: length of the mapped axis.

    Returns:
      An array of the same dtype, whose first axis has length `size`.

    >>> bdim_at_front(jnp.ones((2, 3)), 1, 3).shape, bdim_at_front(jnp.ones(2), None, 3).shape
    ((3, 2), (3, 2))
    """
    return insert_axis(x, size, 0) if bdim is None else moveaxis(x, bdim, 0)


publish(__name__)
