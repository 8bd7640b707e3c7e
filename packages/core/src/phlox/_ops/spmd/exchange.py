"""Collectives that move data between the examples of a mapped axis, or the devices of one: all_gather, reduce_scatter,
all_to_all, ppermute. They are linear, and each is transposed to another of them.

Under vmap the mapped axis is an axis of the operand, so they become transposes and reshapes. Parameters count the axes
of one example; `axis_size` is the length of the mapped axis, or of each of `axis_index_groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ..._base.errors import OptionError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import Entries, entries_of
from ..._trace.axes import axis_size as length_of
from ..._trace.trace import typeof
from ..._transform.array_operations import add, insert_axis, move_axis, zeros
from ..._transform.batch import BatchAxis, Dim, run_batched
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import mul
from ..elementwise.families import NUMBER, check_kind, literal
from ..reductions.reduce import combined, reduce_sum
from ..structure.shape import concatenate, merge_axes, reshape, split_axis
from ..structure.slicing import along, dynamic_slice
from .collectives import (
    CHANNEL,
    Axes,
    Groups,
    axis_index,
    groups,
    groups_text,
    ints_of_rows,
    raise_unbound,
    varying_over,
)

Params = dict[str, Any]


def _exchange(
    name: str,
    *,
    transpose: Callable[..., Any],
    over_batch: Callable[..., tuple[Any, Dim]],
    other_axis_batch: Callable[..., tuple[Any, Dim]],
    by_single_axes: Callable[..., Any] | None = None,
    moves: bool = True,
    **rules: Any,
) -> Primitive:
    """A linear collective of one operand.

    `over_batch(axis, x, dim, **params)` is the batching rule if vmap maps the axis of the collective, and
    `other_axis_batch(x, dim, **params)` if vmap maps another axis. `by_single_axes(x, lengths, **params)`, with the
    length of each axis by name, does the work of a collective over several axes by collectives over one axis each.
    `moves` is true if elements are only moved, not combined. `rules` are others of `Primitive`.
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        return primitive.bind(x, **params), primitive.bind(varying_over(t, params["axis_name"]), **params)

    def batch(
        axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], axis_name: Axes, **params: Any
    ) -> tuple[Any, Dim]:
        (x,), (dim,) = args, dims
        if axis.name not in axis_name:
            return other_axis_batch(x, dim, axis_name=axis_name, **params)
        if params.get("axis_index_groups") is not None:
            raise UnsupportedError(f"{name} with axis_index_groups over axis {axis.name!r}, which vmap maps")
        if len(axis_name) > 1:
            if by_single_axes is None:
                raise UnsupportedError(
                    f"{name} over several axes {axis_name}, of which vmap maps {axis.name!r}",
                    instead=f"one {name} for each axis",
                )
            lengths = {n: axis.size if n == axis.name else length_of(n) for n in axis_name}
            # Of the collectives over one axis each, one is over the mapped axis, and has its own rule.
            (out,), (out_dim,) = run_batched(lambda x: [by_single_axes(x, lengths, **params)], axis, args, dims)
            return out, out_dim
        return over_batch(axis, x, dim, **params)

    primitive = Primitive(
        name,
        jvp=jvp,
        transpose=lambda ct, x, **params: [transpose(ct, **params)],
        batch=batch,
        extend=(lambda params, trailing, *avals: params) if moves else None,
        axes=lambda params: params["axis_name"],
        eager=lambda x, axis_name, **params: raise_unbound(axis_name),
        nan_checked=not moves,
        series="linear",
        **rules,
    )
    return primitive


def _split(x: Any, axis: int, count: int) -> Any:
    """`x` with an axis split in two: one of length `count`, followed by one along each part."""
    shape = typeof(x).shape
    if shape[axis] % count:
        raise ShapeError(f"axis {axis} of {typeof(x).short} cannot be split evenly into {count} parts", axis=axis)
    return split_axis(x, axis, count)


def _split_into(x: Any, axis: int, lengths: Sequence[int]) -> Any:
    """`x` with an axis split into axes of these lengths."""
    shape = typeof(x).shape
    return reshape(x, new_sizes=(*shape[:axis], *lengths, *shape[axis + 1 :]), dimensions=None)


# --- all_gather -----------------------------------------------------------------------------------------


def _all_gather_types(
    x: ShapedArray, all_gather_dimension: int, axis_name: Axes, axis_index_groups: Groups, axis_size: int, tiled: bool
) -> ShapedArray:
    at, shape = all_gather_dimension, x.shape
    new = (shape[at] * axis_size, *shape[at + 1 :]) if tiled else (axis_size, *shape[at:])
    return shaped((*shape[:at], *new), x.dtype, x.weak_type)


def _all_gather_lower(
    f: Function, x: Value, all_gather_dimension: int, axis_name: Axes, axis_index_groups: Groups, tiled: bool, **_: Any
) -> Value:
    at, shape = all_gather_dimension, x.aval.shape
    if not tiled:
        x = f.unlike("stablehlo.reshape", x, shaped((*shape[:at], 1, *shape[at:]), x.aval.dtype))
    attributes = f"all_gather_dim = {at} : i64, {groups_text(f, axis_name, axis_index_groups)}"
    return f.op("stablehlo.all_gather", [x], f.out, f"{attributes}, {CHANNEL}, use_global_device_ids")


def _all_gather_over_batch(
    axis: BatchAxis, x: Any, dim: Dim, all_gather_dimension: int, tiled: bool, **_: Any
) -> tuple[Any, Dim]:
    at = all_gather_dimension
    whole = insert_axis(x, axis.size, at) if dim is None else move_axis(x, dim, at)
    return (merge_axes(whole, at) if tiled else whole), None


def _all_gather_other_axis_batch(
    x: Any, dim: Dim, gather: Primitive, all_gather_dimension: int, tiled: bool, **params: Any
) -> tuple[Any, Dim]:
    at = all_gather_dimension
    if dim is not None:
        # `at` counts the axes of one example. The mapped axis moves up where the result has a new axis before it.
        is_before = dim <= at
        at, dim = at + is_before, dim + (not is_before and not tiled)
    return gather.bind(x, all_gather_dimension=at, tiled=tiled, **params), dim


def _all_gather_by_single_axes(
    x: Any, lengths: dict[Any, int], all_gather_dimension: int, tiled: bool, **params: Any
) -> Any:
    at, shape = all_gather_dimension, typeof(x).shape
    for name in reversed(lengths):  # the index along the first name varies slowest
        x = all_gather.bind(
            x, **{**params, "axis_size": lengths[name]}, axis_name=(name,), all_gather_dimension=at, tiled=tiled
        )
    return x if tiled else reshape(x, new_sizes=(*shape[:at], prod(lengths.values()), *shape[at:]), dimensions=None)


def _all_gather_sharding(out: ShapedArray, x: ShapedArray, all_gather_dimension: int, tiled: bool, **_: Any) -> Entries:
    at, entries = all_gather_dimension, entries_of(x)
    return entries if tiled else (*entries[:at], (), *entries[at:])


all_gather = _exchange(
    "all_gather",
    types=_all_gather_types,
    sharding=_all_gather_sharding,
    lower=_all_gather_lower,
    # All results contain the part of each device, so its cotangent is the sum of what all of them say about this part.
    transpose=lambda ct, all_gather_dimension, **params: reduce_scatter.bind(
        ct, scatter_dimension=all_gather_dimension, **params
    ),
    over_batch=_all_gather_over_batch,
    other_axis_batch=lambda x, dim, **params: _all_gather_other_axis_batch(x, dim, all_gather, **params),
    by_single_axes=_all_gather_by_single_axes,
)


def _own_part(ct: Any, all_gather_dimension: int, axis_name: Axes, axis_size: int, tiled: bool, **_: Any) -> Any:
    """The part of a gathered array that this device has contributed."""
    index = zeros(shaped((), dtypes.int32))
    for name in axis_name:  # the index along the first name varies slowest
        index = add(mul(index, literal(index, length_of(name))), axis_index.bind(axis_name=name))
    at, shape = all_gather_dimension, typeof(ct).shape
    size = shape[at] // axis_size
    starts = [literal(index, 0)] * len(shape)
    starts[at] = mul(index, literal(index, size))
    sizes = (*shape[:at], size, *shape[at + 1 :])
    part = dynamic_slice.bind(varying_over(ct, axis_name), *starts, slice_sizes=sizes)
    return part if tiled else reshape(part, new_sizes=(*shape[:at], *shape[at + 1 :]), dimensions=None)


#: `all_gather` over tracked axes, whose result is one value that all devices hold, and not one value of each device
all_gather_invariant = _exchange(
    "all_gather_invariant",
    types=_all_gather_types,
    sharding=_all_gather_sharding,
    vma=lambda avals, params: avals[0].vma.difference(params["axis_name"]),
    lower=_all_gather_lower,
    transpose=_own_part,
    over_batch=_all_gather_over_batch,
    other_axis_batch=lambda x, dim, **params: _all_gather_other_axis_batch(x, dim, all_gather_invariant, **params),
)

# --- reduce_scatter -------------------------------------------------------------------------------------


def _reduce_scatter_types(
    x: ShapedArray, scatter_dimension: int, axis_name: Axes, axis_index_groups: Groups, axis_size: int, tiled: bool
) -> ShapedArray:
    check_kind("psum_scatter", x, NUMBER)
    at, length = scatter_dimension, x.shape[scatter_dimension]
    if tiled and length % axis_size:
        raise ShapeError(
            f"psum_scatter: axis {at} of {x.short} is not a multiple of the {axis_size} that share the sum", axis=at
        )
    if not tiled and length != axis_size:
        raise ShapeError(
            f"psum_scatter: axis {at} of {x.short} does not have the length {axis_size} of the mapped axis",
            instead="tiled=True, which gives each a part of several elements",
            axis=at,
        )
    shard_lengths = (length // axis_size,) if tiled else ()
    return shaped((*x.shape[:at], *shard_lengths, *x.shape[at + 1 :]), x.dtype, x.weak_type)


def _reduce_scatter_lower(
    f: Function,
    x: Value,
    scatter_dimension: int,
    axis_name: Axes,
    axis_index_groups: Groups,
    axis_size: int,
    tiled: bool,
) -> Value:
    at, shape = scatter_dimension, x.aval.shape
    part = shaped((*shape[:at], shape[at] // axis_size, *shape[at + 1 :]), x.aval.dtype)
    scalar = shaped((), x.aval.dtype)
    body = f.region([scalar, scalar], lambda g, a, b: [combined(g, "stablehlo.add", a, b)])
    attributes = f"scatter_dimension = {at} : i64, {groups_text(f, axis_name, axis_index_groups)}"
    out = f.op("stablehlo.reduce_scatter", [x], part, f"{attributes}, {CHANNEL}, use_global_device_ids", [body])
    return out if tiled else f.unlike("stablehlo.reshape", out, f.out)


def _reduce_scatter_over_batch(
    axis: BatchAxis, x: Any, dim: Dim, scatter_dimension: int, tiled: bool, **_: Any
) -> tuple[Any, Dim]:
    # The operand is not mapped: each example adds the same array.
    total = mul(x, literal(x, axis.size)) if dim is None else reduce_sum(x, axes=(dim,))
    return (_split(total, scatter_dimension, axis.size) if tiled else total), scatter_dimension


def _reduce_scatter_other_axis_batch(
    x: Any, dim: Dim, scatter_dimension: int, tiled: bool, **params: Any
) -> tuple[Any, Dim]:
    at = scatter_dimension
    if dim is not None:
        # As in `_all_gather_other_axis_batch`; the mapped axis moves down where the result has one axis fewer before.
        is_before = dim <= at
        at, dim = at + is_before, dim - (not is_before and not tiled)
    return reduce_scatter.bind(x, scatter_dimension=at, tiled=tiled, **params), dim


def _reduce_scatter_by_single_axes(
    x: Any, lengths: dict[Any, int], scatter_dimension: int, tiled: bool, **params: Any
) -> Any:
    at = scatter_dimension
    if not tiled:
        x = _split_into(x, at, list(lengths.values()))
    for name, length in lengths.items():
        x = reduce_scatter.bind(
            x, **{**params, "axis_size": length}, axis_name=(name,), scatter_dimension=at, tiled=tiled
        )
    return x


def _reduce_scatter_sharding(
    out: ShapedArray, x: ShapedArray, scatter_dimension: int, tiled: bool, **_: Any
) -> Entries:
    at, entries = scatter_dimension, entries_of(x)
    return entries if tiled else (*entries[:at], *entries[at + 1 :])


reduce_scatter = _exchange(
    "reduce_scatter",
    types=_reduce_scatter_types,
    sharding=_reduce_scatter_sharding,
    lower=_reduce_scatter_lower,
    transpose=lambda ct, scatter_dimension, **params: all_gather.bind(
        ct, all_gather_dimension=scatter_dimension, **params
    ),
    over_batch=_reduce_scatter_over_batch,
    other_axis_batch=_reduce_scatter_other_axis_batch,
    by_single_axes=_reduce_scatter_by_single_axes,
    moves=False,
)

# --- all_to_all -----------------------------------------------------------------------------------------


def _all_to_all_types(
    x: ShapedArray, axis_name: Axes, split_axis: int, concat_axis: int, axis_index_groups: Groups, axis_size: int
) -> ShapedArray:
    shape = list(x.shape)
    if shape[split_axis] % axis_size:
        raise ShapeError(
            f"all_to_all: axis {split_axis} of {x.short} cannot be split evenly over {axis_size}", axis=split_axis
        )
    shape[split_axis] //= axis_size
    shape[concat_axis] *= axis_size
    return shaped(tuple(shape), x.dtype)


def _all_to_all_lower(
    f: Function,
    x: Value,
    axis_name: Axes,
    split_axis: int,
    concat_axis: int,
    axis_index_groups: Groups,
    axis_size: int,
) -> Value:
    attributes = (
        f"split_dimension = {split_axis} : i64, concat_dimension = {concat_axis} : i64, "
        f"split_count = {axis_size} : i64, {groups_text(f, axis_name, axis_index_groups)}, {CHANNEL}"
    )
    return f.op("stablehlo.all_to_all", [x], f.out, attributes)


def _all_to_all_over_batch(
    axis: BatchAxis, x: Any, dim: Dim, split_axis: int, concat_axis: int, **_: Any
) -> tuple[Any, Dim]:
    # The operand is [sender, ..., receiver, part, ...]; the receivers become the batch axis.
    whole = insert_axis(x, axis.size, 0) if dim is None else move_axis(x, dim, 0)
    parts = move_axis(_split(whole, split_axis + 1, axis.size), split_axis + 1, 0)
    return merge_axes(move_axis(parts, 1, concat_axis + 1), concat_axis + 1), 0


def _all_to_all_other_axis_batch(x: Any, dim: Dim, split_axis: int, concat_axis: int, **params: Any) -> tuple[Any, Dim]:
    if dim is not None:
        split_axis, concat_axis = split_axis + (dim <= split_axis), concat_axis + (dim <= concat_axis)
    return all_to_all.bind(x, split_axis=split_axis, concat_axis=concat_axis, **params), dim


def _all_to_all_by_single_axes(
    x: Any, lengths: dict[Any, int], split_axis: int, concat_axis: int, **params: Any
) -> Any:
    x = _split(x, split_axis, prod(lengths.values()))
    x = _split_into(x, split_axis, list(lengths.values()))  # (..., receivers by name, part, ...)
    for i, (name, length) in enumerate(lengths.items()):  # exchange receivers and senders along one axis at a time
        at = split_axis + i
        x = all_to_all.bind(x, **{**params, "axis_size": length}, axis_name=(name,), split_axis=at, concat_axis=at)
    # The axes now number the senders, the first name slowest: (..., senders by name, part, ...). They go in front of
    # `concat_axis` and are merged with it.
    count, concat_is_after = len(lengths), concat_axis > split_axis
    for i in range(count):
        source, to = (split_axis, concat_axis + count - 1) if concat_is_after else (split_axis + i, concat_axis + i)
        x = move_axis(x, source, to)
    for _ in lengths:
        x = merge_axes(x, concat_axis)
    return x


all_to_all = _exchange(
    "all_to_all",
    types=_all_to_all_types,
    sharding=lambda out, x, **_: entries_of(x),
    lower=_all_to_all_lower,
    # Parts go back to their senders, by the same exchange with the split and concat axes exchanged.
    transpose=lambda ct, split_axis, concat_axis, **params: all_to_all.bind(
        ct, split_axis=concat_axis, concat_axis=split_axis, **params
    ),
    over_batch=_all_to_all_over_batch,
    other_axis_batch=_all_to_all_other_axis_batch,
    by_single_axes=_all_to_all_by_single_axes,
)

# --- ppermute -------------------------------------------------------------------------------------------

Pairs = tuple[tuple[int, int], ...]


def check_pairs(perm: Pairs, size: int) -> None:
    """Raises `OptionError` unless sources and targets are indices of the axis, without repetitions on either side."""
    sources, targets = [s for s, _ in perm], [t for _, t in perm]
    for what, indices in (("source", sources), ("destination", targets)):
        if len(set(indices)) < len(indices):
            raise OptionError(f"ppermute: perm={perm} has the same {what} twice")
    if any(not 0 <= index < size for pair in perm for index in pair):
        raise OptionError(f"ppermute: perm={perm} has an index that is not below the axis' length of {size}")


def _ppermute_lower(f: Function, x: Value, axis_name: Axes, perm: Pairs) -> Value:
    rows = groups(f, axis_name)
    check_pairs(perm, rows.shape[1])
    pairs = [[int(row[s]), int(row[t])] for row in rows for s, t in perm]
    attributes = f"source_target_pairs = dense<{ints_of_rows(pairs)}> : tensor<{len(pairs)}x2xi64>, {CHANNEL}"
    return f.op("stablehlo.collective_permute", [x], x.aval, attributes)


def _ppermute_over_batch(axis: BatchAxis, x: Any, dim: Dim, perm: Pairs) -> tuple[Any, Dim]:
    check_pairs(perm, axis.size)
    if dim is None:
        # Each index is a target, and all examples hold the same value.
        if len(perm) == axis.size:
            return x, None
        x, dim = insert_axis(x, axis.size, 0), 0
    sources = {t: s for s, t in perm}

    def received(target: int) -> Any:
        source = sources.get(target, 0)
        part = along(x, dim, source, source + 1)
        return part if target in sources else zeros(typeof(part))

    return concatenate(*map(received, range(axis.size)), dimension=dim), dim


ppermute = _exchange(
    "ppermute",
    types=lambda x, axis_name, perm: x,
    lower=_ppermute_lower,
    # A cotangent goes back the way that the value came.
    transpose=lambda ct, axis_name, perm: ppermute.bind(ct, axis_name=axis_name, perm=tuple((t, s) for s, t in perm)),
    over_batch=_ppermute_over_batch,
    other_axis_batch=lambda x, dim, **params: (ppermute.bind(x, **params), dim),
)
