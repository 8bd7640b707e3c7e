"""Matrix products with groups of different lengths (ragged_dot), and of block-scaled operands (scaled_dot)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._api.devices.out_sharding import OutSharding, lay_out, operands_for
from .._api.jit.jit import jit
from .._base.docstrings import docs_from
from .._base.errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from .._base.strictness import composed
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._operands.broadcasting import where
from .._operands.checks import check, check_one, integers, type_of
from .._operands.promotion import to_dtype
from .._ops.linalg.dot import PrecisionLike
from .._transform.array_operations import insert_axis, move_axis
from ..typing import Array, ArrayLike, DTypeLike
from ._axis_reductions import cumsum
from ._contraction import dot_general
from ._structural import broadcasted_iota, reshape, transpose

Ints = Sequence[int]


@dataclasses.dataclass(frozen=True, init=False)
class RaggedDotDimensionNumbers:
    """Axis numbers of the contracted, batch, ragged and group dimensions of `ragged_dot_general`.

    Args:
      dot_dimension_numbers: ((contracted of lhs, of rhs), (batch of lhs, of rhs)), as for `dot_general`.
      lhs_ragged_dimensions: axis number of `lhs` that is divided into groups, in a sequence of one.
      rhs_group_dimensions: axis number of `rhs` that has one element for each group, in a sequence of one; empty if the
        ragged axis is contracted or a batch axis.

    >>> RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0]).lhs_ragged_dimensions
    (0,)
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Ints
    rhs_group_dimensions: Ints

    def __init__(self, dot_dimension_numbers: Any, lhs_ragged_dimensions: Ints, rhs_group_dimensions: Ints):
        numbers = tuple(tuple(map(tuple, pair)) for pair in dot_dimension_numbers)
        # The class is frozen, and tuples in place of the user's lists make it hashable, as a static argument must be.
        object.__setattr__(self, "dot_dimension_numbers", numbers)
        object.__setattr__(self, "lhs_ragged_dimensions", tuple(lhs_ragged_dimensions))
        object.__setattr__(self, "rhs_group_dimensions", tuple(rhs_group_dimensions))


_ROWS = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


@jit(inline=True, static_argnames=("precision", "preferred_element_type", "out_sharding"))
def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Matrix products of groups of rows of `lhs`, with a separate matrix for each group (as ``jax.lax.ragged_dot``).

    Args:
      lhs: array of shape (m, k).
      rhs: array of shape (g, k, n).
      group_sizes: vector of g integers, the number of rows in each group. Rows after the last group give zeros.
      precision, preferred_element_type: as for `dot_general`.
      group_offset: must be None; offsets are not supported.
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result; None: derived
        from the operands, or chosen by the compiler.

    Returns:
      An array of shape (m, n), of `preferred_element_type` or of the dtype of the operands.

    Raises:
      ShapeError: shapes are incompatible.
      DtypeError: `group_sizes` are not integers.
      UnsupportedError: `group_offset` is not None.

    >>> ragged_dot(np.ones((3, 1), np.float32), np.float32([[[1]], [[5]]]), np.array([1, 2])).ravel()
    Array([1., 5., 5.], dtype=float32)
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _ROWS, precision, preferred_element_type, group_offset, out_sharding
    )


@composed
@docs_from(ragged_dot)
def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """A `dot_general` in which an axis of `lhs` is divided into groups of different lengths (as
    ``jax.lax.ragged_dot_general``).

    What that means depends on the axis. One that is kept: each group has its own `rhs`. One that is contracted: each
    group is summed by itself, and the results are along a new first axis. A batch axis: the groups make no difference.

    It is computed with a mask for each group, so it costs as many products as there are groups.

    Args:
      lhs, rhs: arrays, converted as by `dot_general`.
      group_sizes: integers; the lengths of the groups along their last axis. Axes in front of it are those of `lhs`
        that come before the ragged one among the axes of its kind, or there are none.
      ragged_dot_dimension_numbers: a `RaggedDotDimensionNumbers`.

    Returns:
      An array with the axes of the result of `dot_general`, preceded by a group axis if the ragged axis is contracted.

    Raises:
      ShapeError: shapes or axis numbers are incompatible.
      ArgumentError: `ragged_dot_dimension_numbers` is not a `RaggedDotDimensionNumbers`.

    >>> numbers = RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    >>> ragged_dot_general(np.ones((3, 1)), np.ones((3, 1)), np.array([1, 2]), numbers).ravel()
    Array([1., 2.], dtype=float32)
    """
    lhs, rhs, group_sizes = operands_for(out_sharding, lhs, rhs, group_sizes)
    if group_offset is not None:
        raise UnsupportedError("ragged_dot_general: group_offset", instead="group_offset=None")
    lhs, rhs, sizes = check("ragged_dot_general", lhs, rhs, group_sizes)
    numbers = ragged_dot_dimension_numbers
    if not isinstance(numbers, RaggedDotDimensionNumbers):
        raise ArgumentError(
            f"ragged_dot_general: ragged_dot_dimension_numbers={numbers!r:.60}",
            instead="a lax.RaggedDotDimensionNumbers",
        )
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    ragged = _ragged_axis(numbers, type_of(lhs))
    before = _axes_before(numbers, type_of(lhs), ragged, type_of(sizes))
    options: dict[str, Any] = {"precision": precision, "preferred_element_type": preferred_element_type}
    # Each index of a batch axis has a product of its own, so that groups of them change nothing.
    if ragged in lb:
        out = dot_general(lhs, rhs, ((lc, rc), (lb, rb)), **options)
        return lay_out("ragged_dot_general", out, out_sharding)
    if ragged not in lc:
        _check_group_axis(numbers, type_of(rhs), type_of(sizes).shape[-1])
    masked = _masked(lhs, sizes, ragged, before if type_of(sizes).ndim > 1 else [])
    if ragged in lc:
        # The axis of groups is a free one of lhs, behind the batch axes, and the first one of the result.
        out = move_axis(dot_general(masked, rhs, ((_up(lc), rc), (_up(lb), rb)), **options), len(lb), 0)
    else:
        # The contraction includes the groups: for each row only its own group is not zero.
        pairs = ((*_up(lc), 0), (*rc, numbers.rhs_group_dimensions[0])), (_up(lb), rb)
        out = dot_general(masked, rhs, pairs, **options)
    return lay_out("ragged_dot_general", out, out_sharding)


def _ragged_axis(numbers: RaggedDotDimensionNumbers, left: ShapedArray) -> int:
    """The ragged axis of the left operand. Checks that the right operand has a group axis where it needs one."""
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise ShapeError(
            f"ragged_dot_general expects exactly one lhs ragged dimension, got {numbers.lhs_ragged_dimensions}"
        )
    ragged = numbers.lhs_ragged_dimensions[0]
    if not 0 <= ragged < left.ndim:
        raise ShapeError(
            "ragged_dot_general requires lhs ragged dimension numbers to be nonnegative and less than the number of "
            f"axes of the lhs, got {ragged} for {left.short}",
            axis=ragged,
        )
    (lc, _), (lb, _) = numbers.dot_dimension_numbers
    is_free = ragged not in lc and ragged not in lb
    if len(numbers.rhs_group_dimensions) != is_free:
        needs = (
            "exactly one rhs group dimension when lhs ragged dimension is noncontracting"
            if is_free
            else "zero group dimensions in the rhs when lhs ragged dimension is contracting or batch"
        )
        raise ShapeError(f"ragged_dot_general requires {needs}, got {numbers.rhs_group_dimensions}")
    return ragged


def _axes_before(numbers: RaggedDotDimensionNumbers, left: ShapedArray, ragged: int, groups: ShapedArray) -> list[int]:
    """The axes of the left operand that group sizes of several axes have in front. Checks the sizes."""
    if dtypes.kind(groups.dtype) not in "iu":
        raise DtypeError(f"ragged_dot_general: group_sizes are {groups.short}", instead="integers")
    if not groups.ndim:
        raise ShapeError(f"ragged_dot_general: group_sizes are {groups.short}", instead="one size for each group")
    (lc, _), (lb, _) = numbers.dot_dimension_numbers
    free = [i for i in range(left.ndim) if i not in lc and i not in lb]
    same_kind = list(lc) if ragged in lc else list(lb) if ragged in lb else free
    before = [*(lb if ragged not in lb else ()), *same_kind[: same_kind.index(ragged)]]
    expected = (*(left.shape[i] for i in before), groups.shape[-1])
    if groups.ndim != 1 and groups.shape != expected:
        raise ShapeError(
            f"ragged_dot_general: expected group_sizes to have shape {expected}, got {groups.shape}: lengths of the "
            f"axes {before} of lhs, then the number of groups",
            shapes=[groups.shape],
        )
    return before


def _check_group_axis(numbers: RaggedDotDimensionNumbers, right: ShapedArray, count: int) -> None:
    """Checks the axis of the right operand that has a matrix for each of `count` groups."""
    (_, rc), (_, rb) = numbers.dot_dimension_numbers
    axis = numbers.rhs_group_dimensions[0]
    if axis in rc or axis in rb:
        raise ShapeError(
            "ragged_dot_general requires rhs group dimension numbers to be distinct from contracting and batch "
            f"dimensions, got {axis}",
            axis=axis,
        )
    if right.shape[axis] != count:
        raise ShapeError(
            f"ragged_dot_general: expected rhs group dimension size to be {count}, got {right.shape[axis]} of "
            f"{right.short}",
            axis=axis,
        )


def _up(axes: Ints) -> tuple[int, ...]:
    """These axis numbers after an axis was inserted in front."""
    return tuple(i + 1 for i in axes)


def _masked(lhs: Any, sizes: Any, ragged: int, before: Ints) -> Any:
    """A copy of `lhs` for each group, along a new first axis, with zeros outside of the group."""
    aval = type_of(lhs)
    ends = cumsum(sizes, type_of(sizes).ndim - 1)
    begins = ends - sizes

    def placed(x: Any) -> Any:
        """`x` broadcast to the shape (groups, *axes of `lhs`)."""
        x = move_axis(x, type_of(x).ndim - 1, 0)
        # The axes of the sizes have the order of kinds of axes; those of `lhs` are in ascending order.
        order = sorted(range(len(before)), key=lambda i: before[i])
        x = transpose(x, (0, *[i + 1 for i in order])) if before else x
        lengths = [aval.shape[i] if i in before else 1 for i in range(aval.ndim)]
        return reshape(x, (type_of(x).shape[0], *lengths))

    lengths = [n if i == ragged else 1 for i, n in enumerate(aval.shape)]
    indices = broadcasted_iota(np.int32, lengths, ragged)
    mine = (placed(begins) <= indices) & (indices < placed(ends))
    return where(mine, lhs, to_dtype(0, aval.dtype))


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product of arrays in low precision, each with scale factors for blocks of elements, computed in bfloat16 (as
    ``jax.lax.scaled_dot``).

    Args:
      lhs, rhs: matrices, or arrays of matrices with batch axes.
      lhs_scale, rhs_scale: scale factors of `lhs` and `rhs`, with the same axes. Along contracted axes they are
        shorter: each factor applies to a block of at least two neighbouring elements. None means no scaling.
      dimension_numbers: as for `dot_general`; None means a matrix product.
      preferred_element_type: dtype in which products are summed, and of the result; None means bfloat16.

    Returns:
      An array with the axes of the result of `dot_general`.

    Raises:
      ShapeError: the shapes are incompatible.

    >>> scaled_dot(np.ones((1, 4)), np.ones((4, 1)), lhs_scale=np.full((1, 2), 0.5))
    Array([[2]], dtype=bfloat16)
    """
    function = "scaled_dot"
    lhs, rhs = check(function, lhs, rhs)
    left, right = type_of(lhs), type_of(rhs)
    if dimension_numbers is None:
        if left.ndim < 2:
            raise ShapeError(f"{function} takes matrices, got {left.short}")
        front = tuple(range(left.ndim - 2))
        dimension_numbers = ((left.ndim - 1,), (left.ndim - 2,)), (front, front)
    (lc, rc), (lb, rb) = dimension_numbers
    if left.ndim != right.ndim or len(lc) != len(rc) or len(lb) != len(rb):
        raise ShapeError(f"{function}: {left.short} and {right.short} with dimension numbers {dimension_numbers}")
    for i, j in (*zip(lc, rc, strict=True), *zip(lb, rb, strict=True)):
        if left.shape[i] != right.shape[j]:
            raise ShapeError(f"{function}: axis {i} of {left.short} and axis {j} of {right.short} differ in length")
    out_dtype = (
        dtypes.bfloat16 if preferred_element_type is None else dtypes.user_dtype(preferred_element_type, function)
    )
    numbers = tuple([tuple([integers(function, "dimension_numbers", axes) for axes in x]) for x in dimension_numbers])
    return _scaled_product((lhs, rhs), (lhs_scale, rhs_scale), numbers, np.dtype(out_dtype))


@functools.partial(jit, static_argnums=(2, 3))
def _scaled_product(factors: tuple[Any, Any], scales: tuple[Any, Any], numbers: Any, out_dtype: Any) -> Any:
    """The scaled product in one program, where XLA may keep intermediate values in more precision than bfloat16."""
    lhs, rhs = map(_scaled, ("lhs", "rhs"), factors, scales, numbers[0])
    return dot_general(lhs, rhs, numbers, preferred_element_type=out_dtype)


def _scaled(name: str, x: Any, scale: Any, contracted: Ints) -> Any:
    x, aval = to_dtype(x, dtypes.bfloat16), type_of(x)
    if scale is None:
        return x
    scale = check_one("scaled_dot", scale)
    blocks = type_of(scale)
    if blocks.ndim != aval.ndim:
        raise ShapeError(f"scaled_dot: {name}_scale, {blocks.short}, has not as many axes as {aval.short}")
    for axis, (n, count) in enumerate(zip(aval.shape, blocks.shape, strict=True)):
        fits = n % count == 0 and n // count >= 2 if axis in contracted else n == count
        if not fits:
            raise ShapeError(f"scaled_dot: axis {axis} of {name}_scale, {blocks.short}, does not fit {aval.short}")
    # One factor for each block: repeated, so that it has the length of the axis.
    scale = to_dtype(scale, dtypes.bfloat16)
    for axis in contracted:
        scale = _repeated(scale, aval.shape[axis] // blocks.shape[axis], axis)
    return x * scale


def _repeated(x: Any, count: int, axis: int) -> Any:
    """`x` with each element repeated `count` times along an axis, as numpy.repeat."""
    old = type_of(x).shape
    spread = insert_axis(x, count, axis + 1)
    return reshape(spread, [n * count if i == axis else n for i, n in enumerate(old)])
