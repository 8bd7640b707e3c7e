"""Abstract values (avals): the type of an array, namely its shape, dtype and weak type.

Avals are interned: equal types are one object. Cache keys therefore hash avals by address and compare them with `is`,
which keeps lookups on the call path cheap. The texts that printing and lowering need are cached on the object.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import ShapeError
from .._base.interning import Interned
from . import dtypes
from .dimensions import is_symbolic
from .dtypes import Dtype, ExtendedDtype

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
      short: ``f32[3,4]``, the form of printed Jaxprs and error messages.
      physical: the type of the array in memory; it differs for extended dtypes such as PRNG keys.
      text: ``tensor<3x4xf32>``, the type of the physical array in StableHLO text.
      sharding: a `NamedSharding` of a mesh without axes, for JAX's API: phlox's types carry no sharding.

    The last four are computed at the first access.
    """

    __slots__ = (
        "__weakref__",
        "dtype",
        "ndim",
        "physical",
        "shape",
        "sharding",
        "short",
        "size",
        "text",
        "vma",
        "weak_type",
    )

    shape: Shape
    dtype: Dtype
    weak_type: bool
    vma: frozenset[Any]
    ndim: int
    size: int
    short: str
    text: str
    physical: ShapedArray
    sharding: Any

    def __new__(cls, shape: Any, dtype: Any, weak_type: bool = False, *, sharding: Any = None) -> ShapedArray:
        # Types carry no sharding: the argument is accepted because libraries pass that of another type.
        return shaped(tuple(shape), dtypes.as_dtype(dtype), weak_type)

    def __reduce__(self) -> Any:
        plain = ShapedArray, (self.shape, self.dtype, self.weak_type)
        return (_varying, (ShapedArray(*plain[1]), self.vma)) if self.vma else plain

    if not TYPE_CHECKING:  # with __getattr__, a type checker would accept every attribute name

        def __getattr__(self, name: str) -> Any:
            if name not in LAZY_ATTRIBUTES:
                raise AttributeError(f"{self!r} has no attribute {name!r}")
            value = LAZY_ATTRIBUTES[name](self)
            setattr(self, name, value)  # fills the slot: later reads do not come here
            return value

    def update(self, **changes: Any) -> ShapedArray:
        """This type with some of shape, dtype, weak_type and vma replaced."""
        made = shaped(
            tuple(changes.get("shape", self.shape)),
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
        )
        return made.varying(changes.get("vma", self.vma))

    def varying(self, vma: frozenset[Any]) -> ShapedArray:
        """This type with values that vary along exactly the axes `vma`."""
        return self if vma == self.vma else _varying(self, vma)

    def tangent(self) -> ShapedArray:
        """The type of tangents: this type if its dtype is inexact, else one of dtype float0."""
        dtype = dtypes.tangent_dtype(self.dtype)
        return self if dtype is self.dtype else shaped(self.shape, dtype).varying(self.vma)

    def to_tangent_aval(self) -> ShapedArray:
        """JAX's name for `tangent`."""
        return self.tangent()

    def at_least_vspace(self) -> ShapedArray:
        """JAX's older name for `tangent`."""
        return self.tangent()

    def strong(self) -> ShapedArray:
        """This type with ``weak_type=False``."""
        return shaped(self.shape, self.dtype).varying(self.vma) if self.weak_type else self

    def str_short(self, short_dtypes: bool = True) -> str:
        """JAX's name for `short`; ``float32[3,4]`` with ``short_dtypes=False``."""
        return self.short if short_dtypes else str(self).removeprefix("~")

    def __str__(self) -> str:
        weak = "~" if self.weak_type else ""
        return f"{weak}{dtypes.full_name(self.dtype)}[{','.join(map(str, self.shape))}]{_axes_text(self.vma)}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({str(self).removeprefix('~')}{weak})"


def _short(aval: ShapedArray) -> str:
    return f"{dtypes.short_name(aval.dtype)}[{','.join(map(str, aval.shape))}]{_axes_text(aval.vma)}"


def _axes_text(vma: frozenset[Any]) -> str:
    """``{V:i}`` or ``{V:(i,j)}``, as JAX prints it; nothing for values that do not vary."""
    if not vma:
        return ""
    names = sorted(map(str, vma))
    return f"{{V:{names[0] if len(names) == 1 else '(' + ','.join(names) + ')'}}}"


def _text(aval: ShapedArray) -> str:
    real = aval.physical
    return f"tensor<{''.join(f'{d}x' for d in real.shape)}{dtypes.element_text(real.dtype)}>"


def _physical(aval: ShapedArray) -> ShapedArray:
    if isinstance(aval.dtype, ExtendedDtype):
        return shaped((*aval.shape, *aval.dtype.element_shape), aval.dtype.physical)
    if aval.dtype == dtypes.float0:
        return shaped(aval.shape, dtypes.bool_)
    return shaped(aval.shape, aval.dtype, aval.weak_type) if aval.vma else aval


#: the attributes that are computed at first access; sharding.py, which this layer cannot import, adds `sharding`
LAZY_ATTRIBUTES: dict[str, Callable[[ShapedArray], Any]] = {"short": _short, "text": _text, "physical": _physical}


def shaped(shape: Shape, dtype: Dtype, weak_type: bool = False) -> ShapedArray:
    """The unique `ShapedArray` of this shape (a tuple of ints), dtype (a dtype object) and weak type."""
    key = (shape, dtype, weak_type)
    found = _interned.get(key)
    if found is None:
        found = _interned.add(key, lambda: _made(*key))
    return found


def _varying(aval: ShapedArray, vma: frozenset[Any]) -> ShapedArray:
    """The unique type like `aval` of values that vary along the axes `vma`."""
    if not vma:
        return shaped(aval.shape, aval.dtype, aval.weak_type)
    key = (aval.shape, aval.dtype, aval.weak_type, vma)
    found = _interned.get(key)
    if found is None:

        def make() -> ShapedArray:
            made = _made(*key[:3])
            made.vma = vma
            return made

        found = _interned.add(key, make)
    return found


_NOWHERE: frozenset[Any] = frozenset()


def _made(shape: Shape, dtype: Dtype, weak_type: bool) -> ShapedArray:
    if any(n < 0 for n in shape if not is_symbolic(n)):
        raise ShapeError(f"an array has no shape {shape}: lengths must not be negative", shapes=[shape])
    made = object.__new__(ShapedArray)
    # lengths may be NumPy integers
    made.shape = tuple([n if type(n) is int or is_symbolic(n) else int(n) for n in shape])
    made.dtype = dtype
    made.weak_type = weak_type
    made.vma = _NOWHERE
    made.ndim = len(shape)
    made.size = math.prod(made.shape)
    return made


_NUMPY = (np.ndarray, np.generic)
_PYTHON_SCALARS = (bool, int, float, complex)


def scalar_aval(kind: type) -> ShapedArray:
    """The type of a Python scalar of class `kind`: weak, except for bool."""
    return shaped((), dtypes.python_scalar_dtype(kind), kind is not bool)


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
            dtype = dtypes.float0 if dtype == dtypes.float0 else dtype.newbyteorder("=")
            if dtype not in dtypes._kind:
                return None
        return shaped(x.shape, dtypes.canonical(dtype))
    kind = type(x)
    if kind in _PYTHON_SCALARS:
        return scalar_aval(kind)
    for base in _PYTHON_SCALARS:
        if isinstance(x, base):
            return scalar_aval(base)
    return None
