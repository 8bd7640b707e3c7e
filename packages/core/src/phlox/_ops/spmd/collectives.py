"""Collectives: primitives that combine all examples of an axis mapped by vmap, or all devices along a mesh axis.

Under vmap the batching rule makes them reductions over the batch. In programs for several devices they are lowered to
StableHLO collectives; `f.axes` holds the mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base.errors import AxisNameError, OptionError, UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive, primitive as primitive_of, sharding_in_types, vma_in_types
from ..._ir.sharding_types import any_specs, each, manual_reductions, reductions_of, refuse
from ..._trace.axes import axis_size, tracked_axes
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, drop_zeros, linear_jvp
from ..._transform.batch import BatchAxis, Dim
from ..._transform.transpose import is_linear
from ..._xla.text import Function, Value, axis_text, ints
from ..elementwise.arithmetic import div, mul
from ..elementwise.families import literal
from ..elementwise.logic import eq, select
from ..reductions.reduce import Combine, combined, larger, reduce_max, reduce_min, reduce_sum, smaller
from ..structure.iota import iota
from ..structure.shape import convert

Axes = tuple[Any, ...]
#: the indices along the axes that form each group; None: one group of all
Groups = tuple[tuple[int, ...], ...] | None


def groups(f: Function, axes: Axes) -> np.ndarray:
    """The partition numbers of the devices in each group, one row per group."""
    mesh = f.axes
    names = [name for name, _ in mesh] if mesh else []
    missing = [axis for axis in axes if axis not in names]
    if missing:
        raise AxisNameError(f"unbound axis name: {missing[0]!r}", instead="pmap with this axis_name", axis=missing[0])
    sizes = [size for _, size in mesh]
    numbers = np.arange(int(np.prod(sizes))).reshape(sizes)
    grouped = [names.index(axis) for axis in axes]
    rest = [i for i in range(len(sizes)) if i not in grouped]
    count = int(np.prod([sizes[i] for i in grouped]))
    return numbers.transpose(*rest, *grouped).reshape(-1, count)


def groups_text(f: Function, axes: Axes, axis_index_groups: Groups = None) -> str:
    """The attribute `replica_groups`."""
    device_groups = groups(f, axes).tolist()
    if axis_index_groups is not None:
        device_groups = [[row[i] for i in group] for row in device_groups for group in axis_index_groups]
    longest = max(map(len, device_groups))
    # The attribute is a matrix, in which -1 fills up shorter groups.
    rows = ints_of_rows([[*row, *[-1] * (longest - len(row))] for row in device_groups])
    return f"replica_groups = dense<{rows}> : tensor<{len(device_groups)}x{longest}xi64>"


def ints_of_rows(rows: Sequence[Sequence[int]]) -> str:
    """Rows of numbers as MLIR text, such as ``[[0, 1], [2, 3]]``."""
    return f"[{', '.join(map(ints, rows))}]" if rows else ""


#: The attribute `channel_handle`. All collectives have one number, as in JAX: XLA merges equal collectives only if
#: their numbers are equal too. It is not 0, which means in HLO's protocol buffers that there is no channel.
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def _reduction(
    name: str,
    op: Combine,
    over_batch: Callable[..., Any],
    *,
    is_sum: bool = False,
    **rules: Any,
) -> Primitive:
    """psum, pmax or pmin: any number of operands, each reduced elementwise over mapped axes.

    `rules` are others of `Primitive`.
    """

    def lower(f: Function, *xs: Value, axes: Axes, axis_index_groups: Groups) -> list[Value]:
        results = []
        for x in xs:
            scalar = shaped((), x.aval.dtype)
            body = f.region([scalar, scalar], lambda g, a, b: [combined(g, op, a, b)])
            # In programs of several partitions a collective without channel and global ids fails when it runs.
            attributes = f"{groups_text(f, axes, axis_index_groups)}, {CHANNEL}, use_global_device_ids"
            results.append(f.op("stablehlo.all_reduce", [x], x.aval, attributes, [body]))
        return results

    def batch(
        axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], axes: Axes, axis_index_groups: Groups
    ) -> tuple[list[Any], list[Dim]]:
        if axis.name not in axes:
            return primitive.bind(*args, axes=axes, axis_index_groups=axis_index_groups), list(dims)
        if axis_index_groups is not None:
            raise UnsupportedError(f"{name} with axis_index_groups over axis {axis.name!r}, which vmap maps")
        reduced = []
        for x, d in zip(args, dims, strict=True):
            if d is not None:
                reduced.append(over_batch(x, axes=(d,)))
            else:
                # All examples hold this value: their sum is a multiple, their extremum the value itself.
                reduced.append(mul(x, literal(x, axis.size)) if is_sum else x)
        rest = tuple(a for a in axes if a != axis.name)
        return (primitive.bind(*reduced, axes=rest, axis_index_groups=None) if rest else reduced), [None] * len(reduced)

    primitive = Primitive(
        name,
        multiple_results=True,
        types=lambda *avals, axes, axis_index_groups: list(avals),
        sharding=each,
        lower=lower,
        batch=batch,
        axes=lambda params: params["axes"],
        eager=lambda *args, axes, axis_index_groups: raise_unbound(axes),
        nan_checked=is_sum,
        series="linear" if is_sum else None,
        **rules,
    )
    return primitive


def _without_axes(avals: Sequence[ShapedArray], params: dict[str, Any]) -> frozenset[Any]:
    return frozenset().union(*[a.vma for a in avals]) - frozenset(params["axes"])


def _extremum_vma(avals: Sequence[ShapedArray], params: dict[str, Any]) -> frozenset[Any]:
    if params["axis_index_groups"] is None:
        return _without_axes(avals, params)
    return frozenset().union(*[a.vma for a in avals])


def varying_over(x: Any, axes: Axes) -> Any:
    """`x` for a collective over `axes`: declared as varying along those of them that are tracked.

    Raises `ShardingTypeError` if it is unreduced or reduced along one.
    """
    tracked = tracked_axes()
    if tracked and not frozenset().union(*manual_reductions(typeof(x))).isdisjoint(axes):
        what = f"it is unreduced or reduced along one of {axes}"
        refuse("a collective", what, [typeof(x)], "phlox.lax.psum, or phlox.lax.pcast(x, axes, to='varying'), first")
    # A collective over an axis takes values that vary along it. Equal ones are declared so, which computes nothing.
    missing = tuple(axis for axis in tracked if axis in axes and axis not in typeof(x).vma) if tracked else ()
    return pvary.bind(x, axes=missing) if missing else x


def _check_alike(xs: Sequence[Any], axes: Axes, tracked: Axes) -> None:
    """Raises unless each value varies along all tracked axes or along none, as JAX does: one of both is a mistake."""
    for x in xs:
        aval = typeof(x)
        missing = tuple(axis for axis in tracked if axis not in aval.vma)
        if 0 < len(missing) < len(tracked):
            raise OptionError(
                f"psum over the axes {axes} of a value of type {aval.short}, which varies along some of them only",
                instead=f"phlox.lax.pcast(x, {missing!r}, to='varying') first, or the axes along which it varies",
            )


#: declares a value as varying along axes of a `shard_map`; it computes nothing
pvary = Primitive(
    "pvary",
    types=lambda x, axes: x.varying(x.vma | frozenset(axes)),
    vma=vma_in_types,
    sharding=sharding_in_types,
    lower=lambda f, x, axes: x,
    jvp=linear_jvp(lambda: pvary),
    transpose=lambda ct, x, axes: psum_invariant.bind(varying_over(ct, axes), axes=axes, axis_index_groups=None),
    batch=lambda axis, args, dims, axes: (pvary.bind(*args, axes=axes), dims[0]),
    extend=lambda params, trailing, *avals: params,
    eager=lambda x, axes: x,
    nan_checked=False,
    light=True,
    series="linear",
)


def raise_unbound(axes: Axes) -> Any:
    """The eager rule of collectives: raises, because no axis is mapped."""
    raise AxisNameError(f"unbound axis name: {axes[0]!r}", instead="call this inside vmap or pmap", axis=axes[0])


def _psum_jvp(get_primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        outs = get_primitive().bind(*primals, **params)
        nonzero = [varying_over(t, params["axes"]) for t in tangents if type(t) is not Zero]
        summed = iter(get_primitive().bind(*nonzero, **params))
        return outs, [
            Zero(typeof(out).tangent()) if type(t) is Zero else next(summed)
            for t, out in zip(tangents, outs, strict=True)
        ]

    return jvp


def _psum_transpose(cotangents: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    # Every device's result contains every device's operand, so cotangents are summed as well.
    nonzero = drop_zeros(cotangents)
    summed = iter(psum.bind(*nonzero, **params))
    operand_cotangents = [Zero(ct.aval) if type(ct) is Zero else next(summed) for ct in cotangents]
    return [ct if is_linear(x) else None for ct, x in zip(operand_cotangents, args, strict=True)]


def _psum_invariant_transpose(cotangents: Sequence[Any], *args: Any, axes: Axes, **_: Any) -> list[Any]:
    # The result is one value, of which every device's operand is a summand.
    operand_cotangents = [
        Zero(x.aval if is_linear(x) else ct.aval) if type(ct) is Zero else pvary.bind(ct, axes=axes)
        for ct, x in zip(cotangents, args, strict=True)
    ]
    return [ct if is_linear(x) else None for ct, x in zip(operand_cotangents, args, strict=True)]


psum = _reduction(
    "psum", "stablehlo.add", reduce_sum, jvp=_psum_jvp(lambda: psum), transpose=_psum_transpose, is_sum=True
)
psum_invariant = _reduction(
    "psum_invariant",
    "stablehlo.add",
    reduce_sum,
    jvp=_psum_jvp(lambda: psum_invariant),
    transpose=_psum_invariant_transpose,
    is_sum=True,
    vma=_without_axes,
)


def sum_over_axes(xs: Sequence[Any], axes: Axes, axis_index_groups: Groups) -> list[Any]:
    """The sums over mapped axes; they do not vary along axes that are tracked, unless each group has its own."""
    tracked = tuple(axis for axis in tracked_axes() if axis in axes)
    reductions = [reductions_of(typeof(x)) for x in xs] if tracked and any_specs() else ()
    if any(r.unreduced.intersection(tracked) for r in reductions) and axis_index_groups is None:
        unreduced_psum = primitive_of("unreduced_psum")
        return [unreduced_psum.bind(x, axes=axes, kind=r.kind) for x, r in zip(xs, reductions, strict=True)]
    if not tracked or axis_index_groups is not None:
        return psum.bind(*[varying_over(x, axes) for x in xs], axes=axes, axis_index_groups=axis_index_groups)
    _check_alike(xs, axes, tracked)
    return psum_invariant.bind(*[varying_over(x, axes) for x in xs], axes=axes, axis_index_groups=None)


def _extremum_jvp(get_primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        outs = get_primitive().bind(*primals, **params)
        moved = []
        for x, out, t in zip(primals, outs, tangents, strict=True):
            if type(t) is Zero:
                moved.append(t)
                continue
            # Examples that hold the extremum get equal parts of its tangent.
            hit = convert(eq(x, out), typeof(x).dtype)
            # The tangents of those that hold the extremum, and their number: in two sums, as only one is linear.
            (summed,), (holders,) = sum_over_axes([mul(t, hit)], **params), sum_over_axes([hit], **params)
            moved.append(div(summed, select(eq(holders, literal(holders, 0)), literal(holders, 1), holders)))
        return outs, moved

    return jvp


pmax = _reduction("pmax", larger, reduce_max, jvp=_extremum_jvp(lambda: pmax), vma=_extremum_vma)
pmin = _reduction("pmin", smaller, reduce_min, jvp=_extremum_jvp(lambda: pmin), vma=_extremum_vma)

# --- axis_index -----------------------------------------------------------------------------------------


def _index_lower(f: Function, axis_name: Any) -> Value:
    mesh = f.axes or ()
    names = [name for name, _ in mesh]
    if axis_name not in names:
        raise AxisNameError(f"unbound axis name: {axis_name!r}", instead="pmap with this axis_name", axis=axis_name)
    if f.auto:
        return _index_with_auto_axes(f, axis_name)
    at = names.index(axis_name)
    word = shaped((), dtypes.uint32)
    number = f.op("stablehlo.partition_id", [], word)
    # Partitions are numbered row by row over the axes of the mesh.
    stride = int(np.prod([size for _, size in mesh[at + 1 :]]))
    index = f.same("stablehlo.divide", number, f.constant(stride, word))
    index = f.same("stablehlo.remainder", index, f.constant(mesh[at][1], word))
    return f.convert(index, dtypes.int32)


def _index_with_auto_axes(f: Function, axis_name: Any) -> Value:
    """The index in a program that the compiler partitions along some mesh axes: the partition id exists only inside a
    manual computation over all axes."""
    # Without automatic axes: inside of the region all axes are manual.
    inner = Function(f.module, f.axes, f.counter, f.indent + "  ")
    index = _index_lower(inner, axis_name)
    name = f.fresh()
    symbol = f.module.mesh(tuple((str(axis), size) for axis, size in f.axes))
    rest = ", ".join(map(axis_text, f.auto))
    begin = (
        f"{name} = sdy.manual_computation() in_shardings=[] out_shardings=[<@{symbol}, []>] "
        f"manual_axes={{{rest}}} () {{"
    )
    end = [f"{inner.indent}sdy.return {index} : {index.aval.text}", f"{f.indent}}} : () -> {index.aval.text}"]
    f.line("\n".join([begin, *inner.lines, *end]))  # one entry, because `locate` adds a location to each entry
    return Value(name, index.aval)


def _index_types(axis_name: Any) -> ShapedArray:
    plain = shaped((), dtypes.int32)
    return plain.varying(frozenset([axis_name])) if axis_name in tracked_axes() else plain


axis_index = Primitive(
    "axis_index",
    types=_index_types,
    lower=_index_lower,
    batch=lambda axis, args, dims, axis_name: (iota(dtype=dtypes.int32, shape=(axis.size,), dimension=0), 0),
    axes=lambda params: (params["axis_name"],),
    eager=lambda axis_name: raise_unbound((axis_name,)),
    nan_checked=False,
)


def check_bound(axes: Axes) -> None:
    """Raises `AxisNameError` unless every axis is mapped by an enclosing transformation."""
    for axis in axes:
        axis_size(axis)
