"""Elementwise functions of ``phlox.lax`` that a row declares. Each public name of this file is one of `phlox.lax`."""

# Without `from __future__ import annotations`: its name would be public.

from .._ops.elementwise import (
    arithmetic as _e,
    error_functions as _error_functions,
    exponents as _exponents,
    logic as _logic,
    special as _special,
    trigonometry as _trigonometry,
)
from .._ops.random import equality as _equality
from ._elementwise import (
    _ANY,
    _BITS,
    _F,
    _FLOAT,
    _INEXACT,
    _INTEGER,
    _NUMBER,
    _REAL,
    _REAL_PART,
    _T,
    _TRUTH,
    _f,
    _i,
    accurate as _accurate,
    binary as _binary,
    equality_of as _equal,
    unary as _unary,
)

abs = _unary(
    _e.abs_,
    "abs",
    "Absolute value",
    "-1.0",
    _f("1."),
    "signed integers, floats or complex numbers",
    "An array of the shape of `x`, of its dtype; float32 for complex64.",
)
acos = _unary(_trigonometry.acos, "acos", "Inverse cosine in radians, from 0 to pi", "1.0", _f("0."))
acosh = _unary(_trigonometry.acosh, "acosh", "Inverse hyperbolic cosine", "1.0", _f("0."))
asin = _unary(_trigonometry.asin, "asin", "Inverse sine in radians, from -pi/2 to pi/2", "0.0", _f("0."))
asinh = _unary(_trigonometry.asinh, "asinh", "Inverse hyperbolic sine", "0.0", _f("0."))
atan = _unary(_trigonometry.atan, "atan", "Inverse tangent in radians, from -pi/2 to pi/2", "0.0", _f("0."))
atanh = _unary(_trigonometry.atanh, "atanh", "Inverse hyperbolic tangent", "0.0", _f("0."))
bessel_i0e = _unary(
    _special.bessel_i0e,
    "bessel_i0e",
    "``exp(-abs(x))`` times the modified Bessel function of order 0",
    "1.0",
    _f("0.4657..."),
    _FLOAT,
    mirrors="as ``scipy.special.i0e``",
)
bessel_i1e = _unary(
    _special.bessel_i1e,
    "bessel_i1e",
    "``exp(-abs(x))`` times the modified Bessel function of order 1",
    "1.0",
    _f("0.2079..."),
    _FLOAT,
    mirrors="as ``scipy.special.i1e``",
)
bitwise_not = _unary(_logic.not_, "bitwise_not", "All bits inverted", "0", _i(-1), _BITS)
cbrt = _accurate(_e.cbrt, "cbrt", "Cube root", "8.0", _f("2."), _FLOAT)
ceil = _unary(_e.ceil, "ceil", "The smallest whole number not below x", "0.5", _f("1."), _FLOAT)
clz = _unary(_logic.clz, "clz", "The number of zero bits in front of the first one that is set", "1", _i(31), _INTEGER)
cos = _accurate(_trigonometry.cos, "cos", "Cosine of an angle in radians", "0.0", _f("1."))
cosh = _unary(_trigonometry.cosh, "cosh", "Hyperbolic cosine", "0.0", _f("1."))
digamma = _unary(
    _special.digamma,
    "digamma",
    "The derivative of `lgamma`",
    "1.0",
    _f("-0.577..."),
    _FLOAT,
    "An array of the shape and dtype of `x`; nan at 0 and at negative whole numbers.",
    mirrors="as ``scipy.special.digamma``",
)
erf = _unary(_error_functions.erf, "erf", "Error function", "0.0", _f("0."), _FLOAT)
erfc = _accurate(_error_functions.erfc, "erfc", "1 - erf(x)", "0.0", _f("1."), _FLOAT)
erf_inv = _unary(_error_functions.erf_inv, "erf_inv", "Inverse of the error function", "0.0", _f("0."), _FLOAT)
exp = _accurate(_e.exp, "exp", "e to the power of x", "0.0", _f("1."))
exp2 = _accurate(_exponents.exp2, "exp2", "2 to the power of x", "3.0", _f("8."))
expm1 = _accurate(_e.expm1, "expm1", "exp(x) - 1", "0.0", _f("0."))
floor = _unary(_e.floor, "floor", "The largest whole number not above x", "1.5", _f("1."), _FLOAT)
imag = _unary(_e.imag, "imag", "Imaginary part of a complex array", "1 + 2j", _f("2."), "complex numbers", _REAL_PART)
is_finite = _unary(
    _e.is_finite,
    "is_finite",
    "Whether x is neither infinite nor nan",
    "1.0",
    _T,
    _FLOAT,
    "A bool array of the shape of `x`.",
)
lgamma = _unary(
    _special.lgamma,
    "lgamma",
    "``log(abs(gamma(x)))``",
    "3.0",
    _f("0.693..."),
    _FLOAT,
    "An array of the shape and dtype of `x`; inf at 0 and at negative whole numbers.",
    mirrors="as ``scipy.special.gammaln``",
)
log = _accurate(_e.log, "log", "Natural logarithm", "1.0", _f("0."))
log1p = _accurate(_e.log1p, "log1p", "log(1 + x)", "0.0", _f("0."))
log2 = _accurate(_exponents.log2, "log2", "Logarithm to base 2", "8.0", _f("3."), mirrors="as ``numpy.log2``")
logistic = _accurate(_e.logistic, "logistic", "1 / (1 + exp(-x))", "0.0", _f("0.5"))
neg = _unary(_e.neg, "neg", "-x", "1.0", _f("-1."), _NUMBER)
one_minus_square = _unary(
    _e.one_minus_square,
    "one_minus_square",
    "1 - x * x",
    "3.0",
    _f("-8."),
    _NUMBER,
    note="It is computed as ``(1 + x) (1 - x)``, which is exact to rounding near 1 and -1.",
)
population_count = _unary(
    _logic.population_count, "population_count", "The number of bits that are set", "7", _i(3), _INTEGER
)
real = _unary(_e.real, "real", "Real part of a complex array", "1 + 2j", _f("1."), "complex numbers", _REAL_PART)
rsqrt = _accurate(_e.rsqrt, "rsqrt", "1 / sqrt(x)", "4.0", _f("0.5"))
sign = _unary(
    _e.sign,
    "sign",
    "-1, 0 or 1",
    "-2.0",
    _f("-1."),
    _NUMBER,
    note="Of complex numbers ``x / abs(x)``; 0 stays 0 and nan stays nan.",
)
sin = _accurate(_trigonometry.sin, "sin", "Sine of an angle in radians", "0.0", _f("0."))
sinh = _unary(_trigonometry.sinh, "sinh", "Hyperbolic sine", "0.0", _f("0."))
sqrt = _accurate(_e.sqrt, "sqrt", "Square root", "4.0", _f("2."))
square = _unary(_e.square, "square", "x * x", "3.0", _f("9."), _NUMBER)
tan = _accurate(_trigonometry.tan, "tan", "Tangent of an angle in radians", "0.0", _f("0."))
tanh = _accurate(_trigonometry.tanh, "tanh", "Hyperbolic tangent", "0.0", _f("0."))

add = _binary(_e.add, "add", "x + y", "1.0, 2.0", _f("3."))
atan2 = _binary(
    _trigonometry.atan2,
    "atan2",
    "The angle of the point (y, x)",
    "0.0, 1.0",
    _f("0."),
    _INEXACT,
    note="In radians, from -pi to pi: ``atan(x / y)`` in the quadrant of the point.",
)
bitwise_and = _binary(_logic.and_, "bitwise_and", "The bits that are set in both", "6, 3", _i(2), _BITS)
bitwise_or = _binary(_logic.or_, "bitwise_or", "The bits that are set in one or both", "6, 3", _i(7), _BITS)
bitwise_xor = _binary(_logic.xor, "bitwise_xor", "The bits that are set in one of the two", "6, 3", _i(5), _BITS)
complex = _binary(
    _e.complex_,
    "complex",
    "x + iy",
    "1.0, 2.0",
    "Array(1.+2.j, dtype=complex64, weak_type=True)",
    "floats (float32 or float64)",
    "A complex array of the broadcast shape: complex64 of float32.",
)
div = _binary(
    _e.div, "div", "x / y", "1.0, 2.0", _f("0.5"), note="Of integers it is the quotient rounded towards zero."
)
eq = _equal(_equality.equal, _logic.eq, "eq", "Whether x == y", _T)
ge = _binary(_logic.ge, "ge", "Whether x >= y", "1.0, 1.0", _T, _REAL, _TRUTH)
gt = _binary(_logic.gt, "gt", "Whether x > y", "1.0, 1.0", _F, _REAL, _TRUTH)
le = _binary(_logic.le, "le", "Whether x <= y", "1.0, 1.0", _T, _REAL, _TRUTH)
lt = _binary(_logic.lt, "lt", "Whether x < y", "1.0, 1.0", _F, _REAL, _TRUTH)
max = _binary(
    _e.max_,
    "max",
    "The larger of the two",
    "1.0, 2.0",
    _f("2."),
    _ANY,
    note="It is nan where one of them is. Complex numbers are compared by real part, then by imaginary part.",
)
min = _binary(
    _e.min_,
    "min",
    "The smaller of the two",
    "1.0, 2.0",
    _f("1."),
    _ANY,
    note="It is nan where one of them is. Complex numbers are compared by real part, then by imaginary part.",
)
ne = _equal(_equality.not_equal, _logic.ne, "ne", "Whether x != y", _F)
rem = _binary(_e.rem, "rem", "The remainder of x / y, with the sign of x", "5.0, 3.0", _f("2."), "real numbers")
shift_left = _binary(
    _logic.shift_left,
    "shift_left",
    "x shifted left by y bits",
    "1, 3",
    _i(8),
    _INTEGER,
    note="The result is 0 where y, read as an unsigned number, is at least the number of bits.",
)
shift_right_arithmetic = _binary(
    _logic.shift_right_arithmetic,
    "shift_right_arithmetic",
    "x shifted right by y bits, filled with copies of the sign bit",
    "-8, 1",
    _i(-4),
    _INTEGER,
)
shift_right_logical = _binary(
    _logic.shift_right_logical,
    "shift_right_logical",
    "x shifted right by y bits, filled with zeros",
    "8, 1",
    _i(4),
    _INTEGER,
)
sub = _binary(_e.sub, "sub", "x - y", "3.0, 1.0", _f("2."))
