"""Elementwise mathematics: each primitive with its StableHLO operation, the dtypes it takes, and its derivative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from ..._base.errors import DtypeError, OptionError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.key_uses import passes
from ..._ir.primitive import primitive
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero
from ..._xla.host_values import as_array
from ..._xla.text import Function, Value
from .extrema import extremum_lower
from .families import (
    ANY,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    LINEAR,
    NUMBER,
    REAL,
    SIGNED_NUMBER,
    ZERO,
    binary,
    check_kind,
    literal,
    lowered_as,
    repeat_to,
    same_dtype,
    unary,
)
from .logic import and_, eq, ge, ne, select
from .symmetry import Symmetry

# --- arithmetic -----------------------------------------------------------------------------------------

# `nan_checked=False` here and below: a nan in the result was a nan in the operand, which checkify reports where it
# arose.
neg = unary(
    "neg",
    "stablehlo.negate",
    accepts=NUMBER,
    derivative=LINEAR,
    transpose=lambda ct, x: neg(ct),
    nan_checked=False,
    light=True,
    unfused="operation",
)

add = binary(
    "add",
    "stablehlo.add",
    accepts=NUMBER,
    tangents=(lambda t, x, y, out: t, lambda t, x, y, out: t),
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: ct),
    light=True,
    unfused="operation",
    series="linear",
)

#: the sum of tangents or cotangents; `add` under another name, so that printed jaxprs show the sums of derivatives
add_any = binary(
    "add_any",
    "stablehlo.add",
    accepts=NUMBER,
    tangents=(lambda t, x, y, out: t, lambda t, x, y, out: t),
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: ct),
    light=True,
    series="linear",
)

sub = binary(
    "sub",
    "stablehlo.subtract",
    accepts=NUMBER,
    tangents=(lambda t, x, y, out: t, lambda t, x, y, out: neg(t)),
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
    light=True,
    unfused="operation",
    series="linear",
)

mul = binary(
    "mul",
    "stablehlo.multiply",
    accepts=NUMBER,
    tangents=(lambda t, x, y, out: mul(t, y), lambda t, x, y, out: mul(x, t)),
    transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
    light=True,
    unfused="operation",
    series="bilinear",
)

div = binary(
    "div",
    "stablehlo.divide",
    accepts=NUMBER,
    # Not x / y**2, whose square overflows and underflows. XLA makes that of out / y, but not of the product.
    tangents=(lambda t, x, y, out: div(t, y), lambda t, x, y, out: mul(t, neg(mul(out, integer_pow(y, y=-1))))),
    transpose=(lambda ct, x, y: div(ct, y), None),
    checked=lambda checks, x, y: checks.nonzero(y),
    light=True,
    unfused="operation",
    series="quotient",
)

rem = binary(
    "rem",
    "stablehlo.remainder",
    accepts=REAL,
    # rem(x, y) = x - y trunc(x / y), and the truncated quotient is constant between its jumps.
    tangents=(lambda t, x, y, out: t, lambda t, x, y, out: mul(neg(t), _truncated_quotient(x, y))),
    unfused="operation",
)


def _truncated_quotient(x: Any, y: Any) -> Any:
    quotient = div(x, y)
    # StableHLO has no truncation.
    return mul(sign(quotient), floor(abs_(quotient)))


def _share(x: Any, out: Any, y: Any) -> Any:
    """The derivative of max or min by `x`: 1 where only `x` equals the result, 1/2 where both operands do, else 0."""
    one, two, zero = literal(x, 1, weak=False), literal(x, 2, weak=False), literal(x, 0, weak=False)
    return div(select(eq(x, out), one, zero), select(eq(y, out), two, one))


max_ = binary(
    "max",
    lambda f, x, y: extremum_lower(f, "GT", x, y),
    accepts=ANY,
    tangents=(lambda t, x, y, out: mul(t, _share(x, out, y)), lambda t, x, y, out: mul(t, _share(y, out, x))),
    nan_checked=False,
    light=True,
    unfused="operation",
    operation="stablehlo.maximum",
)

min_ = binary(
    "min",
    lambda f, x, y: extremum_lower(f, "LT", x, y),
    accepts=ANY,
    tangents=(lambda t, x, y, out: mul(t, _share(x, out, y)), lambda t, x, y, out: mul(t, _share(y, out, x))),
    nan_checked=False,
    light=True,
    unfused="operation",
    operation="stablehlo.minimum",
)

nextafter = binary(
    "nextafter",
    "chlo.next_after",
    accepts=FLOAT,
    tangents=(lambda t, x, y, out: t, ZERO),
    nan_checked=False,
    unfused="operation",
)

# --- rounding and sign ----------------------------------------------------------------------------------


def _sign_lower(f: Function, x: Value) -> Value:
    if dtypes.kind(x.aval.dtype) != "u":
        return f.same("stablehlo.sign", x)
    # StableHLO's sign takes no unsigned integers.
    zero, one = f.constant(0, x.aval), f.constant(1, x.aval)
    return f.select(f.compare("EQ", x, zero), zero, one)


def _round_lower(f: Function, x: Value, rounding_method: Any) -> Value:
    even = int(rounding_method) == 1
    return f.same("stablehlo.round_nearest_even" if even else "stablehlo.round_nearest_afz", x)


def _abs_lower(f: Function, x: Value) -> Value:
    if dtypes.kind(x.aval.dtype) != "c":
        return f.same("stablehlo.abs", x)
    # As in C99, the length of an infinite part and nan is infinite. XLA has nan.
    size = f.unlike("stablehlo.abs", x, f.out)
    infinity = f.number(math.inf, f.out)
    parts = (f.same("stablehlo.abs", f.unlike(f"stablehlo.{part}", x, f.out)) for part in ("real", "imag"))
    endless = f.same("stablehlo.or", *(f.compare("EQ", part, infinity) for part in parts))
    return f.select(endless, infinity, size)


def _abs_tangent(t: Any, x: Any, out: Any) -> Any:
    if dtypes.kind(typeof(x).dtype) != "c":
        # The derivative at 0 is 1, as in JAX. A product with sign(x) would make it 0.
        return select(ge(x, literal(x, 0)), t, neg(t))
    # The component of t in the direction of x; zero where x is 0, which has no direction.
    re, im, length = direction(real(x), imag(x), out)
    length = select(eq(length, literal(out, 0)), literal(out, 1), length)
    return real(mul(t, complex_(div(re, length), neg(div(im, length)))))


def direction(x: Any, y: Any, length: Any) -> tuple[Any, Any, Any]:
    """A vector in the direction of (x, y) and its length, both finite where the given ones are infinite."""
    endless = eq(length, literal(length, np.inf))
    x, y = (repeat_to(v, typeof(length).shape) for v in (x, y))

    def limit(part: Any) -> Any:
        infinite = eq(abs_(part), literal(part, np.inf))
        return select(endless, select(infinite, sign(part), literal(part, 0)), part)

    x, y = limit(x), limit(y)
    # Two infinite parts are limited to ±1 each, a vector of length √2.
    both = select(ne(mul(x, y), literal(x, 0)), literal(x, np.sqrt(2)), literal(x, 1))
    return x, y, select(endless, both, length)


def _sign_tangent(t: Any, x: Any, out: Any) -> Any:
    if dtypes.kind(typeof(x).dtype) != "c":
        return Zero(typeof(out).tangent())
    # The sign turns by the component of t across x, divided by the length of x.
    turn = div(imag(mul(conj(out), t)), _without_zero(abs_(x)))
    return mul(out, complex_(literal(turn, 0), turn))


sign = unary(
    "sign",
    _sign_lower,
    accepts=NUMBER,
    tangent=_sign_tangent,
    light=True,
    unfused="operation",
    operation="stablehlo.sign",
)
floor = unary(
    "floor", "stablehlo.floor", accepts=FLOAT, derivative=ZERO, nan_checked=False, light=True, unfused="operation"
)
ceil = unary(
    "ceil", "stablehlo.ceil", accepts=FLOAT, derivative=ZERO, nan_checked=False, light=True, unfused="operation"
)
round_ = unary(
    "round", _round_lower, accepts=FLOAT, derivative=ZERO, nan_checked=False, light=True, unfused="operation"
)
abs_ = unary(
    "abs",
    _abs_lower,
    accepts=SIGNED_NUMBER,
    tangent=_abs_tangent,
    result=lambda dtype: dtypes.real_part(dtype),
    nan_checked=False,
    light=True,
    unfused="operation",
    operation="stablehlo.abs",
)
is_finite = unary(
    "is_finite",
    "stablehlo.is_finite",
    accepts=FLOAT,
    derivative=ZERO,
    result=lambda _: dtypes.bool_,
    nan_checked=False,
    unfused="operation",
)


def _precision_lower(f: Function, x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    if exponent_bits < 1 or mantissa_bits < 0:
        raise OptionError(
            f"reduce_precision: exponent_bits={exponent_bits} must be positive and mantissa_bits={mantissa_bits} not "
            "negative"
        )
    bits = f"exponent_bits = {index(exponent_bits)} : i32, mantissa_bits = {index(mantissa_bits)} : i32"
    return f.op("stablehlo.reduce_precision", [x], f.out, bits)


#: linear for derivatives: tangents and cotangents are rounded too
reduce_precision = unary(
    "reduce_precision",
    _precision_lower,
    accepts=FLOAT,
    derivative=LINEAR,
    transpose=lambda ct, x, **params: reduce_precision(ct, **params),
    nan_checked=False,
    memory_in_types=True,
)

#: the identity with derivative zero
stop_gradient = unary(
    "stop_gradient",
    lambda f, x: x,
    accepts=ANY,
    derivative=ZERO,
    eager=as_array,
    keys=passes,
    pad=lambda padding, eqn, x: x,  # programs are padded after their derivatives are taken
    nan_checked=False,
    light=True,
    memory_in_types=True,
)

# --- powers and roots -----------------------------------------------------------------------------------


def _integer_pow_lower(f: Function, x: Value, y: int) -> Value:
    if y == 0:
        return f.constant(1, x.aval)
    result: Value | None = None
    power, left = x, abs(y)
    while True:  # repeated squaring
        if left & 1:
            result = power if result is None else f.same("stablehlo.multiply", result, power)
        left >>= 1
        if not left:
            break
        power = f.same("stablehlo.multiply", power, power)
    assert result is not None
    if y > 0:
        return result
    # As in JAX, which divides once at the end: the rounding errors are equal.
    return f.same("stablehlo.divide", f.number(1, x.aval), result)


def _integer_pow_derivative(x: Any, out: Any, y: int) -> Any:
    # The product below would be 0 * x**-1, which is nan at 0.
    if y == 0:
        return literal(x, 0)
    return mul(literal(x, y), x if y == 2 else integer_pow(x, y=y - 1))


integer_pow = unary(
    "integer_pow",
    _integer_pow_lower,
    accepts=NUMBER,
    derivative=_integer_pow_derivative,
    light=True,
    unfused="operation",
)
square = unary(
    "square",
    lambda f, x: f.same("stablehlo.multiply", x, x),
    accepts=NUMBER,
    derivative=lambda x, out: mul(literal(x, 2), x),
    light=True,
    unfused="operation",
    operation="stablehlo.multiply",
)
sqrt = unary(
    "sqrt",
    "stablehlo.sqrt",
    accepts=INEXACT,
    derivative=lambda x, out: div(literal(x, 0.5), out),
    light=True,
    unfused="operation",
    symmetry=Symmetry(imag=1),
)
rsqrt = unary(
    "rsqrt",
    "stablehlo.rsqrt",
    accepts=INEXACT,
    derivative=lambda x, out: mul(literal(x, -0.5), div(out, x)),
    symmetry=Symmetry(imag=-1),
    light=True,
)


def _cbrt_lower(f: Function, x: Value) -> Value:
    out = f.same("stablehlo.cbrt", x)
    if x.aval.dtype == dtypes.float64:
        out = _nearer_root(f, x, out)
    # Of subnormal numbers, which count as zero, XLA's cube root has another sign and other digits.
    return f.select(f.compare("EQ", x, f.number(0, x.aval)), x, out)


def _nearer_root(f: Function, x: Value, root: Value) -> Value:
    """One step from a cube root that is wrong in the last bits, as XLA's of 27.0 is."""
    # The cube of 17 bits is exact, and so is the rest.
    word = shaped(x.aval.shape, np.dtype("u8"))
    bits = f.same(
        "stablehlo.and", f.unlike("stablehlo.bitcast_convert", root, word), f.number(-1 << 36 & 2**64 - 1, word)
    )
    high = f.unlike("stablehlo.bitcast_convert", bits, x.aval)
    low = f.same("stablehlo.subtract", root, high)
    cube = f.same("stablehlo.multiply", f.same("stablehlo.multiply", high, high), high)
    rest = f.same("stablehlo.subtract", x, cube)
    # x - high³ = low (3 high (high + low) + low²)
    slope = f.same("stablehlo.multiply", f.same("stablehlo.multiply", f.number(3, x.aval), high), root)
    slope = f.same("stablehlo.add", slope, f.same("stablehlo.multiply", low, low))
    nearer = f.same("stablehlo.add", high, f.same("stablehlo.divide", rest, slope))
    size = f.same("stablehlo.abs", x)
    # The rest of very small numbers is subnormal, which counts as zero.
    ordinary = f.same(
        "stablehlo.and",
        f.compare("GT", size, f.number(1e-280, x.aval)),
        f.compare("LT", size, f.number(math.inf, x.aval)),
    )
    return f.select(ordinary, nearer, root)


cbrt = unary(
    "cbrt",
    _cbrt_lower,
    operation="stablehlo.cbrt",
    accepts=FLOAT,
    derivative=lambda x, out: mul(literal(x, 1 / 3), integer_pow(out, y=-2)),
)


def _without_zero(x: Any) -> Any:
    return select(eq(x, literal(x, 0)), literal(x, 1), x)


def _pow_x(t: Any, x: Any, y: Any, out: Any) -> Any:
    # A constant exponent needs none of the selections below, and y - 1 is a constant too.
    if isinstance(y, np.generic) and y.dtype == typeof(x).dtype and y != 0:
        return mul(t, mul(y, pow_(x, literal(y, y.item() - 1, weak=False))))
    if typeof(x).dtype != typeof(y).dtype:
        y = primitive("convert_element_type").bind(y, new_dtype=typeof(x).dtype, weak_type=False)
    # x**0 is 1 for every x, so the derivative is 0 at x = 0 too, where 0 * x**-1 is a nan. The base is replaced, not
    # only the result: debug_nans reports a nan that is deselected. Elsewhere the factor y stays at y = 0, for the
    # derivative of the slope by y is x**-1 there.
    is_origin = and_(eq(x, literal(x, 0)), eq(y, literal(y, 0)))
    base = select(is_origin, literal(x, 1), repeat_to(x, typeof(is_origin).shape))
    return mul(t, mul(y, pow_(base, sub(y, literal(y, 1, weak=False)))))


def _pow_dtype(name: str, avals: Sequence[ShapedArray]) -> Any:
    x, y = avals
    check_kind("pow", x, INEXACT)
    whole = dtypes.kind(y.dtype) in INTEGER and dtypes.is_inexact(x.dtype)
    return x.dtype if whole else same_dtype(name, avals)


pow_ = binary(
    "pow",
    lambda f, x, y: f.same("stablehlo.power", x, f.convert(y, x.aval.dtype)),
    accepts=NUMBER,
    # The derivative by y is log(x) x**y. At x = 0 it is taken as 0, the limit for y > 0: -inf * 0 would be nan.
    tangents=(_pow_x, lambda t, x, y, out: mul(t, mul(log(_without_zero(x)), out))),
    dtype_of=_pow_dtype,
    costly=True,
)

#: (1 + x) (1 - x), with -2 x as derivative: that of the product would be (1 - x) - (1 + x), which is 0 for small x
one_minus_square = unary(
    "one_minus_square",
    lowered_as(lambda x: mul(add(literal(x, 1), x), sub(literal(x, 1), x))),
    accepts=NUMBER,
    tangent=lambda t, x, out: mul(t, mul(literal(x, -2), x)),
    light=True,
    operation="stablehlo.multiply",
)

# --- exponentials and logarithms ------------------------------------------------------------------------


# `undefined_at_nan`: XLA's exponential for CPUs converts to an integer, which has no defined result for nan.
exp = unary(
    "exp",
    "stablehlo.exponential",
    accepts=INEXACT,
    derivative=lambda x, out: out,
    unfused="operation",
    undefined_at_nan=True,
    symmetry=Symmetry(),
)
expm1 = unary(
    "expm1",
    "stablehlo.exponential_minus_one",
    accepts=INEXACT,
    # Not out + 1, which has no digits left where exp(x) is small, and is 0 below -17 in float32.
    derivative=lambda x, out: exp(x),
    unfused="operation",
    undefined_at_nan=True,
    symmetry=Symmetry(),
)
log = unary(
    "log",
    "stablehlo.log",
    accepts=INEXACT,
    tangent=lambda t, x, out: div(t, x),
    unfused="operation",
)


def log1p_of(f: Function, x: Value) -> Value:
    """log(1 + x). XLA's float64 on CPUs loses seven bits between -0.414 and -0.293, where it uses a formula of Cephes
    outside of its range. The logarithm of the rounded sum is right there but for one and a half units."""
    out = f.same("stablehlo.log_plus_one", x)
    if x.aval.dtype != dtypes.float64:
        return out
    total = f.same("stablehlo.log", f.same("stablehlo.add", x, f.constant(1, x.aval)))
    return f.select(f.compare("LT", x, f.constant(-0.29, x.aval)), total, out)


log1p = unary(
    "log1p",
    log1p_of,
    accepts=INEXACT,
    tangent=lambda t, x, out: div(t, add(x, literal(x, 1))),
    unfused="operation",
    operation="stablehlo.log_plus_one",
)


def _logistic_lower(f: Function, x: Value) -> Value:
    if x.aval.dtype != dtypes.bfloat16:
        return f.op("stablehlo.logistic", [x], f.out)
    # JAX's lowering: XLA would compute its own operation in float32, and rounds each of these.
    one = f.constant(1, x.aval)
    exponential = f.same("stablehlo.exponential", f.same("stablehlo.negate", x))
    return f.same("stablehlo.divide", one, f.same("stablehlo.add", one, exponential))


logistic = unary(
    "logistic",
    _logistic_lower,
    # As in JAX: where the result rounds to 1, from 17 on in float32, the derivative is 0 and not exp(-x).
    derivative=lambda x, out: mul(out, sub(literal(x, 1), out)),
    unfused="operation",
    operation="stablehlo.logistic",
    accepts=INEXACT,
    undefined_at_nan=True,
)

# --- complex numbers ------------------------------------------------------------------------------------


def _zero(ct: Any) -> Any:
    return np.zeros((), typeof(ct).dtype)[()]


# Cotangents pair with tangents by the real part of the plain product, without conjugation, as in JAX. So imag(t) =
# Re(-i t) is transposed to -i ct, and conj to conj.
real = unary(
    "real",
    "stablehlo.real",
    accepts=COMPLEX,
    derivative=LINEAR,
    transpose=lambda ct, x: complex_(ct, _zero(ct)),
    result=dtypes.real_part,
    nan_checked=False,
)
imag = unary(
    "imag",
    "stablehlo.imag",
    accepts=COMPLEX,
    derivative=LINEAR,
    transpose=lambda ct, x: complex_(_zero(ct), neg(ct)),
    result=dtypes.real_part,
    nan_checked=False,
)


def _conj_lower(f: Function, x: Value) -> Value:
    part = shaped(x.aval.shape, dtypes.real_part(x.aval.dtype))
    minus = f.same("stablehlo.negate", f.unlike("stablehlo.imag", x, part))
    return f.op("stablehlo.complex", [f.unlike("stablehlo.real", x, part), minus], x.aval)


def _complex_of(dtype: Any) -> Any:
    if dtype not in (dtypes.float32, dtypes.float64):
        raise DtypeError(f"complex takes float32 or float64, got {dtype.name}", instead="x.astype(phlox.numpy.float32)")
    return dtypes.to_complex(dtype)


conj = unary(
    "conj", _conj_lower, accepts=COMPLEX, derivative=LINEAR, transpose=lambda ct, x: conj(ct), nan_checked=False
)
complex_ = binary(
    "complex",
    lambda f, x, y: f.op("stablehlo.complex", [x, y], f.out),
    accepts=FLOAT,
    tangents=(
        lambda t, x, y, out: complex_(t, literal(t, 0)),
        lambda t, x, y, out: complex_(literal(t, 0), t),
    ),
    transpose=(lambda ct, x, y: real(ct), lambda ct, x, y: imag(neg(ct))),
    result=_complex_of,
    nan_checked=False,
    series="linear",
    operation="stablehlo.complex",
)
