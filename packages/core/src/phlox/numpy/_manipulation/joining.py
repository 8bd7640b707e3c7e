"""Joining arrays along an axis, and splitting them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import typeof_value
from ..._operands.checks import canonical_axis, check, check_one, integer, refuse_out, type_of
from ..._operands.promotion import promote_dtypes
from ..._ops.structure import shape as ops, slicing
from ..._ops.structure.slicing import along
from ..._trace.trace import ArrayBase
from ...typing import Array, ArrayLike, DTypeLike
from .shapes import atleast_1d, atleast_2d, expand_dims, ravel


def rows_of(function: str, arrays: Any, option: Any = None) -> list[Any]:
    """The arrays to join, checked. `option` is the function's second argument, if a forgotten tuple could fill it."""
    if isinstance(option, tuple | list) or (isinstance(option, np.ndarray | ArrayBase) and option.ndim):
        raise ArgumentError(
            f"{function} takes its arrays as one sequence, got a second argument of type {type(option).__name__}",
            instead=f"phlox.numpy.{function}([a, b])",
            value=option,
        )
    if hasattr(arrays, "shape") and getattr(arrays, "ndim", 0) > 0:
        # An array is the sequence of its rows.
        arrays = list(arrays)
    if not isinstance(arrays, tuple | list):
        raise ArgumentError(
            f"{function} takes a sequence of arrays, got {type(arrays).__name__}",
            instead="phlox.numpy." + function + ("([*arrays])" if hasattr(arrays, "__iter__") else "([a, b])"),
        )
    if not arrays:
        raise ShapeError(f"{function}: need at least one array")
    rows: list[Any] = check(function, *arrays)
    # Functions that add axes make arrays of numbers, which are then converted without a check of their range.
    return promote_dtypes(*rows) if any(type(x) is int for x in rows) else rows


def _converted(arrays: list[Any], dtype: DTypeLike | None) -> list[Any]:
    """The arrays in this dtype, if one is given; not by way of the promoted one, which may hold less."""
    return arrays if dtype is None else [ops.as_array_or_tracer(x).astype(dtype) for x in arrays]


@jit(inline=True, static_argnames="axis")
def _concatenate(arrays: list[Any], axis: int) -> Any:
    return ops.concatenate(*promote_dtypes(*arrays), dimension=axis)


def concatenate(arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along an existing axis (as ``numpy.concatenate``).

    Args:
      arrays: sequence of arrays that differ in length along `axis` only; or one array, whose rows are joined.
      axis: axis along which arrays are joined; None flattens them first.
      dtype: dtype of the result; None is the promoted dtype of the arrays.

    Returns:
      An array whose length along `axis` is the sum of those of the arrays.

    Raises:
      ShapeError: `arrays` is empty, the arrays have no axes, or they differ in length along another axis.
      ArgumentError: `arrays` is not a sequence.

    >>> jnp.concatenate([jnp.zeros(2), jnp.ones(1)])
    Array([0., 0., 1.], dtype=float32)
    """
    checked = rows_of("concatenate", arrays, axis)
    if axis is None:
        checked, axis = [ravel(x) for x in checked], 0
    rank = type_of(checked[0]).ndim
    if rank == 0:
        raise ShapeError("concatenate: arrays without axes cannot be joined", instead="phlox.numpy.stack")
    return _concatenate(_converted(checked, dtype), axis=canonical_axis(axis, rank, "concatenate"))


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Arrays joined along an existing axis: `concatenate` in the array API standard (as ``numpy.concat``).

    Args:
      arrays, axis: as for `concatenate`.

    Returns:
      An array of the promoted dtype, whose length along `axis` is the sum of those of the arrays.

    Raises:
      ShapeError: `arrays` is empty, the arrays have no axes, or they differ in length along another axis.

    >>> jnp.concat([jnp.zeros(1), jnp.ones(1)])
    Array([0., 1.], dtype=float32)
    """
    return concatenate(arrays, axis)


@jit(inline=True, static_argnames="axis")
def _stack(arrays: list[Any], axis: int) -> Any:
    first = type_of(arrays[0]).shape
    for x in arrays:
        if type_of(x).shape != first:
            raise ShapeError(
                f"stack: all arrays must have one shape, got {', '.join(type_of(x).short for x in arrays)}",
                shapes=[type_of(x).shape for x in arrays],
            )
    return ops.concatenate(*[expand_dims(x, axis) for x in promote_dtypes(*arrays)], dimension=axis)


def stack(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None
) -> Array:
    """Arrays joined along a new axis (as ``numpy.stack``).

    Args:
      arrays: sequence of arrays of equal shapes; or one array, whose rows are stacked.
      axis: position of the new axis in the result.
      out: not supported, must be None: arrays cannot be changed in place.
      dtype: dtype of the result; None is the promoted dtype of the arrays.

    Returns:
      An array with a new axis of length ``len(arrays)``.

    Raises:
      ShapeError: `arrays` is empty, or the shapes differ.
      UnsupportedError: `out` is not None.

    >>> jnp.stack([1.0, 2.0])
    Array([1., 2.], dtype=float32, weak_type=True)
    """
    refuse_out("stack", out)
    checked = rows_of("stack", arrays, axis)
    return _stack(_converted(checked, dtype), axis=canonical_axis(axis, type_of(checked[0]).ndim + 1, "stack"))


def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the first axis; vectors are rows (as ``numpy.vstack``).

    Args:
      tup: sequence of arrays that differ in length along the first axis only; a vector counts as a row.
      dtype: dtype of the result; None is the promoted dtype of the arrays.

    Returns:
      An array with at least two axes.

    Raises:
      ShapeError: `tup` is empty, or lengths along other axes differ.

    >>> jnp.vstack([jnp.zeros(2), jnp.ones(2)]).shape
    (2, 2)
    """
    return concatenate([atleast_2d(x) for x in rows_of("vstack", tup, dtype)], 0, dtype)


@docs_from(vstack)
def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the second axis, vectors along the first (as ``numpy.hstack``).

    Args:
      tup: sequence of arrays that differ in length along this axis only; a number counts as a vector.

    Returns:
      An array with at least one axis.

    >>> jnp.hstack([jnp.zeros(2), jnp.ones(1)])
    Array([0., 0., 1.], dtype=float32)
    """
    rows = [atleast_1d(x) for x in rows_of("hstack", tup, dtype)]
    return concatenate(rows, 0 if type_of(rows[0]).ndim == 1 else 1, dtype)


@jit(inline=True, static_argnames=("bounds", "axis"))
def _split(ary: Any, bounds: tuple[int, ...], axis: int) -> list[Any]:
    if list(bounds) == sorted(bounds):
        return slicing.split(ary, sizes=tuple(hi - lo for lo, hi in itertools.pairwise(bounds)), axis=axis)
    # Bounds that go back give empty parts, as in NumPy.
    return [along(ary, axis, lo, max(lo, hi)) for lo, hi in itertools.pairwise(bounds)]


def split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """`ary` split into equal parts, or at the given indices (as ``numpy.split``).

    Args:
      ary: array of any dtype.
      indices_or_sections: number of equal parts, or a sequence of indices along `axis` at which the second and further
        parts begin.
      axis: axis along which to split.

    Returns:
      A list of arrays of the dtype of `ary`.

    Raises:
      ShapeError: the axis cannot be split into that many equal parts (see `array_split`), or the number of parts is
        less than one.

    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _cut("split", ary, indices_or_sections, axis, even=True)


@docs_from(split)
def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Like `split`, but the first parts may be longer by one (as ``numpy.array_split``).

    Args:
      ary, indices_or_sections, axis: as for `split`.

    Raises:
      ShapeError: the number of parts is less than one.

    >>> [x.shape[0] for x in jnp.array_split(jnp.arange(5), 2)]
    [3, 2]
    """
    return _cut("array_split", ary, indices_or_sections, axis, even=False)


def _cut(function: str, ary: Any, where: Any, axis: int, even: bool) -> list[Any]:
    ary = check_one(function, ary)
    at = canonical_axis(axis, type_of(ary).ndim, function)
    n = type_of(ary).shape[at]
    if isinstance(where, tuple | list) or getattr(where, "ndim", 0) > 0:
        cuts = [integer(function, "an index of indices_or_sections", i) for i in where]
        bounds = [0, *(min(max(i + (n if i < 0 else 0), 0), n) for i in cuts), n]
    else:
        aval = typeof_value(where)
        if aval is not None and dtypes.kind(aval.dtype) == "f":
            with contextlib.suppress(OverflowError, ValueError):  # nan and infinity
                # NumPy truncates floats here.
                where = int(where)
        parts = integer(function, "indices_or_sections", where)
        if parts < 1:
            raise ShapeError(f"{function}: {n} elements cannot be cut into {parts} parts", instead="a number from 1 up")
        if even and n % parts:
            raise ShapeError(f"split: {n} elements cannot be cut into {parts} equal parts", instead="array_split")
        whole, longer = divmod(n, parts)
        bounds = [i * whole + min(i, longer) for i in range(parts + 1)]
    return _split(ary, bounds=tuple(bounds), axis=at)
