"""Zeros that rules may see: what custom derivative rules receive when they ask for symbolic zeros.

Inside, a tangent known to be zero is a `Zero`; rules of users meet it as a `SymbolicZero`, and only if they asked.
"""

from __future__ import annotations

from typing import Any

from ..._base import pytree
from ..._base.errors import ArgumentError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ops.structure.shape import own
from ..._trace.trace import ArrayLike, typeof
from ..._transform.array_operations import Zero, zeros
from ..._xla.host_values import as_array


class SymbolicZero:
    """A tangent or cotangent that is zero, without its elements: it has a shape and a dtype, and is no array.

    >>> zero = SymbolicZero(phlox.typeof(jnp.ones(3)))
    >>> zero.shape, zero.dtype
    ((3,), dtype('float32'))
    """

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The zero among the tangents of a value."""
        return SymbolicZero(typeof(val).tangent())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "aval":  # not there yet while an object is copied
            raise AttributeError(name)
        return getattr(self.aval, name)

    def __repr__(self) -> str:
        return "SymbolicZero"


class CustomVJPPrimal:
    """An argument as the fwd rule of a `custom_vjp` function with symbolic zeros gets it.

    `perturbed` says whether anything is differentiated with respect to `value`.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """A tree of `CustomVJPPrimal` as the tree of their values.

    Args:
      tree: tree of `CustomVJPPrimal`, as a fwd rule gets it.

    Returns:
      A tree of arrays.

    Raises:
      ArgumentError: a leaf is something else.

    >>> custom_vjp_primal_tree_values({"a": CustomVJPPrimal(1.0, True)})
    {'a': 1.0}
    """

    def value(leaf: Any) -> Any:
        if type(leaf) is not CustomVJPPrimal:
            raise ArgumentError(f"custom_vjp_primal_tree_values: a leaf is {leaf!r}, which is no CustomVJPPrimal")
        return leaf.value

    return pytree.tree_map(value, tree)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Zero tangents for a tree of values: arrays, or `SymbolicZero` objects.

    Args:
      val: tree of arrays and numbers.
      symbolic_zeros: return `SymbolicZero` objects.

    Returns:
      A tree like `val`, of the same shapes and dtypes (float0 for integers).

    Raises:
      ArgumentError: a leaf is no array.

    >>> zero_from_primal(jnp.ones(2))
    Array([0., 0.], dtype=float32)
    """

    def zero(x: Any) -> Any:
        aval = typeof(x).tangent()
        if symbolic_zeros:
            return SymbolicZero(aval)
        return zeros(aval) if aval.dtype == dtypes.float0 else own(zeros(aval))

    return pytree.tree_map(zero, val)


def shown(x: Any) -> Any:
    """A value or a tangent as rules of users see it: an array (concrete where it is known), also of a bare number."""
    if isinstance(x, ArrayLike):
        return x
    return SymbolicZero(x.aval) if type(x) is Zero else as_array(x)


def hidden(x: Any) -> Any:
    """A tangent that a rule returned, as transformations have it."""
    return Zero(x.aval) if type(x) is SymbolicZero else x
