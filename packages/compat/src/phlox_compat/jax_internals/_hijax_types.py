"""Types of values with types of their own, and how such a value and its tangents are held as arrays.

The arrays of a value are those of `HiType.lower_val`. If its tangents are of another kind, such as floats for a value
of integers, it has more arrays, the carriers: zeros of the type of the tangent, through which derivatives pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from phlox import typeof as typeof_array
from phlox.custom_derivatives import SymbolicZero, zero_from_primal
from phlox.extend import ShapedArray, Zero, instantiate
from phlox.tree_util import register_pytree_node

from .._core import AbstractRef


def _must_define(ty: Any, method: str, purpose: str) -> NoReturn:
    raise NotImplementedError(f"{purpose} requires {type(ty).__name__} to implement the `{method}` method")


class AbstractValue:
    """The base of types."""


class HiType(AbstractValue):
    """The type of a value with a type of its own. `lower_val` and `raise_val` convert between the value and arrays."""

    is_high = True

    def __hash__(self) -> int:
        _must_define(self, "__hash__", "type equality")

    def __eq__(self, other: object) -> bool:
        _must_define(self, "__eq__", "type equality")

    def lo_ty(self) -> list[Any]:
        """The types of the arrays."""
        _must_define(self, "lo_ty", "lowering (e.g. under jit)")

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        """The arrays of a value."""
        _must_define(self, "lower_val", "lowering values (e.g. under jit)")

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value of these arrays."""
        _must_define(self, "raise_val", "raising lowered values (e.g. under jit)")

    def to_tangent_aval(self) -> Any:
        """The type of tangents."""
        _must_define(self, "to_tangent_aval", "autodiff")

    def to_ct_aval(self) -> Any:
        """The type of cotangents."""
        return self.to_tangent_aval()

    def vspace_zero(self) -> Any:
        """The zero of a type of tangents."""
        _must_define(self, "vspace_zero", "use as a tangent/cotangent type")

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The sum of two tangents."""
        _must_define(self, "vspace_add", "use as a tangent/cotangent type")


class MappingSpec:
    """How `vmap` maps a value; here its arrays are mapped, each along the axis that ``in_axes`` says."""


class HiPspec:
    """How `shard_map` splits a value; here its arrays are split by specs of their own."""


# Types of arrays answer the same questions: nnx asks the leaves of a variable, which may be either.
for _type in (ShapedArray, AbstractRef):
    _type.lo_ty = lambda self: [self]  # type: ignore[union-attr]
    _type.lower_val = lambda _self, value: [value]  # type: ignore[union-attr]
    _type.raise_val = lambda _self, value: value  # type: ignore[union-attr]
    _type.to_ct_aval = lambda self: self.to_tangent_aval()  # type: ignore[union-attr]

_types: dict[type, Callable[[Any], Any]] = {}
_CARRIERS = "_phlox_tangent_carriers"


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Registers a class of values, whose types `typeof_fn` returns."""
    _types[val_cls] = typeof_fn

    def parts(value: Any) -> tuple[list[Any], Any]:
        hi_type = typeof_fn(value)
        return arrays_of(hi_type, value), hi_type

    register_pytree_node(val_cls, parts, lambda hi_type, arrays: value_of(hi_type, tuple(arrays)))


def typeof(x: Any) -> Any:
    """The type of an array, or of a value with a type of its own."""
    typeof_fn = _types.get(type(x))
    return typeof_array(x) if typeof_fn is None else typeof_fn(x)


def arrays_of(ty: Any, value: Any) -> list[Any]:
    """The arrays of a value, and its carriers."""
    if not isinstance(ty, HiType):
        return [value]
    carriers = getattr(value, _CARRIERS, None)
    if carriers is None:
        # Zeros without memory: a program that does not read them does not get them.
        carriers = [np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in _carrier_types(ty)]
    return [*ty.lower_val(value), *carriers]


def value_of(ty: Any, arrays: Sequence[Any]) -> Any:
    """The value of these arrays and carriers."""
    if not isinstance(ty, HiType):
        return arrays[0]
    width = len(arrays) - len(_carrier_types(ty))
    value = ty.raise_val(*arrays[:width])
    if width < len(arrays):
        object.__setattr__(value, _CARRIERS, list(arrays[width:]))  # also of a frozen dataclass
    return value


def _carrier_types(ty: HiType) -> list[Any]:
    try:
        tangent = ty.to_tangent_aval().lo_ty()
        natural = [a.to_tangent_aval() for a in ty.lo_ty()]
    except NotImplementedError:  # a type without tangents
        return []
    is_natural = [(a.shape, a.dtype) for a in tangent] == [(a.shape, a.dtype) for a in natural]
    return [] if is_natural or any(a.dtype != a.to_tangent_aval().dtype for a in tangent) else tangent


def carrier_count(ty: Any) -> int:
    """How many carriers a value of this type has."""
    return len(_carrier_types(ty)) if isinstance(ty, HiType) else 0


def tangent_of(ty: Any, arrays: Sequence[Any]) -> Any:
    """The tangent or cotangent of a value, given those of its arrays and carriers: a `Zero` if all of them are."""
    if not isinstance(ty, HiType):
        return Zero(arrays[0].aval) if type(arrays[0]) is SymbolicZero else arrays[0]
    carriers = len(_carrier_types(ty))
    if all(type(x) is SymbolicZero for x in arrays[-carriers:]):
        return Zero(ty.to_tangent_aval())
    arrays = [instantiate(Zero(x.aval)) if type(x) is SymbolicZero else x for x in arrays[-carriers:]]
    try:
        tangent_type = ty.to_tangent_aval()
    except NotImplementedError:  # a container of its arrays
        tangent_type = ty
    return tangent_type.raise_val(*arrays)


def arrays_of_tangent(ty: Any, tangent: Any) -> list[Any]:
    """The tangents of the arrays and carriers of a value; None for those that are zero."""
    if not isinstance(ty, HiType):
        return [None if tangent is None or type(tangent) is Zero else tangent]
    carriers = _carrier_types(ty)
    width = len(ty.lo_ty())
    if tangent is None or type(tangent) is Zero:
        return [None] * (width + len(carriers))
    arrays = typeof(tangent).lower_val(tangent)
    return [*[None] * width, *arrays] if carriers else arrays


def with_zeros(primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The tangents, with symbolic zeros for None and for what has no derivative."""
    zeros = zero_from_primal(list(primals), symbolic_zeros=True)
    return [zero if t is None or zero.dtype == "float0" else t for t, zero in zip(tangents, zeros, strict=True)]


def instantiate_zeros(tangent: Any) -> Any:
    """`tangent`, or the zero of its type for a symbolic zero."""
    if type(tangent) is Zero and isinstance(tangent.aval, HiType):
        return tangent.aval.vspace_zero()
    return instantiate(tangent)
