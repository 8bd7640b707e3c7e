"""Further functions of ``phlox.lax``: rounding, split, stack, tile, scatters, and XLA's random bits."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._api.devices.out_sharding import OutSharding, lay_out
from .._api.jit.bodies import program_of_element
from .._api.jit.jit import jit
from .._api.jit.user_functions import user_call
from .._base.errors import DtypeError, OptionError, ShapeError
from .._ir import dtypes
from .._ir.dimensions import is_symbolic
from .._operands.broadcasting import insert_axes
from .._operands.checks import as_shape, canonical_axis, check, check_one, integers, type_of
from .._operands.indices import from_front
from .._operands.promotion import promote_dtypes
from .._ops.elementwise import arithmetic as e
from .._ops.random import rng as _rng
from .._ops.random.rng import RandomAlgorithm as RandomAlgorithm
from .._ops.structure import scatter as _scatters, shape as ops, slicing
from .._ops.structure.dimension_numbers import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from .._trace.trace import Tracer
from ..typing import Array, ArrayLike, DTypeLike, Key, Shape
from ._conveniences import full
from ._slices import gather
from ._structural import broadcast_in_dim, concatenate, reshape

# --- rounding -------------------------------------------------------------------------------------------


class RoundingMethod(enum.IntEnum):
    """How `round` treats numbers halfway between two integers.

    >>> phlox.lax.round(2.5, RoundingMethod.TO_NEAREST_EVEN)
    Array(2., dtype=float32, weak_type=True)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer as a float, elementwise (StableHLO's ``round_nearest_afz``, ``round_nearest_even``).

    Args:
      x: array of floats, of any shape.
      rounding_method: treatment of numbers halfway between two integers, a `RoundingMethod`: AWAY_FROM_ZERO or
        TO_NEAREST_EVEN.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      DtypeError: the elements of `x` are not floats.
      OptionError: `rounding_method` is neither of these.

    >>> from phlox import lax
    >>> lax.round(np.float32([0.5, 1.5, -0.5])), lax.round(np.float32(0.5), lax.RoundingMethod.TO_NEAREST_EVEN)
    (Array([ 1.,  2., -1.], dtype=float32), Array(0., dtype=float32))
    """
    try:
        method = RoundingMethod(rounding_method)
    except ValueError:
        instead = "lax.RoundingMethod.AWAY_FROM_ZERO or TO_NEAREST_EVEN"
        raise OptionError(f"round: rounding_method={rounding_method!r}", instead=instead) from None
    return e.round_(*check("round", x), rounding_method=method)


# --- splitting, stacking, repeating ---------------------------------------------------------------------


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """`operand` split into pieces of given lengths along an axis (as ``numpy.split``).

    Args:
      operand: array of any shape and dtype.
      sizes: lengths of the pieces, not negative; their sum is the length of the axis.
      axis: axis number to split along; negative numbers count from the last axis.

    Returns:
      A list of arrays of the dtype of `operand`.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: a length is negative, or their sum is not the length of the axis.

    >>> split(np.arange(3), (1, 2))
    [Array([0], dtype=int32), Array([1, 2], dtype=int32)]
    """
    operand = check_one("split", operand)
    aval = type_of(operand)
    at = canonical_axis(axis, aval.ndim, "split")
    return slicing.split(operand, sizes=integers("split", "sizes", sizes), axis=at)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Arrays of one shape and dtype joined along a new axis (as ``numpy.stack``).

    Args:
      operands: sequence of at least one array.
      axis: position of the new axis in the result; negative numbers count from the last axis.

    Returns:
      An array with one more axis, of the dtype of the operands.

    Raises:
      AxisError: `axis` is out of range for the result.
      ShapeError: `operands` is empty, or the shapes differ.
      DtypeError: the dtypes differ.

    >>> stack([np.arange(2), np.arange(2)], 1).shape
    (2, 2)
    """
    arrays = check("stack", *operands)
    if not arrays:
        raise ShapeError("stack needs at least one array")
    first = type_of(arrays[0])
    for x in arrays[1:]:
        aval = type_of(x)
        if aval.shape != first.shape:
            raise ShapeError(f"stack: shapes must agree, got {first.short} and {aval.short}")
        if aval.dtype != first.dtype:
            what = f"stack: dtypes must agree, got {first.short} and {aval.short}"
            raise DtypeError(what, instead="phlox.numpy.stack")
    at = canonical_axis(axis, first.ndim + 1, "stack")
    shape = (*first.shape[:at], 1, *first.shape[at:])
    lined = [ops.reshape(x, new_sizes=shape, dimensions=None) for x in arrays]
    return ops.concatenate(*lined, dimension=at)


@jit(inline=True, static_argnames="axis")
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of `x` along an axis, which is removed (as ``numpy.unstack``).

    Args:
      x: array of any dtype, with at least one axis.
      axis: axis number to split along; negative numbers count from the last axis.

    Returns:
      A tuple of arrays, one for each index of the axis, of the dtype of `x`.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: `x` is a scalar.

    >>> unstack(np.arange(2))
    (Array(0, dtype=int32), Array(1, dtype=int32))
    """
    x = check_one("unstack", x)
    aval = type_of(x)
    if not aval.ndim:
        raise ShapeError(f"unstack: {aval.short} has no axis", shapes=[aval.shape])
    at = canonical_axis(axis, aval.ndim, "unstack")
    return tuple(ops.squeeze(part, dimensions=(at,)) for part in split(x, (1,) * aval.shape[at], at))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """`operand` repeated along each of its axes (as ``numpy.tile``).

    Args:
      operand: array of any shape and dtype.
      reps: number of repetitions along each axis, not negative.

    Returns:
      An array of the dtype of `operand`; the length of each axis is multiplied by its number of repetitions.

    Raises:
      ShapeError: `reps` does not have one number for each axis, or a number is negative.

    >>> tile(np.arange(2), (2,))
    Array([0, 1, 0, 1], dtype=int32)
    """
    operand = check_one("tile", operand)
    aval, reps = type_of(operand), integers("tile", "reps", reps)
    if len(reps) != aval.ndim or any(n < 0 for n in reps):
        raise ShapeError(f"tile: {reps} for {aval.short}", instead="phlox.numpy.tile", shapes=[aval.shape])
    spread = tuple(n for pair in zip(reps, aval.shape, strict=True) for n in pair)
    # A new axis in front of each axis, broadcast and then merged with it
    repeated = broadcast_in_dim(operand, spread, tuple(range(1, 2 * aval.ndim, 2)))
    return reshape(repeated, [r * n for r, n in zip(reps, aval.shape, strict=True)])


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """`arr` broadcast to the shape of another array (as ``jax.lax.broadcast_like``).

    Args:
      arr: array of any dtype; its shape broadcasts to that of `like_arr`.
      like_arr: array whose shape is used; its values are not.

    Returns:
      An array of the shape of `like_arr`, of the dtype of `arr`.

    Raises:
      ShapeError: `arr` does not broadcast to that shape.

    >>> broadcast_like(np.arange(2), np.zeros((2, 2))).shape
    (2, 2)
    """
    arr, like_arr = check("broadcast_like", arr, like_arr)
    shape, rank = type_of(like_arr).shape, type_of(arr).ndim
    if rank > len(shape):
        raise ShapeError(f"broadcast_like: {type_of(arr).short} has more axes than {type_of(like_arr).short}")
    return broadcast_in_dim(arr, shape, tuple(range(len(shape) - rank, len(shape))))


def shape_as_value(shape: Sequence[int]) -> np.ndarray | Array:
    """A shape as an array of integers (as ``jax.lax.shape_as_value``).

    Args:
      shape: shape, a sequence of integers.

    Returns:
      A vector with one element for each axis: int32, or int64 if a length requires it.

    >>> shape_as_value((2, 3))
    array([2, 3], dtype=int32)
    """
    if any(is_symbolic(n) or isinstance(n, Tracer) for n in shape):
        return concatenate([reshape(ops.convert(n, np.dtype(np.int32)), (1,)) for n in shape], 0)
    # int32 as in JAX, unless a length needs more
    wide = any(n > np.iinfo(np.int32).max for n in shape)
    return np.asarray(shape, np.int64 if wide else np.int32) if len(shape) else full((0,), 0, np.int32)


# --- scatters -------------------------------------------------------------------------------------------


_SCATTER = """

``x.at[i]`` is easier to use.

Args:
  operand: array of any shape.
  scatter_indices: array of integers; its last axis holds index vectors.
  updates: array of the dtype of `operand`; its axes are those of `scatter_indices` without the last, and those of the
    slices to update.
  dimension_numbers: a `ScatterDimensionNumbers`, which states the axis of `operand` that each number of an index vector
    refers to, and the positions of the slices' axes in `updates`.
  indices_are_sorted: a promise that the index vectors are in ascending order.
  unique_indices: a promise that no two slices overlap.
  mode: treatment of out-of-bounds indices, a `GatherScatterMode` or its name: their updates are dropped ("drop", the
    default, None), the indices are clamped ("clip"), or there are known to be none ("promise_in_bounds").

Returns:
  An array of the shape and dtype of `operand`.

Raises:
  DtypeError: `scatter_indices` are not integers, or `updates` and `operand` have different dtypes.
  ShapeError: `dimension_numbers` do not match the arrays.
  OptionError: `mode` is unknown.

"""


def _scatter(name: str, primitive: Any, what: str, result: str) -> Callable[..., Any]:
    def function(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        operand, scatter_indices, updates = check(name, operand, scatter_indices, updates)
        return primitive(
            operand,
            scatter_indices,
            updates,
            dimension_numbers=dimension_numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=GatherScatterMode.from_any(mode),
        )

    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.lax"
    function.__doc__ = (
        f"`operand` with `updates` {what} at computed indices (StableHLO's ``scatter``)."
        f"{_SCATTER}"
        ">>> from phlox import lax\n"
        ">>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))\n"
        f">>> lax.{name}(np.int32([1, 2, 3]), np.int32([[2]]), np.int32([4]), numbers)\n{result}\n"
    )
    return function


def _subtract(operand: Any, indices: Any, updates: Any, **options: Any) -> Any:
    return _scatters.scatter_add(operand, indices, e.neg(updates), **options)


scatter = _scatter("scatter", _scatters.scatter, "written", "Array([1, 2, 4], dtype=int32)")
scatter_add = _scatter("scatter_add", _scatters.scatter_add, "added", "Array([1, 2, 7], dtype=int32)")
scatter_sub = _scatter("scatter_sub", _subtract, "subtracted", "Array([ 1,  2, -1], dtype=int32)")
scatter_mul = _scatter("scatter_mul", _scatters.scatter_mul, "multiplied", "Array([ 1,  2, 12], dtype=int32)")
scatter_min = _scatter(
    "scatter_min", _scatters.scatter_min, "in place of larger elements", "Array([1, 2, 3], dtype=int32)"
)
scatter_max = _scatter(
    "scatter_max", _scatters.scatter_max, "in place of smaller elements", "Array([1, 2, 4], dtype=int32)"
)


@user_call
def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """`operand` with `func` applied to the elements at computed indices, once for each occurrence of an index
    (StableHLO's ``scatter``).

    It has no derivative. ``x.at[i].apply(func)`` is easier to use.

    Args:
      operand, scatter_indices, dimension_numbers: as for `scatter`.
      func: function of a scalar of the dtype of `operand` that returns such a scalar.
      update_shape: shape that the array of updates would have in `scatter`.
      indices_are_sorted, unique_indices, mode: as for `scatter`.

    Returns:
      An array of the shape and dtype of `operand`.

    Raises:
      DtypeError: `scatter_indices` are not integers.
      ShapeError: `dimension_numbers` or `update_shape` do not match the arrays.
      OptionError: `mode` is unknown.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_apply(np.int32([1, 2, 3]), np.int32([[2], [2]]), lambda x: x * 10, numbers, update_shape=(2,))
    Array([  1,   2, 300], dtype=int32)
    """
    operand, scatter_indices = check("scatter_apply", operand, scatter_indices)
    return _scatters.scatter_apply(
        operand,
        scatter_indices,
        full(update_shape, 0, type_of(operand).dtype),
        func=program_of_element("scatter_apply", func, type_of(operand)),
        dimension_numbers=dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=GatherScatterMode.from_any(mode),
    )


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """The slices of `src` at computed indices along `axes` (StableHLO's ``gather``).

    Args:
      src: array of any dtype.
      idxs: sequence of integer vectors of the same length, one for each axis in `axes`; negative indices count from the
        end.
      axes: axis numbers that are indexed, not negative.

    Returns:
      An array of the dtype of `src`; its first axis has the length of the index vectors, followed by the axes of `src`
      that are not indexed.

    Raises:
      DtypeError: an index is not an integer.
      ShapeError: the vectors differ in length.

    >>> index_take(np.arange(6).reshape(2, 3), [np.array([0, -1]), np.array([1, 2])], (0, 1))
    Array([1, 5], dtype=int32)
    """
    src = check_one("index_take", src)
    vectors = check("index_take", *idxs)
    shape, axes = type_of(src).shape, integers("index_take", "axes", axes)
    if len(axes) != len(vectors):
        raise ShapeError(f"index_take: {len(vectors)} index vectors for {len(axes)} axes")
    vectors = [from_front(i, None) for i in vectors]  # int8 cannot hold the lengths of most axes
    # Negative indices count from the end, which is what the modulus makes of them.
    wrapped = [i % np.asarray(shape[at], type_of(i).dtype) for i, at in zip(vectors, axes, strict=True)]
    columns = [insert_axes("index_take", i, 1) for i in promote_dtypes(*wrapped)]
    row_axes = tuple(range(1, len(shape) - len(columns) + 1))
    return gather(
        src,
        concatenate(columns, 1),
        GatherDimensionNumbers(row_axes, tuple(axes), tuple(axes)),
        [1 if i in axes else n for i, n in enumerate(shape)],
    )


# --- random bits ----------------------------------------------------------------------------------------


def rng_bit_generator(
    key: Key,
    shape: Shape,
    dtype: DTypeLike | None = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: OutSharding = None,
) -> tuple[Array, Array]:
    """Random bits from the compiler's generator, and the key for the next call (StableHLO's ``rng_bit_generator``).

    Args:
      key: uint32 array of shape (4,), or uint64 array of shape (2,).
      shape: shape of the array of bits.
      dtype: dtype of the bits: uint8, uint16, uint32 or uint64.
      algorithm: generator, a `RandomAlgorithm`; the default depends on the platform.
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the bits; None: derived from
        the operands, or chosen by the compiler.

    Returns:
      The pair (new key, bits): an array like `key`, and an array of `shape` and `dtype`.

    Raises:
      DtypeError: `dtype` is none of these.
      ShapeError: `key` has another shape or dtype.

    >>> from phlox import lax
    >>> key, bits = lax.rng_bit_generator(np.uint32([1, 2, 3, 4]), (2,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    >>> key.shape, bits.shape
    ((4,), (2,))
    """
    key = check_one("rng_bit_generator", key)
    out_dtype = dtypes.user_dtype(dtype, "rng_bit_generator")
    if dtypes.kind(out_dtype) != "u" or dtypes.bits(out_dtype) < 8:
        raise DtypeError(f"rng_bit_generator: dtype {out_dtype.name}", instead="uint8, uint16, uint32 or uint64")
    options = {"shape": as_shape(shape), "dtype": out_dtype, "algorithm": RandomAlgorithm(algorithm)}
    new_key, bits = _rng.rng_bit_generator(key, **options)
    return new_key, lay_out("rng_bit_generator", bits, out_sharding)


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Shape) -> Array:
    """Random numbers uniformly distributed between `a` and `b`, different in each call (StableHLO's ``rng``).
    `phlox.random.uniform` is reproducible.

    Args:
      a: lower bound, a scalar; included.
      b: upper bound, a scalar of the dtype of `a`; not included.
      shape: shape of the result.

    Returns:
      An array of `shape`, of the dtype of the bounds.

    Raises:
      ShapeError: a bound is not a scalar.
      DtypeError: the bounds have different dtypes.

    >>> from phlox import lax
    >>> lax.rng_uniform(np.float32(0), np.float32(1), (2, 3)).shape
    (2, 3)
    """
    return _rng.rng_uniform(*check("rng_uniform", a, b), shape=as_shape(shape))
