"""The forms of some functions of float32 for CPUs, where XLA calls a function of the C library for each element.

They compute in float64, without branches, so that the compiler makes vector instructions of them and fuses them with
their neighbours. What is left of the error is that of the last rounding, about half a unit in the last place.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._xla.platforms import cpu_only
from ..._xla.text import Function, Value

#: the least number of elements: below, the operation of the compiler is as fast, and compiles sooner
_LEAST = 1024
_NARROW = (np.dtype("f2"), dtypes.bfloat16)

#: A form writes its result in float64, from the operands in float32 and in float64.
Form = Callable[..., Value]


def on_cpu(operation: str, form: Form) -> Callable[..., Value]:
    """A lowering rule: `operation`, or for many numbers of float32 or less on a CPU what `form` writes."""

    def lower(f: Function, *xs: Value) -> Value:
        aval = f.out
        if aval.size < _LEAST or not (aval.dtype == np.float32 or aval.dtype in _NARROW) or not cpu_only(f):
            return f.op(operation, xs, aval)
        wide = shaped(aval.shape, np.dtype("f4"))
        key = form, wide
        known = f.module.known
        if key not in known:
            known[key] = f.function(form.__name__.strip("_"), [wide] * len(xs), functools.partial(_body, form))
        (out,) = f.call(known[key], [f.convert(x, wide.dtype) for x in xs], [wide])
        return f.convert(out, aval.dtype)

    return lower


def _body(form: Form, g: Function, *xs: Value) -> list[Value]:
    return [form(g, *xs)]


# --- writing float64 ------------------------------------------------------------------------------------


def _double(g: Function, x: Value) -> Value:
    return g.convert(x, np.dtype("f8"))


def _single(g: Function, x: Value) -> Value:
    return g.convert(x, np.dtype("f4"))


def _add(g: Function, x: Value, y: Value | float) -> Value:
    return g.same("stablehlo.add", x, _like(g, y, x))


def _sub(g: Function, x: Value | float, y: Value) -> Value:
    return g.same("stablehlo.subtract", _like(g, x, y), y)


def _mul(g: Function, x: Value, y: Value | float) -> Value:
    return g.same("stablehlo.multiply", x, _like(g, y, x))


def _div(g: Function, x: Value | float, y: Value) -> Value:
    return g.same("stablehlo.divide", _like(g, x, y), y)


def _like(g: Function, x: Value | float, y: Value) -> Value:
    return x if isinstance(x, Value) else g.number(x, y.aval)


def _reciprocal(g: Function, x: Value) -> Value:
    """1/x in float64, by Newton's method from the quotient in float32: divisions of float64 take many times as long."""
    near = _double(g, _div(g, 1.0, _single(g, x)))
    return _mul(g, near, _sub(g, 2.0, _mul(g, near, x)))


def _select(g: Function, which: Value, yes: Value | float, no: Value) -> Value:
    return g.select(which, _like(g, yes, no), no)


def _compare(g: Function, direction: str, x: Value, y: Value | float) -> Value:
    return g.compare(direction, x, _like(g, y, x))


def _polynomial(g: Function, coefficients: Sequence[float], x: Value) -> Value:
    """``coefficients[0] + coefficients[1] x + …``"""
    out = g.number(coefficients[-1], x.aval)
    for c in reversed(coefficients[:-1]):
        out = _add(g, _mul(g, out, x), c)
    return out


def _signed(g: Function, x: Value, like: Value) -> Value:
    """`x`, of float32, multiplied by the sign of `like`."""
    word = shaped(x.aval.shape, np.dtype("u4"))
    sign = g.same("stablehlo.and", g.unlike("stablehlo.bitcast_convert", like, word), g.number(1 << 31, word))
    bits = g.same("stablehlo.xor", g.unlike("stablehlo.bitcast_convert", x, word), sign)
    return g.unlike("stablehlo.bitcast_convert", bits, x.aval)


def _unless_small(g: Function, x: Value, limit: float, out: Value) -> Value:
    """`out`, but `x` itself up to `limit`, where the function is the identity, also for numbers that count as zero."""
    return g.select(_compare(g, "LT", g.same("stablehlo.abs", x), limit), x, out)


# --- sin, cos, tan --------------------------------------------------------------------------------------

#: the first 256 binary digits of 1/π
_ONE_OVER_PI = Fraction(0x517CC1B727220A94FE13ABE8FA9A6EE06DB14ACC9E21C820FF28B1D5EF5DE2B0, 1 << 256)
#: From these powers of two on, the digits of 1/π above a certain one only add whole turns, and are left out.
_BOUNDS = (50, 77, 104)
#: The sum of this and of a whole number below 2**51 has that number in its lowest bits. (To round by adding and
#: subtracting it is not possible: XLA takes the two operations for none.)
_SHIFT = 1.5 * 2.0**52
#: sin(π t) / t by powers of t², up to t = 1/2, with a relative error of 3e-11
_SINE = (
    3.141592653536132,
    -5.167712764593,
    2.550163317938427,
    -0.599252186531583,
    0.08205035020147247,
    -0.007028303855203096,
)


@functools.cache
def _factors() -> list[tuple[float, float, float]]:
    """For numbers of up to 2**50, and from each of `_BOUNDS` on: 1/π modulo what makes whole turns, in three parts.

    The product of each of the first two parts, of 29 bits, and of a float32 is exact in float64.
    """
    rows = []
    for bound in (None, *_BOUNDS):
        # float32 numbers from 2**bound on are multiples of 2**(bound - 23).
        rest = _ONE_OVER_PI if bound is None else _ONE_OVER_PI % Fraction(2) ** (24 - bound)
        parts = []
        for bits in (29, 29, 53):
            step = Fraction(2) ** (math.frexp(float(rest))[1] - bits)
            part = rest // step * step
            parts.append(float(part))
            rest -= part
        rows.append((parts[0], parts[1], parts[2]))
    return rows


def _rounded(g: Function, x: Value) -> tuple[Value, Value]:
    """`x` less the nearest whole number, and bits of which the lowest says whether that is odd."""
    whole = g.same("stablehlo.round_nearest_even", x)
    bits = g.unlike("stablehlo.bitcast_convert", _add(g, whole, _SHIFT), shaped(x.aval.shape, dtypes.uint64))
    return g.same("stablehlo.subtract", x, whole), bits


def _half_turns(g: Function, x: Value, more: float = 0.0) -> tuple[Value, Value, Value]:
    """x / π + `more` less a whole number, as a sum of two float64, and bits: the lowest says whether that is odd.

    After Payne and Hanek (1983), Radian reduction for trigonometric functions: the digits of 1/π that are multiplied
    with `x` depend on its size.
    """
    size, wide = g.same("stablehlo.abs", x), _double(g, x)
    first, *others = _factors()
    parts = [g.number(part, wide.aval) for part in first]
    for bound, row in zip(_BOUNDS, others, strict=True):
        beyond = _compare(g, "GE", size, 2.0**bound)
        parts = [_select(g, beyond, row[i], part) for i, part in enumerate(parts)]
    high, a = _rounded(g, _mul(g, wide, parts[0]))
    middle, b = _rounded(g, _mul(g, wide, parts[1]))
    whole = _add(g, high, middle)
    whole, c = _rounded(g, _add(g, whole, more) if more else whole)
    return whole, _mul(g, wide, parts[2]), g.same("stablehlo.xor", g.same("stablehlo.xor", a, b), c)


def _sine_of_half_turns(g: Function, t: Value) -> Value:
    return _mul(g, t, _polynomial(g, _SINE, _mul(g, t, t)))


def _flipped(g: Function, x: Value, odd: Value) -> Value:
    """`x`, negative where the lowest bit of `odd` is set."""
    sign = g.same("stablehlo.shift_left", odd, g.number(63, odd.aval))
    bits = g.same("stablehlo.xor", g.unlike("stablehlo.bitcast_convert", x, odd.aval), sign)
    return g.unlike("stablehlo.bitcast_convert", bits, x.aval)


def sine(g: Function, x: Value) -> Value:
    """sin(x)"""
    whole, rest, odd = _half_turns(g, x)
    out = _flipped(g, _sine_of_half_turns(g, _add(g, whole, rest)), odd)
    return _unless_small(g, x, 2.0**-13, _single(g, out))


def cosine(g: Function, x: Value) -> Value:
    """cos(x), which is the sine of a quarter turn more"""
    whole, rest, odd = _half_turns(g, x, 0.5)
    return _single(g, _flipped(g, _sine_of_half_turns(g, _add(g, whole, rest)), odd))


def tangent(g: Function, x: Value) -> Value:
    """tan(x), as sin(x) / sin(π/2 - x)"""
    size = g.same("stablehlo.abs", x)
    whole, rest, _ = _half_turns(g, size)
    negative = _compare(g, "LT", whole, 0.0)
    up = _sub(g, 0.5, g.same("stablehlo.abs", whole))
    up = _add(g, up, g.select(negative, rest, g.same("stablehlo.negate", rest)))
    out = _div(g, _sine_of_half_turns(g, _add(g, whole, rest)), _sine_of_half_turns(g, up))
    return _unless_small(g, x, 2.0**-13, _signed(g, _single(g, out), x))


# --- asin, acos, atan, atan2 ----------------------------------------------------------------------------

#: asin(t) / t by powers of t², up to t = 1/2, with a relative error of 2e-11
_ARCSINE = (
    0.9999999999863537,
    0.16666667364186447,
    0.07499941908754719,
    0.04466113930866896,
    0.03010250689966149,
    0.024650862660604088,
    0.0074010072390753795,
    0.0347484248080839,
)
#: atan(t) / t by powers of t², up to t = 1, with a relative error of 7e-11
_ARCTANGENT = (
    0.9999999999293037,
    -0.3333333129088999,
    0.19999901102171555,
    -0.14283813255743194,
    0.11091922963683302,
    -0.08974171958363882,
    0.07228278345377252,
    -0.05395668057137172,
    0.033826218952786875,
    -0.015828322749149415,
    0.00473248419342192,
    -0.0006633954571104787,
)


def _arcsine(g: Function, x: Value) -> tuple[Value, Value, Value]:
    """|x| in float64, whether it is at least 1/2, and there asin of the root of (1 - |x|)/2, elsewhere that of |x|."""
    size = _double(g, g.same("stablehlo.abs", x))
    large = _compare(g, "GE", size, 0.5)
    square = g.select(large, _mul(g, _sub(g, 1.0, size), 0.5), _mul(g, size, size))
    root = g.select(large, g.same("stablehlo.sqrt", square), size)
    return size, large, _mul(g, root, _polynomial(g, _ARCSINE, square))


def arcsine(g: Function, x: Value) -> Value:
    """asin(x); where |x| is at least 1/2, π/2 - 2 asin √((1 - |x|)/2)"""
    _, large, part = _arcsine(g, x)
    out = g.select(large, _sub(g, math.pi / 2, _add(g, part, part)), part)
    return _unless_small(g, x, 2.0**-13, _signed(g, _single(g, out), x))


def arccosine(g: Function, x: Value) -> Value:
    """acos(x); where |x| is at least 1/2, 2 asin √((1 - |x|)/2), or that less than π for negative `x`"""
    _, large, part = _arcsine(g, x)
    negative = _compare(g, "LT", x, 0.0)
    twice = _add(g, part, part)
    far = g.select(negative, _sub(g, math.pi, twice), twice)
    near = _sub(g, math.pi / 2, g.select(negative, g.same("stablehlo.negate", part), part))
    return _single(g, g.select(large, far, near))


def _arctangent(g: Function, part: Value) -> Value:
    return _mul(g, part, _polynomial(g, _ARCTANGENT, _mul(g, part, part)))


def arctangent(g: Function, x: Value) -> Value:
    """atan(x); where |x| is above 1, π/2 - atan(1/|x|)"""
    size = _double(g, g.same("stablehlo.abs", x))
    large = _compare(g, "GT", size, 1.0)
    inverse = _reciprocal(g, _select(g, _compare(g, "GT", size, 2.0**64), 2.0**64, size))
    angle = _arctangent(g, g.select(large, inverse, size))
    out = g.select(large, _sub(g, math.pi / 2, angle), angle)
    return _unless_small(g, x, 2.0**-13, _signed(g, _single(g, out), x))


def arctangent_of_two(g: Function, y: Value, x: Value) -> Value:
    """atan2(y, x), from the smaller of |x| and |y| divided by the larger one"""
    a, b = (_double(g, g.same("stablehlo.abs", v)) for v in (y, x))
    small, large = g.same("stablehlo.minimum", a, b), g.same("stablehlo.maximum", a, b)
    even = g.same("stablehlo.and", _compare(g, "EQ", a, b), _compare(g, "NE", a, 0.0))  # two infinities as well
    ratio = _div(g, small, _select(g, _compare(g, "EQ", large, 0.0), 1.0, large))
    angle = _arctangent(g, _select(g, even, 1.0, ratio))
    angle = g.select(g.compare("GT", a, b), _sub(g, math.pi / 2, angle), angle)
    word = shaped(x.aval.shape, np.dtype("i4"))
    left = _compare(g, "LT", g.unlike("stablehlo.bitcast_convert", x, word), 0)
    return _signed(g, _single(g, g.select(left, _sub(g, math.pi, angle), angle)), y)


# --- sinh, cosh, pow ------------------------------------------------------------------------------------

#: cosh(t) and sinh(t) / t by powers of t², up to t = log(2)/2, with relative errors of 4e-11 and 5e-12
_COSH = (0.9999999999604017, 0.5000000106626205, 0.04166622041241328, 0.0013948482083155648)
_SINH = (0.9999999999955156, 0.16666666786390094, 0.008333283480697175, 0.00019907623654409482)
#: 2**t by powers of t, up to |t| = 1/2, with a relative error of 4e-11
_POWER_OF_TWO = (
    0.9999999999616824,
    0.6931471807284519,
    0.24022651198152817,
    0.055504103534252454,
    0.00961802725421434,
    0.001333392258564999,
    0.00015469290999469272,
    1.520191609354323e-05,
)
#: log2((1 + t) / (1 - t)) / t by powers of t², for quotients from √½ to √2, with a relative error of 4e-12
_LOGARITHM = (2.88539008179008, 0.9617966733500315, 0.5770835832749592, 0.41167282659850357, 0.34072801317554613)
#: the bits of 1 and of √½ in float64
_ONE, _ROOT = 0x3FF0000000000000, 0x3FE6A09E667F3BCD


def _power_of_two(g: Function, whole: Value, less: int = 0) -> Value:
    """2**(whole - less), for whole numbers in float64 of at most 1000"""
    bits = g.unlike("stablehlo.bitcast_convert", _add(g, whole, _SHIFT + 1023 - less), _word(whole))
    bits = g.same("stablehlo.shift_left", bits, g.number(52, bits.aval))
    return g.unlike("stablehlo.bitcast_convert", bits, whole.aval)


def _word(x: Value) -> ShapedArray:
    """The type of the bits of float64."""
    return shaped(x.aval.shape, dtypes.uint64)


def _halves_of_exponentials(g: Function, x: Value) -> tuple[Value, ...]:
    """cosh(r), sinh(r), and the sum and difference of 2**(k-1) and 2**(-k-1), where x = k log(2) + r."""
    large = _compare(g, "GT", g.same("stablehlo.abs", x), 90.0)  # beyond, the result is infinite
    wide = _double(g, g.select(large, _signed(g, g.number(90.0, x.aval), x), x))
    whole = g.same("stablehlo.round_nearest_even", _mul(g, wide, 1 / math.log(2)))
    rest = _sub(g, wide, _mul(g, whole, math.log(2)))
    square = _mul(g, rest, rest)
    up, down = _power_of_two(g, whole, 1), _power_of_two(g, g.same("stablehlo.negate", whole), 1)
    odd = _mul(g, rest, _polynomial(g, _SINH, square))
    return _polynomial(g, _COSH, square), odd, _add(g, up, down), _sub(g, up, down)


def hyperbolic_sine(g: Function, x: Value) -> Value:
    """sinh(x), by sinh(a + b) = sinh(a) cosh(b) + cosh(a) sinh(b)"""
    even, odd, cosh, sinh = _halves_of_exponentials(g, x)
    return _unless_small(g, x, 2.0**-13, _single(g, _add(g, _mul(g, sinh, even), _mul(g, cosh, odd))))


def hyperbolic_cosine(g: Function, x: Value) -> Value:
    """cosh(x), by cosh(a + b) = cosh(a) cosh(b) + sinh(a) sinh(b)"""
    even, odd, cosh, sinh = _halves_of_exponentials(g, x)
    return _single(g, _add(g, _mul(g, cosh, even), _mul(g, sinh, odd)))


def _logarithm(g: Function, x: Value) -> Value:
    """log2(x) of a positive float32 in float64"""
    bits = g.unlike("stablehlo.bitcast_convert", _double(g, x), _word(x))
    biased = _add(g, bits, (_ONE - _ROOT) % 2**64)
    biased = g.same("stablehlo.shift_right_logical", biased, g.number(52, bits.aval))
    mantissa = _sub(g, bits, g.same("stablehlo.shift_left", biased, g.number(52, bits.aval)))
    wide = shaped(x.aval.shape, np.dtype("f8"))
    mantissa = g.unlike("stablehlo.bitcast_convert", _add(g, mantissa, _ONE), wide)
    shifted = g.same("stablehlo.or", biased, g.number(0x4330000000000000, bits.aval))  # 2**52 and more
    whole = _sub(g, g.unlike("stablehlo.bitcast_convert", shifted, wide), g.number(2.0**52 + 1023, wide))
    t = _mul(g, _sub(g, mantissa, g.number(1.0, wide)), _reciprocal(g, _add(g, mantissa, 1.0)))
    return _add(g, whole, _mul(g, t, _polynomial(g, _LOGARITHM, _mul(g, t, t))))


def power(g: Function, x: Value, y: Value) -> Value:
    """x**y, as 2**(y log2(|x|)), with the sign of an odd power, and nan for powers of negative numbers that are not
    whole"""
    size = g.same("stablehlo.abs", x)
    zero, endless = _compare(g, "EQ", size, 0.0), _compare(g, "EQ", size, math.inf)
    log = _logarithm(g, size)
    log = _select(g, zero, -math.inf, _select(g, endless, math.inf, log))
    exponent = _mul(g, log, _double(g, y))
    exponent = _select(g, _compare(g, "GT", exponent, 200.0), 200.0, exponent)
    exponent = _select(g, _compare(g, "LT", exponent, -200.0), -200.0, exponent)
    whole = g.same("stablehlo.round_nearest_even", exponent)
    rest = g.same("stablehlo.subtract", exponent, whole)
    out = _single(g, _mul(g, _polynomial(g, _POWER_OF_TWO, rest), _power_of_two(g, whole)))
    half = _mul(g, y, 0.5)
    integral = g.compare("EQ", g.same("stablehlo.floor", y), y)
    odd = g.same("stablehlo.and", integral, g.compare("NE", g.same("stablehlo.floor", half), half))
    word = shaped(x.aval.shape, np.dtype("i4"))
    negative = _compare(g, "LT", g.unlike("stablehlo.bitcast_convert", x, word), 0)
    out = g.select(g.same("stablehlo.and", negative, odd), g.same("stablehlo.negate", out), out)
    below = g.same("stablehlo.and", negative, g.same("stablehlo.not", g.same("stablehlo.or", zero, endless)))
    out = _select(g, g.same("stablehlo.and", below, g.same("stablehlo.not", integral)), math.nan, out)
    nan = g.same("stablehlo.or", g.compare("NE", x, x), g.compare("NE", y, y))
    out = _select(g, nan, math.nan, out)
    ends = g.same(
        "stablehlo.and", _compare(g, "EQ", size, 1.0), _compare(g, "EQ", g.same("stablehlo.abs", y), math.inf)
    )
    one = g.same("stablehlo.or", _compare(g, "EQ", x, 1.0), g.same("stablehlo.or", _compare(g, "EQ", y, 0.0), ends))
    return _select(g, one, 1.0, out)


# --- remainder ------------------------------------------------------------------------------------------


def remainder(g: Function, x: Value, y: Value) -> Value:
    """x - y trunc(x / y), exactly.

    The product is exact for quotients below 2**29. Where one may be larger, or an operand is not an ordinary number,
    the result is nan at first; the sum tells, and then all are computed by the operation.
    """
    from ..reductions.reduce import reduce_lower  # which is built on this module

    size, step = (g.same("stablehlo.abs", v) for v in (x, y))
    wide, wide_step = _double(g, size), _double(g, step)
    # The quotient may be too large or too small by one.
    quotient = g.same("stablehlo.floor", _mul(g, wide, _reciprocal(g, wide_step)))
    rest = _sub(g, wide, _mul(g, quotient, wide_step))
    rest = g.select(_compare(g, "LT", rest, 0.0), _add(g, rest, wide_step), rest)
    rest = g.select(_compare(g, "GE", rest, wide_step), _sub(g, rest, wide_step), rest)
    ordinary = g.same("stablehlo.and", _compare(g, "GT", step, 2.0**-100), _compare(g, "LT", step, 2.0**100))
    ordinary = g.same("stablehlo.and", ordinary, _compare(g, "LT", size, _mul(g, step, 2.0**28)))
    out = g.select(ordinary, _signed(g, _single(g, rest), x), g.number(math.nan, x.aval))
    total = reduce_lower(g, "stablehlo.add", out, 0, tuple(range(x.aval.ndim)), shaped((), x.aval.dtype))
    branches = [g.region([], lambda _: [out]), g.region([], lambda h: [h.same("stablehlo.remainder", x, y)])]
    which = g.convert(g.compare("NE", total, total), np.dtype("i4"))
    return g.op("stablehlo.case", [which], x.aval, "", branches)


# --- cbrt -----------------------------------------------------------------------------------------------

#: A third of the bits of a float32, and this, are those of its cube root to within a twentieth.
_THIRD = 709921077


def cube_root(g: Function, x: Value) -> Value:
    """The cube root of `x`, by two steps of Halley's method."""
    size = g.same("stablehlo.abs", x)
    word = shaped(x.aval.shape, np.dtype("u4"))
    bits = g.unlike("stablehlo.bitcast_convert", size, word)
    bits = _add(g, g.same("stablehlo.divide", bits, g.number(3, word)), _THIRD)
    out, wide = _double(g, g.unlike("stablehlo.bitcast_convert", bits, x.aval)), _double(g, size)
    for _ in range(2):
        cube = _mul(g, out, _mul(g, out, out))
        up, down = _add(g, cube, _add(g, wide, wide)), _add(g, _add(g, cube, cube), wide)
        out = _mul(g, out, _div(g, up, down))
    same = g.same(
        "stablehlo.or", _compare(g, "EQ", size, 0.0), g.same("stablehlo.not", _compare(g, "LT", size, math.inf))
    )
    return g.select(same, x, _signed(g, _single(g, out), x))
