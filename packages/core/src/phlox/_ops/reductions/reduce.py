"""Reductions over axes: sums, products, extrema, logical ones and positions of extrema."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base import config
from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.bounds import bounds
from ..._ir.dtypes import highest, lowest
from ..._ir.primitive import Primitive
from ..._ir.printing import shown_with
from ..._ir.sharding_types import Entries, entries_of
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero
from ..._transform.batch import Dim, batch_of_one
from ..._transform.padding import fills
from ..._transform.spectra import moved
from ..._xla.text import Function, Value, i64_array, ints
from ..elementwise.arithmetic import add, div, mul
from ..elementwise.extrema import compare_ordered, extremum_lower
from ..elementwise.families import ANY, BITS, NUMBER, check_kind, literal
from ..elementwise.logic import eq
from ..structure.shape import broadcast_in_dim, convert, pad, reshape, transpose
from ..structure.slicing import along

Axes = tuple[int, ...]


def _remaining_axes(ndim: int, axes: Axes) -> Axes:
    return tuple(i for i in range(ndim) if i not in axes)


def spread(x: Any, aval: ShapedArray, axes: Axes) -> Any:
    """`x`, from which `axes` were reduced, broadcast along them to the shape of `aval`."""
    return broadcast_in_dim(x, shape=aval.shape, broadcast_dimensions=_remaining_axes(aval.ndim, axes))


def _reduce_sharding(out: ShapedArray, x: ShapedArray, axes: Axes, **_: Any) -> Entries:
    return tuple(entries_of(x)[i] for i in _remaining_axes(x.ndim, axes))


def _check_axes(name: str, x: ShapedArray, axes: Axes) -> None:
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name} of {x.short}: duplicate value in 'axes' {axes}", axes=axes, shapes=[x.shape])
    for axis in axes:
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"{name}: Invalid axis {axis} for operand {x.short}", axes=axes, shapes=[x.shape])


def _check_half(x: ShapedArray, axes: Axes) -> None:
    """Raises for sums in half precision, if the config flag forbids them."""
    if config.current().allow_f16_reductions or x.dtype not in (dtypes.float16, dtypes.bfloat16):
        return
    if any(x.shape[a] != 1 for a in axes):
        raise DtypeError(
            f"reduce_sum on operand {x.short} is not allowed when the flag allow_f16_reductions is False",
            instead="a sum in float32: x.astype(phlox.numpy.float32)",
            aval=x,
        )


#: Combines two elements: the name of a StableHLO operation, or a function that writes the operations.
Combine = str | Callable[[Function, Value, Value], Value]


def combined(g: Function, op: Combine, a: Value, b: Value) -> Value:
    """Writes the combination of `a` and `b` by `op`."""
    return g.same(op, a, b) if isinstance(op, str) else op(g, a, b)


def reducer(
    name: str,
    op: Combine,
    start: Callable[[Any], Any],
    *,
    accepts: str,
    check: Callable[[ShapedArray, Axes], None] | None = None,
    jvp: Callable[..., Any] | None = None,
    lower: Callable[[Function, Value, Axes], Value] | None = None,
    nan_checked: bool = False,
    **rules: Any,
) -> Primitive:
    """A reduction by `op` with the initial value ``start(dtype)``.

    `jvp(reduce, t, x, axes)` returns the result and its tangent; `reduce` is the primitive. `check(aval, axes)` may
    raise for operands that `accepts` allows. It depends on config flags, so results of `types` are then not cached.
    `lower(f, x, axes)` writes it in another way than as one operation. `rules` are others of `Primitive`.
    """

    def types(x: ShapedArray, axes: Axes) -> ShapedArray:
        check_kind(name, x, accepts)
        _check_axes(name, x, axes)
        if check is not None:
            check(x, axes)
        weak = x.weak_type and accepts != BITS  # as in JAX
        return shaped(tuple(x.shape[i] for i in _remaining_axes(x.ndim, axes)), x.dtype, weak)

    def reduced(f: Function, x: Value, axes: Axes) -> Value:
        return reduce_lower(f, op, x, start(x.aval.dtype), axes, f.out)

    def differentiate(primals: Sequence[Any], tangents: Sequence[Any], axes: Axes) -> tuple[Any, Any]:
        return jvp(primitive, *tangents, *primals, axes)  # type: ignore[misc]

    def batch(x: Any, dim: int, axes: Axes) -> tuple[Any, Dim]:
        shifted = tuple(a if a < dim else a + 1 for a in axes)
        # The mapped axis stays where it is, less the axes before it that are gone.
        return primitive.bind(x, axes=shifted), dim - sum(a < dim for a in shifted)

    primitive = Primitive(
        name,
        # A check reads settings, which are not in the cache key of remembered types.
        remembers=check is None,
        types=types,
        sharding=_reduce_sharding,
        lower=lower or reduced,
        jvp=None if jvp is None else differentiate,
        batch=batch_of_one(batch),
        pad=fills(start),
        nan_checked=nan_checked,
        **rules,
    )
    return primitive


def reduce_lower(f: Function, op: Combine, x: Value, start: Any, axes: Axes, out: ShapedArray) -> Value:
    """Writes a reduction of one operand."""
    scalar = shaped((), x.aval.dtype)
    # The short form of the text. Reductions are frequent, and its end depends on types alone, so it is cached.
    if isinstance(op, str) and op.startswith("stablehlo."):
        operands = f"({x.name} init: {f.number(start, scalar).name})"
        return f.ending("stablehlo.reduce", operands, _reduce_end(op, tuple(axes), x.aval, scalar, out), out)
    body = f.region([scalar, scalar], lambda g, a, b: [combined(g, op, a, b)])
    return f.op("stablehlo.reduce", [x, f.constant(start, scalar)], out, f"dimensions = {i64_array(axes)}", [body])


@functools.lru_cache(4096)
def _reduce_end(op: str, axes: Axes, x: ShapedArray, scalar: ShapedArray, out: ShapedArray) -> str:
    return f" applies {op} across dimensions = {ints(axes)} : ({x.text}, {scalar.text}) -> {out.text}"


reduce_sum = reducer(
    "reduce_sum",
    "stablehlo.add",
    lambda dtype: 0,
    accepts=NUMBER,
    check=_check_half,
    jvp=lambda reduce, t, x, axes: (reduce(x, axes=axes), reduce(t, axes=axes)),
    transpose=lambda ct, x, axes: [spread(ct, x.aval, axes)],
    spectral=moved(
        lambda: reduce_sum, lambda x, axes: {axis: i for i, axis in enumerate(_remaining_axes(x.ndim, axes))}
    ),
    nan_checked=True,
    unfused="operation",
    show=shown_with(out_sharding=None),
    series="linear",
)


def _extremum_jvp(reduce: Primitive, t: Any, x: Any, axes: Axes) -> tuple[Any, Any]:
    # Elements that are equal to the extremum get equal parts of the derivative.
    out = reduce(x, axes=axes)
    hit = convert(eq(x, spread(out, typeof(x), axes)), typeof(x).dtype)
    count = reduce_sum(hit, axes=axes)
    # No element equals a nan, and 0 / 0 makes its tangent nan as well.
    return out, div(reduce_sum(mul(t, hit), axes=axes), count)


def larger(g: Function, a: Value, b: Value) -> Value:
    """Writes the maximum of two elements."""
    return extremum_lower(g, "GT", a, b)


def smaller(g: Function, a: Value, b: Value) -> Value:
    """Writes the minimum of two elements."""
    return extremum_lower(g, "LT", a, b)


_EXTREMUM: Any = {"accepts": ANY, "jvp": _extremum_jvp, "unfused": "operation", "show": shown_with(out_sharding=None)}
reduce_max = reducer("reduce_max", larger, lowest, **_EXTREMUM)
reduce_min = reducer("reduce_min", smaller, highest, **_EXTREMUM)

#: Extrema where no nan occurs or other terms keep it. Whether they show nan depends on the platform.
fast_max = reducer("fast_max", larger, lowest, accepts=ANY, jvp=_extremum_jvp)
fast_min = reducer("fast_min", smaller, highest, accepts=ANY, jvp=_extremum_jvp)


def _product_jvp(reduce: Primitive, t: Any, x: Any, axes: Axes) -> tuple[Any, Any]:
    """The product and its tangent, by multiplying halves repeatedly; without a division by elements, which may be 0."""
    aval = typeof(x)
    if len(axes) == 1:
        (axis,) = axes
    else:
        axis, rest = 0, _remaining_axes(aval.ndim, axes)
        flat = (math.prod(aval.shape[a] for a in axes), *(aval.shape[i] for i in rest))
        x, t = (reshape(_transposed(v, (*axes, *rest)), new_sizes=flat, dimensions=None) for v in (x, t))
    # Halves of halves, for the result too: gradients take jax's time along the first axis and 0.4 of it along the last.
    while _may_be_above_one(n := typeof(x).shape[axis]):
        (a, b), (da, db) = _halves(x, axis, n, 1), _halves(t, axis, n, 0)
        x, t = mul(a, b), add(mul(da, b), mul(a, db))
    # Right for an axis of length 0 too, whose product is 1.
    return reduce(x, axes=(axis,)), reduce_sum(t, axes=(axis,))


def _may_be_above_one(n: Any) -> bool:
    """Whether a length is above 1 for some of its values. Raises for one without a bound, which has no last half."""
    most = bounds(n)[1]
    return bool(most > 1) if most < math.inf else n > 1


def _halves(x: Any, axis: int, n: Any, neutral: int) -> tuple[Any, Any]:
    """The halves of `x` along `axis`, of length `n`; a shorter second half is padded with `neutral`."""
    half = (n + 1) // 2
    first, second = along(x, axis, 0, half), along(x, axis, half, n)
    if n % 2:
        padding = tuple((0, 2 * half - n if i == axis else 0, 0) for i in range(typeof(x).ndim))
        second = pad(second, literal(x, neutral), padding_config=padding)
    return first, second


def _transposed(x: Any, order: Axes) -> Any:
    return x if order == tuple(range(len(order))) else transpose(x, permutation=order)


reduce_prod = reducer(
    "reduce_prod", "stablehlo.multiply", lambda dtype: 1, accepts=NUMBER, jvp=_product_jvp, nan_checked=True
)


def _no_tangent(reduce: Primitive, t: Any, x: Any, axes: Axes) -> tuple[Any, Any]:
    out = reduce(x, axes=axes)
    return out, Zero(typeof(out).tangent())


reduce_and = reducer("reduce_and", "stablehlo.and", lambda d: ~np.zeros((), d), accepts=BITS, jvp=_no_tangent)
reduce_or = reducer("reduce_or", "stablehlo.or", lambda d: 0, accepts=BITS, jvp=_no_tangent)
reduce_xor = reducer("reduce_xor", "stablehlo.xor", lambda d: 0, accepts=BITS, jvp=_no_tangent)

# --- positions of extrema -------------------------------------------------------------------------------


def _position_lower(direction: str, worst: Callable[[Any], Any]) -> Callable[..., Value]:
    """The lowering rule of argmax or argmin, whose `direction` is that of the comparison, "GT" or "LT"."""

    def lower(f: Function, x: Value, axes: Axes, index_dtype: Any) -> Value:
        out = f.out
        # XLA's reductions of several operands need elements of at least 8 bits.
        x = f.convert(x, dtypes.byte_sized(x.aval.dtype))
        if dtypes.kind(x.aval.dtype) == "c":
            # A number with one part that is nan could be more or less than others.
            x = f.select(f.compare("NE", x, x), f.number(complex("nan+nanj"), x.aval), x)
        positions = shaped(x.aval.shape, index_dtype)
        iota = f.op("stablehlo.iota", [], positions, f"iota_dimension = {axes[0]} : i64")
        value, index = shaped((), x.aval.dtype), shaped((), index_dtype)

        def body(g: Function, a: Value, i: Value, b: Value, j: Value) -> list[Value]:
            better = compare_ordered(g, direction, a, b)
            if dtypes.is_inexact(a.aval.dtype):
                better = g.same("stablehlo.or", better, g.compare("NE", a, a))
            tie = g.same("stablehlo.and", g.compare("EQ", a, b), g.compare("LT", i, j))
            keep = g.same("stablehlo.or", better, tie)
            return [g.select(better, a, b), g.select(keep, i, j)]

        region = f.region([value, index, value, index], body)
        # Index 0 of the start wins only if all elements are equal to the worst value, where it is right.
        starts = [f.constant(worst(x.aval.dtype), value), f.constant(0, index)]
        outs = [shaped(out.shape, x.aval.dtype), out]
        return f.op("stablehlo.reduce", [x, iota, *starts], outs, f"dimensions = {i64_array(axes)}", [region])[1]

    return lower


def _position(name: str, direction: str, worst: Callable[[Any], Any]) -> Primitive:
    """argmax or argmin, as a reduction of pairs (value, index): nan is preferred, then the extremum, then the smaller
    index."""

    def types(x: ShapedArray, axes: Axes, index_dtype: Any) -> ShapedArray:
        check_kind(name, x, ANY)
        if dtypes.kind(index_dtype) not in "iu":
            raise DtypeError(f"{name}: index_dtype must be an integer type, got {index_dtype.name}")
        _check_axes(name, x, axes)
        if x.shape[axes[0]] == 0:
            raise ShapeError(
                f"argmin and argmax require non-empty reduced dimension: {name} of {x.short} along axis {axes[0]}",
                shapes=[x.shape],
            )
        return shaped(tuple(x.shape[i] for i in _remaining_axes(x.ndim, axes)), index_dtype)

    def batch(x: Any, dim: int, axes: Axes, index_dtype: Any) -> tuple[Any, Dim]:
        at = axes[0] if axes[0] < dim else axes[0] + 1
        return primitive.bind(x, axes=(at,), index_dtype=index_dtype), dim - (at < dim)

    primitive = Primitive(
        name,
        remembers=True,
        types=types,
        sharding=_reduce_sharding,
        lower=_position_lower(direction, worst),
        jvp=lambda primals, tangents, **params: (
            out := primitive.bind(*primals, **params),
            Zero(typeof(out).tangent()),
        ),
        batch=batch_of_one(batch),
        pad=fills(worst),
        nan_checked=False,
    )
    return primitive


def _in_both_parts(extreme: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`lowest` or `highest`, for complex numbers in the real and the imaginary part."""

    def value(dtype: Any) -> Any:
        part = extreme(dtype)
        return complex(part, part) if dtypes.kind(dtype) == "c" else part

    return value


argmax = _position("argmax", "GT", _in_both_parts(lowest))
argmin = _position("argmin", "LT", _in_both_parts(highest))
