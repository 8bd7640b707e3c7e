"""``phlox.experimental.layout``: the order of elements in memory, as in ``jax.experimental.layout``."""

from __future__ import annotations

from typing import Any

from .._base import pytree
from .._base.errors import OptionError
from .._base.public_names import publish
from .._operands.checks import check_one
from .._ops.spmd.reshard import layout_constraint
from .._xla.layout import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """`x`, which the compiled program keeps in this order in memory at this place; its elements are the same.

    The compiler chooses the order of intermediate values. This is for the few where it chooses badly, or in front of a
    foreign function. Outside of `jit` it has no effect, as results of programs are row-major.

    Args:
      x: tree of arrays.
      layouts: tree of `Layout`, or one for all arrays of a subtree.

    Returns:
      A tree like `x`.

    Raises:
      OptionError: a layout is no `Layout`.
      ShapeError: a layout does not name each axis of its array once.
      TreeError: `layouts` is no prefix of `x`.

    >>> phlox.jit(lambda x: with_layout_constraint(x, Layout((1, 0))) + 1)(jnp.zeros((2, 3))).sum()
    Array(6., dtype=float32)
    """
    leaves, tree = pytree.flatten(x)
    chosen = pytree.spread("with_layout_constraint layouts", layouts, x)
    return tree.unflatten([_constrained(leaf, layout) for leaf, layout in zip(leaves, chosen, strict=True)])


def _constrained(x: Any, layout: Any) -> Any:
    if not isinstance(layout, Layout):
        raise OptionError(f"with_layout_constraint: {layout!r:.60} is no Layout", instead="Layout((1, 0))")
    return layout_constraint(check_one("with_layout_constraint", x), major_to_minor=tuple(layout.major_to_minor))


publish(__name__)
