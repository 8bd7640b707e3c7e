"""Elementwise functions of two operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit, jitted_alias
from ..._base.errors import DtypeError
from ..._base.wrapping import renamed
from ..._ir import dtypes
from ..._operands.checks import check, type_of
from ..._operands.promotion import promote_dtypes, promote_shapes, promoted, promoted_inexact, to_dtype
from ..._ops.elementwise import arithmetic as e, logic, logs, trigonometry
from ..._ops.elementwise.families import literal
from ..._trace.trace import Tracer
from ...typing import Array, ArrayLike
from .._manipulation.broadcasting import broadcast_arrays
from .define import define_binary
from .unary import as_bool, is_kind, number

Apply = Callable[[Any, Any], Any]


def _numbers(function: str, *args: Any) -> list[Any]:
    """Like `promoted`, with bools made integers."""
    return [number(x) for x in promoted(function, *args)]


def _booleans(function: str, *args: Any) -> list[Any]:
    return [as_bool(x) for x in promoted(function, *args)]


#: for docstrings: when functions of real numbers raise `DtypeError`
_COMPLEX = "an operand is complex"
#: for docstrings: the dtype of the results of `_numbers`
_OF_NUMBERS = "the promoted dtype; bools give int32"

# --- arithmetic -----------------------------------------------------------------------------------------


def _on_bools(logical: Any, numeric: Any) -> Apply:
    return lambda x, y: logical(x, y) if type_of(x).dtype == dtypes.bool_ else numeric(x, y)


add = define_binary(
    "add", promoted, _on_bools(logic.or_, e.add), "x + y", "1, 2", "3", note="Of bools, the logical or.", is_ufunc=True
)
subtract = define_binary(
    "subtract", promoted, e.sub, "x - y", "3, 2", "1", raises="both operands are bools", is_ufunc=True
)
multiply = define_binary(
    "multiply",
    promoted,
    _on_bools(logic.and_, e.mul),
    "x * y",
    "3, 2",
    "6",
    note="Of bools, the logical and.",
    is_ufunc=True,
)
divide = define_binary("divide", promoted_inexact, e.div, "x / y", "3, 2", "1.5")
maximum = define_binary(
    "maximum",
    promoted,
    e.max_,
    "The larger of x and y",
    "3, 2",
    "3",
    note="A nan in either operand gives nan.",
    is_ufunc=True,
)
minimum = define_binary(
    "minimum",
    promoted,
    e.min_,
    "The smaller of x and y",
    "3, 2",
    "2",
    note="A nan in either operand gives nan.",
    is_ufunc=True,
)
arctan2 = define_binary(
    "arctan2",
    promoted_inexact,
    trigonometry.atan2,
    "The angle of the point (y, x), in radians between -pi and pi",
    "0.0, 1.0",
    "0.",
)
nextafter = define_binary(
    "nextafter",
    promoted_inexact,
    e.nextafter,
    "The next representable number after x towards y",
    "0.0, 0.0",
    "0.",
    raises=_COMPLEX,
)


def _remainder(x: Any, y: Any) -> Any:
    """The remainder of x / y with the sign of x; 0 for integers divided by 0."""
    # Of integers, XLA's remainder by 0 is x, and NumPy's is 0.
    if is_kind(y, "iu"):
        one = to_dtype(1, type_of(y).dtype, type_of(y).weak_type)
        y = logic.select(logic.eq(y, literal(y, 0)), one, y)
    return e.rem(x, y)


def _modulo(x: Any, y: Any) -> Any:
    rest = _remainder(x, y)
    # XLA's remainder has the sign of x, Python's that of y.
    other_sign = logic.ne(logic.is_negative(rest), logic.is_negative(y))
    wrong = logic.and_(other_sign, logic.ne(rest, literal(rest, 0)))
    return logic.select(wrong, e.add(rest, y), rest)


def _floor_divide(x: Any, y: Any) -> Any:
    if is_kind(x, "u"):
        return e.div(x, y)
    if is_kind(x, "i"):
        # XLA rounds quotients of integers towards zero, Python down.
        quotient = e.div(x, y)
        inexact = logic.ne(e.rem(x, y), literal(x, 0))
        below = logic.and_(logic.ne(e.sign(x), e.sign(y)), inexact)
        one = to_dtype(1, type_of(x).dtype, type_of(quotient).weak_type)
        return logic.select(below, e.sub(quotient, one), quotient)
    if is_kind(x, "c"):
        raise DtypeError(f"floor_divide does not accept {type_of(x).short}: complex numbers have no order")
    x, y = broadcast_arrays(x, y)
    # Without the remainder the quotient is a whole number up to rounding errors.
    rest = e.rem(x, y)
    # The remainder by 0 is nan, while x / 0 has a sign and an infinity to keep.
    whole = e.div(logic.select(logic.eq(y, literal(y, 0)), x, e.sub(x, rest)), y)
    below = logic.and_(logic.ne(rest, literal(rest, 0)), logic.ne(e.sign(rest), e.sign(y)))
    return e.round_(logic.select(below, subtract(whole, 1.0), whole), rounding_method=0)


_options: dict[str, Any] = {"dtype": _OF_NUMBERS, "raises": _COMPLEX}
remainder = define_binary("remainder", _numbers, _modulo, "x modulo y, with the sign of y", "-1, 3", "2", **_options)
fmod = define_binary(
    "fmod", _numbers, _remainder, "The remainder of x / y, with the sign of x", "-1, 3", "-1", **_options
)
floor_divide = define_binary(
    "floor_divide", _numbers, _floor_divide, "The largest whole number not above x / y", "-7, 2", "-4", **_options
)


def _logaddexp(x: Any, y: Any) -> Any:
    out = logs.logaddexp(x, y)
    # As in JAX, where constants in the formula for complex numbers make the result of arrays strongly typed.
    strong = is_kind(out, "c") and type_of(out).shape
    return to_dtype(out, type_of(out).dtype) if strong else out


def _hypot(x: Any, y: Any) -> Any:
    if is_kind(x, "c"):
        raise DtypeError(
            f"jnp.hypot is not well defined for complex-valued inputs, got {type_of(x).short}",
            instead="phlox.numpy.abs of both first",
        )
    # Weakly typed if both operands are, as that of jax's primitive.
    return to_dtype(_length(x, y), type_of(x).dtype, type_of(x).weak_type)


@custom_jvp
def _length(x: Any, y: Any) -> Any:
    x, y = e.abs_(x), e.abs_(y)
    infinite = logic.or_(logic.eq(x, literal(x, np.inf)), logic.eq(y, literal(y, np.inf)))
    # Divided by the larger one, as the squares of both may overflow.
    big, small = e.max_(x, y), e.min_(x, y)
    nothing = logic.eq(big, literal(big, 0))
    ratio = e.div(small, logic.select(nothing, literal(big, 1), big))
    length = logic.select(nothing, big, e.mul(big, e.sqrt(e.add(literal(big, 1), e.square(ratio)))))
    return logic.select(infinite, literal(big, np.inf), length)


@_length.defjvp
def _length_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    """The tangent along the direction of (x, y); at 0, as in JAX, the mean of both tangents."""
    out = _length(*primals)
    x, y, length = e.direction(*primals, out)
    nothing = logic.eq(out, literal(out, 0))
    half, length = literal(out, 0.5), logic.select(nothing, literal(out, 1), length)
    slopes = [logic.select(nothing, half, e.div(part, length)) for part in (x, y)]
    return out, e.add(*(e.mul(t, slope) for t, slope in zip(tangents, slopes, strict=True)))


logaddexp = define_binary(
    "logaddexp", promoted_inexact, _logaddexp, "log(exp(x) + exp(y)) without overflow", "-1e9, 0.0", "0.", is_ufunc=True
)
hypot = define_binary(
    "hypot", promoted_inexact, _hypot, "sqrt(x**2 + y**2) without overflow", "3.0, 4.0", "5.", raises=_COMPLEX
)

# --- logic ---------------------------------------------------------------------------------------------

logical_and = define_binary(
    "logical_and", _booleans, logic.and_, "Where x and y are not zero", "1, 2", "True", is_ufunc=True
)
logical_or = define_binary(
    "logical_or", _booleans, logic.or_, "Where x or y is not zero", "0, 2", "True", is_ufunc=True
)
logical_xor = define_binary(
    "logical_xor", _booleans, logic.xor, "Where exactly one of x and y is not zero", "0, 2", "True", is_ufunc=True
)
#: for docstrings: when bitwise functions raise `DtypeError`
_NOT_WHOLE = "an operand is neither integer nor bool"
bitwise_and = define_binary(
    "bitwise_and",
    promoted,
    logic.and_,
    "The bits that are set in both x and y",
    "6, 3",
    "2",
    raises=_NOT_WHOLE,
    is_ufunc=True,
)
bitwise_or = define_binary(
    "bitwise_or",
    promoted,
    logic.or_,
    "The bits that are set in x or in y",
    "6, 3",
    "7",
    raises=_NOT_WHOLE,
    is_ufunc=True,
)
bitwise_xor = define_binary(
    "bitwise_xor",
    promoted,
    logic.xor,
    "The bits that are set in exactly one of x and y",
    "6, 3",
    "5",
    raises=_NOT_WHOLE,
    is_ufunc=True,
)


def _shift_right(x: Any, y: Any) -> Any:
    return logic.shift_right_arithmetic(x, y) if is_kind(x, "i") else logic.shift_right_logical(x, y)


_options = {"dtype": _OF_NUMBERS, "raises": _NOT_WHOLE}
left_shift = define_binary(
    "left_shift",
    _numbers,
    logic.shift_left,
    "x with its bits shifted left by y positions, filled with zeros",
    "1, 3",
    "8",
    **_options,
)
right_shift = define_binary(
    "right_shift",
    _numbers,
    _shift_right,
    "x with its bits shifted right by y positions",
    "8, 3",
    "1",
    note="Copies of the sign bit come in at the top of signed integers, zeros at the top of unsigned ones.",
    **_options,
)

# --- power ----------------------------------------------------------------------------------------------

_EXPONENT_BITS = 6  # with larger exponents every integer except 0, 1 and -1 overflows


@jit(inline=True, static_argnums=1)
def _integer_power(x: Any, y: int) -> Any:
    return e.integer_pow(number(x), y=y)


@jit(inline=True)
def _general_power(x: Any, y: Any) -> Any:
    if is_kind(x, "biu") and is_kind(y, "biu"):
        numbers = _numbers("power", x, y)  # int64 and uint64 become floats
        return _whole_power(*numbers) if is_kind(numbers[0], "iu") else e.pow_(*numbers)
    promote_dtypes(x, y)  # raises where promotion is strict
    if is_kind(x, "fc") and is_kind(y, "iu"):
        return e.pow_(*promote_shapes("power", x, y))  # an integer exponent is not promoted: see `_pow_x` of `pow_`
    return e.pow_(*promoted_inexact("power", x, y))


def _whole_power(x: Any, y: Any) -> Any:
    """Integer powers by repeated squaring, one bit of the exponents at a time."""
    x, y = broadcast_arrays(x, y)
    zero, one = (to_dtype(value, type_of(x).dtype) for value in (0, 1))
    # Starts with 0 for x = 0 and y != 0, because the loop sees only the lowest bits of y.
    result = logic.select(logic.and_(logic.eq(x, zero), logic.ne(y, zero)), zero, one)
    for _ in range(_EXPONENT_BITS):
        result = logic.select(logic.eq(logic.and_(y, one), one), e.mul(result, x), result)
        x, y = e.mul(x, x), logic.shift_right_logical(y, one)
    return result


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1` to the power of `x2`, elementwise (as ``numpy.power``).

    A known integer exponent is computed by multiplication, which is exact and keeps the dtype of `x1`; every other
    exponent is promoted with `x1`.

    Args:
      x1: the base, an array of any shape, or a number.
      x2: the exponent, an array or a number that broadcasts to `x1`. A Python integer, or an integer array of shape ()
        that is not traced, is a known exponent.

    Returns:
      An array of the broadcast shape: of the dtype of `x1` if the exponent is a known integer, else of the promoted
      dtype. Bools give int32.

    Raises:
      DtypeError: `x1` is of an integer or bool dtype, and `x2` a known negative integer.

    >>> jnp.power(jnp.arange(4.0), 2)
    Array([0., 1., 4., 9.], dtype=float32)
    """
    x1, x2 = check("power", x1, x2)
    # A known integer exponent becomes products, as in JAX. They have derivatives without a logarithm of x.
    whole = _known_integer(x2)
    if whole is None:
        return _general_power(x1, x2)
    if whole < 0 and not is_kind(x1, "fc"):
        raise DtypeError(
            f"power: Integers cannot be raised to negative powers, got {type_of(x1).short} to the power {whole}",
            instead="x1.astype(float) first",
        )
    return _integer_power(x1, whole)


def _known_integer(x: Any) -> int | None:
    """`x` as a Python int, if it is one or a concrete integer array of shape ()."""
    if isinstance(x, Tracer) or type_of(x).shape or not is_kind(x, "iu"):
        return None
    return int(x)


pow = renamed(power, "pow")


@jit(inline=True)
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x` to the power of `y`, with integers converted to floats first (as ``numpy.float_power``).

    Args:
      x, y: base and exponent, arrays or numbers that broadcast against each other.

    Returns:
      An array of the broadcast shape, of the promoted dtype; float32 for integers and bools, float64 for 64-bit
      integers.

    >>> float_power(2, 3)
    Array(8., dtype=float32, weak_type=True)
    """
    return _general_power(*promoted_inexact("float_power", x, y))


true_divide = jitted_alias(divide, "true_divide")
mod = jitted_alias(remainder, "mod")
atan2 = jitted_alias(arctan2, "atan2")
bitwise_left_shift = jitted_alias(left_shift, "bitwise_left_shift")
bitwise_right_shift = jitted_alias(right_shift, "bitwise_right_shift")
