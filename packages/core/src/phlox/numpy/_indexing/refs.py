"""Operations on references: make, read, write, add, swap, freeze. Indices are parsed like those of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, DtypeError, RefError, ShapeError, UnsupportedError
from ..._base.pytree import flatten, register_pytree_node
from ..._base.source import user_location
from ..._ir import dtypes
from ..._ir.avals import typeof_value
from ..._ir.memory_spaces import Space
from ..._ir.primitive import current_trace
from ..._operands.checks import type_of
from ..._operands.promotion import to_dtype
from ..._ops.structure.shape import as_array_or_tracer
from ..._trace.refs import AbstractRef, Ref
from ..._trace.staging import stage
from ..._trace.trace import not_an_array, typeof as type_of_array
from ..._transform.sharding_types import in_space
from ...typing import Array, ArrayLike
from .._creation.fill import zeros
from .ds import Slice


def new_ref(init_val: ArrayLike, *, memory_space: Any = None, kind: str | None = None, pin: bool = False) -> Ref:
    """A mutable reference to an array with the initial value `init_val`.

    Args:
      init_val: initial value, an array or a number; writes to the reference do not change it.
      memory_space: a `memory.Space`, in which the array is kept: reads are copies in the memory of the device. None for
        that of `init_val`.
      kind: accepted as in JAX; references do not differ by it here.
      pin: True requests memory that is never moved, inside of `jit`; references are not moved here.

    Returns:
      A `Ref` of the shape and dtype of `init_val`.

    Raises:
      ArgumentError: `init_val` is not an array.
      RefError: `init_val` is a reference.
      UnsupportedError: `pin` is true outside of a traced function.

    >>> ref = new_ref(jnp.zeros(2))
    >>> ref[0] += 3.0
    >>> ref[...]
    Array([3., 0.], dtype=float32)
    """
    aval = typeof_value(init_val)
    if pin and current_trace.get() is None:
        raise UnsupportedError("new_ref: pin=True outside of a traced function", instead="pin=False, or inside of jit")
    if aval is None:
        if isinstance(init_val, Ref):
            raise RefError("new_ref of a reference", instead="new_ref(ref[...])")
        raise not_an_array(init_val, "the argument of new_ref")
    # As in JAX 0.12: the type of a reference does not give way in promotions, even if the first value is a number.
    strong = as_array_or_tracer(to_dtype(init_val, aval.dtype) if aval.weak_type else init_val)
    ref_aval = AbstractRef(aval.strong(), memory_space, kind)
    ref = Ref(ref_aval, _in_space_of(ref_aval, strong))
    if ref.home is not None:
        ref.location = user_location()
    return ref


def typeof(x: ArrayLike | Ref) -> Any:
    """The type of `x`: shape, dtype and weak type of an array or number, and for a reference that of its array.

    Args:
      x: array, number or reference.

    Returns:
      A `ShapedArray`, or the type of a reference.

    Raises:
      ArgumentError: `x` is none of these.

    >>> typeof(np.zeros((2, 3), np.float32))
    ShapedArray(float32[2,3])
    >>> typeof(new_ref(1.0))
    Ref{float32[]}
    """
    return x.aval if isinstance(x, Ref) else type_of_array(x)


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """A reference to an array of the type of `ty` (an array or a `ShapeDtypeStruct`), whose elements are not specified.

    Args:
      ty: shape and dtype of the array: an array or a `ShapeDtypeStruct`.
      memory_space: as for `new_ref`.
      pin: as for `new_ref`.

    Returns:
      A `Ref` of this shape and dtype.

    >>> empty_ref(phlox.ShapeDtypeStruct((2,), "float32")).shape
    (2,)
    """
    return new_ref(zeros(ty.shape, ty.dtype), memory_space=memory_space, pin=pin)


def freeze(ref: Ref) -> Array:
    """The array in `ref`, after which `ref` must not be used: in traced functions, later uses raise `RefError`.

    Args:
      ref: reference; a view of a part of a reference is not accepted.

    Returns:
      The whole array.

    Raises:
      RefError: `ref` is not a reference, or is used after `free_ref`.

    >>> freeze(new_ref(1.0))
    Array(1., dtype=float32)
    """
    if not isinstance(ref, Ref):
        raise RefError(f"freeze takes a reference, got {ref!r}", instead="ref[...], or view[...] for a part")
    if ref.freed != "freeze":
        _check("freeze", ref)
    whole = ref.read(current_trace.get())
    ref.free("freeze")
    return whole


def free_ref(ref: Ref) -> tuple[()]:
    """Declares that `ref` is not used any more: in traced functions, later uses raise `RefError`.

    Args:
      ref: reference; for a view of a part of a reference, nothing happens.

    Returns:
      The empty tuple.

    Raises:
      RefError: `ref` is not a reference, or is used after `freeze` or `free_ref`.

    >>> free_ref(new_ref(1.0))
    ()
    """
    _check("free_ref", ref)
    if isinstance(ref, Ref):
        ref.free("free_ref")
    return ()


def get(ref: Ref | RefView, idx: Any = None) -> Array:
    """The elements at an index, as ``ref[idx]``; all elements without an index.

    Args:
      ref: reference, or a view of a part of a reference.
      idx: index, as for arrays; None selects all elements.

    Returns:
      An array of the dtype of the reference.

    Raises:
      RefError: an integer of the index is outside of the array, or `ref` is used after `freeze` or `free_ref`.

    >>> get(new_ref(jnp.arange(5)), slice(1, 3))
    Array([1, 2], dtype=int32)
    """
    _check("get", ref)
    whole = ref.read(current_trace.get())
    if ref.aval.memory_space is not None:  # as `_read`, whose call would cost a tenth of the time
        whole = in_space(whole, Space.Device)
    return whole if _is_all(idx) else whole[_checked(ref, idx)]


def set(ref: Ref | RefView, idx: Any, value: ArrayLike) -> None:
    """Replaces the elements at an index, as ``ref[idx] = value``.

    Args:
      ref: reference, or a view of a part of a reference.
      idx: index, as for arrays; None selects all elements.
      value: new value: an array with the shape and dtype of the selected elements; for a single element also a Python
        number of the same kind.

    Raises:
      DtypeError: `value` has another dtype.
      RefError: an integer of the index is outside of the array, or `ref` is used after `freeze` or `free_ref`.
      ShapeError: `value` has another shape.

    >>> ref = new_ref(jnp.arange(3))
    >>> set(ref, 1, 7)
    >>> ref
    Ref([0, 7, 2], dtype=int32)
    """
    _check("set", ref)
    _write("set", ref, idx, value)


@docs_from(set)
def swap(ref: Ref | RefView, idx: Any, value: ArrayLike, _function_name: str = "ref_swap") -> Array:
    """Replaces the elements at an index and returns the previous ones.

    Args:
      value: array with the shape and dtype of the selected elements, or a Python number, as for `set`.
      _function_name: accepted as in JAX; not read.

    Returns:
      An array of the previous elements.

    >>> ref = new_ref(jnp.arange(3))
    >>> swap(ref, 1, 7)
    Array(1, dtype=int32)
    """
    before = get(ref, idx)
    _write("swap", ref, idx, value)
    return before


@docs_from(set)
def addupdate(ref: Ref | RefView, idx: Any, x: ArrayLike) -> None:
    """Adds `x` to the elements at an index. An element that occurs several times in the index gets each sum, unlike in
    ``ref[idx] += x``.

    Args:
      x: array with the shape and dtype of the selected elements, or a Python number, as for `set`.

    Raises:
      DtypeError: `x` has another dtype.
      ShapeError: `x` has another shape.

    >>> ref = new_ref(jnp.arange(3))
    >>> addupdate(ref, slice(0, 2), jnp.array([10, 10]))
    >>> ref
    Ref([10, 11,  2], dtype=int32)
    """
    before = get(ref, idx)
    x = _fitting("addupdate", ref, before, x)
    if _may_repeat(ref, idx):
        _add(ref, idx, x)
    else:
        _write("addupdate", ref, idx, before + x)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """The index of a view that shows all elements in another shape."""

    shape: tuple[int, ...]


class RefView:
    """A view of a part of a reference, ``ref.at[idx]``; reading and writing it read and write the reference.

    >>> ref = new_ref(jnp.arange(6))
    >>> part = ref.at[2:5]
    >>> part[0] = 7
    >>> part.at[1:][...], ref
    (Array([3, 4], dtype=int32), Ref([0, 1, 7, 3, 4, 5], dtype=int32))
    """

    __slots__ = ("aval", "idx", "ref")
    array_advice = Ref.array_advice
    aval: AbstractRef

    def __init__(self, ref: Ref | RefView, idx: Any):
        self.ref = ref
        self.idx = idx if _is_all(idx) else _checked(ref, idx)
        inner = ref.aval.inner_aval
        # Tracing finds the type for every kind of index.
        part = inner if _is_all(idx) else stage(lambda x: [_part(x, idx)], [inner])[0].outvars[0].aval
        self.aval = ref.aval.update(inner_aval=part)

    @property
    def freed(self) -> str:
        return self.ref.freed

    def read(self, trace: Any) -> Any:
        """The elements, as `Ref.read`."""
        whole = _read(self.ref, trace)
        return whole if _is_all(self.idx) else _part(whole, self.idx)

    def write(self, trace: Any, value: Any) -> None:
        """Replaces the elements, as `Ref.write`."""
        if not _is_all(self.idx):
            value = _with_part(_read(self.ref, trace), self.idx, value)
        self.ref.write(trace, _in_space_of(self.ref.aval, value))

    def __repr__(self) -> str:
        return f"RefView({self.aval}, {self.idx!r})"


def _flatten_view(view: RefView) -> tuple[list[Any], tuple[Any, ...]]:
    # The reference and the arrays of the index are children, so that a view passes into transformed functions as its
    # reference does. Slices are written as tuples, which are hashable before Python 3.12 too.
    leaves, tree = flatten(view.idx)
    static = tuple(
        [None if hasattr(x, "dtype") else (x.start, x.stop, x.step) if isinstance(x, slice) else x for x in leaves]
    )
    arrays = [x for x, s in zip(leaves, static, strict=True) if s is None]
    return [view.ref, *arrays], (getattr(view.ref, "aval", None), view.aval, tree, static)


def _unflatten_view(aux: tuple[Any, ...], children: Iterable[Any]) -> RefView:
    ref_aval, aval, tree, static = aux
    ref, *arrays = children
    rest = iter(arrays)
    idx = tree.unflatten([next(rest) if s is None else slice(*s) if type(s) is tuple else s for s in static])
    if isinstance(ref, Ref | RefView) and ref.aval != ref_aval:
        # Its index is of the whole array, and not of an example or a row.
        if ref.aval.shape != ref_aval.shape:
            raise ArgumentError(
                f"TransformedRefs are not allowed here: the view {aval} of {ref_aval} is mapped",
                instead="the reference as an argument, and ref.at[...] in the function",
            )
        return RefView(ref, idx)
    view: RefView = object.__new__(RefView)
    view.ref, view.idx, view.aval = ref, idx, aval
    return view


register_pytree_node(RefView, _flatten_view, _unflatten_view)


class _At:
    """The class of ``ref.at``, which makes a view when it is indexed."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref | RefView):
        self.ref = ref

    def __getitem__(self, idx: Any) -> RefView:
        return RefView(self.ref, idx)


def _check(function: str, ref: Any) -> None:
    if not isinstance(ref, Ref | RefView):
        raise RefError(f"{function} takes a reference, got {ref!r}", instead="phlox.new_ref(array)")
    if ref.freed:
        raise RefError(
            f"{function}: a reference of type {ref.aval} is used after {ref.freed}",
            instead=f"{ref.freed} after the last use; or a new one, of the array that freeze returned",
        )


def _read(ref: Ref | RefView, trace: Any) -> Any:
    """The value of a reference, in the memory of the device."""
    value = ref.read(trace)
    return value if ref.aval.memory_space is None else in_space(value, Space.Device)


def _in_space_of(ref: AbstractRef, value: Any) -> Any:
    """`value` in the memory that a reference keeps it in."""
    space = Space.Host if ref.memory_space is Space.Host else Space.Device
    return value if value.aval.memory_space is space else in_space(value, space)  # most need no call


def _is_all(idx: Any) -> bool:
    return (
        idx is None or idx is Ellipsis or (type(idx) is tuple and (not idx or (len(idx) == 1 and idx[0] is Ellipsis)))
    )


def _checked(ref: Ref | RefView, idx: Any) -> Any:
    """The index. Raises if a static integer is too large; negative ones out of bounds are clamped."""
    parts = idx if isinstance(idx, tuple) else (idx,)
    if not any(part is None or part is Ellipsis or hasattr(part, "dtype") for part in parts):
        for part, n in zip(parts, ref.aval.shape, strict=False):
            start = part.start if isinstance(part, Slice) else part
            if isinstance(start, int | np.integer) and start >= n:
                raise RefError(f"index {start} is outside of an axis of length {n} of {ref.aval}", index=idx)
    return idx


def _fitting(function: str, ref: Ref | RefView, there: Any, value: Any) -> Any:
    """`value` converted to the dtype and broadcast to the shape of the elements `there`, which it replaces."""
    aval, value_aval = type_of(there), typeof_value(value)
    if value_aval is None:
        raise not_an_array(value, f"the value given to {function}")
    if value_aval.shape != aval.shape:
        raise ShapeError(
            f"{function}: a value of type {value_aval.short} for elements of type {aval.short} of {ref.aval}",
            instead=f"a value of shape {list(aval.shape)}, by phlox.numpy.broadcast_to or phlox.numpy.full",
            expected=aval.shape,
            got=value_aval.shape,
        )
    if value_aval.dtype != aval.dtype and not _is_converted(function, value_aval, aval):
        raise DtypeError(
            f"{function}: a value of dtype {value_aval.dtype} for {ref.aval}",
            instead=f"value.astype({aval.dtype.name!r})",
        )
    return as_array_or_tracer(to_dtype(value, aval.dtype))


def _is_converted(function: str, value: Any, target: Any) -> bool:
    """Whether a value of this type is converted to the dtype of a reference of another.

    A weakly typed number fits into each dtype of its kind, an assigned integer into each integer dtype, as in JAX.
    Other values must have the dtype, as nothing shows that an assignment rounds.
    """
    kinds = [dtypes.kind(aval.dtype).replace("u", "i") for aval in (value, target)]
    return kinds[0] == kinds[1] and (value.weak_type or (kinds[0] == "i" and function != "addupdate"))


def _write(function: str, ref: Ref | RefView, idx: Any, value: Any) -> None:
    trace = current_trace.get()
    whole = _read(ref, trace)
    if _is_all(idx):
        new = _fitting(function, ref, whole, value)
    else:
        index = _checked(ref, idx)
        new = _with_part(whole, index, _fitting(function, ref, whole[index], value))
    ref.write(trace, _in_space_of(ref.aval, new))


def _may_repeat(ref: Ref | RefView, idx: Any) -> bool:
    """Whether the index, or a view around it, may contain an element several times."""
    parts = idx if isinstance(idx, tuple) else (idx,)
    is_repeating = any(getattr(x, "ndim", 0) for x in parts)
    return is_repeating or (isinstance(ref, RefView) and _may_repeat(ref.ref, ref.idx))


def _add(ref: Ref | RefView, idx: Any, x: Any) -> None:
    trace = current_trace.get()
    if isinstance(ref, RefView):  # a write to it would keep one of several sums
        _add(ref.ref, ref.idx, _with_sum(zeros(ref.aval.shape, ref.aval.dtype), idx, x))
    else:
        ref.write(trace, _in_space_of(ref.aval, _with_sum(_read(ref, trace), idx, x)))


def _with_sum(whole: Any, idx: Any, x: Any) -> Any:
    """`whole` with `x` added to the elements at an index."""
    if _is_all(idx):
        return whole + x
    if isinstance(idx, _Lengths):
        return whole + x.reshape(type_of(whole).shape)
    return as_array_or_tracer(whole.at[idx].add(x, mode=_mode(idx)))


def _part(whole: Any, idx: Any) -> Any:
    """The elements that a view shows."""
    return whole.reshape(idx.shape) if isinstance(idx, _Lengths) else whole[idx]


def _with_part(whole: Any, idx: Any, part: Any) -> Any:
    """`whole` with the elements at an index replaced by `part`, which has their type."""
    if isinstance(idx, _Lengths):
        return part.reshape(type_of(whole).shape)
    return as_array_or_tracer(to_dtype(whole.at[idx].set(part, mode=_mode(idx)), type_of(whole).dtype))


def _mode(idx: Any) -> str | None:
    """The mode of writes at an index.

    As in JAX: an integer that is out of bounds writes the element that it reads, where `at` would write nothing. Of an
    array of integers, those that are out of bounds write nothing.
    """
    parts = idx if isinstance(idx, tuple) else (idx,)
    return None if any(type_of(x).shape for x in parts if hasattr(x, "dtype")) else "clip"


def _text(ref: Ref) -> str:
    value = repr(ref.value)
    return "Ref" + value.removeprefix("Array") if value.startswith("Array") else f"Ref<{ref.aval.inner_aval.short}>"


def _length(ref: Ref | RefView) -> int:
    if not ref.aval.shape:
        raise ShapeError("len() of a reference to an array without axes", shapes=[()])
    return ref.aval.shape[0]


def _reshape(self: Ref | RefView, *shape: Any) -> RefView:
    """A view of all elements in another shape, given as lengths or as one tuple of them; one length may be -1."""
    return RefView(self, _Lengths(tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape))


def install() -> None:
    """Installs operators, methods and properties on `Ref` and `RefView`."""
    both: dict[str, Any] = {
        "__getitem__": lambda self, idx: get(self, idx),
        "__setitem__": lambda self, idx, value: set(self, idx, value),
        "__len__": _length,
        "get": lambda self, idx=(): get(self, idx),
        "set": lambda self, value, idx=(): set(self, idx, value),
        "swap": lambda self, value, idx=(): swap(self, idx, value),
        "addupdate": lambda self, x, idx=(): addupdate(self, idx, x),
        "shape": property(lambda self: self.aval.shape, doc="Lengths of the axes."),
        "dtype": property(lambda self: self.aval.dtype, doc="The element type."),
        "ndim": property(lambda self: self.aval.ndim, doc="Number of axes."),
        "size": property(lambda self: self.aval.size, doc="Number of elements."),
        "at": property(_At, doc="With an index, a view of a part: ``ref.at[1:3]``."),
        "reshape": _reshape,
    }
    whole: dict[str, Any] = {
        "__repr__": _text,
        "unsafe_buffer_pointer": lambda self: get(self).unsafe_buffer_pointer(),
        "sharding": property(lambda self: get(self).sharding, doc="The sharding of the array."),
        "format": property(lambda self: get(self).format, doc="The layout and the sharding of the array."),
        "committed": property(lambda self: True, doc="True: a reference stays where its array is."),
    }
    for name, value in both.items():
        setattr(Ref, name, value)
        setattr(RefView, name, value)
    for name, value in whole.items():
        setattr(Ref, name, value)


# `Ref` is of a lower layer, which does not know how to index.
install()
