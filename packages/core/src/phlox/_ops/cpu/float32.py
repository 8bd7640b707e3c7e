"""Forms of functions of float32, for which XLA on CPUs calls a function of the C library for each element.

They compute in float64, without branches, so that the compiler makes vector instructions of them and fuses them with
their neighbours. What is left of the error is that of the last rounding, about half a unit in the last place. log1p,
for which XLA has long vector code, stays in float32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.jaxpr import Jaxpr
from ..._trace.staging import stage
from ..._xla.forms import Form
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from ..elementwise.families import fit
from ..elementwise.formula import Formula, floor, nearest, polynomial, sqrt

#: the least number of elements: below, the operation of the compiler is as fast, and compiles sooner
_LEAST = 1024
_DTYPES = (dtypes.float32, dtypes.float16, dtypes.bfloat16)

#: Computes a result in float32 from operands in float32.
Function32 = Callable[..., Formula]


def float32_form(function: Function32, gain: str, applies: Callable[..., bool] | None = None) -> Form:
    """The form that computes `function` for many numbers of float32 or less, in a function of the module of its own."""

    def is_for(f: Function, *xs: Value) -> bool:
        aval = f.out
        return aval.size >= _LEAST and aval.dtype in _DTYPES and (applies is None or applies(f, *xs))

    def write(f: Function, *xs: Value) -> Value:
        aval = f.out
        single = shaped(aval.shape, dtypes.float32)
        # Operands of other dtypes are rounded as by the operation: whole exponents of bfloat16 numbers.
        operands = [f.convert(f.convert(fit(f, x, aval.shape), aval.dtype), single.dtype) for x in xs]
        # The formula is one function of the module for each shape, however often it is applied: the text stays short.
        key = function, single
        symbol = f.module.known.get(key)
        if symbol is None:
            body = functools.partial(_body, *_staged(function, len(xs), single))
            symbol = f.module.known[key] = f.function(function.__name__, [single] * len(xs), body)
        (out,) = f.call(symbol, operands, [single])
        return f.convert(out, aval.dtype)

    return Form(is_for, write, gain)


@functools.lru_cache(256)
def _staged(function: Function32, count: int, aval: ShapedArray) -> tuple[Jaxpr, list[Any]]:
    jaxpr, consts = stage(lambda *xs: [function(*map(Formula, xs)).x], [aval] * count)
    return jaxpr, [np.asarray(c)[()] for c in consts]


def _body(jaxpr: Jaxpr, consts: Sequence[Any], g: Function, *xs: Value) -> list[Value]:
    return lower_jaxpr(g, jaxpr, [*(g.number(c, v.aval) for v, c in zip(jaxpr.constvars, consts, strict=True)), *xs])


# --- parts of formulas ----------------------------------------------------------------------------------


def _double(x: Formula) -> Formula:
    return x.to(dtypes.float64)


def _single(x: Formula) -> Formula:
    return x.to(dtypes.float32)


def _signed(x: Formula, like: Formula) -> Formula:
    """`x`, of float32, multiplied by the sign of `like`."""
    sign = like.bits(dtypes.uint32) & (1 << 31)
    return (x.bits(dtypes.uint32) ^ sign).bits(dtypes.float32)


def _is_negative(x: Formula) -> Formula:
    """Whether the sign bit of `x`, of float32, is set."""
    return x.bits(dtypes.int32) < 0


def _unless_small(x: Formula, limit: float, out: Formula) -> Formula:
    """`out`, but `x` itself up to `limit`, where the function is the identity, also for numbers that count as zero."""
    return (abs(x) < limit).where(x, out)


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
        # 29 bits times the 24 of a float32 are the 53 of a float64.
        for bits in (29, 29, 53):
            step = Fraction(2) ** (math.frexp(float(rest))[1] - bits)
            part = rest // step * step
            parts.append(float(part))
            rest -= part
        rows.append((parts[0], parts[1], parts[2]))
    return rows


def _rounded(x: Formula) -> tuple[Formula, Formula]:
    """`x` less the nearest whole number, and bits of which the lowest says whether that is odd."""
    whole = nearest(x)
    return x - whole, (whole + _SHIFT).bits(dtypes.uint64)


def _half_turns(x: Formula, more: float = 0.0) -> tuple[Formula, Formula, Formula]:
    """x / π + `more` less a whole number, as a sum of two float64, and bits: the lowest says whether that is odd.

    After Payne and Hanek (1983), Radian reduction for trigonometric functions: the digits of 1/π that are multiplied
    with `x` depend on its size.
    """
    size, wide = abs(x), _double(x)
    first, *others = _factors()
    # Rows are selected elementwise: a lookup by the exponent would be a gather, which is not vectorized.
    parts = [wide.full(part) for part in first]
    for bound, row in zip(_BOUNDS, others, strict=True):
        is_beyond = size >= 2.0**bound
        parts = [is_beyond.where(row[i], part) for i, part in enumerate(parts)]
    high, a = _rounded(wide * parts[0])
    middle, b = _rounded(wide * parts[1])
    whole = high + middle
    # Turns of the parts add up: the parity of all is that of the sum, by xor of the lowest bits.
    whole, c = _rounded(whole + more if more else whole)
    return whole, wide * parts[2], a ^ b ^ c


def _sine_of_half_turns(t: Formula) -> Formula:
    return t * polynomial(t * t, _SINE)


def _flipped(x: Formula, odd: Formula) -> Formula:
    """`x`, negative where the lowest bit of `odd` is set."""
    return (x.bits(dtypes.uint64) ^ (odd << 63)).bits(dtypes.float64)


def sine(x: Formula) -> Formula:
    """sin(x)"""
    whole, rest, odd = _half_turns(x)
    # Below 2**-13 the next term of the series is less than an eighth of a unit in the last place.
    # So it is for the functions below.
    return _unless_small(x, 2.0**-13, _single(_flipped(_sine_of_half_turns(whole + rest), odd)))


def cosine(x: Formula) -> Formula:
    """cos(x), which is the sine of a quarter turn more"""
    whole, rest, odd = _half_turns(x, 0.5)
    return _single(_flipped(_sine_of_half_turns(whole + rest), odd))


def tangent(x: Formula) -> Formula:
    """tan(x), as sin(x) / sin(π/2 - x)"""
    whole, rest, _ = _half_turns(abs(x))
    # The distance to π/2 is computed from both parts of the reduced argument: 0.5 - |whole + rest| would lose the
    # digits of `rest` near the poles.
    up = 0.5 - abs(whole) + (whole < 0.0).where(rest, -rest)
    out = _sine_of_half_turns(whole + rest) / _sine_of_half_turns(up)
    return _unless_small(x, 2.0**-13, _signed(_single(out), x))


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


def _arcsine(x: Formula) -> tuple[Formula, Formula]:
    """Whether |x| is at least 1/2, and there asin of the root of (1 - |x|)/2, elsewhere that of |x|, in float64."""
    size = _double(abs(x))
    large = size >= 0.5
    square = large.where((1.0 - size) * 0.5, size * size)
    root = large.where(sqrt(square), size)
    return large, root * polynomial(square, _ARCSINE)


def arcsine(x: Formula) -> Formula:
    """asin(x); where |x| is at least 1/2, π/2 - 2 asin √((1 - |x|)/2)"""
    large, part = _arcsine(x)
    out = large.where(math.pi / 2 - (part + part), part)
    return _unless_small(x, 2.0**-13, _signed(_single(out), x))


def arccosine(x: Formula) -> Formula:
    """acos(x); where |x| is at least 1/2, 2 asin √((1 - |x|)/2), or that less than π for negative `x`"""
    large, part = _arcsine(x)
    negative = x < 0.0
    twice = part + part
    far = negative.where(math.pi - twice, twice)
    near = math.pi / 2 - negative.where(-part, part)
    return _single(large.where(far, near))


def _arctangent(part: Formula) -> Formula:
    return part * polynomial(part * part, _ARCTANGENT)


def arctangent(x: Formula) -> Formula:
    """atan(x); where |x| is above 1, π/2 - atan(1/|x|)"""
    size = _double(abs(x))
    large = size > 1.0
    angle = _arctangent(large.where(1.0 / size, size))
    out = large.where(math.pi / 2 - angle, angle)
    return _unless_small(x, 2.0**-13, _signed(_single(out), x))


def arctangent_of_two(y: Formula, x: Formula) -> Formula:
    """atan2(y, x), from the smaller of |x| and |y| divided by the larger one"""
    a, b = _double(abs(y)), _double(abs(x))
    is_steep = a > b
    small, large = is_steep.where(b, a), is_steep.where(a, b)
    is_even = a.equals(b) & a.differs(0.0)  # two infinities as well
    ratio = small / large.equals(0.0).where(1.0, large)
    angle = _arctangent(is_even.where(1.0, ratio))
    angle = is_steep.where(math.pi / 2 - angle, angle)
    return _signed(_single(_is_negative(x).where(math.pi - angle, angle)), y)


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


def _power_of_two(whole: Formula, less: int = 0) -> Formula:
    """2**(whole - less), for whole numbers in float64 of at most 1000"""
    # The lowest bits of the sum are the exponent with its bias of 1023. The shift drops all others.
    return ((whole + (_SHIFT + 1023 - less)).bits(dtypes.uint64) << 52).bits(dtypes.float64)


def _halves_of_exponentials(x: Formula) -> tuple[Formula, Formula, Formula, Formula]:
    """cosh(r), sinh(r), and the sum and difference of 2**(k-1) and 2**(-k-1), where x = k log(2) + r."""
    # sinh(90) is above the largest float32, and rounds to infinity.
    is_infinite = abs(x) > 90.0
    wide = _double(is_infinite.where(_signed(x.full(90.0), x), x))
    whole = nearest(wide * (1 / math.log(2)))
    # log(2) in one part is enough: the errors of it and of the product stay below 2**-45, and float32 has 24 bits.
    rest = wide - whole * math.log(2)
    square = rest * rest
    up, down = _power_of_two(whole, 1), _power_of_two(-whole, 1)
    return polynomial(square, _COSH), rest * polynomial(square, _SINH), up + down, up - down


def hyperbolic_sine(x: Formula) -> Formula:
    """sinh(x), by sinh(a + b) = sinh(a) cosh(b) + cosh(a) sinh(b)"""
    even, odd, cosh, sinh = _halves_of_exponentials(x)
    return _unless_small(x, 2.0**-13, _single(sinh * even + cosh * odd))


def hyperbolic_cosine(x: Formula) -> Formula:
    """cosh(x), by cosh(a + b) = cosh(a) cosh(b) + sinh(a) sinh(b)"""
    even, odd, cosh, sinh = _halves_of_exponentials(x)
    # Without a selection at the end XLA moves the arithmetic in float64 into the library that sums: four times slower.
    return (abs(x) < 2.0**-13).where(x.full(1.0), _single(cosh * even + sinh * odd))


def _logarithm(x: Formula) -> Formula:
    """log2(x) of a positive float32 in float64"""
    bits = _double(x).bits(dtypes.uint64)
    # The mantissa is between √½ and √2: on both sides of 1 the whole part is 0, and nothing cancels.
    biased = (bits + (_ONE - _ROOT) % 2**64) >> 52
    mantissa = (bits - (biased << 52) + _ONE).bits(dtypes.float64)
    whole = (biased | 0x4330000000000000).bits(dtypes.float64) - (2.0**52 + 1023)  # the bits of 2**52 and more
    # XLA would write a quotient to memory that is read several times, but not a selection.
    t = x.is_nan.where(math.nan, (mantissa - 1.0) / (mantissa + 1.0))
    return whole + t * polynomial(t * t, _LOGARITHM)


def power(x: Formula, y: Formula) -> Formula:
    """x**y, as 2**(y log2(|x|)), with the sign of an odd power, and nan for powers of negative numbers that are not
    whole"""
    size = abs(x)
    zero, endless = size.equals(0.0), size.equals(math.inf)
    # `_logarithm` reads exponents from the bits, where 0 and infinity have other ones.
    log = zero.where(-math.inf, endless.where(math.inf, _logarithm(size)))
    exponent = log * _double(y)
    # 2**±200 rounds to infinity or zero in float32, and the bits of the exponent stay in range.
    exponent = (exponent > 200.0).where(200.0, exponent)
    exponent = (exponent < -200.0).where(-200.0, exponent)
    whole = nearest(exponent)
    out = _single(polynomial(exponent - whole, _POWER_OF_TWO) * _power_of_two(whole))
    half = y * 0.5
    integral = floor(y).equals(y)
    # A whole number is odd if half of it is not whole. From 2**24 on all float32 numbers are even.
    odd = integral & floor(half).differs(half)
    negative = _is_negative(x)
    out = (negative & odd).where(-out, out)
    # In C99 powers of -0 and -inf that are not whole are those of 0 and inf, not nan.
    out = (negative & ~(zero | endless) & ~integral).where(math.nan, out)
    # As in C99: (-1)**±inf is 1, and so are 1**y and x**0 where the other operand is nan.
    ends = size.equals(1.0) & abs(y).equals(math.inf)
    return (x.equals(1.0) | y.equals(0.0) | ends).where(1.0, out)


@functools.cache
def power_of_root(exponent: float) -> Function32:
    """The function that computes x**exponent for half of an odd number, by a square root and products in float64"""

    def power_by_root(x: Formula, y: Formula) -> Formula:
        # pow(-0, 0.5) is 0 and pow(-inf, 0.5) is inf, where sqrt has -0 and nan.
        wide = _double((x.equals(0.0) | x.equals(-math.inf)).where(abs(x), x))
        base = wide if exponent > 0 else 1.0 / wide
        out = sqrt(base)
        for _ in range(int(abs(exponent))):
            out = out * base
        return _single(out)

    return power_by_root


# --- log1p ----------------------------------------------------------------------------------------------

#: (log(1 + f) - f + f²/2) / f³ by powers of f, from -1/4 to 1/2. The error is below 0.016 units in the last place of
#: the logarithm.
_LOG1P = (
    0.33333340287208557,
    -0.2500016391277313,
    0.19999605417251587,
    -0.16655296087265015,
    0.14276239275932312,
    -0.12727779150009155,
    0.11700659990310669,
    -0.09116183966398239,
    0.03767285495996475,
)
#: log(2) in two parts: the product of the first one and of a whole number below 256 is exact in float32.
_LOG2_HIGH, _LOG2_LOW = 0.693145751953125, 1.428606765330187e-06
#: the bits of 1 and of 3/4 in float32
_ONE32, _LEAST32 = 0x3F800000, 0x3F400000


def logarithm_of_one_plus(x: Formula) -> Formula:
    """log(1 + x), as k log(2) + log(1 + f) with 1 + x = 2**k (1 + f)"""
    total = x + 1.0
    biased = (total.bits(dtypes.uint32) + (_ONE32 - _LEAST32)) >> 23
    # The rounded sum has lost digits of small numbers. 2**-k x + (2**-k - 1) replaces it there. It is exact, as 1 + f
    # is 3/4 or more.
    power = ((254 - biased) << 23).bits(dtypes.float32)
    mantissa = (total.bits(dtypes.uint32) - (biased << 23) + _ONE32).bits(dtypes.float32)
    rest = (x < 2.0**25).where(x * power + (power - 1.0), mantissa - 1.0)
    whole = (biased | 0x4B000000).bits(dtypes.float32) - (2.0**23 + 127)  # the bits of 2**23 and more
    square = rest * rest
    tail = square * (rest * polynomial(rest, _LOG1P) - 0.5) + whole * _LOG2_LOW
    # The error of the first addition is added to the rest.
    high = whole * _LOG2_HIGH
    near = high + rest
    out = _unless_small(x, 2.0**-25, near + ((rest - (near - high)) + tail))
    out = (x < math.inf).where(out, x)
    outside = x.equals(-1.0).where(-math.inf, x.full(math.nan))
    return (x > -1.0).where(out, outside)


# --- cbrt, remainder ------------------------------------------------------------------------------------

#: This, less a third of the bits of a float32, are the bits of its inverse cube root to within a twentieth.
_INVERSE_ROOT = 1419967297


def cube_root(x: Formula) -> Formula:
    """The cube root of `x`, as x y² with y the inverse cube root, by two steps without division."""
    size = abs(x)
    out = (size.bits(dtypes.uint32).full(_INVERSE_ROOT) - size.bits(dtypes.uint32) / 3).bits(dtypes.float32)
    # The inverse root is out (1 - rest)**(-1/3), whose series are cut: the error falls from 1/20 to 3e-5, and to 1e-13.
    # The first step is as good in float32. Its products are ordered so that none is beyond the numbers.
    out = _double(out * polynomial(1.0 - size * out * out * out, (1.0, 1 / 3, 2 / 9, 14 / 81)))
    wide = _double(size)
    square = out * out
    rest = 1.0 - wide * out * square
    root = wide * square * polynomial(rest, (1.0, 2 / 3, 5 / 9))
    is_itself = size.equals(0.0) | ~(size < math.inf)
    return is_itself.where(x, _signed(_single(root), x))


def remainder(x: Formula, y: Formula) -> Formula:
    """x - y trunc(x / y), exactly; nan where the quotient may be 2**28 or more, or an operand is no ordinary number."""
    size, step = abs(x), abs(y)
    wide, wide_step = _double(size), _double(step)
    # The quotient, whose product with the divisor is exact, may be too large or too small by one.
    rest = wide - floor(wide / wide_step) * wide_step
    rest = (rest < 0.0).where(rest + wide_step, rest)
    rest = (rest >= wide_step).where(rest - wide_step, rest)
    # Other divisors, of which float32 multiples may be infinite or rests subnormal, are left to the operation.
    is_ordinary = (step > 2.0**-100) & (step < 2.0**100) & (size < step * 2.0**28)
    return is_ordinary.where(_signed(_single(rest), x), math.nan)
