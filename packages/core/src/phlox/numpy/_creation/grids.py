"""Coordinates of grids (meshgrid, indices, ix_, mgrid, ogrid), logspace and geomspace."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import (
    ArgumentError,
    ConcretizationTypeError,
    OptionError,
    ShapeError,
    UnsupportedError,
)
from ..._base.strictness import lenient_promotion
from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._operands.checks import as_shape, canonical_axis, check, type_of
from ..._operands.promotion import common_dtype, promote_dtypes, to_dtype
from ..._trace.trace import Tracer
from ...typing import Array, ArrayLike, DTypeLike
from .._elementwise.binary import divide, multiply, power
from .._elementwise.inexact import log10
from .._elementwise.unary import is_kind, sign
from .._manipulation.broadcasting import broadcast_to
from .._manipulation.joining import stack
from .._manipulation.shapes import moveaxis, reshape
from .fill import arange, linspace
from .from_data import asarray


@functools.partial(jit, inline=True, static_argnames=("copy", "sparse", "indexing"))
def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Any, ...]:
    """Coordinate arrays of the grid that vectors of coordinates span (as ``numpy.meshgrid``).

    Args:
      *xi: vectors of coordinates, one for each axis of the grid.
      copy: must be True: the results do not share memory.
      sparse: True returns arrays of length one along the axes of the other vectors, which broadcast to the grid.
      indexing: order of the axes: "ij" orders them as the vectors; "xy" (Cartesian) exchanges the first two.

    Returns:
      A tuple of arrays, one for each vector, of its dtype and with as many axes as there are vectors.

    Raises:
      OptionError: `indexing` is neither "ij" nor "xy", or `copy` is False.
      ShapeError: an argument is not a vector.

    >>> meshgrid(np.array([1, 2]), np.array([3]))
    (Array([[1, 2]], dtype=int32), Array([[3, 3]], dtype=int32))
    """
    if indexing not in ("xy", "ij"):
        raise OptionError(f"meshgrid: indexing={indexing!r}", instead="'xy' or 'ij'")
    if not copy:
        raise OptionError("meshgrid: copy=False: arrays are not views", instead="copy=True, or sparse=True")
    if len(xi) == 1 and isinstance(xi[0], tuple | list) and not all(np.ndim(x) == 0 for x in xi[0]):
        what = f"meshgrid takes each vector as an argument of its own, got one {type(xi[0]).__name__}"
        raise ArgumentError(what, instead="phlox.numpy.meshgrid(*vectors)", argument=0)
    vectors = check("meshgrid", *xi)
    for x in vectors:
        if type_of(x).ndim != 1:
            raise ShapeError(f"meshgrid: takes vectors, got {type_of(x).short}", shapes=[type_of(x).shape])
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        # In "xy" the first vector runs along the columns, which are the second axis.
        order[:2] = [1, 0]
    return tuple(asarray(x) for x in _open_or_full(vectors, order, sparse))


def _open_or_full(vectors: Sequence[Any], order: Sequence[int], sparse: bool) -> list[Any]:
    """The vectors along the axes `order`; unless `sparse`, broadcast along the other axes."""
    lengths = [type_of(x).size for x in vectors]
    full = [0] * len(lengths)
    for axis, n in zip(order, lengths, strict=True):
        full[axis] = n
    along = [
        reshape(x, tuple(n if i == axis else 1 for i in range(len(full))))
        for x, axis, n in zip(vectors, order, lengths, strict=True)
    ]
    return along if sparse else [broadcast_to(x, tuple(full)) for x in along]


def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """The indices of the elements of an array of a given shape, stacked in one array (as ``numpy.indices``).

    Args:
      dimensions: shape of the array: a sequence of integers, or one integer for a vector.
      dtype: dtype of the indices; by default int32 (int64 in x64 mode).
      sparse: True returns a tuple of arrays in place of one, each of length one along the axes of the others.

    Returns:
      An array of shape ``(len(dimensions), *dimensions)``; with `sparse` a tuple of ``len(dimensions)`` arrays.

    Raises:
      ShapeError: a length is negative.

    >>> indices((2, 2), sparse=True)[0].shape, indices((2, 2)).shape
    ((2, 1), (2, 2, 2))
    """
    lengths = as_shape(dimensions, "indices")
    out_dtype = dtypes.int_dtype(dtype, "indices")
    shaped(lengths, out_dtype)  # refuses negative lengths
    grids = _open_or_full([arange(n, dtype=out_dtype) for n in lengths], range(len(lengths)), sparse)
    if sparse:
        return tuple(grids)
    return stack(grids) if grids else asarray(np.zeros((0,), out_dtype))


def ix_(*args: ArrayLike) -> tuple[Any, ...]:
    """Vectors of indices as arrays that broadcast, so that ``x[ix_(i, j)]`` takes rows i, columns j (as ``numpy.ix_``).

    Args:
      *args: vectors of indices, one for each axis.

    Returns:
      A tuple of arrays of the dtypes of the vectors: array k has its elements along axis k, and length one along the
      other axes.

    Raises:
      ShapeError: an argument is not a vector.
      UnsupportedError: an argument is of dtype bool.

    >>> [i.shape for i in ix_(np.array([0, 2]), np.array([1, 0]))]
    [(2, 1), (1, 2)]
    """
    vectors = []
    for x in check("ix_", *args):
        if type_of(x).ndim != 1:
            raise ShapeError(f"ix_: takes vectors, got {type_of(x).short}", shapes=[type_of(x).shape])
        if is_kind(x, "b"):
            raise UnsupportedError("ix_: bools as indices are not supported", instead="phlox.numpy.flatnonzero of them")
        # An empty list is of floats, which are no positions.
        if type_of(x).shape == (0,):
            x = to_dtype(x, dtypes.canonical(dtypes.int64))
        vectors.append(asarray(x))
    return tuple(_open_or_full(vectors, range(len(vectors)), sparse=True))


# --- grids written as slices ----------------------------------------------------------------------------


def progression(function: str, part: slice) -> Any:
    """The numbers of one slice; an imaginary step is their number, and includes the end."""
    for name in ("start", "stop", "step"):
        value = getattr(part, name)
        if isinstance(value, Tracer):
            value._refuse(
                ConcretizationTypeError,
                f"Abstract tracer value encountered where concrete value is expected: slice {name} of jnp.{function}",
                "a Python number; mark it static with static_argnums",
            )
    start, step = part.start or 0, 1 if part.step is None else part.step
    if isinstance(step, complex):
        return linspace(start, part.stop, int(abs(step)))
    return arange(start, part.stop, step)


class _Grid:
    """The class of ``mgrid`` and ``ogrid``: indexed by slices they return the coordinates of a grid."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.name, self.sparse = name, sparse

    def __repr__(self) -> str:
        return f"phlox.numpy.{self.name}"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return progression(self.name, key)
        vectors = [progression(self.name, part) for part in key]
        with lenient_promotion():  # slices with different dtypes are allowed under strict promotion too
            vectors = promote_dtypes(*vectors) if vectors else []
        grids = _open_or_full(vectors, range(len(vectors)), self.sparse)
        return grids if self.sparse else stack(grids) if grids else arange(0)


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


# --- geometric progressions -----------------------------------------------------------------------------


def _dtypes(function: str, start: Any, stop: Any, dtype: Any) -> tuple[Any, Any]:
    """The dtype of the result, and the dtype to compute in."""
    own_dtype = dtypes.to_inexact(common_dtype(start, stop)[0])
    out_dtype = own_dtype if dtype is None else dtypes.user_dtype(dtype, function)
    return out_dtype, dtypes.to_inexact(out_dtype)


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`base` to the power of `num` evenly spaced numbers from `start` to `stop` (as ``numpy.logspace``).

    Args:
      start, stop: first and last exponent of `base`; arrays broadcast against each other.
      num: number of values to generate, including both ends.
      endpoint: False leaves out `stop`.
      base: base of the powers, a number or an array.
      dtype: dtype of the result; by default the promoted dtype of `start` and `stop`, a float one for integers.
      axis: position of the new axis in the result.

    Returns:
      An array of the broadcast shape with an axis of length `num`.

    >>> logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    start, stop = check("logspace", start, stop)
    out_dtype, computed = _dtypes("logspace", start, stop, dtype)
    return _logspace(start, stop, base, num=num, endpoint=endpoint, computed=computed, out_dtype=out_dtype, axis=axis)


@functools.partial(jit, inline=True, static_argnames=("num", "endpoint", "computed", "out_dtype", "axis"))
def _logspace(
    start: Any, stop: Any, base: Any, num: int, endpoint: bool, computed: Any, out_dtype: Any, axis: int
) -> Any:
    exponents = linspace(to_dtype(start, computed), to_dtype(stop, computed), num, endpoint, axis=axis)
    return to_dtype(power(base, exponents), out_dtype)


@docs_from(logspace)
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers from `start` to `stop` in a geometric progression (as ``numpy.geomspace``).

    Args:
      start, stop: first and last value, not zero, and of the same sign if real; arrays broadcast against each other.

    >>> geomspace(1, 8, 4).round(3)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    start, stop = check("geomspace", start, stop)
    out_dtype, computed = _dtypes("geomspace", start, stop, dtype)
    return _geomspace(start, stop, num=num, endpoint=endpoint, computed=computed, out_dtype=out_dtype, axis=axis)


@functools.partial(jit, inline=True, static_argnames=("num", "endpoint", "computed", "out_dtype", "axis"))
def _geomspace(start: Any, stop: Any, num: int, endpoint: bool, computed: Any, out_dtype: Any, axis: int) -> Any:
    start, stop = to_dtype(start, computed), to_dtype(stop, computed)
    direction = sign(start)  # divided out, because logarithms need positive numbers
    first, last = log10(divide(start, direction)), log10(divide(stop, direction))
    # `direction` has the shape of the end points: for this product the numbers lie along axis 0, and are moved later.
    out = multiply(direction, logspace(first, last, num, endpoint, dtype=computed))
    return to_dtype(moveaxis(out, 0, canonical_axis(axis, type_of(out).ndim, "geomspace")), out_dtype)
