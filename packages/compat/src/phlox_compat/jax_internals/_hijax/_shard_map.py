"""`shard_map` of functions of values with types of their own, in the place of ``jax.shard_map``.

Specs say how a value is split. The function that phlox splits takes and returns the arrays of such values; specs become
specs of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import phlox
from phlox.sharding import PartitionSpec
from phlox.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

from ._types import HiPspec, HiType, arrays_of, is_any_registered, is_value, stands_for, typeof, value_of
from ._vmap import entries_of, pairs


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


@stands_for(phlox.shard_map)
def shard_map(f: Callable[..., Any] | None = None, /, *, out_specs: Any, **options: Any) -> Any:
    if f is None:
        return functools.partial(shard_map, out_specs=out_specs, **options)
    in_specs = options.get("in_specs")
    specs = (in_specs, out_specs)
    if not is_any_registered() or not any(isinstance(p, HiPspec) for p in tree_leaves(specs, is_leaf=_is_split)):
        return phlox.shard_map(f, out_specs=out_specs, **options)

    @functools.wraps(f)
    def split(*args: Any) -> Any:
        values, structure, entries = entries_of(in_specs, args, _is_split)
        types = [typeof(x) if isinstance(p, HiPspec) else None for x, p in pairs(values, entries)]
        out_types: list[Any] = []
        out_structure: Any = None

        def run(*operands: Any) -> Any:
            nonlocal out_structure
            inner = [x if ty is None else _rejoined(ty, x) for ty, x in pairs(types, operands)]
            outs, out_structure = tree_flatten(f(*tree_unflatten(structure, inner)), is_leaf=is_value)
            out_types[:] = [typeof(x) if is_value(x) else None for x in outs]
            results = [x if ty is None else _with_carriers_apart(ty, x) for ty, x in pairs(out_types, outs)]
            return tree_unflatten(out_structure, results)

        operands = [x if ty is None else _with_carriers_apart(ty, x) for ty, x in pairs(types, values)]
        more = {**options, "in_specs": tuple(map(_specs, entries))}
        results = phlox.shard_map(run, out_specs=tree_map(_specs, out_specs, is_leaf=_is_split), **more)(*operands)
        parts = out_structure.flatten_up_to(results)
        return tree_unflatten(
            out_structure, [x if ty is None else _rejoined(ty, x) for ty, x in pairs(out_types, parts)]
        )

    return split
