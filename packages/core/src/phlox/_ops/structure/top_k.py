"""Primitives for the k largest elements along an axis: `top_k`, and `approx_top_k`, which is faster on accelerators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from ..._base.errors import AxisError, DtypeError, OptionError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import is_symbolic, surely_at_least
from ..._ir.dtypes import highest, lowest
from ..._ir.jaxpr import JaxprEqn
from ..._ir.primitive import Primitive
from ..._ir.printing import shown_with
from ..._ir.sharding_types import Entries, check_whole, entries_of
from ..._transform.array_operations import zero_tangent
from ..._transform.batch import Dim, batch_of_one
from ..._transform.padding import Padding, pad_elementwise, refuse
from ..._xla.approximate import top_k_size
from ..._xla.text import Function, Value, flag
from .sort import take_along


def _with_length(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    return (*shape[:axis], length, *shape[axis + 1 :])


def _with_tangents(tangents: Sequence[Any], outs: list[Any], axis: int) -> tuple[list[Any], list[Any]]:
    """`outs` (values, indices) with their tangents: the elements of the operand's tangent at the indices, and zero."""
    return outs, [take_along(tangents[0], outs[1], axis), zero_tangent(outs[1])]


# --- exact ----------------------------------------------------------------------------------------------


def _top_k_types(x: ShapedArray, k: int, axis: int) -> list[ShapedArray]:
    if dtypes.kind(x.dtype) == "c":
        raise DtypeError(f"top_k: {x.short} has no order")
    if not 0 <= axis < x.ndim:
        raise AxisError(f"top_k: {x.short} has no axis {axis}", axis=axis)
    if not 0 <= k <= x.shape[axis]:
        raise OptionError(f"top_k: k={k} of an axis of length {x.shape[axis]}")
    if surely_at_least(x.shape[axis], 2**31):
        raise ShapeError(
            f"top_k returns int32 indices, which will overflow for axis {axis} of {x.short}",
            shapes=[x.shape],
            axis=axis,
        )
    shape = _with_length(x.shape, axis, k)
    return [shaped(shape, x.dtype, x.weak_type), shaped(shape, dtypes.int32, x.weak_type)]


def _top_k_lower(f: Function, x: Value, k: int, axis: int) -> list[Value]:
    """Converts elements of fewer than 8 bits, and floats whose only nan has the sign of negative numbers."""
    dtype = x.aval.dtype
    wide = dtypes.float32 if dtype.name.endswith("fnuz") else dtypes.byte_sized(dtype)
    values, indices = _selected(f, f.convert(x, wide), k, axis)
    return [f.convert(values, dtype), indices]


def _selected(f: Function, x: Value, k: int, axis: int) -> list[Value]:
    types = [shaped(f.outs[0].shape, x.aval.dtype), f.outs[1]]
    return along_last_axis(f, x, axis, types, lambda x, outs: f.op("chlo.top_k", [x], outs, f"k = {index(k)} : i64"))


def along_last_axis(
    f: Function,
    x: Value,
    axis: int,
    types: Sequence[ShapedArray],
    select: Callable[[Value, Sequence[ShapedArray]], list[Value]],
) -> list[Value]:
    """Writes transposes around `select`, an operation along the last axis with results of such types."""
    last = x.aval.ndim - 1
    if axis == last:
        return select(x, types)
    order = list(range(x.aval.ndim))
    order[axis], order[last] = last, axis

    def transposed(v: Value, out: ShapedArray) -> Value:
        return f.unlike("stablehlo.transpose", v, out, f", dims = {order}")

    def moved(aval: ShapedArray) -> ShapedArray:
        return shaped(tuple(aval.shape[i] for i in order), aval.dtype)

    outs = select(transposed(x, moved(x.aval)), [moved(out) for out in types])
    return [transposed(out, aval) for out, aval in zip(outs, types, strict=True)]


def _top_sharding(name: str, axis_of: str) -> Any:
    def rule(outs: Sequence[ShapedArray], x: ShapedArray, **params: Any) -> list[Entries]:
        check_whole(name, x, [params[axis_of]])
        return [entries_of(x)] * len(outs)

    return rule


def _top_k_pad(padding: Padding, eqn: JaxprEqn, x: Any) -> list[Any]:
    """Elements behind the true length are the smallest. Of equal elements those of smaller indices come first."""
    aval = eqn.invars[0].aval
    return pad_elementwise(padding, eqn, padding.filled(x, aval, lowest(aval.dtype), (eqn.params["axis"],)))


top_k = Primitive(
    "top_k",
    multiple_results=True,
    types=_top_k_types,
    sharding=_top_sharding("top_k", "axis"),
    lower=_top_k_lower,
    jvp=lambda primals, tangents, **params: _with_tangents(tangents, top_k(*primals, **params), params["axis"]),
    batch=batch_of_one(lambda x, dim, k, axis: (top_k(x, k=k, axis=axis + (dim <= axis)), [dim, dim])),
    pad=_top_k_pad,
    show=shown_with(is_stable=True),
    nan_checked=False,
)

# --- approximate ----------------------------------------------------------------------------------------


def _approx_types(
    x: ShapedArray,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> list[ShapedArray]:
    if not x.ndim:
        raise ShapeError(f"approx_top_k: {x.short} has no axis", shapes=[x.shape])
    if dtypes.kind(x.dtype) != "f":
        raise DtypeError(f"approx_top_k takes floats, got {x.short}", instead="top_k")
    if not 0 <= reduction_dimension < x.ndim:
        raise AxisError(f"approx_top_k: {x.short} has no axis {reduction_dimension}", axis=reduction_dimension)
    if not 0 < recall_target <= 1:
        raise OptionError(f"approx_top_k: recall_target={recall_target}", instead="a number above 0, up to 1")
    length = x.shape[reduction_dimension]
    if not 0 < k <= length:
        raise OptionError(f"approx_top_k: k={k} of an axis of length {length}")
    if 0 <= reduction_input_size_override < length:
        raise OptionError(
            f"approx_top_k: reduction_input_size_override={reduction_input_size_override} is less than the length of "
            f"the axis, {length}",
            instead="-1, or the length of the axis of which this one is a part",
        )
    if not aggregate_to_topk:
        k = top_k_size(length, x.ndim, k, recall_target, aggregate_to_topk, reduction_input_size_override)
    shape = _with_length(x.shape, reduction_dimension, k)
    return [shaped(shape, x.dtype, x.weak_type), shaped(shape, dtypes.int32, x.weak_type)]


def _approx_lower(
    f: Function,
    x: Value,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> list[Value]:
    number, place = shaped((), x.aval.dtype), shaped((), dtypes.int32)
    direction, worst = ("GT", lowest) if is_max_k else ("LT", highest)
    better = f.function(
        "top_k_comparator", [number, number, place, place], lambda g, a, b, i, j: [g.compare(direction, a, b)]
    )
    positions_aval = shaped(x.aval.shape, dtypes.int32)
    positions = f.op("stablehlo.iota", [], positions_aval, f"iota_dimension = {reduction_dimension} : i64")
    # Position -1 stands for no element.
    starts = [f.constant(worst(number.dtype), number), f.constant(-1, place)]
    options = (
        f"aggregate_to_topk = {flag(aggregate_to_topk)}, is_fallback = true, recall_target = "
        f"{float(recall_target)!r} : f32, reduction_dim = {reduction_dimension} : i64, reduction_input_size_override = "
        f"{index(reduction_input_size_override)} : i64, top_k = {index(k)} : i64"
    )
    attributes = f'call_target_name = "ApproxTopK", backend_config = "", called_computations = [@{better}]'
    return f.op(
        "stablehlo.custom_call",
        [x, positions, *starts],
        list(f.outs),
        attributes,
        marks=f"mhlo.backend_config = {{{options}}}",
    )


def _approx_batch(x: Any, dim: int, reduction_dimension: int, **params: Any) -> tuple[list[Any], list[Dim]]:
    at = reduction_dimension + (dim <= reduction_dimension)
    return approx_top_k(x, reduction_dimension=at, **params), [dim, dim]


def _approx_pad(padding: Padding, eqn: JaxprEqn, x: Any) -> list[Any]:
    if is_symbolic(eqn.invars[0].aval.shape[eqn.params["reduction_dimension"]]):
        refuse(eqn, "the selected elements depend on the length of the axis")
    return pad_elementwise(padding, eqn, x)


approx_top_k = Primitive(
    "approx_top_k",
    multiple_results=True,
    types=_approx_types,
    sharding=_top_sharding("approx_top_k", "reduction_dimension"),
    lower=_approx_lower,
    jvp=lambda primals, tangents, **params: _with_tangents(
        tangents, approx_top_k(*primals, **params), params["reduction_dimension"]
    ),
    batch=batch_of_one(_approx_batch),
    pad=_approx_pad,
    nan_checked=False,
)
