"""NumPy indexing: reading with ``x[...]`` and the functions take, take_along_axis, diagonal.

An index is parsed into a `Plan`, a hashable description, and dynamic operands: integers and index arrays. (Integers are
not in the plan, so that ``x[i]`` in a Python loop compiles once.) `at.py` writes with the same plans.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._api.jit.jit import jit
from ..._base import config
from ..._base.errors import ArgumentError, IndexingError, IndexTypeError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._ir.dimensions import max_dim, min_dim, value_of
from ..._ir.primitive import current_trace
from ..._operands.broadcasting import where
from ..._operands.checks import canonical_axis, check, check_one, integer, refuse_out, type_of
from ..._operands.index_bounds import FILL, READ, check_positions
from ..._operands.indices import from_front, positions
from ..._operands.promotion import to_dtype
from ..._ops.elementwise.families import literal
from ..._ops.random.keys import KeyDtype
from ..._ops.structure import shape as ops
from ..._ops.structure.dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from ..._ops.structure.gather import gather
from ..._ops.structure.slicing import dynamic_slice, slice_
from ..._xla import key_records
from ...typing import Array, ArrayLike
from .._elementwise.binary import maximum
from .._manipulation.broadcasting import broadcast_shapes, broadcast_to
from .._manipulation.shapes import flat_or_along, moveaxis, ravel, reshape
from .ds import is_window, window
from .plan import Item, Plan, SlicedAxis, parse, plain

# --- reading --------------------------------------------------------------------------------------------


def getitem(x: Any, index: Any) -> Any:
    """``x[index]`` by NumPy's rules; indices out of bounds are clamped."""
    shape = x.aval.shape
    parsed = plain(index, shape)
    if parsed is None:
        if is_window(index):
            part = window(index, shape)
            return getitem(part.read(x), part.rest)
        parsed = parse(index, shape, access=READ)
    plan, dynamic = parsed
    out = read(x, *dynamic, plan=plan, how=_PLAIN)
    dtype = x.aval.dtype
    # Uses of a key are recorded through indexing: with strict checks also of raw keys, which are arrays of uint32.
    is_followed = type(dtype) is KeyDtype or (dtype is dtypes.uint32 and config.current().checks == "strict")
    if is_followed and current_trace.get() is None:
        key_records.select(x, out, index)
    return out


class How(NamedTuple):
    """How an index is used: promises about its arrays, and the mode for positions out of bounds."""

    sorted: bool = False
    unique: bool = False
    mode: Any = None
    wraps: bool = True


_PLAIN = How()


@functools.partial(jit, inline=True, static_argnames=("plan", "how", "fill_value"))
def read(x: Any, *dynamic: Any, plan: Plan, how: How, fill_value: Any = None) -> Any:
    """The elements that a parsed index selects."""
    if how.mode is None and plan.wraps and "array" not in plan.items and "mask" not in plan.items:
        return read_basic(x, dynamic, plan.items)
    layout = layout_of(type_of(x).shape, plan, list(dynamic))
    if 0 in type_of(x).shape and 0 not in layout.shape:
        raise IndexingError(f"{type_of(x).short} has no elements, but the index asks for {layout.shape}")
    out = gather(
        x,
        layout.indices,
        dimension_numbers=GatherDimensionNumbers(layout.window, layout.collapsed, layout.axes),
        slice_sizes=layout.sizes,
        unique_indices=how.unique,
        indices_are_sorted=how.sorted,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS if how.mode is None else GatherScatterMode.from_any(how.mode),
        fill_value=fill_value,
    )
    return insert_new_axes(out, layout.kinds)


def read_basic(x: Any, dynamic: Sequence[Any], items: tuple[Item, ...]) -> Any:
    """Integers, slices and new axes: slicing, then dropping and adding axes of length one."""
    shape = type_of(x).shape
    consuming = [item for item in items if item != "new"]
    integers = iter(dynamic)
    numbers = [next(integers) if item == "int" else None for item in consuming]
    # A compiled program cannot raise: dynamic_slice clamps positions out of bounds. Static ones use it too, so that
    # checkify sees them.
    fixed = [i if type(i) is int and 0 <= i < n else None for i, n in zip(numbers, shape, strict=True)]
    # One `slice` for all static entries: slices, and integers that are Python numbers.
    starts, limits, steps = [], [], []
    for n, item, i in zip(shape, consuming, fixed, strict=True):
        if isinstance(item, SlicedAxis):
            # XLA has no negative strides: the elements are sliced forwards and then reversed.
            if item.step > 0:
                starts.append(item.start)
                limits.append(item.start + item.size if item.step == 1 else max_dim(item.start, item.stop))
            else:
                # Without elements the last one would be behind the first. A symbolic size may be 0 for some lengths.
                starts.append(min_dim(item.start + (item.size - 1) * item.step, item.start + 1))
                limits.append(item.start + 1)
            steps.append(abs(item.step))
        else:
            starts.append(0 if i is None else i)
            limits.append(n if i is None else i + 1)
            steps.append(1)
    if any(lo != 0 or hi != n or st != 1 for lo, hi, st, n in zip(starts, limits, steps, shape, strict=True)):
        strides = None if all(st == 1 for st in steps) else tuple(steps)
        x = slice_(x, start_indices=tuple(starts), limit_indices=tuple(limits), strides=strides)
    reverse = tuple(i for i, item in enumerate(consuming) if isinstance(item, SlicedAxis) and item.step < 0)
    if reverse:
        x = ops.rev(x, dimensions=reverse)
    if any(i is not None and f is None for i, f in zip(numbers, fixed, strict=True)):
        x = _slice_at(x, shape, numbers, fixed)
    dropped = tuple(i for i, item in enumerate(consuming) if item == "int")
    x = ops.squeeze(x, dimensions=dropped) if dropped else x
    return insert_new_axes(x, [item for item in items if item != "int"])


def _slice_at(x: Any, shape: tuple[int, ...], numbers: Sequence[Any], fixed: Sequence[Any]) -> Any:
    """The slice of length one at each axis whose position is dynamic."""
    sizes = list(type_of(x).shape)
    starts = []
    for axis, (i, known) in enumerate(zip(numbers, fixed, strict=True)):
        if i is None or known is not None:
            starts.append(np.int32(0))
        else:
            starts.append(from_front(i, shape[axis]))
            # Of an empty axis no slice of length 1 can be taken.
            sizes[axis] = min_dim(shape[axis], 1)
    # All start indices of a slice have one dtype: that of the first index that is an array.
    dtype = next((type_of(s).dtype for s in starts if not isinstance(s, np.generic)), dtypes.int32)
    return dynamic_slice(x, *(to_dtype(s, dtype) for s in starts), slice_sizes=tuple(sizes))


def insert_new_axes(x: Any, items: Sequence[Item]) -> Any:
    """`x` with an axis of length one inserted for each item "new"; its axes correspond to the other items."""
    if "new" not in items:
        return x
    old_axes = tuple(i for i, item in enumerate(items) if item != "new")
    lengths = iter(type_of(x).shape)
    shape = tuple(1 if item == "new" else next(lengths) for item in items)
    return ops.broadcast_in_dim(x, shape=shape, broadcast_dimensions=old_axes)


# --- index arrays: the layout of a gather or scatter ----------------------------------------------------


class Layout(NamedTuple):
    """The parameters of the gather or scatter for an index with arrays.

    indices: integer array, the last axis one index vector; its other axes are batch axes of the result.
    axes: operand axes that the vector's components belong to.
    sizes: length of the slice along each operand axis; those of `collapsed` axes do not appear in the result.
    window: positions in the result of the operand axes that remain.
    shape: of the result without new axes; `kinds` names each of its axes and the new ones.
    """

    indices: Any
    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    collapsed: tuple[int, ...]
    window: tuple[int, ...]
    shape: tuple[int, ...]
    kinds: tuple[str, ...]


class _Result(NamedTuple):
    """The axes of the result of an index with arrays.

    lengths: of its axes without new ones; `kinds` names each axis, new ones included.
    batch_start: position of the first axis of the index arrays.
    window: positions of slices with step 1, which the gather copies as a whole.
    strided: positions of other slices, by their item of the index.
    """

    lengths: tuple[int, ...]
    kinds: tuple[str, ...]
    batch_start: int
    window: tuple[int, ...]
    strided: dict[int, int]


def _result_axes(items: Sequence[Item], batch: tuple[int, ...]) -> _Result:
    """The axes of the result. Those of the index arrays, `batch`, are where the arrays were in the index, or first if
    the arrays were not adjacent."""
    advanced = [i for i, item in enumerate(items) if item in ("array", "int", "mask")]
    # NumPy's rule: the axes of adjacent index arrays stay where these are; arrays with a slice between them have no
    # such place, so their axes come first.
    is_adjacent = not advanced or advanced[-1] - advanced[0] + 1 == len(advanced)
    only_integers = all(items[i] == "int" for i in advanced)
    batch_item = advanced[0] if advanced and (is_adjacent or only_integers) else 0
    kinds: list[str] = []
    lengths: list[int] = []
    strided: dict[int, int] = {}
    window: list[int] = []
    batch_start = None
    for i, item in enumerate([*items, "end"]):
        if i == batch_item and batch_start is None:
            batch_start = len(lengths)
            kinds += ["batch"] * len(batch)
            lengths += batch
        if item == "new":
            kinds.append("new")
        elif isinstance(item, SlicedAxis):
            if item.step == 1:
                window.append(len(lengths))
            else:
                strided[i] = len(lengths)
            kinds.append("slice")
            lengths.append(item.size)
    assert batch_start is not None
    return _Result(tuple(lengths), tuple(kinds), batch_start, tuple(window), strided)


def layout_of(shape: tuple[int, ...], plan: Plan, dynamic: Sequence[Any]) -> Layout:
    """The layout of an index with arrays, by NumPy's rules for the position of their axes in the result."""
    items = plan.items
    advanced = [i for i, item in enumerate(items) if item in ("array", "int", "mask")]
    parts = dict(zip(advanced, dynamic, strict=True))
    batch = broadcast_shapes(*[type_of(parts[i]).shape for i in advanced]) if advanced else ()
    result = _result_axes(items, batch)
    outer = [p for p in range(len(result.lengths)) if p not in result.window]  # batch axes of the gather, in order
    outer_shape = tuple(result.lengths[p] for p in outer)
    components: list[Any] = []
    axes: list[int] = []
    collapsed: list[int] = []
    sizes: list[int] = []
    for axis, (i, item) in enumerate((i, item) for i, item in enumerate(items) if item not in ("new", "mask")):
        n = shape[axis]
        if isinstance(item, SlicedAxis):
            sizes.append(item.size if item.step == 1 else min_dim(n, 1))
            if item.step == 1 and item.start == 0 and item.size == n:
                continue
            if item.step == 1:
                components.append(to_dtype(value_of(item.start), dtypes.int32))
            else:
                # A gather reads contiguous windows. A slice with a step becomes an array of positions.
                axis_positions = positions(item.size) * item.step + item.start
                components.append(_spread(axis_positions, outer_shape, (outer.index(result.strided[i]),)))
                collapsed.append(axis)
        else:
            part = parts[i]
            # `parse` has already wrapped static positions.
            front = from_front(part, n if plan.wraps and type(part) is not int else None)
            ndim = type_of(part).ndim
            # Index arrays broadcast against each other: those of lower rank are aligned with the last axes of the
            # batch.
            first = result.batch_start + len(batch) - ndim
            components.append(_spread(front, outer_shape, tuple(outer.index(first + k) for k in range(ndim))))
            collapsed.append(axis)
            sizes.append(min_dim(n, 1))
        axes.append(axis)
    return Layout(
        _vectors(components, outer_shape),
        tuple(axes),
        tuple(sizes),
        tuple(collapsed),
        result.window,
        result.lengths,
        result.kinds,
    )


def _spread(x: Any, outer: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """An index array broadcast to the outer shape, with its axes at `dims`; scalars are returned unchanged."""
    shape = type_of(x).shape
    if not shape:
        return x
    return ops.broadcast_in_dim(x, shape=tuple(outer), broadcast_dimensions=dims) if shape != outer else x


def _vectors(components: list[Any], outer: tuple[int, ...]) -> Any:
    """The components as index vectors along a new last axis."""
    if not components:
        return np.zeros((*outer, 0), np.int32)
    wide = dtypes.int64 if any(type_of(c).dtype == dtypes.int64 for c in components) else dtypes.int32
    if len(components) > 1 or isinstance(components[0], int | np.generic | np.ndarray):
        dtype = wide
    else:
        dtype = type_of(components[0]).dtype
    columns = []
    for c in components:
        c = to_dtype(c, dtype)
        dims = tuple(range(len(outer))) if type_of(c).shape else ()
        columns.append(ops.broadcast_in_dim(c, shape=(*outer, 1), broadcast_dimensions=dims))
    return columns[0] if len(columns) == 1 else ops.concatenate(*columns, dimension=len(outer))


# --- functions ------------------------------------------------------------------------------------------


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Elements of `a` at `indices` along `axis` (as ``numpy.take``).

    Args:
      a: array of any shape.
      indices: integer array of any shape, or a number. Negative ones count from the end, except with mode 'clip'.
      axis: axis along which elements are taken; None takes them from the flattened array.
      out: not supported, must be None.
      mode: treatment of out-of-bounds indices: 'fill' (default) returns `fill_value`, 'clip' takes the nearest element
        of the axis, 'wrap' starts again from the first; 'promise_in_bounds' promises that there are none.
      unique_indices, indices_are_sorted: promises that no index occurs twice and that the indices are in ascending
        order, which allow faster code.
      fill_value: value returned for out-of-bounds indices with mode 'fill'; None is nan for floats, the smallest value
        of signed and the largest of unsigned integers, or True.

    Returns:
      An array of the shape of `a` with the axes of `indices` in place of `axis`, of the dtype of `a`.

    Raises:
      ArgumentError: `indices` are not integers.
      IndexingError: `axis` has no elements, but `indices` do.
      OptionError: `mode` is not one of the listed names.
      UnsupportedError: `out` is not None, or `mode` is 'raise'.

    >>> jnp.take(jnp.array([4, 5, 6]), jnp.array([2, 0]))
    Array([6, 4], dtype=int32)
    """
    if mode is None:
        check_positions("take", a, indices, axis, FILL)
    return _take(a, indices, axis, out, How(indices_are_sorted, unique_indices, mode), fill_value)


@functools.partial(jit, inline=True, static_argnames=("axis", "out", "how", "fill_value"))
def _take(a: Any, indices: Any, axis: int | None, out: None, how: How, fill_value: Any) -> Any:
    a, indices = check("take", a, indices)
    refuse_out("take", out)
    if how.mode == "raise":
        raise UnsupportedError("take: mode='raise' is not supported", instead="mode='clip', 'wrap' or 'fill'")
    if type_of(indices).dtype == dtypes.bool_:
        indices = to_dtype(indices, dtypes.int32)
    if dtypes.kind(type_of(indices).dtype) not in "iu":
        raise ArgumentError(f"take: indices must be integers, got {type_of(indices).short}", instead="x.astype(int)")
    a, at = flat_or_along("take", a, axis)
    if not type_of(a).shape[at] and 0 not in type_of(indices).shape:
        raise IndexingError(
            f"cannot do a non-empty jnp.take from an empty axis: axis {at} of {type_of(a).short}", index=indices
        )
    mode = "fill" if how.mode is None else how.mode
    if mode == "wrap":
        indices, mode = indices % type_of(a).shape[at], "clip"
    elif mode == "clip":
        indices = maximum(indices, 0)  # as in NumPy, negative indices do not count from the end in this mode
    plan, dynamic = parse((slice(None),) * at + (indices,), type_of(a).shape)
    return read(a, *dynamic, plan=plan, how=how._replace(mode=mode), fill_value=fill_value)


def grid_index(function: str, arr: Any, indices: Any, axis: int) -> tuple[Any, ...]:
    """An index that selects ``indices[position]`` along `axis`, and the position itself along other axes."""
    at, axis_indices, shape = _along_axis(function, arr, indices, axis)
    rank = len(shape)
    index: list[Any] = []
    for i in range(rank):
        if i == at:
            index.append(axis_indices)
        else:
            length = type_of(arr).shape[i]
            # An axis of length 1 is broadcast, so each position is 0.
            places_i = positions(shape[i]) if length != 1 else np.zeros(shape[i], np.int32)
            index.append(reshape(places_i, tuple(shape[i] if k == i else 1 for k in range(rank))))
    return tuple(index)


def _along_axis(function: str, arr: Any, indices: Any, axis: int) -> tuple[int, Any, tuple[int, ...]]:
    """The axis, the indices broadcast against `arr` along all other axes, and their shape."""
    rank = type_of(arr).ndim
    if type_of(indices).ndim != rank:
        raise ShapeError(
            f"{function}: indices and arr must have the same number of dimensions, got {type_of(indices).short} and "
            f"{type_of(arr).short}",
            shapes=[type_of(indices).shape, type_of(arr).shape],
        )
    at = canonical_axis(axis, rank, function)
    others = broadcast_shapes(*[(*s[:at], 1, *s[at + 1 :]) for s in (type_of(arr).shape, type_of(indices).shape)])
    shape = (*others[:at], type_of(indices).shape[at], *others[at + 1 :])
    return at, broadcast_to(indices, shape), shape


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """Elements of `arr` at `indices` along `axis`, each index for its own vector (as ``numpy.take_along_axis``).

    Args:
      arr: array with at least one axis.
      indices: integer array with as many axes as `arr`; its shape broadcasts against that of `arr`, except along
        `axis`.
      axis: axis along which elements are taken; None flattens both arrays.
      mode: treatment of out-of-bounds indices: 'fill' (default) returns `fill_value`, 'clip' takes the nearest element
        of the axis, 'one_hot' returns zero; 'promise_in_bounds' promises that there are none.
      fill_value: value returned for out-of-bounds indices with mode 'fill'; None is nan for floats, the smallest value
        of signed and the largest of unsigned integers, or True.
      wrap_negative_indices: False treats negative indices as out of bounds; by default they count from the end.

    Returns:
      An array of the shape of `indices`, broadcast along the other axes, and of the dtype of `arr`.

    Raises:
      ShapeError: the arrays have different numbers of axes, or do not broadcast.
      IndexingError: `indices` are not integers, or `arr` has no elements.
      OptionError: `mode` is not one of the listed names.

    >>> x = jnp.array([[3, 1, 2]])
    >>> jnp.take_along_axis(x, jnp.argsort(x), 1)
    Array([[1, 2, 3]], dtype=int32)
    """
    if mode is None:
        check_positions("take_along_axis", arr, indices, axis, FILL, wrap_negative_indices)
    return _take_along_axis(arr, indices, axis, mode, fill_value, wrap_negative_indices=wrap_negative_indices)


@functools.partial(jit, static_argnames=("axis", "mode", "fill_value", "wrap_negative_indices"))
def _take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None,
    mode: str | None,
    fill_value: Any,
    *,
    wrap_negative_indices: bool,
) -> Any:
    arr, indices = check("take_along_axis", arr, indices)
    if dtypes.kind(type_of(indices).dtype) not in "iu":
        raise IndexTypeError(
            f"take_along_axis indices must be of integer type, got {type_of(indices).dtype.name}", index=indices
        )
    if axis is None:
        arr, indices, axis = ravel(arr), ravel(indices), 0
    at, axis_indices, shape = _along_axis("take_along_axis", arr, indices, axis)
    lengths = type_of(arr).shape
    if 0 in lengths and 0 not in shape:
        raise IndexingError(f"{type_of(arr).short} has no elements, but the index asks for {shape}")
    how = GatherScatterMode.from_any("fill" if mode is None else mode)
    # Axes along which `arr` (of length one) is broadcast are axes of the indices only.
    kept_axes = [i for i in range(len(shape)) if i == at or lengths[i] == shape[i]]
    arr = reshape(arr, tuple(lengths[i] for i in kept_axes))
    # Along the other axes each index stays at its place: as batching dimensions they need no positions in the indices.
    numbers = GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(kept_axes.index(at),),
        start_index_map=(kept_axes.index(at),),
        operand_batching_dims=tuple(k for k, i in enumerate(kept_axes) if i != at),
        start_indices_batching_dims=tuple(i for i in kept_axes if i != at),
    )
    return gather(
        arr,
        reshape(from_front(axis_indices, lengths[at] if wrap_negative_indices else None), (*shape, 1)),
        dimension_numbers=numbers,
        slice_sizes=tuple(min(1, lengths[i]) for i in kept_axes),
        unique_indices=False,
        indices_are_sorted=False,
        mode=how,
        fill_value=fill_value,
    )


@functools.partial(jit, inline=True, static_argnames=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals of `a` in the plane of two axes, along a new last axis (as ``numpy.diagonal``).

    Args:
      a: array with at least two axes.
      offset: number of the diagonal: 0 is the main diagonal, positive numbers lie above it, negative numbers below it.
      axis1, axis2: axes of the matrices' rows and columns.

    Returns:
      An array of the dtype of `a`, of its shape without the two axes, followed by the axis of the diagonal.

    Raises:
      AxisError: an axis is out of bounds for `a`.

    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    a, offset = check_one("diagonal", a), integer("diagonal", "offset", offset)
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = type_of(a).shape[-2:]
    diagonal_positions = positions(max_dim(0, min_dim(rows + min(offset, 0), columns - max(offset, 0))))
    out = getitem(a, (Ellipsis, diagonal_positions - min(offset, 0), diagonal_positions + max(offset, 0)))
    # In JAX the main diagonal of a square matrix is computed in another way, whose result is strongly typed.
    return to_dtype(out, type_of(a).dtype) if not offset and type_of(a).shape == (rows, rows) else out


@functools.partial(jit, inline=True, static_argnames="k")
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The diagonal of a matrix, or the matrix whose diagonal is a given vector (as ``numpy.diag``).

    Args:
      v: matrix whose diagonal is extracted, or vector that is put on the diagonal.
      k: number of the diagonal: 0 is the main diagonal, positive numbers lie above it, negative numbers below it.

    Returns:
      A vector, or a square matrix that is zero elsewhere, of the dtype of `v`.

    Raises:
      ShapeError: `v` is neither vector nor matrix.
      ArgumentError: `k` is not an integer.

    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v, k = check_one("diag", v), integer("diag", "k", k)
    if type_of(v).ndim == 2:
        return diagonal(v, k)
    if type_of(v).ndim != 1:
        raise ShapeError(f"diag takes a vector or a matrix, got {type_of(v).short}")
    n = type_of(v).shape[0] + abs(k)
    zero = literal(v, 0)
    wide = ops.pad(v, zero, padding_config=((max(-k, 0), max(k, 0), 0),)) if k else v
    on = positions(n)[:, None] + k == positions(n)[None, :]
    return to_dtype(where(on, wide[:, None], zero), type_of(v).dtype, type_of(v).weak_type)
