"""Symbolic zeros for users' derivative rules.

Transformations use `Zero` for a tangent known to be zero. Users' rules get a `SymbolicZero` for it, and only if they
were set with ``symbolic_zeros=True``.
"""

from __future__ import annotations

from typing import Any

from ..._base import pytree
from ..._base.errors import ArgumentError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ops.structure.shape import as_array_or_tracer
from ..._trace.trace import ArrayBase, typeof
from ..._transform.array_operations import Zero, zeros
from ..._xla.host_values import as_array


class SymbolicZero:
    """A zero tangent or cotangent that stores no elements: it has a shape and a dtype, and is no array.

    >>> zero = SymbolicZero(phlox.typeof(jnp.ones(3)))
    >>> zero.shape, zero.dtype
    ((3,), dtype('float32'))
    """

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(typeof(val).tangent())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "aval":  # while an object is copied, it has no `aval` yet
            raise AttributeError(name)
        # Shape and dtype are those of the type.
        return getattr(self.aval, name)

    def __repr__(self) -> str:
        return "SymbolicZero"


class CustomVJPPrimal:
    """An argument of the fwd rule of a `custom_vjp` function with symbolic zeros.

    `perturbed` tells whether anything is differentiated with respect to `value`.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values in a tree of `CustomVJPPrimal`.

    Args:
      tree: tree of `CustomVJPPrimal`, the argument of a fwd rule.

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
        return zeros(aval) if aval.dtype == dtypes.float0 else as_array_or_tracer(zeros(aval))

    return pytree.tree_map(zero, val)


def as_rule_argument(x: Any) -> Any:
    """Converts a value or a tangent to the form that users' rules get: an array, or a `SymbolicZero` for a `Zero`."""
    if isinstance(x, ArrayBase):
        return x
    return SymbolicZero(x.aval) if type(x) is Zero else as_array(x)


def as_residual(x: Any) -> Any:
    """A residual in the form that the bwd rule gets: as the fwd rule returned it, also a Python number.

    Rules branch on such numbers; under `jit` they could not branch on arrays.
    """
    return x if type(x) in (bool, int, float, complex) else as_rule_argument(x)


def as_internal_tangent(x: Any) -> Any:
    """Converts a tangent that a user's rule returned to the form of transformations: `Zero` for `SymbolicZero`."""
    return Zero(x.aval) if type(x) is SymbolicZero else x
