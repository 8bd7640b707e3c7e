"""Donated arguments of jitted functions, whose buffers results may reuse."""

from __future__ import annotations

from ..._base import pytree
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
