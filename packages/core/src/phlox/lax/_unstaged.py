"""Loops and branches under `disable_jit`: Python runs them step by step, so that prints and debuggers see values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import config, pytree
from .._base.errors import ConcretizationTypeError
from .._base.pytree import flatten
from .._ops.structure.shape import as_array_or_tracer
from .._transform.jvp import JVPTracer

Tree = Any


def known_primal(x: Any) -> Any:
    """The value that tracers of eager differentiation carry; any other `x` itself."""
    while type(x) is JVPTracer:
        x = x.primal
    return x


def chosen_branch(index: Any) -> int | None:
    """The number of the branch that Python runs; None if jit is enabled, or if `index` depends on unknown values."""
    if not config.current().disable_jit:
        return None
    try:
        return int(known_primal(index))
    except ConcretizationTypeError:
        return None


def run_while(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """A `while_loop` run by Python.

    Raises:
      ConcretizationTypeError: the condition depends on unknown values.
    """
    value = pytree.tree_map(as_array_or_tracer, init_val)
    while cond_fun(value):
        value = body_fun(value)
    return value


def run_scan(f: Callable[..., Any], carry: Any, xs: Tree, steps: int, reverse: bool) -> tuple[Any, Tree]:
    """A `scan` of at least one step run by Python."""
    from ._conveniences import index_in_dim  # only here: all other loops are staged
    from ._more import stack

    leaves, tree = flatten(xs)
    carry = pytree.tree_map(as_array_or_tracer, carry)
    ys = []
    for i in reversed(range(steps)) if reverse else range(steps):
        carry, y = f(carry, tree.unflatten([index_in_dim(x, i, keepdims=False) for x in leaves]))
        ys.append(y)
    stacked = lambda *rows: stack([as_array_or_tracer(x) for x in rows])  # noqa: E731
    return carry, pytree.tree_map(stacked, *(ys[::-1] if reverse else ys))
