"""The primitive `sort`: sorts several arrays together by the first `num_keys` of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import DtypeError, OptionError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import is_symbolic
from ..._ir.dtypes import highest
from ..._ir.jaxpr import JaxprEqn
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import Entries, check_whole, elementwise
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero
from ..._transform.batch import BatchAxis, Dim, place_axis
from ..._transform.padding import Padding, pad_elementwise
from ..._xla.text import Function, Value, flag
from .gather import numbers_along, take
from .iota import iota
from .shape import reshape


def _sort_types(*xs: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
    if any(x.shape != xs[0].shape for x in xs) or not 0 <= dimension < max(1, xs[0].ndim):
        raise ShapeError(f"sort along axis {dimension}: shapes must agree, got {', '.join(x.short for x in xs)}")
    if not isinstance(is_stable, bool | np.bool_):
        raise OptionError(f"sort: is_stable={is_stable!r} is neither True nor False", value=is_stable)
    if not 1 <= num_keys <= len(xs):
        raise OptionError(f"sort: num_keys={num_keys} of {len(xs)} operands", value=num_keys)
    for x in xs:
        if dtypes.is_extended(x.dtype):
            raise DtypeError(f"sort takes numbers, got {x.short}", dtype=x.dtype)
    return list(xs)


def _sort_lower(f: Function, *xs: Value, dimension: int, is_stable: bool, num_keys: int) -> list[Value]:
    # XLA's sorts of 2-bit integers give other elements.
    outs = _sorted(f, [f.convert(x, dtypes.byte_sized(x.aval.dtype)) for x in xs], dimension, is_stable, num_keys)
    return [f.convert(out, x.aval.dtype) for out, x in zip(outs, xs, strict=True)]


def _sorted(f: Function, xs: Sequence[Value], dimension: int, is_stable: bool, num_keys: int) -> list[Value]:
    scalars = [shaped((), x.aval.dtype) for x in xs for _ in range(2)]

    def body(g: Function, *pairs: Value) -> list[Value]:
        # Lexicographic order: less in the first key, or equal there and less in the next one …
        result: Value | None = None
        keys = [part for i in range(num_keys) for part in _parts(g, *pairs[2 * i : 2 * i + 2])]
        # Built from the last key: at each step `result` decides among elements that are equal in the keys before.
        for a, b in reversed(keys):
            less = g.compare("LT", a, b, total=True)
            if result is None:
                result = less
            else:
                tie = g.same("stablehlo.and", g.compare("EQ", a, b, total=True), result)
                result = g.same("stablehlo.or", less, tie)
        assert result is not None
        return [result]

    region = f.region(scalars, body)
    attributes = f"dimension = {dimension} : i64, is_stable = {flag(is_stable)}"
    return f.op("stablehlo.sort", xs, [x.aval for x in xs], attributes, [region])


def _parts(g: Function, a: Value, b: Value) -> list[tuple[Value, Value]]:
    """The pairs of values to compare: the elements themselves; real, then imaginary parts of complex numbers."""
    if dtypes.kind(a.aval.dtype) != "c":
        return [(with_one_nan_and_zero(g, a), with_one_nan_and_zero(g, b))]
    real = shaped((), dtypes.real_part(a.aval.dtype))
    pairs = [[g.unlike(op, v, real) for v in (a, b)] for op in ("stablehlo.real", "stablehlo.imag")]
    return [(with_one_nan_and_zero(g, x), with_one_nan_and_zero(g, y)) for x, y in pairs]


def with_one_nan_and_zero(g: Function, x: Value) -> Value:
    """`x` with one nan and one zero for all, so that in the total order -0 equals 0 and every nan is last."""
    if dtypes.kind(x.aval.dtype) != "f":
        return x
    if dtypes.bits(x.aval.dtype) == 8:  # float32, as in some of these the only nan has the sign of negative numbers
        x = g.convert(x, dtypes.float32)
    zero, nan = g.constant(0, x.aval), g.constant(float("nan"), x.aval)
    # nan is looked for in `x` itself: XLA knows the comparison in this form, and sorts 1e6 numbers on a GPU in 0.2 ms;
    # 0.6 ms if it were looked for in the result of the first selection.
    one_zero = g.select(g.compare("EQ", x, zero), zero, x)
    return g.select(g.compare("NE", x, x), nan, one_zero)


def _sort_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], dimension: int, is_stable: bool, num_keys: int
) -> tuple[list[Any], list[Any]]:
    shape = typeof(primals[0]).shape
    # Sort the positions together with the keys; tangents are then taken at the sorted positions.
    positions = iota(dtype=dtypes.int32, shape=shape, dimension=dimension)
    *outs, order = sort(*primals, positions, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    moved = [t if type(t) is Zero else take_along(t, order, dimension) for t in tangents]
    return outs, moved


def take_along(x: Any, order: Any, axis: int) -> Any:
    """The elements of `x` at positions `order` along `axis`; along other axes the lengths of both are equal."""
    shape = typeof(x).shape
    if 0 in shape:
        return reshape(x, new_sizes=typeof(order).shape, dimensions=None)  # empty too
    return take(x, order, numbers_along(len(shape), axis), (1,) * len(shape), unique=True)


def _sort_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], dimension: int, **params: Any
) -> tuple[list[Any], list[Dim]]:
    moved = [place_axis(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
    return sort(*moved, dimension=dimension + 1, **params), [0] * len(moved)


def _sort_sharding(outs: Sequence[ShapedArray], *xs: ShapedArray, dimension: int, **_: Any) -> list[Entries]:
    for x in xs:
        check_whole("sort", x, [dimension], xs)
    return [elementwise("sort", outs[0], xs)] * len(outs)


def _sort_pad(padding: Padding, eqn: JaxprEqn, *xs: Any) -> list[Any]:
    """Keys behind the true length are the largest of all. The order is stable, so that they follow equal elements."""
    axis, count = eqn.params["dimension"], eqn.params["num_keys"]
    avals = [v.aval for v in eqn.invars]
    if not is_symbolic(avals[0].shape[axis]):
        return pad_elementwise(padding, eqn, *xs)
    keys = [padding.filled(x, a, _last(a.dtype), (axis,)) for x, a in zip(xs[:count], avals, strict=False)]
    # An unstable sort could mix padding with elements that are equal to it.
    return sort(*keys, *xs[count:], dimension=axis, is_stable=True, num_keys=count)


def _last(dtype: np.dtype) -> Any:
    """An element that is sorted behind all others, or is equal to the last ones."""
    kind = dtypes.kind(dtype)
    return complex("nan+nanj") if kind == "c" else np.nan if kind == "f" else highest(dtype)


sort = Primitive(
    "sort",
    multiple_results=True,
    types=_sort_types,
    sharding=_sort_sharding,
    memory_in_types=True,
    lower=_sort_lower,
    jvp=_sort_jvp,
    batch=_sort_batch,
    pad=_sort_pad,
    nan_checked=False,
)
