"""Donated arguments of jitted functions, whose buffers results can reuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._base import pytree
from ..._base.source import warn
from ..._ir.avals import ShapedArray
from ..._ir.dtypes import ExtendedDtype
from .bound_call import BoundCall
from .options import Options


def leaves(options: Options, call: BoundCall) -> frozenset[int]:
    """Indices of the donated leaves of a call."""
    static = call.static_positions
    donated: list[int] = []
    leaf = position = 0
    total = len(call.args) + len(static)
    chosen = {n if n >= 0 else n + total for n in options.donate_argnums}
    for x in call.args:
        # Positions count static arguments, which `args` leaves out.
        while position in static:
            position += 1
        width = pytree.tree_structure(x).num_leaves
        if position in chosen:
            donated += range(leaf, leaf + width)
        leaf, position = leaf + width, position + 1
    # Keyword arguments are flattened in the order of their names, as dicts are.
    for name in sorted(call.kwargs):
        width = pytree.tree_structure(call.kwargs[name]).num_leaves
        if name in options.donate_argnames:
            donated += range(leaf, leaf + width)
        leaf += width
    # A reference is not deleted by the call: only arrays are donated.
    return frozenset(donated).difference(call.ref_indices)


def usable(
    donated: frozenset[int], used_indices: Sequence[int], offset: int, invars: Sequence[Any], outvars: Sequence[Any]
) -> frozenset[int]:
    """The program arguments whose buffers an output can reuse, of the `donated` leaves; warns of the others.

    The leaves `used_indices` are the program's arguments from number `offset` on.
    """
    candidates = [offset + used_indices.index(i) for i in sorted(donated) if i in used_indices]
    reusable = _reusable(candidates, [v.aval for v in invars], [v.aval for v in outvars])
    useless = ", ".join(invars[i].aval.short for i in candidates if i not in reusable)
    if useless:
        warn(f"Some donated buffers were not usable: no output can take the place of {useless}", UserWarning)
    return reusable


def _reusable(donated: Sequence[int], avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> frozenset[int]:
    """The donated arguments whose buffers can be reused: each needs an output of its own with the same type."""
    # Counted, as each result can take over one buffer only.
    free: dict[tuple[Any, ...], int] = {}
    for aval in outs:
        free[_layout(aval)] = free.get(_layout(aval), 0) + 1
    usable = []
    for i in donated:
        kind = _layout(avals[i])
        if free.get(kind, 0):
            free[kind] -= 1
            usable.append(i)
    return frozenset(usable)


def _layout(aval: ShapedArray) -> tuple[Any, ...]:
    # Keys are stored as integers with a further axis, which is what must match.
    dtype = aval.dtype
    return (aval.physical.shape, aval.physical.dtype) if isinstance(dtype, ExtendedDtype) else (aval.shape, dtype)
