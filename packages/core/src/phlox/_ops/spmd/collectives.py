"""Collectives: primitives that combine all examples of an axis mapped by vmap, or all devices along a mesh axis.

Under vmap the batching rule makes them reductions over the batch. In programs for several devices they are lowered to
StableHLO collectives; `f.axes` holds the mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base.errors import AxisNameError, UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._ir.primitive import Primitive
from ..._trace.axes import axis_size
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, instantiate
from ..._transform.batch import BatchAxis, Dim
from ..._transform.transpose import is_linear
from ..._xla.text import Function, Value, ints, quoted
from ..elementwise.arithmetic import div, mul
from ..elementwise.families import literal
from ..elementwise.logic import eq, select
from ..reductions.reduce import Combine, combined, larger, reduce_max, reduce_min, reduce_sum, smaller
from ..structure.shape import convert, iota

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
    where = [names.index(axis) for axis in axes]
    rest = [i for i in range(len(sizes)) if i not in where]
    count = int(np.prod([sizes[i] for i in where]))
    return numbers.transpose(*rest, *where).reshape(-1, count)


def groups_text(f: Function, axes: Axes, axis_index_groups: Groups = None) -> str:
    """The attribute `replica_groups`."""
    found = groups(f, axes).tolist()
    if axis_index_groups is not None:
        found = [[row[i] for i in group] for row in found for group in axis_index_groups]
    longest = max(map(len, found))
    rows = ints_of_rows([[*row, *[-1] * (longest - len(row))] for row in found])
    return f"replica_groups = dense<{rows}> : tensor<{len(found)}x{longest}xi64>"


def ints_of_rows(rows: Sequence[Sequence[int]]) -> str:
    """Rows of numbers as MLIR text, such as ``[[0, 1], [2, 3]]``."""
    return f"[{', '.join(map(ints, rows))}]" if rows else ""


def channel(f: Function) -> str:
    """The attribute `channel_handle`, with a number that no other collective of the module has."""
    return f"channel_handle = #stablehlo.channel_handle<handle = {f.module.channel()}, type = 1>"


def _reduction(
    name: str,
    op: Combine,
    over_batch: Callable[..., Any],
    *,
    jvp: Callable[..., Any],
    transpose: Callable[..., Any] | None = None,
    count: bool = False,
) -> Primitive:
    """psum, pmax or pmin: any number of operands, each reduced elementwise over mapped axes.

    `count` is true for a sum: an unmapped operand is multiplied by the number of examples.
    """

    def lower(f: Function, *xs: Value, axes: Axes, axis_index_groups: Groups) -> list[Value]:
        results = []
        for x in xs:
            scalar = shaped((), x.aval.dtype)
            body = f.region([scalar, scalar], lambda g, a, b: [combined(g, op, a, b)])
            where = f"{groups_text(f, axes, axis_index_groups)}, {channel(f)}, use_global_device_ids"
            results.append(f.op("stablehlo.all_reduce", [x], x.aval, where, [body]))
        return results

    def batch(
        axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], axes: Axes, axis_index_groups: Groups
    ) -> tuple[list[Any], list[Dim]]:
        if axis.name not in axes:
            return made.bind(*args, axes=axes, axis_index_groups=axis_index_groups), list(dims)
        if axis_index_groups is not None:
            raise UnsupportedError(f"{name} with axis_index_groups over axis {axis.name!r}, which vmap maps")
        reduced = []
        for x, d in zip(args, dims, strict=True):
            if d is not None:
                reduced.append(over_batch(x, axes=(d,)))
            else:
                reduced.append(mul(x, literal(x, axis.size)) if count else x)
        rest = tuple(a for a in axes if a != axis.name)
        return (made.bind(*reduced, axes=rest, axis_index_groups=None) if rest else reduced), [None] * len(reduced)

    made = Primitive(
        name,
        multiple_results=True,
        types=lambda *avals, axes, axis_index_groups: list(avals),
        lower=lower,
        jvp=jvp,
        transpose=transpose,
        batch=batch,
        axes=lambda params: params["axes"],
        eager=lambda *args, axes, axis_index_groups: unbound(axes),
        nan_checked=count,
        series="linear" if count else None,
    )
    return made


def unbound(axes: Axes) -> Any:
    """The eager rule of collectives: raises, because no axis is mapped."""
    raise AxisNameError(f"unbound axis name: {axes[0]!r}", instead="call this inside vmap or pmap", axis=axes[0])


def _psum_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    outs = psum.bind(*primals, **params)
    moving = [t for t in tangents if type(t) is not Zero]
    summed = iter(psum.bind(*moving, **params)) if moving else iter(())
    return outs, [t if type(t) is Zero else next(summed) for t in tangents]


def _psum_transpose(cotangents: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    # Every device's result contains every device's operand, so cotangents are summed as well.
    given = [instantiate(ct) for ct in cotangents if type(ct) is not Zero]
    summed = iter(psum.bind(*given, **params)) if given else iter(())
    found = [Zero(ct.aval) if type(ct) is Zero else next(summed) for ct in cotangents]
    return [ct if is_linear(x) else None for ct, x in zip(found, args, strict=True)]


psum = _reduction("psum", "stablehlo.add", reduce_sum, jvp=_psum_jvp, transpose=_psum_transpose, count=True)


def _extremum_jvp(make: Callable[[], Primitive]) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        outs = make().bind(*primals, **params)
        moved = []
        for x, out, t in zip(primals, outs, tangents, strict=True):
            if type(t) is Zero:
                moved.append(t)
                continue
            # Examples that hold the extremum get equal parts of its tangent.
            hit = convert(eq(x, out), typeof(x).dtype)
            total, holders = psum.bind(mul(t, hit), hit, **params)
            moved.append(div(total, select(eq(holders, literal(holders, 0)), literal(holders, 1), holders)))
        return outs, moved

    return jvp


pmax = _reduction("pmax", larger, reduce_max, jvp=_extremum_jvp(lambda: pmax))
pmin = _reduction("pmin", smaller, reduce_min, jvp=_extremum_jvp(lambda: pmin))

# --- axis_index -----------------------------------------------------------------------------------------


def _index_lower(f: Function, axis_name: Any) -> Value:
    mesh = f.axes or ()
    names = [name for name, _ in mesh]
    if axis_name not in names:
        raise AxisNameError(f"unbound axis name: {axis_name!r}", instead="pmap with this axis_name", axis=axis_name)
    if f.auto:
        return _index_beside_free_axes(f, axis_name)
    at = names.index(axis_name)
    word = shaped((), dtypes.uint32)
    number = f.op("stablehlo.partition_id", [], word)
    stride = int(np.prod([size for _, size in mesh[at + 1 :]]))
    index = f.same("stablehlo.divide", number, f.constant(stride, word))
    index = f.same("stablehlo.remainder", index, f.constant(mesh[at][1], word))
    return f.convert(index, dtypes.int32)


def _index_beside_free_axes(f: Function, axis_name: Any) -> Value:
    """The index in a program with unmapped mesh axes, along which the compiler partitions: the partition id exists only
    inside a manual computation over all axes."""
    inner = Function(f.module, f.axes, f.counter, f.indent + "  ")
    index = _index_lower(inner, axis_name)
    name = f.fresh()
    symbol = f.module.mesh(tuple((str(axis), size) for axis, size in f.axes))
    rest = ", ".join(quoted(str(axis)) for axis in f.auto)
    begin = (
        f"{name} = sdy.manual_computation() in_shardings=[] out_shardings=[<@{symbol}, []>] "
        f"manual_axes={{{rest}}} () {{"
    )
    end = [f"{inner.indent}sdy.return {index} : {index.aval.text}", f"{f.indent}}} : () -> {index.aval.text}"]
    f.line("\n".join([begin, *inner.lines, *end]))  # one entry, because `locate` adds a location to each entry
    return Value(name, index.aval)


def _index_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], axis_name: Any) -> tuple[Any, Dim]:
    return iota(dtype=dtypes.int32, shape=(axis.size,), dimension=0), 0


axis_index = Primitive(
    "axis_index",
    types=lambda axis_name: shaped((), dtypes.int32),
    lower=_index_lower,
    batch=_index_batch,
    axes=lambda params: (params["axis_name"],),
    eager=lambda axis_name: unbound((axis_name,)),
    nan_checked=False,
)


def in_scope(axes: Axes) -> None:
    """Raises `AxisNameError` unless every axis is mapped by an enclosing transformation."""
    for axis in axes:
        axis_size(axis)
