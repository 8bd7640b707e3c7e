"""Primitives of comparison, selection, and bitwise operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.key_uses import makes
from ..._ir.primitive import Primitive, Unfused, primitive
from ..._ir.sharding_types import elementwise
from ..._trace.trace import typeof
from ..._transform import spectra
from ..._transform.array_operations import Zero, add, insert_axis, linear_jvp, move_axis, zeros
from ..._transform.batch import BatchAxis, Dim, place_axis
from ..._transform.padding import pad_elementwise
from ..._transform.transpose import is_linear
from ..._xla.text import Function, Value
from .families import (
    ANY,
    BITS,
    INTEGER,
    ORDERED,
    ZERO,
    batch_elementwise,
    binary,
    broadcast_shape,
    check_kind,
    literal,
    repeat_to,
    same_dtype,
    unary,
)


def _comparison(
    name: str, direction: str, accepts: str, total: bool = False, unfused: Unfused | None = None
) -> Primitive:
    return binary(
        name,
        lambda f, x, y: f.compare(direction, x, y, total),
        accepts=accepts,
        tangents=ZERO,
        result=lambda _: dtypes.bool_,
        nan_checked=False,
        light=True,
        unfused=unfused,
        operation="stablehlo.compare",
    )


eq = _comparison("eq", "EQ", ANY, unfused="operation")
ne = _comparison("ne", "NE", ANY, unfused="operation")
lt = _comparison("lt", "LT", ORDERED, unfused="operation")
le = _comparison("le", "LE", ORDERED, unfused="operation")
gt = _comparison("gt", "GT", ORDERED, unfused="operation")
ge = _comparison("ge", "GE", ORDERED, unfused="operation")
# Total order of floats: -0 is less than 0; nan is greater than everything else and equal to itself.
eq_to = _comparison("eq_to", "EQ", ORDERED, total=True)
lt_to = _comparison("lt_to", "LT", ORDERED, total=True)
le_to = _comparison("le_to", "LE", ORDERED, total=True)


def is_negative(x: Any) -> Any:
    """Mask of the elements below zero."""
    return lt(x, literal(x, 0))


and_ = binary("and", "stablehlo.and", accepts=BITS, tangents=ZERO, light=True, unfused="operation")
or_ = binary("or", "stablehlo.or", accepts=BITS, tangents=ZERO, light=True, unfused="operation")
xor = binary("xor", "stablehlo.xor", accepts=BITS, tangents=ZERO, light=True, unfused="operation")
not_ = unary("not", "stablehlo.not", accepts=BITS, derivative=ZERO, light=True, unfused="operation")
shift_left = binary("shift_left", "stablehlo.shift_left", accepts=INTEGER, tangents=ZERO, unfused="operation")
shift_right_logical = binary(
    "shift_right_logical", "stablehlo.shift_right_logical", accepts=INTEGER, tangents=ZERO, unfused="operation"
)
shift_right_arithmetic = binary(
    "shift_right_arithmetic", "stablehlo.shift_right_arithmetic", accepts=INTEGER, tangents=ZERO, unfused="operation"
)
#: the upper half of the bits of the product
mulhi = binary("mulhi", "chlo.mulhi", accepts=INTEGER, tangents=ZERO)
population_count = unary("population_count", "stablehlo.popcnt", accepts=INTEGER, derivative=ZERO)
clz = unary("clz", "stablehlo.count_leading_zeros", accepts=INTEGER, derivative=ZERO)

# --- select_n: elementwise choice among several cases ---------------------------------------------------


def _select_types(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if len(cases) == 0:
        raise ShapeError("select_n needs at least one case")
    for case in cases[1:]:
        if case.shape != cases[0].shape:
            raise ShapeError(
                f"select_n: cases must have one shape, got {', '.join(c.short for c in cases)}",
                instead="phlox.numpy.where, which broadcasts",
                shapes=[c.shape for c in cases],
            )
        if case.dtype != cases[0].dtype:
            raise DtypeError(
                f"select_n: cases must have one dtype, got {', '.join(c.short for c in cases)}",
                instead="phlox.numpy.where, which promotes",
            )
    if which.shape and which.shape != cases[0].shape:
        raise ShapeError(f"select_n: which is {which.short}, cases are {cases[0].short}", instead="equal shapes")
    if dtypes.kind(which.dtype) not in "biu":
        raise DtypeError(f"select_n: which must be of bools or integers, got {which.short}")
    if which.dtype == dtypes.bool_ and len(cases) > 2:
        raise ShapeError(f"select_n: a bool chooses between two cases, got {len(cases)}", instead="int32 indices")
    return shaped(cases[0].shape, cases[0].dtype, all(c.weak_type for c in cases))


def _select_lower(f: Function, which: Value, *cases: Value) -> Value:
    shape = cases[0].aval.shape
    if which.aval.ndim < len(shape) and which.aval.ndim:
        which = f.broadcast(which, shape, range(which.aval.ndim))  # extended dtypes have trailing axes in memory
    return _choose(f, which, cases, 0, len(cases))


def _choose(f: Function, which: Value, cases: Sequence[Value], lo: int, hi: int) -> Value:
    """Selects one of cases[lo:hi] by bisection."""
    # StableHLO's `select` has two cases. A balanced tree of them makes any index valid: one below 0 takes the first
    # case, one beyond the end the last, as in JAX.
    if hi - lo == 1:
        return cases[lo]
    middle = (lo + hi) // 2
    low, high = _choose(f, which, cases, lo, middle), _choose(f, which, cases, middle, hi)
    if which.aval.dtype == dtypes.bool_:
        return f.select(which, high, low)
    return f.select(f.compare("LT", which, f.constant(middle, which.aval)), low, high)


def _select_transpose(ct: Any, which: Any, *cases: Any) -> list[Any]:
    # Each case gets the cotangent of the elements that were taken from it, and zero for the others.
    nothing = zeros(typeof(ct))
    return [None] + [
        select_n(which, *[ct if i == j else nothing for j in range(len(cases))]) if is_linear(c) else None
        for i, c in enumerate(cases)
    ]


def _select_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]) -> tuple[Any, Dim]:
    which, *cases = args
    which_dim, *case_dims = dims
    # One scalar chooses for all examples, and the cases have their mapped axis at one place: nothing moves.
    if which_dim is None and typeof(which).ndim == 0 and len(set(case_dims)) == 1:
        return select_n(which, *cases), case_dims[0]
    moved = [place_axis(c, d, 0, axis.size) for c, d in zip(cases, case_dims, strict=True)]
    if which_dim is None:
        if typeof(which).ndim:
            which = insert_axis(which, axis.size, 0)
    else:
        which = move_axis(which, which_dim, 0)
    missing = typeof(moved[0]).ndim - typeof(which).ndim
    if typeof(which).ndim and missing:  # each example has a scalar `which` and array cases
        which = primitive("broadcast_in_dim").bind(which, shape=typeof(moved[0]).shape, broadcast_dimensions=(0,))
    return select_n(which, *moved), 0


select_n = Primitive(
    "select_n",
    types=_select_types,
    sharding=lambda out, *avals: elementwise("select_n", out, avals, "select cases must have the same shardings"),
    lower=_select_lower,
    jvp=linear_jvp(lambda: select_n, slice(1, None)),
    transpose=_select_transpose,
    spectral=lambda *args: spectra.linear(select_n, *args),
    batch=_select_batch,
    pad=pad_elementwise,
    extend=lambda params, trailing, *avals: params,
    keys=makes,
    nan_checked=False,
    light=True,
    unfused="operation",
    series="linear",
)


# --- clamp: between two bounds --------------------------------------------------------------------------


def _clamp_types(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
    check_kind("clamp", x, ORDERED)
    same_dtype("clamp", (low, x, high))
    if any(bound.shape not in ((), x.shape) for bound in (low, high)):
        raise ShapeError(
            f"clamp: bounds {low.short} and {high.short} fit {x.short} only with its shape, or without axes",
            instead="phlox.numpy.clip, which broadcasts",
            shapes=[low.shape, x.shape, high.shape],
        )
    return shaped(x.shape, x.dtype, low.weak_type and x.weak_type and high.weak_type)


def _clamp_lower(f: Function, low: Value, x: Value, high: Value) -> Value:
    if x.aval.dtype != dtypes.bool_:
        return f.op("stablehlo.clamp", [low, x, high], f.out)
    # XLA's older emitter of loops, which `compile_effort="tiered"` uses, has no clamp of bools.
    low, high = f.broadcast(low, x.aval.shape), f.broadcast(high, x.aval.shape)
    return f.op("stablehlo.minimum", [f.op("stablehlo.maximum", [x, low], f.out), high], f.out)


def _clamp_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    low, x, high = primals
    out = clamp(low, x, high)
    # The derivative of each element goes to one operand; where x equals a bound, to none.
    follows = (and_(gt(low, x), lt(low, high)), and_(gt(x, low), lt(x, high)), lt(high, x))
    total: Any = Zero(typeof(out).tangent())
    for t, here in zip(tangents, follows, strict=True):
        if type(t) is not Zero:
            total = add(total, select(repeat_to(here, typeof(x).shape), t, literal(x, 0)))
    return out, total


def _clamp_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]) -> tuple[Any, Dim]:
    operands, dim = batch_elementwise(axis, args, dims)
    # XLA's clamp takes bounds of the shape of `x`, or scalars. A bound with an axis of its own is broadcast.
    shape = broadcast_shape("clamp", [typeof(v) for v in operands])
    low, x, high = (v if not typeof(v).shape and i != 1 else repeat_to(v, shape) for i, v in enumerate(operands))
    return clamp(low, x, high), dim


clamp = Primitive(
    "clamp",
    types=_clamp_types,
    lower=_clamp_lower,
    jvp=_clamp_jvp,
    batch=_clamp_batch,
    pad=pad_elementwise,
    nan_checked=False,
    unfused="operation",
)


def select(which: Any, yes: Any, no: Any) -> Any:
    """`yes` where `which`, else `no`; scalar cases are broadcast to the shape of `which`."""
    shape = typeof(which).shape
    yes, no = (
        x if typeof(x).shape == shape else primitive("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=())
        for x in (yes, no)
    )
    return select_n(which, no, yes)
