"""Arrays with elements added, removed or repeated: append, insert, delete, resize, trim_zeros."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.errors import ArgumentError, AxisError, ConcretizationTypeError, OptionError, ShapeError
from ..._ir import dtypes
from ..._ir.dimensions import is_symbolic, value_of
from ..._operands.checks import as_shape, canonical_axes, check, check_one, type_of
from ..._operands.index_bounds import INSERT, check_positions
from ..._operands.promotion import promote_dtypes, to_dtype
from ..._trace.trace import Tracer
from ..._transform.sharding_types import in_device_memory, in_space
from ...typing import Array, ArrayLike, Shape
from .._creation.fill import arange, zeros_like
from .._creation.from_data import asarray
from .._elementwise.binary import maximum
from .._elementwise.choose import clip, where
from .._elementwise.unary import is_kind
from .._indexing.reading import take
from .._searches.sorting import argsort, sort
from .broadcasting import broadcast_to
from .joining import concatenate
from .repeat import count_up_to, tile
from .shapes import flat_or_along, moveaxis, ravel, reshape


@functools.partial(jit, inline=True, static_argnames="axis")
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`arr` and `values` joined along `axis`, or both flattened (as ``numpy.append``).

    Args:
      arr: array of any shape, or a number.
      values: array or number to append; if `axis` is given, it must have the shape of `arr` along all other axes.
      axis: axis along which they are joined; None flattens both.

    Returns:
      An array of the promoted dtype; a vector if `axis` is None.

    Raises:
      ShapeError: lengths along other axes differ.

    >>> jnp.append(jnp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate(promote_dtypes(*check("append", arr, values)), axis)


def resize(a: ArrayLike, new_shape: Shape) -> Array:
    """`a` with the shape `new_shape`, its elements repeated or cut off as needed (as ``numpy.resize``).

    Args:
      a: array of any shape, read row by row; if it has no elements, the result is of zeros.
      new_shape: shape of the result: an integer or a sequence of integers, not negative.

    Returns:
      An array of `new_shape`, of the dtype of `a`.

    Raises:
      ShapeError: a length is negative.

    >>> jnp.resize(jnp.array([1, 2, 3]), 5)
    Array([1, 2, 3, 1, 2], dtype=int32)
    """
    return _resize(check_one("resize", a), shape=as_shape(new_shape, "resize"))


@functools.partial(jit, inline=True, static_argnames="shape")
def _resize(a: Any, shape: tuple[int, ...]) -> Any:
    if any(n < 0 for n in shape):
        raise ShapeError(f"resize: an array cannot have a negative length, got {shape}", shapes=[shape])
    size, new_size = math.prod(type_of(a).shape), math.prod(shape)
    if not size or not new_size:
        return zeros_like(a, shape=shape)
    return reshape(tile(ravel(a), -(-new_size // size))[:new_size], shape)


def delete(
    arr: ArrayLike, obj: ArrayLike | slice, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """`arr`, flattened or along `axis`, without the elements at `obj` (as ``numpy.delete``).

    Args:
      arr: array of any shape.
      obj: indices of the elements to delete: an integer, a slice, or an array of integers or of bools; negative
        integers count from the end. Must not be traced, because the shape of the result depends on it.
      axis: axis along which elements are deleted; None flattens `arr`.
      assume_unique_indices: promises that the integers in `obj` are in bounds and that none occurs twice;
        then `obj` may be traced.

    Returns:
      An array of the dtype of `arr`, shorter along `axis`; a vector if `axis` is None.

    Raises:
      IndexError: an index is out of bounds.
      ShapeError: an array of bools has another length than the axis.
      ArgumentError: `obj` is an array of neither integers nor bools.
      ConcretizationTypeError: `obj` is traced.

    >>> jnp.delete(jnp.array([4, 5, 6]), 1)
    Array([4, 6], dtype=int32)
    """
    arr = check_one("delete", arr)
    a, at = flat_or_along("delete", asarray(arr), axis)
    n = type_of(a).shape[at]
    if isinstance(obj, slice):
        # NumPy's own function on the positions has all its rules: for slices backwards, masks, positions named twice.
        return _rows(a, np.delete(np.arange(index(n)), obj), at)
    if hasattr(obj, "__index__") and not isinstance(obj, Tracer) and not getattr(obj, "shape", ()):
        if is_symbolic(n):
            return _delete_unique(a, asarray([obj]), at)
        position = index(obj)
        if not -n <= position < n:
            what = f"delete: index {position} is out of bounds for axis {at} with size {n}"
            raise AxisError(what, instead=f"an index from {-n} to {n - 1}", axis=at)
        return _rows(a, np.delete(np.arange(n), position), at)
    obj = check_one("delete", obj)
    if is_kind(obj, "iu") and assume_unique_indices:
        return _delete_unique(a, obj, at)
    if isinstance(obj, Tracer):
        obj._refuse(ConcretizationTypeError, "delete", "assume_unique_indices=True")
    positions = np.asarray(obj)
    if positions.dtype == bool and positions.shape != (n,):
        raise ShapeError(f"delete: a mask of shape {positions.shape} for {n} elements", shapes=[positions.shape])
    if positions.dtype.kind not in "biu":
        raise ArgumentError(f"delete: {type_of(obj).short} is no position", instead="integers or bools")
    return _rows(a, np.delete(np.arange(index(n)), positions), at)


def _rows(a: Any, positions: np.ndarray[Any, Any], at: int) -> Any:
    """The subarrays of `a` at constant positions along an axis, in the memory in which `a` is."""
    return take(a, in_space(asarray(positions), type_of(a).memory_space), at)


def _delete_unique(a: Any, obj: Any, at: int) -> Any:
    """`delete` for unique positions: kept element i is at position i plus the number of deleted positions before it."""
    n = type_of(a).shape[at]
    positions = ravel(obj)
    positions = sort(_from_front(positions, n))
    count, dtype = type_of(positions).shape[0], type_of(positions).dtype
    # Less the deleted positions before it, a deleted position counts the elements that stay before it.
    before = maximum(positions - arange(count, dtype=dtype), 0)
    return take(a, arange(n - count, dtype=dtype) + count_up_to(before, n - count), at)


def _from_front(positions: Any, n: Any) -> Any:
    """Positions of an axis of length `n`, which may be symbolic, counted from its front and moved into it."""
    n = value_of(n)
    return clip(where(positions < 0, positions + n, positions), 0, n)


def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None) -> Array:
    """`arr`, flattened or along `axis`, with `values` inserted before the indices `obj` (as ``numpy.insert``).

    Args:
      arr: array of any shape.
      obj: indices before which values are inserted: an integer, a vector of integers or a slice; negative ones count
        from the end, those out of bounds are moved to the nearest end.
      values: values to insert, broadcast and converted to the dtype of `arr`.
      axis: axis along which values are inserted; None flattens `arr`.

    Returns:
      An array of the dtype of `arr`, longer along `axis`; a vector if `axis` is None.

    Raises:
      ShapeError: `obj` has more than one axis.
      ArgumentError: `obj` is not of integers.

    >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
    Array([1, 9, 2, 3], dtype=int32)
    """
    arr, values = check("insert", arr, values)
    a, at = flat_or_along("insert", asarray(arr), axis)
    n = type_of(a).shape[at]
    positions = check_one("insert", np.arange(index(n))[obj] if isinstance(obj, slice) else obj)
    if type_of(positions).ndim > 1:
        raise ShapeError(f"insert: positions must be a number or a vector, got {type_of(positions).short}")
    if not is_kind(positions, "iu"):
        raise ArgumentError(f"insert: {type_of(positions).short} is no position", instead="integers")
    check_positions("insert", a, positions, at, INSERT, length=0)
    return _insert(a, positions, values, at)


def _insert(a: Any, positions: Any, values: Any, at: int) -> Any:
    a, values = in_device_memory(a), in_device_memory(values)
    n, rank = type_of(a).shape[at], type_of(a).ndim
    values = to_dtype(values, type_of(a).dtype, type_of(a).weak_type)
    values = reshape(values, (1,) * (rank - type_of(values).ndim) + type_of(values).shape)
    single = type_of(positions).shape in ((), (1,))
    # NumPy's rule for one number as the position: the first axis of `values` goes along the axis.
    if not type_of(positions).shape:
        values = moveaxis(values, 0, at)
    count = type_of(values).shape[at] if single else type_of(positions).shape[0]
    positions = broadcast_to(ravel(positions), (count,))
    shape = type_of(a).shape
    values = broadcast_to(values, (*shape[:at], count, *shape[at + 1 :]))
    positions = to_dtype(_from_front(positions, n), dtypes.int32)
    # Sort keys: each inserted element is before the element at its position.
    keys = concatenate([2 * positions, 2 * arange(n, dtype=np.int32) + 1])
    return take(concatenate([values, a], at), argsort(keys), at)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """`filt` without the zeros at its front and back, along `axis` or all axes (as ``numpy.trim_zeros``).

    Args:
      filt: array of any shape; must not be traced, because the shape of the result depends on its values.
      trim: ends to trim: "f" is the front, "b" the back, "fb" both.
      axis: axis or axes to trim; None trims all. Only slices whose elements are all zero are removed.

    Returns:
      An array with as many axes as `filt`, of its dtype.

    Raises:
      ConcretizationTypeError: `filt` is traced.
      OptionError: `trim` is not a string.

    >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    filt = check_one("trim_zeros", filt)
    if isinstance(filt, Tracer):
        filt._refuse(ConcretizationTypeError, "trim_zeros", "a known array")
    filt = asarray(filt)
    axes = canonical_axes(axis, type_of(filt).ndim, "trim_zeros")
    if not isinstance(trim, str):
        raise OptionError(f"trim_zeros: trim={trim!r:.60}", instead="'f', 'b' or 'fb'", value=trim)
    used = np.asarray(filt != 0)
    index = [slice(None)] * used.ndim
    for at in axes:
        (positions,) = np.nonzero(used.any(axis=tuple(i for i in range(used.ndim) if i != at)))
        first, last = (int(positions[0]), int(positions[-1]) + 1) if positions.size else (0, 0)
        front = first if "f" in trim.lower() else None
        back = last if "b" in trim.lower() else None
        empty = not positions.size and (front is not None or back is not None)
        index[at] = slice(0, 0) if empty else slice(front, back)
    return filt[tuple(index)]
