"""`vmap` of functions of values with types of their own, in the place of ``jax.vmap``. Specs say how a value is mapped.

The function that phlox maps takes and returns the arrays of such values; specs become axes of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import phlox
from phlox import numpy as jnp
from phlox.errors import OptionError
from phlox.tree_util import broadcast_prefix, tree_flatten, tree_leaves, tree_unflatten

from ._types import (
    HiType,
    MappingSpec,
    arrays_of,
    carrier_types,
    is_any_registered,
    is_value,
    stands_for,
    typeof,
    value_of,
)

#: a length that no axis has
_MARK = 2**31 - 1


def _is_axis(x: Any) -> bool:
    return x is None or isinstance(x, MappingSpec)


def entries_of(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool]) -> tuple[list[Any], Any, list[Any]]:
    """The values in `tree`, its structure, and the entry of `prefix` for each value."""
    values, structure = tree_flatten(tree, is_leaf=is_value)
    prefix = tuple(prefix) if type(prefix) is list and type(tree) is tuple else prefix
    return values, structure, broadcast_prefix(prefix, tree_unflatten(structure, range(len(values))), is_leaf)


def _axes(ty: HiType, spec: MappingSpec) -> list[int | None]:
    """The mapped axis of each array and carrier, for values of type `ty` that `spec` maps."""
    wide = ty.inc_rank(_MARK, spec)
    pairs = zip((*ty.lo_ty(), *carrier_types(ty)), (*wide.lo_ty(), *carrier_types(wide)), strict=True)
    return [None if one.ndim == many.ndim else many.shape.index(_MARK) for one, many in pairs]


def _type_of_one(x: Any, size: int, spec: Any) -> Any:
    return typeof(x).dec_rank(size, spec) if isinstance(spec, MappingSpec) else None


@stands_for(phlox.vmap)
def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable[..., Any]:
    options: dict[str, Any] = {"axis_name": axis_name, "spmd_axis_name": spmd_axis_name, "sum_match": sum_match}
    axes = (in_axes, out_axes)
    if not is_any_registered() or not any(isinstance(d, MappingSpec) for d in tree_leaves(axes, is_leaf=_is_axis)):
        return phlox.vmap(fun, in_axes, out_axes, axis_size=axis_size, **options)

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        values, structure, entries = entries_of(in_axes, args, _is_axis)
        size = axis_size or _size(values, entries)
        types = [_type_of_one(x, size, d) for x, d in pairs(values, entries)]
        out_structure: Any = None
        plan: list[tuple[Any, Any, list[Any]]] = []

        def run(operands: list[Any], **kwargs: Any) -> Any:
            nonlocal out_structure
            inner = [x if ty is None else value_of(ty, x) for ty, x in pairs(types, operands)]
            outs, out_structure, out_entries = entries_of(
                out_axes, fun(*tree_unflatten(structure, inner), **kwargs), _is_axis
            )
            groups: tuple[list[Any], list[Any]] = [], []
            for out, d in pairs(outs, out_entries):
                ty: Any = typeof(out) if is_value(out) else None
                parts = [out] if ty is None else arrays_of(ty, out)
                axes = _axes(ty, d) if isinstance(d, MappingSpec) else [d] * len(parts)
                plan.append((ty, d, axes))
                for x, axis in pairs(parts, axes):
                    groups[axis is None].append(x)
            return groups

        operands = [x if ty is None else arrays_of(typeof(x), x) for ty, x in pairs(types, values)]
        operand_axes = [d if ty is None else _axes(ty, d) for ty, d in pairs(types, entries)]
        run_mapped = phlox.vmap(run, (operand_axes,), (0, None), axis_size=size, **options)
        each, shared = map(iter, run_mapped(operands, **kwargs))
        results = []
        for ty, d, axes in plan:
            parts = [next(shared) if axis is None else jnp.moveaxis(next(each), 0, axis) for axis in axes]
            wide = ty.inc_rank(size, d) if isinstance(d, MappingSpec) else ty
            results.append(parts[0] if ty is None else value_of(wide, parts))
        return tree_unflatten(out_structure, results)

    return mapped


def pairs(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return zip(a, b, strict=True)


def _size(values: Sequence[Any], entries: Sequence[Any]) -> int:
    """The length of the mapped axis, from the first array that is mapped along a number."""
    for x, d in pairs(values, entries):
        if isinstance(d, int):
            size: int = jnp.shape(tree_leaves(x)[0])[d]
            return size
    raise OptionError("vmap must have at least one non-None value in in_axes or axis_size must be specified")
