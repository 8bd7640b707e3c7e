"""Slices with static start indices (slice, split) and computed ones (dynamic_slice, dynamic_update_slice)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import AxisError, DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import is_symbolic
from ..._ir.key_uses import KeyUses, picks
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import Entries, entries_of, join, refuse, resized
from ..._trace.trace import typeof
from ..._transform.array_operations import instantiate, linear_jvp, zeros
from ..._transform.batch import BatchAxis, Dim, batch_of_one, place_axis
from ..._transform.transpose import is_linear
from ..._xla.text import Function, Value, i64_array
from ..elementwise.families import literal
from . import padding
from .shape import broadcast_in_dim, concatenate, convert, pad, reshape, structural

Ints = tuple[int, ...]

# --- slice ----------------------------------------------------------------------------------------------


def _slice_types(x: ShapedArray, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> ShapedArray:
    steps = strides or (1,) * x.ndim
    if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
        raise ShapeError(f"slice: {x.short} needs {x.ndim} starts, limits and strides", shapes=[x.shape])
    for axis, (n, lo, hi, step) in enumerate(zip(x.shape, start_indices, limit_indices, steps, strict=True)):
        if not 0 <= lo <= hi <= n or step < 1:
            raise ShapeError(f"slice: {lo}:{hi}:{step} does not fit axis {axis} of {x.short}", axis=axis)
    shape = tuple((hi - lo + s - 1) // s for lo, hi, s in zip(start_indices, limit_indices, steps, strict=True))
    return shaped(shape, x.dtype, x.weak_type)


def _slice_lower(f: Function, x: Value, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> Value:
    steps = strides or (1,) * len(start_indices)
    attributes = (
        f"start_indices = {i64_array(start_indices)}, limit_indices = {i64_array(limit_indices)}, "
        f"strides = {i64_array(steps)}"
    )
    return f.op("stablehlo.slice", [x], f.out, attributes)


def _slice_transpose(ct: Any, aval: ShapedArray, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> Any:
    shape = typeof(ct).shape
    steps = strides or (1,) * len(shape)
    config = []
    for n, lo, count, step in zip(aval.shape, start_indices, shape, steps, strict=True):
        # Where the last element that was read ends. Elements behind it, which a stride skips, get zero as well.
        reach = 0 if count == 0 else 1 + (count - 1) * step
        config.append((lo, n - lo - reach, step - 1))
    return pad(ct, literal(ct, 0), padding_config=tuple(config))


def _slice_batch(x: Any, dim: int, start_indices: Ints, limit_indices: Ints, strides: Ints | None) -> tuple[Any, Dim]:
    def with_axis(values: Ints, new: int) -> Ints:
        return (*values[:dim], new, *values[dim:])

    out = slice_(
        x,
        start_indices=with_axis(start_indices, 0),
        limit_indices=with_axis(limit_indices, typeof(x).shape[dim]),
        strides=None if strides is None else with_axis(strides, 1),
    )
    return out, dim


def _slice_extend(params: dict[str, Any], trailing: Ints, x: ShapedArray) -> dict[str, Any]:
    more = len(trailing)
    return {
        "start_indices": (*params["start_indices"], *(0,) * more),
        "limit_indices": (*params["limit_indices"], *trailing),
        "strides": None if params["strides"] is None else (*params["strides"], *(1,) * more),
    }


def _slice_keys(eqn: Any, uses_of: Any) -> KeyUses:
    """A slice is keys of the array."""
    if any(map(is_symbolic, (*eqn.invars[0].aval.shape, *eqn.params["start_indices"], *eqn.params["limit_indices"]))):
        return KeyUses(picked=((0, 0),))
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    strides = eqn.params["strides"] or (1,) * len(starts)
    shape = eqn.invars[0].aval.shape
    # The numbers of the keys that the slice contains, in the flattened array.
    positions = np.arange(math.prod(shape)).reshape(shape)[tuple(map(slice, starts, limits, strides))]
    return KeyUses(parts=((0, 0, positions.ravel()),))


slice_ = structural(
    "slice",
    types=_slice_types,
    sharding=lambda out, x, **_: resized("slice", x, out),
    lower=_slice_lower,
    transpose=_slice_transpose,
    batch=_slice_batch,
    pad=padding.slice_pad,
    extend=_slice_extend,
    keys=_slice_keys,
    unfused="operation",
)


def along(x: Any, axis: int, start: int, stop: int, step: int = 1) -> Any:
    """``x[start:stop:step]`` along `axis`."""
    shape = typeof(x).shape
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], steps[axis] = start, stop, step
    strides = None if step == 1 else tuple(steps)
    return slice_(x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=strides)


# --- split ----------------------------------------------------------------------------------------------


def _split_types(x: ShapedArray, sizes: Ints, axis: int) -> list[ShapedArray]:
    if not 0 <= axis < x.ndim:
        raise AxisError(f"split: axis {axis} is out of bounds for {x.short}", axis=axis)
    if any(n < 0 for n in sizes):
        raise ShapeError(f"Sizes passed to split must be nonnegative, got {sizes}", shapes=[x.shape])
    if sum(sizes) != x.shape[axis]:
        raise ShapeError(
            f"split: Sum of sizes {sum(sizes)} must be equal to the length of axis {axis} of {x.short}, got {sizes}",
            shapes=[x.shape],
        )
    return [shaped((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, x.weak_type) for n in sizes]


def _split_lower(f: Function, x: Value, sizes: Ints, axis: int) -> list[Value]:
    limits = itertools.accumulate(sizes)
    return [f.slice_in_dim(x, limit - size, limit, axis) for size, limit in zip(sizes, limits, strict=True)]


def _split_transpose(cotangents: Sequence[Any], x: Any, sizes: Ints, axis: int) -> list[Any]:
    # One concatenate; transposed slices would instead add full-size arrays, each zero outside of its piece.
    return [concatenate(*[instantiate(ct) for ct in cotangents], dimension=axis)]


def _split_batch(x: Any, dim: int, sizes: Ints, axis: int) -> tuple[list[Any], list[Dim]]:
    return split(x, sizes=sizes, axis=axis + (dim <= axis)), [dim] * len(sizes)


def _split_keys(eqn: Any, uses_of: Any) -> KeyUses:
    """The results are parts of the keys."""
    shape, sizes = eqn.invars[0].aval.shape, eqn.params["sizes"]
    if any(map(is_symbolic, (*shape, *sizes))):
        return KeyUses(picked=tuple((0, o) for o in range(len(sizes))))
    parts = np.split(np.arange(math.prod(shape)).reshape(shape), np.cumsum(sizes)[:-1], eqn.params["axis"])
    return KeyUses(parts=tuple((0, o, part.ravel()) for o, part in enumerate(parts)))


# A primitive for the sake of its transpose: gradients of slices took 1.9 of jax's time, and take 0.5 to 1.1.
split = Primitive(
    "split",
    multiple_results=True,
    types=_split_types,
    sharding=lambda outs, x, **_: [resized("split", x, out) for out in outs],
    lower=_split_lower,
    jvp=linear_jvp(lambda: split),
    transpose=_split_transpose,
    batch=batch_of_one(_split_batch),
    pad=padding.split_pad,
    extend=lambda params, trailing, *xs: params,
    keys=_split_keys,
    nan_checked=False,
    series="linear",
)

# --- dynamic_slice --------------------------------------------------------------------------------------


def _check_starts(name: str, starts: Sequence[ShapedArray]) -> None:
    kinds = {start.dtype for start in starts}
    if len(kinds) > 1 or any(dtypes.kind(dtype) not in "iu" for dtype in kinds):
        raise DtypeError(
            f"index arguments to {name} must be integers of the same type, got {', '.join(s.short for s in starts)}"
        )
    if any(start.shape for start in starts):
        raise ShapeError(
            f"start_indices arguments to {name} must be scalars, got {', '.join(s.short for s in starts)}",
            shapes=[s.shape for s in starts],
        )


def _zero_start(starts: Sequence[Any]) -> Any:
    """The start index 0 for an inserted axis that the slice contains whole, with the dtype of the others."""
    return literal(starts[0], 0) if starts else np.int32(0)


def _dynamic_slice_types(x: ShapedArray, *starts: ShapedArray, slice_sizes: Ints) -> ShapedArray:
    _check_starts("dynamic_slice", starts)
    if len(starts) != x.ndim or len(slice_sizes) != x.ndim:
        raise ShapeError(f"dynamic_slice: {x.short} needs {x.ndim} start indices and sizes", shapes=[x.shape])
    if any(not 0 <= size <= n for size, n in zip(slice_sizes, x.shape, strict=True)):
        raise ShapeError(
            f"dynamic_slice: slice_sizes must be less than or equal to the shape, got {slice_sizes} for {x.short}",
            shapes=[x.shape],
        )
    return shaped(tuple(slice_sizes), x.dtype, x.weak_type)


def _dynamic_slice_lower(f: Function, x: Value, *starts: Value, slice_sizes: Ints) -> Value:
    starts = _all_starts(f, starts, len(slice_sizes))
    return f.op("stablehlo.dynamic_slice", [x, *starts], f.out, f"slice_sizes = {i64_array(slice_sizes)}")


def _all_starts(f: Function, starts: Sequence[Value], rank: int) -> tuple[Value, ...]:
    """Start indices, with zeros for the trailing axes that extended dtypes have in memory."""
    missing = rank - len(starts)
    zero = [f.constant(0, starts[0].aval)] * missing if missing else []
    return (*starts, *zero)


def _dynamic_slice_transpose(ct: Any, x: Any, *starts: Any, slice_sizes: Ints) -> list[Any]:
    # Both operations move a start that is out of bounds to the same place, so that cotangents go to the elements that
    # were read.
    return [dynamic_update_slice(zeros(x.aval.cotangent()), ct, *starts), *[None] * len(starts)]


def _dynamic_slice_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], slice_sizes: Ints
) -> tuple[Any, Dim]:
    x, *starts = args
    if all(d is None for d in dims[1:]):
        dim = dims[0]
        assert dim is not None
        # The slice contains the mapped axis as a whole.
        starts.insert(dim, _zero_start(starts))
        sizes = (*slice_sizes[:dim], axis.size, *slice_sizes[dim:])
        return dynamic_slice(x, *starts, slice_sizes=sizes), dim
    # Batched start indices: a gather of one slice per index vector.
    from .dimension_numbers import GatherDimensionNumbers, GatherScatterMode
    from .gather import gather  # only needed for batched start indices

    every = tuple(range(len(slice_sizes)))
    return gather.rule("batch")(
        axis,
        [x, _index_vectors(axis, starts, dims[1:])],
        [dims[0], 0],
        dimension_numbers=GatherDimensionNumbers(every, (), every),
        slice_sizes=slice_sizes,
        # Each example has one index vector, sorted and unique by itself. CLIP moves it as `dynamic_slice` does.
        unique_indices=True,
        indices_are_sorted=True,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )


def _index_vectors(axis: BatchAxis, starts: Sequence[Any], dims: Sequence[Dim]) -> Any:
    """The start indices of the batch, one index vector per example."""
    columns = [
        broadcast_in_dim(s, shape=(axis.size, 1), broadcast_dimensions=(0,) if d is not None else ())
        for s, d in zip(starts, dims, strict=True)
    ]
    return concatenate(*columns, dimension=1)


def _dynamic_slice_checked(checks: Any, x: Any, *starts: Any, slice_sizes: Ints) -> None:
    shape = typeof(x).shape
    checks.inside(shape, lambda: _starts_and_limits(starts, shape, slice_sizes))


def _starts_and_limits(starts: Sequence[Any], shape: Ints, sizes: Ints) -> tuple[Any, Ints, Ints]:
    """Start indices as a vector, their axes, and the largest start of a slice of these sizes along each axis."""
    parts = [reshape(convert(x, dtypes.int32), new_sizes=(1,), dimensions=None) for x in starts]
    vector = concatenate(*parts, dimension=0) if parts else np.zeros(0, np.int32)
    return vector, tuple(range(len(shape))), tuple(n - k for n, k in zip(shape, sizes, strict=True))


dynamic_slice = Primitive(
    "dynamic_slice",
    remembers=True,
    types=_dynamic_slice_types,
    sharding=lambda out, x, *starts, slice_sizes: resized("dynamic_slice", x, out),
    lower=_dynamic_slice_lower,
    jvp=linear_jvp(lambda: dynamic_slice, slice(1)),
    transpose=_dynamic_slice_transpose,
    batch=_dynamic_slice_batch,
    pad=padding.dynamic_slice_pad,
    extend=lambda params, trailing, *avals: {"slice_sizes": (*params["slice_sizes"], *trailing)},
    keys=picks,
    checked=_dynamic_slice_checked,
    nan_checked=False,
    series="linear",
)

# --- dynamic_update_slice -------------------------------------------------------------------------------


def _update_types(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    _check_starts("dynamic_update_slice", starts)
    if x.dtype != update.dtype:
        raise DtypeError(
            f"dynamic_update_slice requires arguments to have the same dtypes, got {x.short}, {update.short}",
            instead="update.astype(operand.dtype)",
        )
    if x.ndim != update.ndim or len(starts) != x.ndim:
        raise ShapeError(f"dynamic_update_slice: {update.short} does not fit into {x.short}", shapes=[x.shape])
    if any(u > n for u, n in zip(update.shape, x.shape, strict=True)):
        raise ShapeError(f"dynamic_update_slice: {update.short} is larger than {x.short}", shapes=[x.shape])
    return shaped(x.shape, x.dtype)


def _update_lower(f: Function, x: Value, update: Value, *starts: Value) -> Value:
    return f.op("stablehlo.dynamic_update_slice", [x, update, *_all_starts(f, starts, x.aval.ndim)], f.out)


def _update_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> list[Any]:
    update_aval = update.aval if is_linear(update) else typeof(update)
    ct_x = dynamic_update_slice(ct, zeros(update_aval.cotangent()), *starts) if is_linear(x) else None
    ct_update = dynamic_slice(ct, *starts, slice_sizes=update_aval.shape) if is_linear(update) else None
    return [ct_x, ct_update, *[None] * len(starts)]


def _update_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]) -> tuple[Any, Dim]:
    x, update, *starts = args
    if all(d is None for d in dims[2:]):
        x, update = (place_axis(a, d, 0, axis.size) for a, d in ((x, dims[0]), (update, dims[1])))
        return dynamic_update_slice(x, update, _zero_start(starts), *starts), 0
    from .dimension_numbers import GatherScatterMode, ScatterDimensionNumbers
    from .scatter import scatter

    every = tuple(range(len(starts)))
    return scatter.rule("batch")(
        axis,
        [x, _index_vectors(axis, starts, dims[2:]), update],
        [dims[0], 0, dims[1]],
        dimension_numbers=ScatterDimensionNumbers(every, (), every),
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
    )


def _update_checked(checks: Any, x: Any, update: Any, *starts: Any) -> None:
    shape = typeof(x).shape
    checks.inside(shape, lambda: _starts_and_limits(starts, shape, typeof(update).shape))


def _update_sharding(out: ShapedArray, x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> Entries:
    avals = (x, update)
    pairs = zip(entries_of(x), entries_of(update), strict=True)
    entries = tuple(join("dynamic_update_slice", avals, pair) for pair in pairs)
    for axis, entry in enumerate(entries):
        if entry and update.shape[axis] % (update if x.spec is None else x).spec.pieces(axis):  # type: ignore[union-attr]
            refuse(
                "dynamic_update_slice", f"axis {axis} of the update cannot be split as that of the array", avals, _PUT
            )
    return entries


_PUT = "x.at[...].set(update, out_sharding=phlox.P(...))"


dynamic_update_slice = Primitive(
    "dynamic_update_slice",
    types=_update_types,
    sharding=_update_sharding,
    lower=_update_lower,
    jvp=linear_jvp(lambda: dynamic_update_slice, slice(2)),
    transpose=_update_transpose,
    batch=_update_batch,
    pad=padding.dynamic_update_slice_pad,
    extend=lambda params, trailing, *avals: params,
    keys=lambda eqn, uses_of: KeyUses(((1, True),), passed=((0, 0),)),
    checked=_update_checked,
    nan_checked=False,
    series="linear",
)
