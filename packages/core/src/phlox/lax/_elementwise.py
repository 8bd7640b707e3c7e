"""Elementwise operations of ``phlox.lax``: one primitive each, with no promotion: operands must have one dtype."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._base import pytree
from .._base.errors import ArgumentError, DtypeError, OptionError, UnsupportedError
from .._ir import dtypes
from .._ir.primitive import Primitive
from .._ops import elementwise as e, logic
from .._ops.families import literal, same_dtype
from .._ops.shape import convert
from ..numpy._promote import check, check_one, integer, to_dtype, type_of

if TYPE_CHECKING:
    from ..typing import Array, ArrayLike, DTypeLike

#: What the compiler's operations are called where that is not JAX's name; comparisons and squares are cases of others.
_OPERATIONS = {
    "bitwise_and": "and",
    "bitwise_not": "not",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "clz": "count_leading_zeros",
    "cos": "cosine",
    "div": "divide",
    "exp": "exponential",
    "exp2": "exponential",
    "expm1": "exponential_minus_one",
    "log1p": "log_plus_one",
    "max": "maximum",
    "min": "minimum",
    "neg": "negate",
    "population_count": "popcnt",
    "pow": "power",
    "rem": "remainder",
    "sin": "sine",
    "square": "multiply",
    "sub": "subtract",
    **dict.fromkeys(("eq", "ge", "gt", "le", "lt", "ne"), "compare"),
}
_CHLO = frozenset(("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "erf_inv", "erfc", "sinh"))


def _mirrored(name: str) -> str:
    """The operation of the compiler that a function mirrors."""
    return f"{'CHLO' if name in _CHLO else 'StableHLO'}'s ``{_OPERATIONS.get(name, name)}``"


def _unary(primitive: Primitive, name: str, what: str, example: str, result: str) -> Callable[..., Any]:
    def function(x: ArrayLike) -> Array:
        return primitive.bind(*check(name, x))

    return _named(function, name, f"{what}, elementwise ({_mirrored(name)}).", example, result)


class Tolerance:
    """How far an elementwise function may be off: absolutely, relatively, in units of the last place.

    Raises `OptionError` for negative numbers and for none at all.

    >>> Tolerance(ulps=2).ulps
    2
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0 or rtol < 0 or ulps < 0:
            raise OptionError(f"Tolerance({atol}, {rtol}, {ulps}) has a negative number")
        if not (atol or rtol or ulps):
            raise OptionError("Tolerance without atol, rtol or ulps")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps


class AccuracyMode(enum.Enum):
    """Which of several implementations of an elementwise function is asked for. CPUs and GPUs have one of each.

    >>> phlox.lax.exp(0.0, accuracy=AccuracyMode.HIGHEST)
    Array(1., dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


def _accurate(primitive: Primitive, name: str, what: str, example: str, result: str) -> Callable[..., Any]:
    def function(x: ArrayLike, *, accuracy: AccuracyMode | None = None) -> Array:
        if accuracy is not None and not isinstance(accuracy, AccuracyMode):
            raise UnsupportedError(
                f"{name}: accuracy={accuracy!r}: compilers for CPUs and GPUs ignore tolerances, so none is promised",
                instead="accuracy=None, or a wider dtype",
            )
        return primitive.bind(*check(name, x))

    note = "`accuracy` may be None or an `AccuracyMode`"
    return _named(function, name, f"{what}, elementwise ({_mirrored(name)}). {note}.", example, result)


def _binary(primitive: Primitive, name: str, what: str, example: str, result: str) -> Callable[..., Any]:
    def function(x: ArrayLike, y: ArrayLike) -> Array:
        return primitive.bind(*check(name, x, y))

    note = "Both must have one dtype; shapes must agree, or one of them have no axes"
    return _named(function, name, f"{what}, elementwise ({_mirrored(name)}). {note}.", example, result)


def _named(function: Callable[..., Any], name: str, what: str, example: str, result: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.lax"
    function.__doc__ = f"{what}\n\n>>> from phlox import lax\n>>> lax.{name}({example})\n{result}\n"
    return function


def _f(value: str) -> str:
    return f"Array({value}, dtype=float32, weak_type=True)"


def _i(value: int) -> str:
    return f"Array({value}, dtype=int32, weak_type=True)"


_T, _F = (f"Array({value}, dtype=bool, weak_type=True)" for value in (True, False))

abs = _unary(e.abs_, "abs", "Absolute value", "-1.0", _f("1."))
acos = _unary(e.acos, "acos", "Inverse cosine", "1.0", _f("0."))
acosh = _unary(e.acosh, "acosh", "Inverse hyperbolic cosine", "1.0", _f("0."))
asin = _unary(e.asin, "asin", "Inverse sine", "0.0", _f("0."))
asinh = _unary(e.asinh, "asinh", "Inverse hyperbolic sine", "0.0", _f("0."))
atan = _unary(e.atan, "atan", "Inverse tangent", "0.0", _f("0."))
atanh = _unary(e.atanh, "atanh", "Inverse hyperbolic tangent", "0.0", _f("0."))
bitwise_not = _unary(logic.not_, "bitwise_not", "All bits flipped", "0", _i(-1))
cbrt = _accurate(e.cbrt, "cbrt", "Cube root", "8.0", _f("2."))
ceil = _unary(e.ceil, "ceil", "The smallest whole number not below x", "0.5", _f("1."))
clz = _unary(logic.clz, "clz", "Number of leading zero bits", "1", _i(31))
cos = _accurate(e.cos, "cos", "Cosine", "0.0", _f("1."))
cosh = _unary(e.cosh, "cosh", "Hyperbolic cosine", "0.0", _f("1."))
erf = _unary(e.erf, "erf", "Error function", "0.0", _f("0."))
erfc = _unary(e.erfc, "erfc", "1 - erf(x)", "0.0", _f("1."))
erf_inv = _unary(e.erf_inv, "erf_inv", "Inverse of the error function", "0.0", _f("0."))
exp = _accurate(e.exp, "exp", "e to the power of x", "0.0", _f("1."))
exp2 = _accurate(e.exp2, "exp2", "2 to the power of x", "3.0", _f("8."))
expm1 = _accurate(e.expm1, "expm1", "exp(x) - 1", "0.0", _f("0."))
floor = _unary(e.floor, "floor", "The largest whole number not above x", "1.5", _f("1."))
imag = _unary(e.imag, "imag", "Imaginary part of a complex array", "1 + 2j", _f("2."))
is_finite = _unary(e.is_finite, "is_finite", "Where x is neither infinite nor nan", "1.0", _T)
log = _accurate(e.log, "log", "Natural logarithm", "1.0", _f("0."))
log1p = _accurate(e.log1p, "log1p", "log(1 + x)", "0.0", _f("0."))
logistic = _accurate(e.logistic, "logistic", "1 / (1 + exp(-x))", "0.0", _f("0.5"))
neg = _unary(e.neg, "neg", "-x", "1.0", _f("-1."))
population_count = _unary(logic.population_count, "population_count", "Number of bits that are set", "7", _i(3))
real = _unary(e.real, "real", "Real part of a complex array", "1 + 2j", _f("1."))
rsqrt = _accurate(e.rsqrt, "rsqrt", "1 / sqrt(x)", "4.0", _f("0.5"))
sign = _unary(e.sign, "sign", "-1, 0 or 1", "-2.0", _f("-1."))
sin = _accurate(e.sin, "sin", "Sine", "0.0", _f("0."))
sinh = _unary(e.sinh, "sinh", "Hyperbolic sine", "0.0", _f("0."))
sqrt = _accurate(e.sqrt, "sqrt", "Square root", "4.0", _f("2."))
square = _unary(e.square, "square", "x * x", "3.0", _f("9."))
tan = _accurate(e.tan, "tan", "Tangent", "0.0", _f("0."))
tanh = _accurate(e.tanh, "tanh", "Hyperbolic tangent", "0.0", _f("0."))

add = _binary(e.add, "add", "x + y", "1.0, 2.0", _f("3."))
atan2 = _binary(e.atan2, "atan2", "The angle of the point (y, x)", "0.0, 1.0", _f("0."))
bitwise_and = _binary(logic.and_, "bitwise_and", "The bits that both have", "6, 3", _i(2))
bitwise_or = _binary(logic.or_, "bitwise_or", "The bits that either has", "6, 3", _i(7))
bitwise_xor = _binary(logic.xor, "bitwise_xor", "The bits that one of them has", "6, 3", _i(5))
complex = _binary(e.complex_, "complex", "x + iy", "1.0, 2.0", "Array(1.+2.j, dtype=complex64, weak_type=True)")
div = _binary(e.div, "div", "x / y; of integers the quotient rounded towards zero", "1.0, 2.0", _f("0.5"))
eq = _binary(logic.eq, "eq", "Where x == y", "1.0, 1.0", _T)
ge = _binary(logic.ge, "ge", "Where x >= y", "1.0, 1.0", _T)
gt = _binary(logic.gt, "gt", "Where x > y", "1.0, 1.0", _F)
le = _binary(logic.le, "le", "Where x <= y", "1.0, 1.0", _T)
lt = _binary(logic.lt, "lt", "Where x < y", "1.0, 1.0", _F)
max = _binary(e.max_, "max", "The larger one, or nan", "1.0, 2.0", _f("2."))
min = _binary(e.min_, "min", "The smaller one, or nan", "1.0, 2.0", _f("1."))
ne = _binary(logic.ne, "ne", "Where x != y", "1.0, 1.0", _F)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next number after x1 towards x2, elementwise (as ``numpy.nextafter``). Both must have one dtype; shapes must
    agree.

    >>> nextafter(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return e.nextafter.bind(*check("nextafter", x1, x2))


pow = _binary(e.pow_, "pow", "x to the power of y", "2.0, 3.0", _f("8."))
rem = _binary(e.rem, "rem", "The rest of x / y, with the sign of x", "5.0, 3.0", _f("2."))
shift_left = _binary(logic.shift_left, "shift_left", "x with its bits moved y places up", "1, 3", _i(8))
shift_right_arithmetic = _binary(
    logic.shift_right_arithmetic, "shift_right_arithmetic", "x moved y places down, keeping its sign", "-8, 1", _i(-4)
)
shift_right_logical = _binary(
    logic.shift_right_logical, "shift_right_logical", "x moved y places down, zeros coming in", "8, 1", _i(4)
)
sub = _binary(e.sub, "sub", "x - y", "3.0, 1.0", _f("2."))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """x * y, elementwise (StableHLO's ``multiply``). Both must have one dtype; with `out_dtype` they are converted to
    that one first.

    >>> mul(2.0, 3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    x, y = check("mul", x, y)
    if out_dtype is not None:
        same_dtype("mul", (type_of(x), type_of(y)))
        wanted, weak = dtypes.user_dtype(out_dtype, "mul"), type_of(x).weak_type and type_of(y).weak_type
        # A number of this dtype first: a Python number would have the dtype of its kind.
        x, y = (convert(to_dtype(a, wanted), wanted, weak) for a in (x, y))
    return e.mul(x, y)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the bits of x * y, elementwise, of integers of one dtype (as ``jax.lax.mulhi``).

    >>> mulhi(np.int32(1 << 30), np.int32(8))
    Array(2, dtype=int32)
    """
    return logic.mulhi(*check("mulhi", x, y))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to the power of the Python integer `y`, by repeated multiplication (as ``numpy.power``).

    >>> integer_pow(2.0, 3)
    Array(8., dtype=float32, weak_type=True)
    """
    x = check_one("integer_pow", x)
    if not hasattr(y, "__index__"):
        raise ArgumentError(f"integer_pow: y must be an integer, got {y!r}", instead="phlox.lax.pow")
    power = integer("integer_pow", "y", y)
    if power < 0 and not dtypes.is_inexact(type_of(x).dtype):
        raise DtypeError(f"integer_pow: {type_of(x).short} to the negative power {power} is no integer")
    return e.integer_pow(x, y=power)


def conj(x: ArrayLike) -> Array:
    """Complex conjugate, elementwise; real arrays become complex (as ``numpy.conj``).

    >>> conj(1j)
    Array(0.-1.j, dtype=complex64, weak_type=True)
    """
    x = check_one("conj", x)
    return e.conj(x if dtypes.kind(type_of(x).dtype) == "c" else e.complex_(x, literal(x, 0)))


def reciprocal(x: ArrayLike) -> Array:
    """1 / x, elementwise (as ``numpy.reciprocal``).

    >>> reciprocal(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return integer_pow(x, -1)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """`x` with values below `min` raised to it and values above `max` lowered to it (StableHLO clamp).

    The bounds have the shape of `x`, or no axes.

    >>> clamp(0.0, 2.0, 1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return logic.clamp(*check("clamp", min, x, max))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where `pred`, else `on_false`; the two have one shape and dtype, `pred` that shape or none (StableHLO's
    ``select``).

    >>> select(True, 1.0, 2.0)
    Array(1., dtype=float32, weak_type=True)
    """
    pred, on_true, on_false = check("select", pred, on_true, on_false)
    return logic.select_n(pred, on_false, on_true)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Case number `which`, elementwise; `which` is bool (two cases) or an integer (StableHLO's ``select``).

    >>> select_n(False, 1.0, 2.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return logic.select_n(*check("select_n", which, *cases))


def stop_gradient(x: Any) -> Any:
    """A tree of arrays as it is, through which no derivative passes (as ``jax.lax.stop_gradient``).

    >>> import phlox
    >>> phlox.grad(lambda x: x * stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def stop(leaf: Any) -> Any:
        leaf = check_one("stop_gradient", leaf)
        return e.stop_gradient(leaf) if dtypes.is_inexact(type_of(leaf).dtype) else leaf

    return pytree.tree_map(stop, x)
