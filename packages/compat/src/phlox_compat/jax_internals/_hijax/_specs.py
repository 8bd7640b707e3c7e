"""`vmap` and `shard_map` of functions of values with types of their own: specs say how a value is mapped or split.

The functions that phlox maps take and return the arrays of such values; specs become axes and specs of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import phlox
from phlox import numpy as jnp
from phlox.errors import OptionError
from phlox.sharding import PartitionSpec
from phlox.tree_util import broadcast_prefix, tree_flatten, tree_leaves, tree_map, tree_unflatten

from ._types import HiPspec, HiType, MappingSpec, arrays_of, carrier_types, is_value, typeof, value_of

#: a length that no axis has
_MARK = 2**31 - 1


def _is_axis(x: Any) -> bool:
    return x is None or isinstance(x, MappingSpec)


def _entries(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool]) -> tuple[list[Any], Any, list[Any]]:
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


@functools.wraps(phlox.vmap)
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
    if not any(isinstance(d, MappingSpec) for d in tree_leaves((in_axes, out_axes), is_leaf=_is_axis)):
        return phlox.vmap(fun, in_axes, out_axes, axis_size=axis_size, **options)

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        values, structure, entries = _entries(in_axes, args, _is_axis)
        size = axis_size or _size(values, entries)
        types = [_type_of_one(x, size, d) for x, d in _pairs(values, entries)]
        out_structure: Any = None
        plan: list[tuple[Any, Any, list[Any]]] = []

        def run(operands: list[Any], **kwargs: Any) -> Any:
            nonlocal out_structure
            inner = [x if ty is None else value_of(ty, x) for ty, x in _pairs(types, operands)]
            outs, out_structure, out_entries = _entries(
                out_axes, fun(*tree_unflatten(structure, inner), **kwargs), _is_axis
            )
            groups: tuple[list[Any], list[Any]] = [], []
            for out, d in _pairs(outs, out_entries):
                ty: Any = typeof(out) if is_value(out) else None
                parts = [out] if ty is None else arrays_of(ty, out)
                axes = _axes(ty, d) if isinstance(d, MappingSpec) else [d] * len(parts)
                plan.append((ty, d, axes))
                for x, axis in _pairs(parts, axes):
                    groups[axis is None].append(x)
            return groups

        operands = [x if ty is None else arrays_of(typeof(x), x) for ty, x in _pairs(types, values)]
        operand_axes = [d if ty is None else _axes(ty, d) for ty, d in _pairs(types, entries)]
        run_mapped = phlox.vmap(run, (operand_axes,), (0, None), axis_size=size, **options)
        each, shared = map(iter, run_mapped(operands, **kwargs))
        results = []
        for ty, d, axes in plan:
            parts = [next(shared) if axis is None else jnp.moveaxis(next(each), 0, axis) for axis in axes]
            wide = ty.inc_rank(size, d) if isinstance(d, MappingSpec) else ty
            results.append(parts[0] if ty is None else value_of(wide, parts))
        return tree_unflatten(out_structure, results)

    return mapped


def _pairs(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return zip(a, b, strict=True)


def _size(values: Sequence[Any], entries: Sequence[Any]) -> int:
    """The length of the mapped axis, from the first array that is mapped along a number."""
    for x, d in _pairs(values, entries):
        if isinstance(d, int):
            size: int = jnp.shape(tree_leaves(x)[0])[d]
            return size
    raise OptionError("vmap must have at least one non-None value in in_axes or axis_size must be specified")


def _is_split(x: Any) -> bool:
    return x is None or isinstance(x, HiPspec | PartitionSpec)


def _specs(spec: Any) -> Any:
    """The specs of the arrays of a value, and one for its carriers."""
    if not isinstance(spec, HiPspec):
        return spec
    parts = list(spec.to_lo())
    if type(spec).to_tangent_spec is HiPspec.to_tangent_spec:
        return [*parts, parts[0]]
    tangent = spec.to_tangent_spec()
    return [*parts, list(tangent.to_lo()) if isinstance(tangent, HiPspec) else tangent]


def _with_carriers_apart(ty: HiType, value: Any) -> list[Any]:
    arrays, count = arrays_of(ty, value), len(ty.lo_ty())
    return [*arrays[:count], arrays[count:]]


def _rejoined(ty: HiType, parts: Sequence[Any]) -> Any:
    return value_of(ty, [*parts[:-1], *parts[-1]])


@functools.wraps(phlox.shard_map)
def shard_map(f: Callable[..., Any] | None = None, /, *, out_specs: Any, **options: Any) -> Any:
    if f is None:
        return functools.partial(shard_map, out_specs=out_specs, **options)
    in_specs = options.get("in_specs")
    if not any(isinstance(p, HiPspec) for p in tree_leaves((in_specs, out_specs), is_leaf=_is_split)):
        return phlox.shard_map(f, out_specs=out_specs, **options)

    @functools.wraps(f)
    def split(*args: Any) -> Any:
        values, structure, entries = _entries(in_specs, args, _is_split)
        types = [typeof(x) if isinstance(p, HiPspec) else None for x, p in _pairs(values, entries)]
        out_types: list[Any] = []
        out_structure: Any = None

        def run(*operands: Any) -> Any:
            nonlocal out_structure
            inner = [x if ty is None else _rejoined(ty, x) for ty, x in _pairs(types, operands)]
            outs, out_structure = tree_flatten(f(*tree_unflatten(structure, inner)), is_leaf=is_value)
            out_types[:] = [typeof(x) if is_value(x) else None for x in outs]
            results = [x if ty is None else _with_carriers_apart(ty, x) for ty, x in _pairs(out_types, outs)]
            return tree_unflatten(out_structure, results)

        operands = [x if ty is None else _with_carriers_apart(ty, x) for ty, x in _pairs(types, values)]
        more = {**options, "in_specs": tuple(map(_specs, entries))}
        results = phlox.shard_map(run, out_specs=tree_map(_specs, out_specs, is_leaf=_is_split), **more)(*operands)
        parts = out_structure.flatten_up_to(results)
        return tree_unflatten(
            out_structure, [x if ty is None else _rejoined(ty, x) for ty, x in _pairs(out_types, parts)]
        )

    return split
