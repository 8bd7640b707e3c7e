"""The longer rules `sharding` of the primitives in `shape.py`: how results are split over explicit mesh axes, see
`_ir.sharding_types`; and which axes stay, for their rules `spectral`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._ir.avals import ShapedArray
from ..._ir.sharding_types import Entries, check_whole, entries_of, join, refuse


def bitcast_sharding(out: ShapedArray, x: ShapedArray, **_: Any) -> Entries:
    check_whole("bitcast_convert_type", x, range(out.ndim, x.ndim))
    return (*entries_of(x), ())[: out.ndim]


def reshape_sharding(out: ShapedArray, x: ShapedArray, **_: Any) -> Entries:
    """Axes of length one come and go. Beside that one axis may be split, or adjacent axes merged into one."""
    if not any(entries_of(x)):  # it only has partial results
        return ((),) * out.ndim
    old = [(n, entry) for n, entry in zip(x.shape, entries_of(x), strict=True) if n != 1]
    new = [n for n in out.shape if n != 1]
    # Equal axes at both ends keep their entries. What is between them has to be clear.
    same = 0
    while same < min(len(old), len(new)) and old[same][0] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail][0] == new[-1 - tail]:
        tail += 1
    parts, sizes = old[same : len(old) - tail], new[same : len(new) - tail]
    middle = _regrouped(parts, sizes, x.spec.mesh.shape) if x.size else None  # type: ignore[union-attr]
    if middle is None:
        refuse(
            "reshape",
            f"This reshape is not supported: to shape {out.shape} it is not clear how the result is split",
            (x,),
            "phlox.lax.reshape(x, shape, out_sharding=phlox.P(...)), or phlox.reshard(x, phlox.P(...)) first",
        )
    entries = iter([*(entry for _, entry in old[:same]), *middle, *(entry for _, entry in old[len(old) - tail :])])
    return tuple(() if n == 1 else next(entries) for n in out.shape)


def _regrouped(parts: Sequence[Any], sizes: Sequence[int], mesh_shape: Any) -> list[Any] | None:
    """The entries of axes of these sizes, made of `parts`, pairs of a size and an entry; None where not clear."""
    if not parts and not sizes:
        return []
    if len(sizes) == 1:  # merged: a part may be split only where all parts before it are
        entries = [entry for _, entry in parts]
        split = [bool(entry) for entry in entries]
        return [sum(entries, ())] if split == sorted(split, reverse=True) else None
    if len(parts) != 1:
        return None
    # Devices hold blocks of the axis in order, so its mesh axes go to the first of the new axes.
    names, new_entries = list(parts[0][1]), []
    for size in sizes:
        entry = []
        while names and size % mesh_shape[names[0]] == 0:
            size //= mesh_shape[names[0]]
            entry.append(names.pop(0))
        if names and size != 1:
            return None
        new_entries.append(tuple(entry))
    return None if names else new_entries


def broadcast_sharding(out: ShapedArray, x: ShapedArray, shape: Any, broadcast_dimensions: Any) -> Entries:
    entries: list[Any] = [()] * out.ndim
    for i, at in enumerate(broadcast_dimensions):
        if x.shape[i] == shape[at]:
            entries[at] = entries_of(x)[i]
    return tuple(entries)


def concatenate_sharding(out: ShapedArray, *xs: ShapedArray, dimension: int) -> Entries:
    entries = [join("concatenate", xs, [entries_of(x)[i] for x in xs]) for i in range(out.ndim)]
    for x in xs:
        if entries[dimension] and x.shape[dimension] % max(a.spec.pieces(dimension) for a in xs if a.spec is not None):
            check_whole("concatenate", next(a for a in xs if a.spec is not None), [dimension], xs)
    return tuple(entries)


def reshape_axis_map(x: ShapedArray, new_sizes: tuple[int, ...], dimensions: Any) -> dict[int, int]:
    """The axes that stay: those of the same length with as many elements before them."""
    before, after = ([math.prod(s[:i]) for i in range(len(s))] for s in (x.shape, new_sizes))
    return {
        i: j
        for i, n in enumerate(x.shape)
        for j, m in enumerate(new_sizes)
        if n == m and n != 1 and before[i] == after[j]
    }


def broadcast_axis_map(x: ShapedArray, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> dict[int, int]:
    """The axes that are not lengthened by `broadcast_in_dim`, and where they go."""
    return {i: axis for i, axis in enumerate(broadcast_dimensions) if x.shape[i] == shape[axis]}
