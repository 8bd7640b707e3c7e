"""The primitive `gather`, which reads slices at computed indices, and the checks that it shares with scatter.

Dimension numbers are those of StableHLO. The last axis of the indices holds the index vectors. With batching dimensions
(axes that operand and indices share) the vmap of a gather or scatter is one gather or scatter. Indexing in
`phlox.numpy` uses both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import min_dim
from ..._ir.key_uses import picks
from ..._ir.primitive import Primitive, define_on_demand, primitive
from ..._ir.sharding_types import Entries, entries_of, join, refuse
from ..._trace.trace import typeof
from ..._transform.array_operations import move_axis, zeros
from ..._transform.batch import BatchAxis, Dim
from ..._transform.sharding_types import in_auto
from ..._xla.text import Function, Value, flag, i64_array, ints
from .dimension_numbers import GatherDimensionNumbers, GatherScatterMode, Ints, ScatterDimensionNumbers
from .index_padding import gather_pad
from .numbers import literal_of


def batched_numbers(numbers: Any, operand: bool, indices: bool) -> Any:
    """The dimension numbers of a gather or scatter after a batch axis was put in front of the operand, the indices or
    both; the axis is the first one of the result of a gather, or of the updates, too."""

    def up(dims: Ints) -> Ints:
        return tuple(d + 1 for d in dims)

    windows, dropped, mapped, batching, batching_of_indices = numbers
    windows = up(windows)
    if operand:
        dropped, mapped, batching = up(dropped), up(mapped), up(batching)
    if indices:
        batching_of_indices = up(batching_of_indices)
    if operand and indices:
        batching, batching_of_indices = (0, *batching), (0, *batching_of_indices)
    elif operand:
        windows = (0, *windows)  # each slice has the whole axis
    return type(numbers)(windows, dropped, mapped, batching, batching_of_indices)


def check_axes(op: str, name: str, axes: Ints, rank: int, ordered: bool = True) -> None:
    """Raises `ShapeError` for axis numbers that are out of range, repeated, or (if `ordered`) not sorted."""
    for axis in axes:
        if not 0 <= axis < rank:
            raise ShapeError(f"Invalid {name} set in {op} op; valid range is [0, {rank}); got: {axis}.", axes=axes)
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{name} in {op} op must not repeat; got: {tuple(axes)}.", axes=axes)
    if ordered and list(axes) != sorted(axes):
        raise ShapeError(f"{name} in {op} op must be sorted; got {tuple(axes)}", axes=axes)


def _check_apart(op: str, **dims: Ints) -> None:
    (first, axes), (second, others) = dims.items()
    if not set(axes).isdisjoint(others):
        raise ShapeError(f"{first} and {second} in {op} op must be disjoint; got: {axes} and {others}.", axes=axes)


def check_indices(op: str, operand: ShapedArray, indices: ShapedArray, numbers: Any) -> None:
    """Raises unless the indices and the dimension numbers of a gather or scatter fit the operand."""
    names = type(numbers)._fields
    if dtypes.kind(indices.dtype) not in "iu":
        raise DtypeError(f"{op}: indices must have an integer type, got {indices.short}", aval=indices)
    if not indices.ndim:
        raise ShapeError(f"{op}: indices need an axis with the index vectors, got {indices.short}", shapes=[()])
    _, dropped, mapped, batching, batching_of_indices = numbers
    check_axes(op, names[1], dropped, operand.ndim)
    check_axes(op, names[3], batching, operand.ndim)
    _check_apart(op, **{names[1]: dropped, names[3]: batching})
    _check_apart(op, **{names[2]: mapped, names[3]: batching})
    check_axes(op, names[4], batching_of_indices, indices.ndim, False)
    if indices.ndim - 1 in batching_of_indices:
        raise ShapeError(
            f"{op.capitalize()} op cannot have the index vector dimension as a batching dimension; "
            f"got {batching_of_indices}.",
            axes=batching_of_indices,
        )
    if len(batching) != len(batching_of_indices):
        raise ShapeError(
            f"{op.capitalize()} op requires equal numbers of {names[3]} and {names[4]}, got {batching} and "
            f"{batching_of_indices}."
        )
    lengths = tuple(operand.shape[i] for i in batching), tuple(indices.shape[i] for i in batching_of_indices)
    if lengths[0] != lengths[1]:
        raise ShapeError(
            f"{op.capitalize()} op requires operand batching dimensions and indices batching dimensions to have the "
            f"same shape, got {lengths[0]} and {lengths[1]}.",
            shapes=[operand.shape, indices.shape],
        )


def check_mapping(op: str, operand: ShapedArray, indices: ShapedArray, numbers: Any) -> None:
    """Raises unless the dimension numbers map each element of an index vector to a different axis of the operand."""
    name, axes = type(numbers)._fields[2], numbers[2]
    if len(axes) != indices.shape[-1]:
        raise ShapeError(
            f"{op.capitalize()} op has {len(axes)} elements in {name} and the bound of dimension "
            f"index_vector_dim={indices.ndim - 1} of indices is {indices.shape[-1]}. These two numbers must be equal. "
            f"The indices are {indices.short}",
            shapes=[indices.shape],
        )
    for i, axis in enumerate(axes):
        if not 0 <= axis < operand.ndim:
            raise ShapeError(
                f"Invalid {name} mapping in {op} op; domain is [0, {operand.ndim}), got: {i}->{axis}.", axis=axis
            )
    check_axes(op, name, axes, operand.ndim, False)


# --- gather ---------------------------------------------------------------------------------------------


def _check_slices(operand: ShapedArray, numbers: Any, slice_sizes: Ints) -> None:
    collapsed, batching = numbers.collapsed_slice_dims, numbers.operand_batching_dims
    if len(slice_sizes) != operand.ndim:
        raise ShapeError(
            f"Gather op must have one slice size for every input dimension; got {tuple(slice_sizes)} for an operand "
            f"{operand.short}",
            shapes=[operand.shape],
        )
    if len(slice_sizes) != len(numbers.offset_dims) + len(collapsed) + len(batching):
        raise ShapeError(
            "All components of the offset index in a gather op must either be a offset dimension or explicitly "
            f"collapsed/batching; got slice_sizes={tuple(slice_sizes)}, {numbers}",
            shapes=[operand.shape],
        )
    for i, (size, length) in enumerate(zip(slice_sizes, operand.shape, strict=True)):
        if not 0 <= size <= length:
            raise ShapeError(
                f"Slice size at index {i} in gather op is out of range, must be within [0, {length} + 1), got {size}.",
                instead=f"slice sizes that fit into the operand {operand.short}",
                shapes=[operand.shape],
            )
    for at, i in enumerate(collapsed):
        if slice_sizes[i] > 1:  # size 0 is allowed too: an empty axis is collapsed by an empty slice
            raise ShapeError(
                f"Gather op can only collapse slice dims with bound 1, but bound is {slice_sizes[i]} for index {i} "
                f"at position {at}.",
                axis=i,
            )
    for at, i in enumerate(batching):
        if slice_sizes[i] > 1:
            raise ShapeError(
                f"Gather op can only have operand batching dims with bound 0/1, but bound is {slice_sizes[i]} for "
                f"index {i} at position {at}.",
                axis=i,
            )


def _gather_types(
    operand: ShapedArray, indices: ShapedArray, *, dimension_numbers: Any, slice_sizes: Ints, **_: Any
) -> ShapedArray:
    numbers = dimension_numbers
    check_indices("gather", operand, indices, numbers)
    rank = len(numbers.offset_dims) + indices.ndim - 1
    for i, axis in enumerate(numbers.offset_dims):
        if not 0 <= axis < rank:
            raise ShapeError(
                f"Offset dimension {i} in gather op is out of bounds; got {axis}, but should have been in [0, {rank})",
                axis=axis,
            )
    check_axes("gather", "offset_dims", numbers.offset_dims, rank)
    check_mapping("gather", operand, indices, numbers)
    _check_slices(operand, numbers, slice_sizes)
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window = [size for i, size in enumerate(slice_sizes) if i not in dropped]
    batch = list(indices.shape[:-1])
    rank = len(window) + len(batch)
    window_iter, batch_iter = iter(window), iter(batch)
    shape = tuple(next(window_iter) if i in numbers.offset_dims else next(batch_iter) for i in range(rank))
    return shaped(shape, operand.dtype, operand.weak_type)


def _gather_lower(
    f: Function,
    operand: Value,
    indices: Value,
    *,
    dimension_numbers: Any,
    slice_sizes: Ints,
    unique_indices: bool,
    indices_are_sorted: bool,
    mode: GatherScatterMode,
    fill_value: Any,
) -> Value:
    numbers = dimension_numbers
    out = f.out
    result = _plain_gather(f, operand, indices, out, numbers, slice_sizes, indices_are_sorted)
    if mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS):
        return result
    limits = [operand.aval.shape[d] - slice_sizes[d] for d in numbers.start_index_map]
    valid = _in_bounds(f, indices, limits)
    batch_dims = [i for i in range(out.ndim) if i not in numbers.offset_dims]
    valid = f.broadcast(valid, out.shape, batch_dims)
    if mode is GatherScatterMode.ONE_HOT:
        fill_value = 0
    fill = default_fill(out.dtype) if fill_value is None else literal_of(fill_value, out.dtype)
    return f.select(valid, result, f.constant(fill, out))


def _plain_gather(
    f: Function,
    operand: Value,
    indices: Value,
    out: ShapedArray,
    numbers: GatherDimensionNumbers,
    slice_sizes: Ints,
    indices_are_sorted: bool,
) -> Value:
    """StableHLO's gather, which clamps indices."""
    text = (
        f"dimension_numbers = #stablehlo.gather<offset_dims = {ints(numbers.offset_dims)}, "
        f"collapsed_slice_dims = {ints(numbers.collapsed_slice_dims)}, "
        f"operand_batching_dims = {ints(numbers.operand_batching_dims)}, "
        f"start_indices_batching_dims = {ints(numbers.start_indices_batching_dims)}, "
        f"start_index_map = {ints(numbers.start_index_map)}, index_vector_dim = {indices.aval.ndim - 1}>, "
        f"indices_are_sorted = {flag(indices_are_sorted)}, slice_sizes = {i64_array(slice_sizes)}"
    )
    return f.op("stablehlo.gather", [operand, indices], out, text)


def numbers_along(rank: int, axis: int) -> GatherDimensionNumbers:
    """The dimension numbers for reading single elements along `axis` at indices of the operand's rank plus one."""
    rest = tuple(i for i in range(rank) if i != axis)
    return GatherDimensionNumbers((), (axis,), (axis,), rest, rest)


def gather_along(f: Function, x: Value, positions: Value, axis: int) -> Value:
    """In a lowering rule: the elements of `x` at `positions` along `axis`; shapes are equal elsewhere."""
    shape = positions.aval.shape
    indices = f.unlike("stablehlo.reshape", positions, shaped((*shape, 1), positions.aval.dtype))
    out = shaped(shape, x.aval.dtype)
    return _plain_gather(f, x, indices, out, numbers_along(len(shape), axis), (1,) * len(shape), False)


def index_limits(f: Function, indices: Value, limits: Sequence[int]) -> Value:
    """The largest valid value of each element of the index vectors, in the shape and dtype of the indices."""
    aval = indices.aval
    # uint8 cannot hold the last index of 300 elements, and all of its values are valid.
    largest = dtypes.iinfo(aval.dtype).max
    vector = np.asarray([min(limit, largest) for limit in limits])
    return f.broadcast(f.constant(vector, shaped((len(limits),), aval.dtype)), aval.shape, [aval.ndim - 1])


def _in_bounds(f: Function, indices: Value, limits: Sequence[int]) -> Value:
    """For each index vector, whether all its elements are between 0 and `limits`."""
    aval = indices.aval
    whole = shaped(aval.shape[:-1], dtypes.bool_)
    if not limits:
        return f.constant(True, whole)
    low = f.compare("GE", indices, f.constant(0, aval))
    both = f.same("stablehlo.and", low, f.compare("LE", indices, index_limits(f, indices, limits)))
    scalar = shaped((), dtypes.bool_)
    body = f.region([scalar, scalar], lambda g, a, b: [g.same("stablehlo.and", a, b)])
    return f.op(
        "stablehlo.reduce",
        [both, f.constant(True, scalar)],
        whole,
        f"dimensions = {i64_array([aval.ndim - 1])}",
        [body],
    )


def default_fill(dtype: Any) -> Any:
    """The value of out-of-bounds reads: nan, True, the smallest signed or the largest unsigned integer."""
    letter = dtypes.kind(dtype)
    if letter in "fc":
        return np.nan
    if letter == "b":
        return True
    info = dtypes.iinfo(dtype)
    return info.min if letter == "i" else info.max


def _gather_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    operand, indices = primals
    out = gather(operand, indices, **params)
    # What is read out of bounds is a constant, nan by default, and its tangent is zero.
    return out, gather(tangents[0], indices, **{**params, "fill_value": 0})


# The module of scatter imports this one, and programs without derivatives do not need it.
define_on_demand(f"{__package__}.scatter", "scatter-add")


def _gather_transpose(ct: Any, operand: Any, indices: Any, **params: Any) -> list[Any]:
    result = primitive("scatter-add").bind(
        zeros(operand.aval.cotangent()),
        indices,
        ct,
        dimension_numbers=ScatterDimensionNumbers(*params["dimension_numbers"]),
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        # The mode is the same: a cotangent of a fill value is dropped, that of a clamped index is added at the edge.
        mode=params["mode"],
    )
    return [result, None]


def _gather_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> tuple[Any, Dim]:
    operand, indices = args
    sizes = params["slice_sizes"]
    if dims[0] is not None:
        operand = move_axis(operand, dims[0], 0)
    if dims[1] is not None:
        indices = move_axis(indices, dims[1], 0)
    if dims[1] is None:
        sizes = (axis.size, *sizes)
    elif dims[0] is None:
        # All examples read one operand: indices that are unique or sorted in each need not be so together.
        params = {**params, "indices_are_sorted": False, "unique_indices": False}
    else:
        # StableHLO takes no slice of length 1 of an empty axis.
        sizes = (min_dim(axis.size, 1), *sizes)
    numbers = batched_numbers(params["dimension_numbers"], dims[0] is not None, dims[1] is not None)
    return gather(operand, indices, **{**params, "dimension_numbers": numbers, "slice_sizes": sizes}), 0


def _gather_extend(params: Any, trailing: Ints, operand: ShapedArray, indices: ShapedArray) -> Any:
    numbers = params["dimension_numbers"]
    rank = len(numbers.offset_dims) + indices.ndim - 1
    more = tuple(range(rank, rank + len(trailing)))
    return {
        **params,
        "dimension_numbers": numbers._replace(offset_dims=(*numbers.offset_dims, *more)),
        "slice_sizes": (*params["slice_sizes"], *trailing),
    }


def _gather_checked(checks: Any, operand: Any, indices: Any, **params: Any) -> None:
    shape, axes = typeof(operand).shape, params["dimension_numbers"].start_index_map
    checks.inside(shape, lambda: (indices, axes, [shape[a] - params["slice_sizes"][a] for a in axes]))


def _gather_sharding(
    out: ShapedArray, operand: ShapedArray, indices: ShapedArray, dimension_numbers: Any, slice_sizes: Ints, **_: Any
) -> Entries:
    numbers = dimension_numbers
    avals, entries, index_entries = (operand, indices), entries_of(operand), entries_of(indices)
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window = [entries[i] for i in range(operand.ndim) if i not in dropped]
    shared = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    cut = [i for i in range(operand.ndim) if slice_sizes[i] != operand.shape[i] and i not in shared.values()]
    if any(entries[i] for i in cut) or any(entry for i, entry in enumerate(index_entries) if i not in shared):
        refuse("gather", "it is not clear how the result is split", avals, "x.at[...].get(out_sharding=phlox.P(...))")
    batch = [
        join("gather", avals, (entry, entries[shared[i]])) if i in shared else entry
        for i, entry in enumerate(index_entries[:-1])
    ]
    window_entries, batch_entries = iter(window), iter(batch)
    return tuple(next(window_entries) if i in numbers.offset_dims else next(batch_entries) for i in range(out.ndim))


gather = Primitive(
    "gather",
    remembers=True,
    types=_gather_types,
    sharding=_gather_sharding,
    lower=_gather_lower,
    jvp=_gather_jvp,
    transpose=in_auto(_gather_transpose),
    batch=_gather_batch,
    pad=gather_pad,
    extend=_gather_extend,
    keys=picks,
    checked=_gather_checked,
    nan_checked=False,
    series="linear",
)


def take(
    x: Any,
    positions: Any,
    numbers: GatherDimensionNumbers,
    sizes: Sequence[Any],
    mode: GatherScatterMode = GatherScatterMode.PROMISE_IN_BOUNDS,
    *,
    unique: bool = False,
    is_sorted: bool = False,
) -> Any:
    """The slices of `x` of these sizes at positions along the one axis that `numbers` has start indices for."""
    vectors = primitive("reshape").bind(positions, new_sizes=(*typeof(positions).shape, 1), dimensions=None)
    return gather(
        x,
        vectors,
        dimension_numbers=numbers,
        slice_sizes=tuple(sizes),
        unique_indices=unique,
        indices_are_sorted=is_sorted,
        mode=mode,
        fill_value=None,
    )


def take_along_axis(x: Any, positions: Any, axis: int, mode: GatherScatterMode, *, is_sorted: bool = False) -> Any:
    """``numpy.take(x, positions, axis)``, for a vector of positions, or for positions of any shape in a vector `x`."""
    shape = typeof(x).shape
    others = tuple(i for i in range(len(shape)) if i != axis)
    numbers = GatherDimensionNumbers(others, (axis,), (axis,))
    return take(x, positions, numbers, [1 if i == axis else n for i, n in enumerate(shape)], mode, is_sorted=is_sorted)
