"""Elementwise functions of one operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._api.jit.jit import jit, jitted_alias
from ..._base.errors import DtypeError
from ..._ir import dtypes
from ..._operands.checks import check, check_one, type_of
from ..._operands.promotion import promoted_inexact, to_dtype
from ..._ops.elementwise import arithmetic as e, exponents, logic
from ..._ops.elementwise.families import literal
from ..._ops.random.equality import not_equal
from ..._ops.structure.shape import bitcast_convert_type, broadcast_in_dim
from ..._transform.array_operations import zeros
from ...typing import Array, ArrayLike
from .define import REAL_PART, define_unary

if TYPE_CHECKING:
    from ..._api.jit.stages import Jitted

# --- functions of real numbers: integers and bools become floats ----------------------------------------


def inexact(
    name: str, apply: Callable[[Any], Any], what: str, example: str, result: str, weak: bool = True
) -> Jitted[[ArrayLike], Array]:
    """The jitted function ``name(x)`` of floats and complex numbers; integers and bools become floats."""
    return define_unary(name, promoted_inexact, apply, what, example, result, weak=weak)


def by_parts(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`function` applied to reals; for complex numbers, to the real and to the imaginary part."""
    return lambda x: e.complex_(function(e.real(x)), function(e.imag(x))) if is_kind(x, "c") else function(x)


def log_10(x: Any) -> Any:
    """The logarithm to base 10, which is not weak, as JAX's is not."""
    return exponents.log10(to_dtype(x, type_of(x).dtype))


# --- functions that keep the dtype ----------------------------------------------------------------------


def number(x: Any) -> Any:
    """`x` with bools converted to integers, for arithmetic that is not defined for bools."""
    return to_dtype(x, dtypes.int32) if type_of(x).dtype == dtypes.bool_ else x


def as_bool(x: Any) -> Any:
    """Where `x` is not zero."""
    aval = type_of(x)
    return x if aval.dtype == dtypes.bool_ else logic.ne(x, literal(x, 0))


def is_kind(x: Any, kinds: str) -> bool:
    """Whether the dtype of `x` is of one of these kinds (see `dtypes.kind`)."""
    return dtypes.kind(type_of(x).dtype) in kinds


def _whole(primitive: Any) -> Callable[[Any], Any]:
    """A rounding primitive that returns integers and bools unchanged."""

    def apply(x: Any) -> Any:
        if is_kind(x, "biu"):
            return x
        return primitive(to_dtype(x, dtypes.to_inexact(type_of(x).dtype), type_of(x).weak_type))

    return apply


@jit(inline=True)
def trunc(x: ArrayLike) -> Array:
    """`x` with its fractional part removed, elementwise (as ``numpy.trunc``).

    Args:
      x: array of a real dtype or of bools.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      DtypeError: `x` is complex.

    >>> jnp.trunc(-1.5)
    Array(-1., dtype=float32, weak_type=True)
    """
    x = check_one("trunc", x)
    # ceil of negative numbers gives -0.0 for those above -1, as NumPy does.
    return x if is_kind(x, "biu") else logic.select(logic.is_negative(x), e.ceil(x), e.floor(x))


def _of_complex(primitive: Any) -> Callable[[Any], Any]:
    """`primitive` for complex numbers; operands of other dtypes are returned unchanged."""
    return lambda x: primitive(x) if is_kind(x, "c") else x


def _absolute(x: Any) -> Any:
    return x if is_kind(x, "bu") else e.abs_(x)


def _real_absolute(x: Any) -> Any:
    if is_kind(x, "c"):
        raise DtypeError(f"fabs does not accept {type_of(x).short}", instead="phlox.numpy.abs")
    return e.abs_(x)


abs = define_unary(
    "abs", check, _absolute, "Absolute value; of complex numbers, a float", "-2.0", "2.", dtype=REAL_PART
)
fabs = inexact("fabs", _real_absolute, "Absolute value of real numbers", "-2", "2.")
negative = define_unary("negative", check, e.neg, "-x", "3", "-3", is_ufunc=True)
positive = define_unary("positive", check, lambda x: x, "+x", "3", "3")
sign = define_unary("sign", check, e.sign, "-1, 0 or 1; of complex numbers, x / abs(x)", "-2.0", "-1.")
square = define_unary(
    "square", check, lambda x: e.square(number(x)), "x * x", "3.0", "9.", dtype="its dtype; bools give int32"
)
floor = define_unary("floor", check, _whole(e.floor), "The largest whole number not above x", "1.5", "1.")
ceil = define_unary("ceil", check, _whole(e.ceil), "The smallest whole number not below x", "1.5", "2.")
real = define_unary("real", check, _of_complex(e.real), "Real part", "1 + 2j", "1.", dtype=REAL_PART)
imag = define_unary(
    "imag",
    check,
    lambda x: e.imag(x) if is_kind(x, "c") else zeros(type_of(x)),
    "Imaginary part",
    "1 + 2j",
    "2.",
    dtype=REAL_PART,
)
conjugate = define_unary("conjugate", check, _of_complex(e.conj), "Complex conjugate", "1 + 2j", "1.-2.j")
invert = define_unary("invert", check, logic.not_, "All bits flipped", "0", "-1")

# --- tests of elements ----------------------------------------------------------------------------------


def _everywhere(x: Any, answer: bool) -> Any:
    return broadcast_in_dim(np.bool_(answer), shape=type_of(x).shape, broadcast_dimensions=())


def _finite(x: Any) -> Any:
    if is_kind(x, "c"):
        return logic.and_(e.is_finite(e.real(x)), e.is_finite(e.imag(x)))
    return e.is_finite(x) if is_kind(x, "f") else _everywhere(x, True)


def _infinite(x: Any) -> Any:
    if is_kind(x, "c"):
        return logic.or_(_infinite(e.real(x)), _infinite(e.imag(x)))
    return logic.eq(e.abs_(x), to_dtype(np.inf, type_of(x).dtype)) if is_kind(x, "f") else _everywhere(x, False)


isfinite = define_unary("isfinite", check, _finite, "Where x is neither infinite nor nan", "1.0", "True")
isnan = define_unary("isnan", check, lambda x: not_equal(x, x), "Where x is nan", "1.0", "False")
isinf = define_unary("isinf", check, _infinite, "Where x is infinite", "1.0", "False", weak=False)


def _sign_bit(x: Any) -> Any:
    if is_kind(x, "f"):
        # The bit itself, because no comparison sees the sign of -0.0 and of nan.
        signed = np.dtype(f"int{dtypes.bits(type_of(x).dtype)}")
        return logic.is_negative(bitcast_convert_type(x, new_dtype=signed))
    return to_dtype(logic.is_negative(number(x)), dtypes.bool_)


signbit = define_unary(
    "signbit", check, _sign_bit, "Where the sign of x is negative, also for -0.0", "-0.0", "True", weak=False
)
logical_not = define_unary("logical_not", check, lambda x: logic.not_(as_bool(x)), "Where x is zero", "0", "True")

absolute = jitted_alias(abs, "absolute")
conj = jitted_alias(conjugate, "conj")
bitwise_not = jitted_alias(invert, "bitwise_not")
bitwise_invert = jitted_alias(invert, "bitwise_invert")
