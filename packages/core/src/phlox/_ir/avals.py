"""Abstract values (avals): the type of an array, namely its shape, dtype and weak type.

Avals are interned: equal types are one object. Cache keys therefore hash avals by address and compare them with `is`,
which keeps lookups on the call path cheap. The texts that printing and lowering need are cached on the object.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import ArgumentError, ShapeError
from .._base.interning import Interned
from . import dtypes
from .dimensions import as_length, is_symbolic
from .dtypes import Dtype, ExtendedDtype
from .memory_spaces import Space, note_space, space_text
from .sharding_types import Entry, Spec, axis_text, check_divisible, entries_of, mesh_text, reductions_of, spec_over

Shape = tuple[int, ...]

_interned: Interned[ShapedArray] = Interned()


class ShapedArray:
    """The type of an array: ``f32[3,4]``. Obtain one with `shaped`; equal types are the same object.

    Attributes:
      shape: tuple of ints.
      dtype: a numpy dtype or `ExtendedDtype`.
      weak_type: True for values made from Python scalars, whose dtype gives way in promotion.
      vma: inside of `shard_map`, the names of the mesh axes along which values differ between devices ("varying manual
        axes"); a frozenset.
      spec: how the array is split over the explicit axes of a mesh, a `Spec`; None if it is not.
      memory_space: the `Space` of the memory that holds the array; see `memory_spaces`.
      annotated: whether there is a `vma` or a `spec`, or another memory space than that of the device.
      short: ``f32[3,4]``, the form of printed Jaxprs and error messages.
      physical: the type of the array in memory; it differs for extended dtypes such as PRNG keys.
      text: ``tensor<3x4xf32>``, the type of the physical array in StableHLO text.
      sharding: `spec` as a `NamedSharding` of an `AbstractMesh`, for JAX's API; without a `spec`, of the mesh of the
        context, or of one without axes.
      manual_axis_type: `vma` as JAX's object.

    The last five are computed at the first access.
    """

    __slots__ = (
        "__weakref__",
        "annotated",
        "dtype",
        "manual_axis_type",
        "memory_space",
        "ndim",
        "physical",
        "shape",
        "sharding",
        "short",
        "size",
        "spec",
        "text",
        "vma",
        "weak_type",
    )

    shape: Shape
    dtype: Dtype
    weak_type: bool
    vma: frozenset[Any]
    spec: Spec | None
    memory_space: Space
    annotated: bool
    ndim: int
    size: int
    short: str
    text: str
    manual_axis_type: Any
    physical: ShapedArray
    sharding: Any

    def __new__(
        cls,
        shape: Any,
        dtype: Any,
        weak_type: bool = False,
        *,
        sharding: Any = None,
        manual_axis_type: Any = None,
        memory_space: Space = Space.Device,
        layout: Any = None,
    ) -> ShapedArray:
        """JAX's constructor. Types do not differ by `layout`, which is accepted as in JAX."""
        aval = shaped(tuple(shape), dtypes.as_dtype(dtype), weak_type).in_space(memory_space)
        if manual_axis_type is not None:
            aval = aval.varying(frozenset(manual_axis_type.varying))
        return aval if sharding is None else check_divisible(aval.with_spec(_spec_of(sharding, aval.ndim)))

    def __reduce__(self) -> Any:
        if not self.annotated:
            return ShapedArray, (self.shape, self.dtype, self.weak_type)
        return _annotated, (self.shape, self.dtype, self.weak_type, self.vma, self.spec, self.memory_space)

    if not TYPE_CHECKING:  # with __getattr__, a type checker would accept every attribute name

        def __getattr__(self, name: str) -> Any:
            if name not in LAZY_ATTRIBUTES:
                raise AttributeError(f"{self!r} has no attribute {name!r}")
            value = LAZY_ATTRIBUTES[name](self)
            if name != "sharding" or self.spec is not None:  # without a `spec`, it is of the mesh of the context
                setattr(self, name, value)  # fills the slot: later reads do not come here
            return value

    def update(self, **changes: Any) -> ShapedArray:
        """This type with some of shape, dtype, weak_type, vma, spec, sharding and memory_space replaced; another shape
        drops the `spec`."""
        shape = tuple(changes.get("shape", self.shape))
        spec = changes.get("spec", self.spec if self.spec is None or shape == self.shape else None)
        if (sharding := changes.get("sharding")) is not None:
            spec = _spec_of(sharding, len(shape))
        dtype, weak_type = changes.get("dtype", self.dtype), changes.get("weak_type", self.weak_type)
        vma, space = changes.get("vma", self.vma), changes.get("memory_space", self.memory_space)
        return _annotated(shape, dtype, weak_type, vma, spec, space)

    def varying(self, vma: frozenset[Any]) -> ShapedArray:
        """This type with values that vary along exactly the axes `vma`."""
        return self if vma == self.vma else self.update(vma=vma)

    def with_spec(self, spec: Spec | None) -> ShapedArray:
        """This type with this `spec`."""
        return self if spec is self.spec else self.update(spec=spec)

    def in_space(self, space: Space) -> ShapedArray:
        """This type of an array in this memory space."""
        return self if space is self.memory_space else self.update(memory_space=space)

    def without_axis(self, axis: int) -> ShapedArray:
        """The type of a slice: this type without one axis."""
        spec = self.spec
        if spec is not None:
            spec = spec_over(spec.mesh, spec.entries[:axis] + spec.entries[axis + 1 :], spec.reductions)
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        return _annotated(shape, self.dtype, self.weak_type, self.vma, spec, self.memory_space)

    def with_axis(self, axis: int, size: int, entry: Entry = (), mesh: Any = None) -> ShapedArray:
        """This type with one more axis, which is split over the axes `entry` of `mesh`."""
        spec = self.spec
        if spec is not None or entry:
            old = entries_of(self)
            entries = (*old[:axis], entry, *old[axis:])
            spec = spec_over(mesh if spec is None else spec.mesh, entries, reductions_of(self))
        shape = (*self.shape[:axis], size, *self.shape[axis:])
        return _annotated(shape, self.dtype, self.weak_type, self.vma, spec, self.memory_space)

    def tangent(self) -> ShapedArray:
        """The type of tangents: this type if its dtype is inexact, else one of dtype float0."""
        dtype = dtypes.tangent_dtype(self.dtype)
        return self if dtype is self.dtype else self.update(dtype=dtype, weak_type=False)

    def cotangent(self) -> ShapedArray:
        """The type of cotangents: the tangent type with reduced and unreduced axes exchanged."""
        aval = self.tangent()
        if (spec := aval.spec) is None:
            return aval
        return aval.with_spec(spec_over(spec.mesh, spec.entries, spec.reductions.cotangent()))

    mat = property(operator.attrgetter("manual_axis_type"))  # JAX's short name

    to_tangent_aval = at_least_vspace = tangent  # JAX's names

    def strong(self) -> ShapedArray:
        """This type with ``weak_type=False``."""
        return self.update(weak_type=False) if self.weak_type else self

    strip_weak_type = strong  # JAX's name

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """JAX's name for `short` with ``short_dtypes=True``; by default ``float32[3,4]``.

        Types of mesh axes are not shown.
        """
        return self.short if short_dtypes else str(self).removeprefix("~")

    def __str__(self) -> str:
        weak = "~" if self.weak_type else ""
        return f"{weak}{dtypes.full_name(self.dtype)}{space_text(self)}[{_shape_text(self)}]{mesh_text(self)}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({str(self).removeprefix('~')}{weak})"


def _short(aval: ShapedArray) -> str:
    return f"{dtypes.short_name(aval.dtype)}{space_text(aval)}[{_shape_text(aval)}]{mesh_text(aval)}"


def _shape_text(aval: ShapedArray) -> str:
    if aval.spec is None:
        return ",".join(map(str, aval.shape))
    return ",".join(map(axis_text, aval.shape, aval.spec.entries))


def _text(aval: ShapedArray) -> str:
    real = aval.physical
    # XLA ends the process where a number of bytes overflows; it counts empty arrays without their empty axes.
    lengths = [d for d in real.shape if type(d) is int and d]
    if math.prod(lengths) * dtypes.bits(real.dtype) >= 8 << 63:
        raise ShapeError(f"an array {aval.short} has 2**63 bytes or more, which no device has", instead="smaller axes")
    return f"tensor<{''.join(f'{d}x' for d in real.shape)}{dtypes.element_text(real.dtype)}>"


def _physical(aval: ShapedArray) -> ShapedArray:
    if isinstance(aval.dtype, ExtendedDtype):
        return shaped((*aval.shape, *aval.dtype.element_shape), aval.dtype.physical)
    # Devices have no element without bits. float0 arrays that reach a program are bools.
    if aval.dtype == dtypes.float0:
        return shaped(aval.shape, dtypes.bool_)
    # The texts of types know nothing of mesh axes and memory spaces.
    return shaped(aval.shape, aval.dtype, aval.weak_type) if aval.annotated else aval


#: the attributes that are computed at first access; higher layers add
#: `sharding` (sharding.py) and `manual_axis_type` (meshes.py)
LAZY_ATTRIBUTES: dict[str, Callable[[ShapedArray], Any]] = {"short": _short, "text": _text, "physical": _physical}


def shaped(shape: Shape, dtype: Dtype, weak_type: bool = False) -> ShapedArray:
    """The unique `ShapedArray` of this shape (a tuple of ints), dtype (a dtype object) and weak type."""
    key = (shape, dtype, weak_type)
    aval = _interned.get(key)
    if aval is None:
        aval = _interned.add(key, lambda: _make_aval(*key, frozenset(), None, Space.Device))
    return aval


def _annotated(
    shape: Shape, dtype: Dtype, weak_type: bool, vma: frozenset[Any], spec: Spec | None, space: Space
) -> ShapedArray:
    """The unique type with these fields."""
    # Types without annotations have one object, whichever way they were made.
    if not vma and spec is None and space is Space.Device:
        return shaped(shape, dtype, weak_type)
    key = (shape, dtype, weak_type, vma, spec, space)
    cached = _interned.get(key)
    return _interned.add(key, lambda: _make_aval(*key)) if cached is None else cached


def _no_spec(sharding: Any, ndim: int) -> Spec | None:
    return None


#: the `spec` that a sharding means for an array with `ndim` axes; sharding.py, which this layer cannot import, sets it
_spec_of: Callable[[Any, int], Spec | None] = _no_spec


def read_shardings_with(spec_of: Callable[[Any, int], Spec | None]) -> None:
    """Installs the function that reads the `spec` from a user's sharding."""
    global _spec_of
    _spec_of = spec_of


def _make_aval(
    shape: Shape, dtype: Dtype, weak_type: bool, vma: frozenset[Any], spec: Spec | None, space: Space
) -> ShapedArray:
    try:
        lengths = tuple([as_length(n) for n in shape])  # of NumPy integers, too
    except TypeError:
        raise ArgumentError(f"an array has no shape {shape}: lengths are integers") from None
    if any(n < 0 for n in lengths if not is_symbolic(n)):
        raise ShapeError(f"an array has no shape {shape}: lengths must not be negative", shapes=[shape])
    aval = object.__new__(ShapedArray)
    aval.shape = lengths
    aval.dtype = dtype
    aval.weak_type = weak_type
    aval.vma, aval.spec, aval.memory_space = vma, spec, note_space(space)
    aval.annotated = bool(vma) or spec is not None or space is not Space.Device
    aval.ndim = len(lengths)
    aval.size = math.prod(lengths)
    return aval


_NUMPY = (np.ndarray, np.generic)
_PYTHON_SCALARS = (bool, int, float, complex)


def scalar_aval(kind: type) -> ShapedArray:
    """The type of a Python scalar of class `kind`: weak, except for bool."""
    return shaped((), dtypes.python_scalar_dtype(kind), kind is not bool)


class Typed:
    """The base class of objects with a type, `aval`: arrays, tracers, and descriptions of arrays."""

    __slots__ = ()

    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """True when the element type comes from a Python scalar and gives way in promotions."""
        return self.aval.weak_type


def is_masked(x: Any) -> bool:
    """Whether `x` is a masked array of NumPy. These are not accepted as arrays: the mask would be lost."""
    return isinstance(x, np.ndarray) and hasattr(x, "mask")


def typeof_value(x: Any) -> ShapedArray | None:
    """The type of `x` as an array; None if `x` is no array or tracer, no array of NumPy and no number."""
    aval = getattr(x, "aval", None)
    if type(aval) is ShapedArray:
        return aval
    if isinstance(x, _NUMPY):
        if type(x) is not np.ndarray and is_masked(x):
            return None
        dtype = x.dtype
        if dtype not in dtypes._kind:
            # NumPy arrays of the other byte order have the type that they get on a device.
            dtype = dtypes.float0 if dtype == dtypes.float0 else dtype.newbyteorder("=")
            if dtype not in dtypes._kind:
                return None
        return shaped(x.shape, dtypes.canonical(dtype))
    kind = type(x)
    if kind in _PYTHON_SCALARS:
        return scalar_aval(kind)
    # Classes that inherit from Python's numbers, as IntEnum. bool comes first, as it inherits from int.
    for base in _PYTHON_SCALARS:
        if isinstance(x, base):
            return scalar_aval(base)
    return None
