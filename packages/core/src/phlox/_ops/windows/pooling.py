"""Sums and extrema over sliding windows, and the primitives of their derivatives.

The derivative of a windowed extremum is that of the selected element: `select_and_gather_add` reads tangents at the
selected positions, its transpose `select_and_scatter_add` writes cotangents there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base.errors import ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dtypes import highest, lowest
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import entries_of, resized
from ..._trace.trace import typeof
from ..._transform.array_operations import linear_jvp
from ..._transform.batch import BatchAxis, Dim, batch_of_one, place_axis
from ..._xla.text import Function, Value, i64_array
from ..elementwise.families import ANY, NUMBER, check_kind, literal
from ..elementwise.logic import ge, le
from ..reductions.reduce import Combine, combined, larger, smaller
from ..structure.shape import pad
from ..structure.slicing import slice_
from .geometry import Ints, Pads, dilated, input_pads, positions
from .padding import reduction_pad, selection_pad


def window_shape(name: str, x: ShapedArray, window: dict[str, Any]) -> Ints:
    """The shape of a windowed reduction of `x`. Raises `ShapeError` when the window does not fit it."""
    for option, values in window.items():
        if len(values) != x.ndim:
            raise ShapeError(f"{name}: {option}={values} does not fit {x.short}", shapes=[x.shape])
        if option != "padding" and any(n < 1 for n in values):
            raise ShapeError(f"{name}: {option} must have every element be positive, got {values}", shapes=[x.shape])
    ones = (1,) * x.ndim
    return tuple(
        positions(dilated(n, b) + low + high, dilated(k, d), s)
        for n, k, s, (low, high), b, d in zip(
            x.shape,
            window["window_dimensions"],
            window["window_strides"],
            window["padding"],
            window.get("base_dilation", ones),
            window.get("window_dilation", ones),
            strict=True,
        )
    )


def check_scattered(name: str, source: ShapedArray, operand: ShapedArray, window: dict[str, Any]) -> None:
    """Raises unless `source` has one element for each window of `operand`, and its dtype."""
    shape = window_shape(name, operand, window)
    if source.shape != shape or source.dtype != operand.dtype:
        raise ShapeError(
            f"{name}: source of type {source.short} for windows of an operand of type {operand.short}",
            instead=f"a source of shape {shape} and of the operand's dtype",
            shapes=[source.shape, operand.shape],
        )


def window_attributes(window: dict[str, Any]) -> str:
    """The attributes of a window as MLIR text."""
    words = {"base_dilation": "base_dilations", "window_dilation": "window_dilations"}
    listed = [f"{words.get(k, k)} = {i64_array(v)}" for k, v in window.items() if k != "padding"]
    pads = window["padding"]
    rows = ", ".join(f"[{low}, {high}]" for low, high in pads)
    return ", ".join([*listed, f"padding = dense<{f'[{rows}]' if pads else ''}> : tensor<{len(pads)}x2xi64>"])


def with_axis(window: dict[str, Any], at: int) -> dict[str, Any]:
    """The window with one more axis, along which it has length one."""
    return {k: (*v[:at], (0, 0) if k == "padding" else 1, *v[at:]) for k, v in window.items()}


def reduced(f: Function, x: Value, op: Combine, start: Any, window: dict[str, Any], out: ShapedArray) -> Value:
    """Writes the reduction of each window by `op` with the initial value `start`; `out` is the type of the result."""
    scalar = shaped((), x.aval.dtype)
    body = f.region([scalar, scalar], lambda g, a, b: [combined(g, op, a, b)])
    return f.op("stablehlo.reduce_window", [x, f.constant(start, scalar)], out, window_attributes(window), [body])


# --- sums and extrema -----------------------------------------------------------------------------------


def _reduction(
    name: str,
    op: Combine,
    start: Callable[[Any], Any],
    *,
    accepts: str,
    tangent: Callable[..., Any],
    transpose: Callable[..., Any] | None = None,
    nan_checked: bool = False,
) -> Primitive:
    """A windowed reduction by `op` with the initial value ``start(dtype)``; `tangent(t, x, **window)` is its jvp."""

    def types(x: ShapedArray, **window: Any) -> ShapedArray:
        check_kind(name, x, accepts)
        return shaped(window_shape(name, x, window), x.dtype, x.weak_type)

    def lower(f: Function, x: Value, **window: Any) -> Value:
        return reduced(f, x, op, start(x.aval.dtype), window, f.out)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **window: Any) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        return primitive.bind(x, **window), tangent(t, x, **window)

    primitive = Primitive(
        name,
        types=types,
        sharding=lambda out, x, **_: resized(name, x, out),
        lower=lower,
        jvp=jvp,
        transpose=transpose,
        batch=batch_of_one(lambda x, dim, **window: (primitive.bind(x, **with_axis(window, dim)), dim)),
        pad=reduction_pad(start),
        nan_checked=nan_checked,
        series=None if transpose is None else "linear",
    )
    return primitive


def _sum_transpose(
    ct: Any,
    x: Any,
    window_dimensions: Ints,
    window_strides: Ints,
    padding: Pads,
    base_dilation: Ints,
    window_dilation: Ints,
) -> list[Any]:
    shape = x.aval.shape
    pads = input_pads(
        shape, window_dimensions, window_strides, typeof(ct).shape, padding, base_dilation, window_dilation
    )
    # A windowed sum is a convolution with ones. Its transpose is a windowed sum of the cotangent, with strides as gaps.
    config = tuple((low, high, stride - 1) for (low, high), stride in zip(pads, window_strides, strict=True))
    return [
        reduce_window_sum(
            pad(ct, literal(ct, 0), padding_config=config),
            window_dimensions=window_dimensions,
            window_strides=base_dilation,
            padding=((0, 0),) * len(shape),
            base_dilation=(1,) * len(shape),
            window_dilation=window_dilation,
        )
    ]


reduce_window_sum = _reduction(
    "reduce_window_sum",
    "stablehlo.add",
    lambda dtype: 0,
    accepts=NUMBER,
    tangent=lambda t, x, **window: reduce_window_sum(t, **window),
    transpose=_sum_transpose,
    nan_checked=True,
)
reduce_window_max = _reduction(
    "reduce_window_max",
    larger,
    lowest,
    accepts=ANY,
    tangent=lambda t, x, **window: select_and_gather_add(t, x, select_prim=ge, **window),
)
reduce_window_min = _reduction(
    "reduce_window_min",
    smaller,
    highest,
    accepts=ANY,
    tangent=lambda t, x, **window: select_and_gather_add(t, x, select_prim=le, **window),
)

# --- values at the selected element of each window ------------------------------------------------------


def _direction(select_prim: Primitive) -> tuple[str, Callable[[Any], Any]]:
    """The comparison of the selected element with others, and the value that is never selected (by dtype)."""
    return ("GE", lowest) if select_prim is ge else ("LE", highest)


def _follow_batch(get_primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def batch(
        axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], select_prim: Primitive, **window: Any
    ) -> tuple[Any, Dim]:
        operands = [place_axis(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
        return get_primitive().bind(*operands, select_prim=select_prim, **with_axis(window, 0)), 0

    return batch


def _gather_types(tangents: ShapedArray, operand: ShapedArray, select_prim: Primitive, **window: Any) -> ShapedArray:
    if tangents.shape != operand.shape:
        raise ShapeError(f"select_and_gather_add: {tangents.short} and {operand.short} differ in shape")
    shape = window_shape("select_and_gather_add", operand, window)
    return shaped(shape, tangents.dtype, tangents.weak_type and operand.weak_type)


def _gather_lower(f: Function, tangents: Value, operand: Value, select_prim: Primitive, **window: Any) -> Value:
    direction, worst = _direction(select_prim)
    key, value = shaped((), operand.aval.dtype), shaped((), tangents.aval.dtype)

    def body(g: Function, a: Value, s: Value, b: Value, t: Value) -> list[Value]:
        # Of equal elements the first one is selected, in tangents and in cotangents alike.
        first = g.compare(direction, a, b)
        return [g.select(first, a, b), g.select(first, s, t)]

    region = f.region([key, value, key, value], body)
    # Windows without elements have the tangent zero.
    starts = [f.constant(worst(operand.aval.dtype), key), f.constant(0, value)]
    outs = [shaped(f.out.shape, operand.aval.dtype), f.out]
    attributes = window_attributes(window)
    return f.op("stablehlo.reduce_window", [operand, tangents, *starts], outs, attributes, [region])[1]


def _gather_transpose(
    ct: Any,
    tangents: Any,
    operand: Any,
    select_prim: Primitive,
    base_dilation: Ints,
    window_dilation: Ints,
    **window: Any,
) -> list[Any]:
    if any(d != 1 for d in window_dilation):
        raise UnsupportedError(f"the reverse derivative of a windowed extremum with window_dilation={window_dilation}")
    spread = any(d != 1 for d in base_dilation)
    if spread:
        _, worst = _direction(select_prim)
        gaps = tuple((0, 0, d - 1) for d in base_dilation)
        # StableHLO's select_and_scatter has no dilation. Gaps are filled with what is never selected, and cut out
        # again.
        operand = pad(operand, literal(operand, worst(typeof(operand).dtype)), padding_config=gaps)
    cotangent = select_and_scatter_add(ct, operand, select_prim=select_prim, **window)
    if spread:
        shape = typeof(cotangent).shape
        cotangent = slice_(cotangent, start_indices=(0,) * len(shape), limit_indices=shape, strides=base_dilation)
    return [cotangent, None]


select_and_gather_add = Primitive(
    "select_and_gather_add",
    types=_gather_types,
    sharding=lambda out, tangents, operand, **_: resized("select_and_gather_add", operand, out),
    lower=_gather_lower,
    jvp=linear_jvp(lambda: select_and_gather_add, slice(1)),
    transpose=_gather_transpose,
    batch=_follow_batch(lambda: select_and_gather_add),
    pad=selection_pad(lambda select_prim, dtype: _direction(select_prim)[1](dtype)),
    nan_checked=False,
)


def _scatter_types(source: ShapedArray, operand: ShapedArray, select_prim: Primitive, **window: Any) -> ShapedArray:
    check_scattered("select_and_scatter_add", source, operand, window)
    return shaped(operand.shape, source.dtype, source.weak_type and operand.weak_type)


def _scatter_lower(
    f: Function, source: Value, operand: Value, select_prim: Primitive, padding: Pads, **window: Any
) -> Value:
    direction, worst = _direction(select_prim)
    scalar, shape = shaped((), operand.aval.dtype), operand.aval.shape
    select = f.region([scalar, scalar], lambda g, a, b: [g.compare(direction, a, b)])
    join = "stablehlo.or" if source.aval.dtype == dtypes.bool_ else "stablehlo.add"
    scatter = f.region([scalar, scalar], lambda g, a, b: [g.same(join, a, b)])
    # XLA crashes if windows begin in the padding, so the operand is padded by a separate operation.
    lows, highs = [low for low, _ in padding], [high for _, high in padding]
    whole = shaped(tuple(low + n + high for n, low, high in zip(shape, lows, highs, strict=True)), scalar.dtype)
    none = f"interior_padding = {i64_array([0] * len(shape))}"
    edges = f"edge_padding_low = {i64_array(lows)}, edge_padding_high = {i64_array(highs)}, {none}"
    operand = f.op("stablehlo.pad", [operand, f.constant(worst(scalar.dtype), scalar)], whole, edges)
    attributes = window_attributes({**window, "padding": ((0, 0),) * len(shape)})
    zero = f.constant(0, scalar)
    out = f.op("stablehlo.select_and_scatter", [operand, source, zero], whole, attributes, [select, scatter])
    lows, highs = [-low for low in lows], [-high for high in highs]
    edges = f"edge_padding_low = {i64_array(lows)}, edge_padding_high = {i64_array(highs)}, {none}"
    return f.op("stablehlo.pad", [out, zero], f.out, edges)


select_and_scatter_add = Primitive(
    "select_and_scatter_add",
    types=_scatter_types,
    sharding=lambda out, source, operand, **_: entries_of(operand),
    lower=_scatter_lower,
    jvp=linear_jvp(lambda: select_and_scatter_add, slice(1)),
    transpose=lambda ct, source, operand, **params: [
        select_and_gather_add(
            ct,
            operand,
            base_dilation=(1,) * typeof(operand).ndim,
            window_dilation=(1,) * typeof(operand).ndim,
            **params,
        ),
        None,
    ],
    batch=_follow_batch(lambda: select_and_scatter_add),
    pad=selection_pad(lambda select_prim, dtype: _direction(select_prim)[1](dtype)),
    nan_checked=True,
)
