"""Checks of values that are made while a program runs."""

from __future__ import annotations

from typing import Any

from .._base import pytree


def check_when_run(check: Any, *operands: Any) -> None:
    """Calls ``check(*values)`` with the values of the operands whenever the program has computed them.

    Args:
      check: a function that raises an error for wrong values. Equal checks are one program.
      *operands: arrays, which may be traced.
    """
    from .._ops.host.callbacks import Callback, debug_callback  # on demand: strict mode alone pays for callbacks

    in_tree = pytree.tree_structure(((0,) * len(operands), {}))
    debug_callback.bind(*operands, callback=Callback(check, in_tree), ordered=False, partitioned=False)
