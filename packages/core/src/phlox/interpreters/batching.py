"""``phlox.interpreters.batching``: how primitives do a batch at once, as JAX states it."""

from __future__ import annotations

from typing import Any

from .._api.batching.mappable import register_vmappable, unregister_vmappable
from .._ir.primitive import Primitive
from .._transform.array_operations import move_axis as moveaxis
from .._transform.batch import place_axis
from ._tables import RuleTable

__all__ = [
    "bdim_at_front",
    "defvectorized",
    "moveaxis",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]

#: rules ``(args, dims, **params) -> (outputs, output dims)``, where a dim is None without mapped axis
primitive_batchers = RuleTable(
    "batch",
    adapt=lambda rule: lambda axis, args, dims, **params: rule(args, dims, **params),
    restore=lambda rule: lambda args, dims, **params: rule(None, args, dims, **params),
)


def defvectorized(primitive: Primitive) -> None:
    """States that the primitive of one argument works elementwise, so that a batch is nothing new to it."""
    primitive.batch = lambda axis, args, dims, **params: (primitive.bind(*args, **params), dims[0])


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """`x` with its mapped axis in front; an `x` without one is repeated."""
    return place_axis(x, bdim, 0, size)
