"""Variants of `sort`: lexsort, partition, argpartition, sort_complex, top_k."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, OptionError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import canonical_axis, check, check_one, integer, type_of
from ..._operands.promotion import to_dtype
from ..._ops.elementwise import arithmetic as e, logic
from ..._ops.structure import shape as ops
from ..._ops.structure.iota import iota
from ..._ops.structure.sort import sort as sort_op
from ..._ops.structure.top_k import top_k as top_k_op
from ...typing import Array, ArrayLike
from .._elementwise.unary import is_kind
from .._indexing.rows import unstack_rows
from .._manipulation.joining import concatenate
from .._manipulation.shapes import flip, moveaxis
from .sorting import argsort, sort


@functools.partial(jit, inline=True, static_argnames=("axis", "batch_size"))
def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1, *, batch_size: int = 16) -> Array:
    """The indices that sort by several keys, of which the last is the primary one (as ``numpy.lexsort``).

    Args:
      keys: sequence of arrays of equal shapes, or an array whose rows are the keys; the last key is the primary one.
      axis: axis of the keys along which to sort, by default the last.
      batch_size: number of keys that JAX sorts by at once; no effect here, where one sort has all keys.

    Returns:
      An array of integers of the shape of one key.

    Raises:
      ArgumentError: `keys` is empty.
      OptionError: `batch_size` is not positive.
      ShapeError: the keys have different shapes.

    >>> jnp.lexsort((jnp.array([2, 1, 0]), jnp.array([0, 1, 0])))
    Array([2, 0, 1], dtype=int32)
    """
    if integer("lexsort", "batch_size", batch_size) < 1:
        raise OptionError(f"lexsort: batch_size={batch_size} is not positive", instead="a number of keys")
    if not isinstance(keys, Sequence):
        keys = tuple(unstack_rows(*check("lexsort", keys)))
    keys = check("lexsort", *keys)
    if not keys:
        raise ArgumentError("lexsort needs at least one key")
    shape = type_of(keys[0]).shape
    if any(type_of(k).shape != shape for k in keys):
        raise ShapeError(f"lexsort: keys of one shape, got {', '.join(type_of(k).short for k in keys)}")
    if not shape:
        return ops.as_array_or_tracer(to_dtype(0, dtypes.canonical(dtypes.int64)))
    return _lexsort(keys, axis=canonical_axis(axis, len(shape), "lexsort"))


@functools.partial(jit, static_argnames="axis")
def _lexsort(keys: Sequence[Any], axis: int) -> Any:
    positions = iota(dtype=dtypes.canonical(dtypes.int64), shape=type_of(keys[0]).shape, dimension=axis)
    return sort_op(*keys[::-1], positions, dimension=axis, is_stable=True, num_keys=len(keys))[-1]


def _axis_and_position(function: str, a: Any, kth: int, axis: int) -> tuple[int, int]:
    """The axis and the position `kth` along it, both made non-negative."""
    if is_kind(a, "c"):
        raise UnsupportedError(f"{function} of complex numbers", instead="phlox.numpy.sort or phlox.numpy.argsort")
    at = canonical_axis(axis, type_of(a).ndim, function)
    return at, canonical_axis(kth, type_of(a).shape[at], function)


@functools.partial(jit, inline=True, static_argnames=("kth", "axis"))
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """`a` with element `kth` in its sorted position and smaller elements before it (as ``numpy.partition``).

    Smaller elements are in ascending order, the others in descending order; programs should rely on neither.

    Args:
      a: array of a real dtype; nan is treated as larger than every number.
      kth: index along `axis` of the element that is put in its sorted position; not traced; negative numbers count from
        the end.
      axis: axis along which to partition, by default the last.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      UnsupportedError: `a` is complex.
      AxisError: `kth` is out of bounds for the axis.

    >>> jnp.partition(jnp.array([3, 1, 2, 5, 0]), 2)
    Array([0, 1, 2, 5, 3], dtype=int32)
    """
    a = check_one("partition", a)
    at, k = _axis_and_position("partition", a, kth, axis)
    ordered = moveaxis(sort(a, at), at, -1)
    # The upper part descends, as in JAX, which takes it from top_k.
    return moveaxis(concatenate([ordered[..., : k + 1], flip(ordered[..., k + 1 :], -1)], -1), -1, at)


@functools.partial(jit, inline=True, static_argnames=("kth", "axis"))
@docs_from(partition)
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that partition `a` around index `kth` along `axis` (as ``numpy.argpartition``).

    Returns:
      An array of int32 of the shape of `a`.

    >>> jnp.argpartition(jnp.array([3, 1, 2, 5, 0]), 2)
    Array([4, 1, 2, 0, 3], dtype=int32)
    """
    a = check_one("argpartition", a)
    at, k = _axis_and_position("argpartition", a, kth, axis)
    # Weakly typed if `a` is, as the indices of top_k
    order = to_dtype(moveaxis(argsort(a, at), at, -1), dtypes.int32, type_of(a).weak_type)
    # In JAX's order, in which the upper positions ascend
    return moveaxis(concatenate([order[..., : k + 1], sort(order[..., k + 1 :])], -1), -1, at)


def _reversed_order(x: Any) -> Any:
    """Elements in the opposite order: negative floats, inverted bits of integers, which negation could overflow."""
    return e.neg(x) if is_kind(x, "f") else logic.not_(x)


@functools.partial(jit, static_argnames=("k", "axis"))
def _smallest(a: Any, k: int, axis: int) -> tuple[Any, Any]:
    values, indices = top_k_op(_reversed_order(a), k=k, axis=axis)
    return _reversed_order(values), indices


def top_k(a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True) -> Sequence[Array]:
    """The `k` largest or smallest elements of `a` along `axis`, and their indices (as
    ``jax.numpy.top_k``).

    Of equal elements the one with the lower index comes first. Nan is the largest number.

    Args:
      a: array of real numbers or bools.
      k: number of elements to return, from 0 to the length of the axis.
      axis: axis to search along, by default the last.
      mode: ``"largest"`` for elements in descending order, ``"smallest"`` for elements in ascending order.
      sorted: False permits another order of the results; here they are always sorted.

    Returns:
      Values and indices: arrays of the dtype of `a` and of int32, with length `k` along `axis`.

    Raises:
      AxisError: the axis is out of range.
      OptionError: `mode` is neither of the two, or `k` is out of range.
      UnsupportedError: `a` is complex.

    >>> jnp.top_k(jnp.array([3, 1, 2]), 2, mode="smallest")
    (Array([1, 2], dtype=int32), Array([1, 2], dtype=int32))
    """
    a = check_one("top_k", a)
    if is_kind(a, "c"):
        raise UnsupportedError("top_k of complex numbers", instead="phlox.numpy.sort or phlox.numpy.argsort")
    if mode not in ("largest", "smallest"):
        raise OptionError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    select = top_k_op if mode == "largest" else _smallest
    return select(a, k=integer("top_k", "k", k), axis=canonical_axis(axis, type_of(a).ndim, "top_k"))


@jit(inline=True)
def sort_complex(a: ArrayLike) -> Array:
    """`a` as complex numbers, sorted along the last axis by real, then by imaginary parts (as ``numpy.sort_complex``).

    Args:
      a: array of any dtype with at least one axis.

    Returns:
      An array of the shape of `a`: complex64, or complex128 for integers and floats of 64 bits; complex dtypes stay.

    >>> jnp.sort_complex(jnp.array([2, 1]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    a = check_one("sort_complex", a)
    ordered = sort(a)
    dtype = type_of(a).dtype
    wide = dtype == dtypes.float64 or (dtypes.kind(dtype) in "iu" and dtypes.bits(dtype) == 64)
    return to_dtype(ordered, dtype if is_kind(a, "c") else dtypes.complex128 if wide else dtypes.complex64)
