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
from phlox.dtypes import float0
from phlox.extend import ShapedArray, Zero, instantiate
from phlox.lax import pcast
from phlox.tree_util import register_pytree_node

from .._core import AbstractRef, grad, register_vmappable


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

    def dec_rank(self, size: int | None, spec: MappingSpec) -> Any:
        """The type of one example of a value that `vmap` maps by `spec`."""
        _must_define(self, "dec_rank", "vmap")

    def inc_rank(self, size: int | None, spec: MappingSpec) -> Any:
        """The type of all examples."""
        _must_define(self, "inc_rank", "vmap")


class MappingSpec:
    """An entry for a value in the `in_axes` and `out_axes` of `vmap`; `HiType.dec_rank` and `inc_rank` know it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Only now: `vmap` looks at each argument once containers are registered.
        for val_cls in _types:
            _register_vmappable(val_cls)


class HiPspec:
    """How `shard_map` splits a value."""

    def to_lo(self) -> tuple[Any, ...]:
        """The specs of the arrays."""
        raise NotImplementedError

    def to_tangent_spec(self) -> HiPspec:
        """The spec of tangents."""
        raise NotImplementedError

    def to_ct_spec(self) -> HiPspec:
        """The spec of cotangents."""
        return self.to_tangent_spec()

    def specs_of_leaves(self, count: int) -> list[Any]:
        """The specs of `count` arrays and carriers."""
        specs = list(self.to_lo())
        if len(specs) == count:
            return specs
        try:
            carriers = list(self.to_tangent_spec().to_lo())
        except NotImplementedError:
            carriers = specs
        return [*specs, *carriers][:count]


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
    grad.containers_with_tangents.add(val_cls)
    if MappingSpec.__subclasses__():
        _register_vmappable(val_cls)


def typeof(x: Any) -> Any:
    """The type of an array, or of a value with a type of its own."""
    typeof_fn = _types.get(type(x))
    return typeof_array(x) if typeof_fn is None else typeof_fn(x)


def arrays_of(ty: Any, value: Any) -> list[Any]:
    """The arrays of a value, and its carriers."""
    if not isinstance(ty, HiType):
        return [value]
    arrays = ty.lower_val(value)
    carriers = getattr(value, _CARRIERS, None)
    if carriers is None:
        # Zeros without memory: a program that does not read them does not get them.
        carriers = [np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in _carrier_types(ty)]
        # In a `shard_map` they vary between the devices as the value does: else derivatives would be summed.
        varying = tuple({axis for x in arrays for axis in getattr(getattr(x, "aval", None), "vma", ())})
        carriers = [pcast(x, varying, to="varying") for x in carriers] if varying else carriers
    return [*arrays, *carriers]


def value_of(ty: Any, arrays: Sequence[Any]) -> Any:
    """The value of these arrays and carriers; its gradient if these are gradients: those of integers are float0."""
    if not isinstance(ty, HiType):
        return arrays[0]
    width = len(arrays) - len(_carrier_types(ty))
    if width < len(arrays) and any(getattr(x, "dtype", None) == float0 for x in arrays[:width]):
        return ty.to_tangent_aval().raise_val(*arrays[width:])
    value = ty.raise_val(*arrays[:width])
    if width < len(arrays):
        object.__setattr__(value, _CARRIERS, list(arrays[width:]))  # also of a frozen dataclass
    return value


# --- vmap -----------------------------------------------------------------------------------------------

#: the axes that types of arrays were asked to drop or add
_asked_axes: list[Any] = []


def _dec_rank(self: Any, size: int | None, spec: int | None) -> Any:
    _asked_axes.append(spec)
    return self if spec is None else self.without_axis(spec)


def _inc_rank(self: Any, size: int | None, spec: int | None) -> Any:
    _asked_axes.append(spec)
    return self if spec is None else self.with_axis(spec, size)


ShapedArray.dec_rank, ShapedArray.inc_rank = _dec_rank, _inc_rank  # type: ignore[attr-defined]
ShapedArray.leading_axis_spec = lambda self: 0  # type: ignore[attr-defined]


def _register_vmappable(val_cls: type) -> None:
    register_vmappable(val_cls, MappingSpec, int, _one_example, _all_examples, None)


def _one_example(one: Callable[..., Any], index: Callable[[], Any], value: Any, spec: Any) -> Any:
    ty = typeof(value)
    arrays = arrays_of(ty, value)
    if not isinstance(spec, MappingSpec):
        return value_of(ty, [one(x, spec) for x in arrays])
    example, axes = _with_axes(lambda: ty.dec_rank(index().owner.axis.size, spec), lambda example: (ty, example))
    return value_of(example, [one(x, axis) for x, axis in zip(arrays, axes, strict=True)])


def _all_examples(all_: Callable[..., Any], size: int, value: Any, spec: Any) -> Any:
    ty = typeof(value)
    arrays = arrays_of(ty, value)
    if not isinstance(spec, MappingSpec):
        return value_of(ty, [all_(size, x, spec) for x in arrays])
    whole, axes = _with_axes(lambda: ty.inc_rank(size, spec), lambda whole: (whole, ty))
    return value_of(whole, [all_(size, x, axis) for x, axis in zip(arrays, axes, strict=True)])


def _with_axes(change: Callable[[], Any], pair: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, list[int | None]]:
    """(the changed type, the mapped axis of each array and carrier of the type of all examples).

    A type that asks its arrays' types tells their axes. For others they follow from the shapes of both types.
    """
    _asked_axes.clear()
    changed = change()
    asked = list(_asked_axes)
    whole, example = pair(changed)
    arrays = list(zip(whole.lo_ty(), example.lo_ty(), strict=True))
    carriers = list(zip(_carrier_types(whole), _carrier_types(example), strict=True))
    axes = asked if len(asked) == len(arrays) else [_removed_axis(a.shape, b.shape) for a, b in arrays]
    return changed, [*axes, *(_removed_axis(a.shape, b.shape) for a, b in carriers)]


def _removed_axis(whole: tuple[int, ...], example: tuple[int, ...]) -> int | None:
    if whole == example:
        return None
    return next(i for i in range(len(whole)) if whole[:i] + whole[i + 1 :] == example)


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
