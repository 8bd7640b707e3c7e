"""Types of values that are no arrays, and the arrays that stand for such values.

JAX traces such a value as one tracer of its own type. Here the class of the values is a container: transformations take
the arrays out of it with `HiType.lower_val`, and functions see a value of the class whose arrays are traced.

Tangents of a value may have another type than its arrays tell: those of small integers with a scale are floats. Such a
value has further arrays, of zeros: the carriers of its tangent. No operation reads them; rules of operations say what
their tangents and cotangents are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from phlox import lax, typeof as typeof_array
from phlox.extend import ShapedArray, Zero, instantiate
from phlox.tree_util import register_pytree_node

from ..._core import AbstractRef

#: for functions in the place of those of phlox; pickle finds them by their own module
stands_for = functools.partial(functools.wraps, assigned=("__name__", "__qualname__", "__doc__"))


def _must_define(ty: Any, method: str, purpose: str) -> NoReturn:
    raise NotImplementedError(f"{purpose} requires {type(ty).__name__} to implement the `{method}` method")


class AbstractValue:
    """The base of types."""


class HiType(AbstractValue):
    """The type of a value with a type of its own. `lower_val` and `raise_val` convert between the value and arrays."""

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
        _must_define(self, "vspace_zero", "autodiff")

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The sum of two tangents."""
        _must_define(self, "vspace_add", "autodiff")

    def inc_rank(self, size: int, spec: Any) -> Any:
        """The type of `size` values of this type, mapped by `spec`."""
        _must_define(self, "inc_rank", "vmap")

    def dec_rank(self, size: int, spec: Any) -> Any:
        """The type of one of `size` values, mapped by `spec`."""
        _must_define(self, "dec_rank", "vmap")

    def leading_axis_spec(self) -> Any:
        """The spec of values whose arrays are mapped along their first axes."""
        _must_define(self, "leading_axis_spec", "vmap and scan")


class MappingSpec:
    """How `vmap` maps a value; `HiType.inc_rank` and `HiType.dec_rank` say what it means for the arrays."""


class HiPspec:
    """How `shard_map` splits a value."""

    def to_lo(self) -> Sequence[Any]:
        """The specs of its arrays."""
        _must_define(self, "to_lo", "shard_map")

    def to_tangent_spec(self) -> Any:
        """The spec of its tangent; here that of the first array if it is not defined."""
        _must_define(self, "to_tangent_spec", "autodiff through shard_map")


# Types of arrays answer the same questions: nnx asks the leaves of a variable, which may be either.
for _type in (ShapedArray, AbstractRef):
    _type.lo_ty = lambda self: [self]  # type: ignore[union-attr]
    _type.lower_val = lambda _self, value: [value]  # type: ignore[union-attr]
    _type.raise_val = lambda _self, value: value  # type: ignore[union-attr]
    _type.to_ct_aval = lambda self: self.to_tangent_aval()  # type: ignore[union-attr]
ShapedArray.inc_rank = lambda self, size, axis: self if axis is None else self.with_axis(axis, size)  # type: ignore[attr-defined]
ShapedArray.leading_axis_spec = lambda _self: 0  # type: ignore[attr-defined]
ShapedArray.dec_rank = lambda self, _size, axis: self if axis is None else self.without_axis(axis)  # type: ignore[attr-defined]

_types: dict[type, Callable[[Any], Any]] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Registers a class of values, whose types `typeof_fn` returns."""
    _types[val_cls] = typeof_fn
    register_pytree_node(val_cls, lambda value: (arrays_of(typeof_fn(value), value), typeof_fn(value)), value_of)


def is_any_registered() -> bool:
    """Whether there are values with types of their own."""
    return bool(_types)


def is_value(x: Any) -> bool:
    """Whether `x` is a value with a type of its own."""
    return type(x) in _types


def typeof(x: Any) -> Any:
    """The type of an array, or of a value with a type of its own."""
    typeof_fn = _types.get(type(x))
    return typeof_array(x) if typeof_fn is None else typeof_fn(x)


get_aval = typeof


def carrier_types(ty: Any) -> list[ShapedArray]:
    """The types of the carriers of tangents; none where tangents are those of the arrays."""
    if not isinstance(ty, HiType) or type(ty).to_tangent_aval is HiType.to_tangent_aval:
        return []
    tangent_type = ty.to_tangent_aval()
    parts: list[ShapedArray] = tangent_type.lo_ty()
    same = isinstance(tangent_type, HiType) and list(map(_form, parts)) == [
        _form(part.to_tangent_aval()) for part in ty.lo_ty()
    ]
    return [] if same else parts


def has_carriers(x: Any) -> bool:
    """Whether `x` is a value whose tangent has another type than its arrays tell."""
    return is_value(x) and bool(carrier_types(typeof(x)))


def _form(ty: Any) -> tuple[Any, ...]:
    return ty.shape, ty.dtype


def arrays_of(ty: Any, value: Any) -> list[Any]:
    """The arrays of a value, then the carriers of its tangent."""
    arrays = list(ty.lower_val(value))
    if types := carrier_types(ty):
        return [*arrays, *(getattr(value, "_carriers", None) or _zero_carriers(types, arrays))]
    return arrays


def _zero_carriers(types: Sequence[ShapedArray], arrays: Sequence[Any]) -> list[Any]:
    # Zeros without memory: a program that does not read them does not get them.
    carriers = [np.broadcast_to(np.zeros((), part.dtype), part.shape) for part in types]
    # In a `shard_map` they vary between the devices as the value does: else derivatives would be summed.
    varying = tuple({axis for x in arrays for axis in getattr(getattr(x, "aval", None), "vma", ())})
    return [lax.pcast(x, varying, to="varying") for x in carriers] if varying else carriers


def value_of(ty: Any, parts: Iterable[Any]) -> Any:
    """The value of these arrays and carriers."""
    arrays = list(parts)
    count = len(arrays) - len(carrier_types(ty))
    value = ty.raise_val(*arrays[:count])
    if count < len(arrays):
        object.__setattr__(value, "_carriers", arrays[count:])  # the class may be a frozen one
    return value


def tangent_of(ty: Any, tangents: Sequence[Any]) -> Any:
    """The tangent of a value from those of its arrays and carriers; `Zero` where that of an array is."""
    if not isinstance(ty, HiType):
        return tangents[0]
    if types := carrier_types(ty):
        tangents = tangents[-len(types) :]
    if all(type(t) is Zero for t in tangents):
        return Zero(ty.to_tangent_aval())
    return ty.to_tangent_aval().raise_val(*map(instantiate, tangents))


def tangents_of(ty: Any, tangent: Any) -> list[Any]:
    """The tangents of the arrays and carriers of a value from its own; None for zero."""
    count = len(carrier_types(ty))
    arrays = ty.lo_ty()
    if tangent is None or type(tangent) is Zero:
        return [None] * (len(arrays) + count)
    parts = list(ty.to_tangent_aval().lower_val(tangent))
    return [None] * len(arrays) + parts if count else parts
