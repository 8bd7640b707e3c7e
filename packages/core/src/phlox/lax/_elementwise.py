"""Elementwise operations of ``phlox.lax``: one primitive each, without promotion, so dtypes must be equal."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Protocol

from .._base import pytree
from .._base.errors import ArgumentError, DtypeError, OptionError, UnsupportedError
from .._ir import dtypes
from .._ir.primitive import Primitive
from .._operands.checks import check, check_one, integer, type_of
from .._operands.promotion import to_dtype
from .._ops.elementwise import arithmetic as e, logic
from .._ops.elementwise.families import literal
from .._ops.structure.shape import convert
from ..typing import Array, ArrayLike, DTypeLike


class _OfOne(Protocol):
    def __call__(self, x: ArrayLike) -> Array: ...


class _OfOneAccurate(Protocol):
    def __call__(self, x: ArrayLike, *, accuracy: AccuracyMode | None = None) -> Array: ...


class _OfTwo(Protocol):
    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array: ...


def _mirrored(primitive: Primitive) -> str:
    """The StableHLO or CHLO operation that a primitive is lowered to, for docstrings."""
    assert primitive.operation is not None, f"lax.{primitive.name} is no operation: say what it mirrors"
    dialect, _, operation = primitive.operation.partition(".")
    return f"{'CHLO' if dialect == 'chlo' else 'StableHLO'}'s ``{operation}``"


#: for docstrings: the dtypes that a function takes
_INEXACT, _FLOAT, _NUMBER, _INTEGER = "floats or complex numbers", "floats", "numbers", "integers"
_BITS, _REAL, _ANY = "integers or bools", "real numbers or bools", "numbers or bools"
_LIKE_X = "An array of the shape and dtype of `x`."
_REAL_PART = "An array of the shape of `x`, of the dtype of its parts: float32 for complex64."
_TRUTH = "A bool array of the broadcast shape."


def unary(
    primitive: Primitive,
    name: str,
    what: str,
    example: str,
    result: str,
    takes: str = _INEXACT,
    returns: str = _LIKE_X,
    note: str = "",
    mirrors: str = "",
) -> _OfOne:
    def function(x: ArrayLike) -> Array:
        return primitive.bind(*check(name, x))

    args = f"x: array of {takes}, of any shape."
    raises = f"DtypeError: the elements of `x` are not {takes}."
    return _named(function, mirrors or _mirrored(primitive), name, what, args, returns, raises, example, result, note)


class Tolerance:
    """The error allowed in an elementwise function: absolute, relative, and in units in the last place.

    Args:
      atol: largest absolute error, not negative.
      rtol: largest error relative to the exact result, not negative.
      ulps: largest error in units in the last place, not negative.

    Raises:
      OptionError: a number is negative, or all three are zero.

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
    """The implementation requested for an elementwise function. CPUs and GPUs have one implementation of each.

    >>> phlox.lax.exp(0.0, accuracy=AccuracyMode.HIGHEST)
    Array(1., dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


def accurate(
    primitive: Primitive,
    name: str,
    what: str,
    example: str,
    result: str,
    takes: str = _INEXACT,
    mirrors: str = "",
) -> _OfOneAccurate:
    def function(x: ArrayLike, *, accuracy: AccuracyMode | None = None) -> Array:
        if accuracy is not None and not isinstance(accuracy, AccuracyMode):
            raise UnsupportedError(
                f"{name}: accuracy={accuracy!r}: compilers for CPUs and GPUs ignore tolerances, so none is promised",
                instead="accuracy=None, or a wider dtype",
            )
        return primitive.bind(*check(name, x))

    args = (
        f"x: array of {takes}, of any shape.\n"
        "  accuracy: an `AccuracyMode`; None means its DEFAULT. The result is the same on CPUs and GPUs."
    )
    raises = (
        f"DtypeError: the elements of `x` are not {takes}.\n"
        "  UnsupportedError: `accuracy` is a `Tolerance`, which compilers for CPUs and GPUs ignore."
    )
    return _named(function, mirrors or _mirrored(primitive), name, what, args, _LIKE_X, raises, example, result)


def binary(
    primitive: Primitive,
    name: str,
    what: str,
    example: str,
    result: str,
    takes: str = _NUMBER,
    returns: str = "An array of the broadcast shape, of the dtype of the operands.",
    note: str = "",
    mirrors: str = "",
) -> _OfTwo:
    def function(x: ArrayLike, y: ArrayLike) -> Array:
        return primitive.bind(*check(name, x, y))

    args = f"x, y: arrays of {takes}, of one dtype. Axes of length 1 and scalars broadcast."
    raises = (
        f"DtypeError: the elements are not {takes}, or the dtypes differ.\n  ShapeError: the shapes are incompatible."
    )
    return _named(function, mirrors or _mirrored(primitive), name, what, args, returns, raises, example, result, note)


def equality_of(apply: Callable[[Any, Any], Any], primitive: Primitive, name: str, what: str, result: str) -> _OfTwo:
    def function(x: ArrayLike, y: ArrayLike) -> Array:
        return apply(*check(name, x, y))

    args = f"x, y: arrays of {_ANY}, or of PRNG keys, of one dtype. Axes of length 1 and scalars broadcast."
    raises = "DtypeError: the dtypes differ.\n  ShapeError: the shapes are incompatible."
    return _named(function, _mirrored(primitive), name, what, args, _TRUTH, raises, "1.0, 1.0", result)


def _named(
    function: Callable[..., Any],
    mirrors: str,
    name: str,
    what: str,
    args: str,
    returns: str,
    raises: str,
    example: str,
    result: str,
    note: str = "",
) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.lax"
    first = f"{what}, elementwise ({mirrors})."
    function.__doc__ = (f"{first}\n\n{note}\n\n" if note else f"{first}\n\n") + (
        f"Args:\n  {args}\n\nReturns:\n  {returns}\n\n"
        f"Raises:\n  {raises}\n\n>>> from phlox import lax\n>>> lax.{name}({example})\n{result}\n"
    )
    return function


def _f(value: str) -> str:
    return f"Array({value}, dtype=float32, weak_type=True)"


def _i(value: int) -> str:
    return f"Array({value}, dtype=int32, weak_type=True)"


_T, _F = (f"Array({value}, dtype=bool, weak_type=True)" for value in (True, False))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next representable number after x1 in the direction of x2, elementwise (as ``numpy.nextafter``).

    Args:
      x1, x2: arrays of floats, of one dtype. Axes of length 1 and scalars broadcast.

    Returns:
      An array of the broadcast shape, of the dtype of the operands; x2 where the two are equal.

    Raises:
      DtypeError: the elements are not floats, or the dtypes differ.
      ShapeError: the shapes are incompatible.

    >>> nextafter(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return e.nextafter.bind(*check("nextafter", x1, x2))


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x to the power of y, elementwise (StableHLO's ``power``).

    Args:
      x: bases: array of floats or complex numbers.
      y: exponents: array of the dtype of `x`, or of integers. Axes of length 1 and scalars broadcast.

    Returns:
      An array of the broadcast shape, of the dtype of `x`.

    Raises:
      DtypeError: the elements of `x` are not floats or complex numbers, or those of `y` are neither of this dtype nor
        integers.
      ShapeError: the shapes are incompatible.

    >>> from phlox import lax
    >>> lax.pow(2.0, 3.0)
    Array(8., dtype=float32, weak_type=True)
    """
    return e.pow_.bind(*check("pow", x, y))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """x * y, elementwise (StableHLO's ``multiply``).

    Args:
      x, y: arrays of numbers, of one dtype unless `out_dtype` is given. Axes of length 1 and scalars broadcast.
      out_dtype: dtype to which both operands are converted before the multiplication; None keeps the dtype of the
        operands.

    Returns:
      An array of the broadcast shape, of `out_dtype` or the dtype of the operands.

    Raises:
      DtypeError: the elements are not numbers, or the dtypes differ and `out_dtype` is None.
      ShapeError: the shapes are incompatible.

    >>> mul(2.0, 3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    x, y = check("mul", x, y)
    if out_dtype is not None:
        result_dtype, weak = dtypes.user_dtype(out_dtype, "mul"), type_of(x).weak_type and type_of(y).weak_type
        # First to this dtype: `convert` of a Python number alone would start from its default dtype.
        x, y = (convert(to_dtype(a, result_dtype), result_dtype, weak) for a in (x, y))
    return e.mul(x, y)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the bits of x * y, elementwise (as ``jax.lax.mulhi``).

    Args:
      x, y: arrays of integers, of one dtype. Axes of length 1 and scalars broadcast.

    Returns:
      An array of the broadcast shape, of the dtype of the operands.

    Raises:
      DtypeError: the elements are not integers, or the dtypes differ.
      ShapeError: the shapes are incompatible.

    >>> mulhi(np.int32(1 << 30), np.int32(8))
    Array(2, dtype=int32)
    """
    return logic.mulhi(*check("mulhi", x, y))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to the power of the Python integer `y`, elementwise, by repeated multiplication (as ``numpy.power``).

    Args:
      x: array of numbers, of any shape.
      y: exponent, a Python integer.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      ArgumentError: `y` is not an integer.
      DtypeError: `x` is bool, or `x` has integers and `y` is negative.

    >>> integer_pow(2.0, 3)
    Array(8., dtype=float32, weak_type=True)
    """
    x = check_one("integer_pow", x)
    if not hasattr(y, "__index__"):
        raise ArgumentError(f"integer_pow: y must be an integer, got {y!r}", instead="phlox.lax.pow")
    power = integer("integer_pow", "y", y)
    if power < 0 and not dtypes.is_inexact(type_of(x).dtype):
        raise DtypeError(
            f"integer_pow: Integers cannot be raised to negative powers, got {type_of(x).short} to the power {power}",
            instead="x.astype(float) first",
        )
    return e.integer_pow(x, y=power)


def conj(x: ArrayLike) -> Array:
    """Complex conjugate, elementwise; real arrays become complex (as ``numpy.conj``).

    Args:
      x: array of complex numbers, of float32 or of float64, of any shape.

    Returns:
      A complex array of the shape of `x`: complex64 for float32.

    Raises:
      DtypeError: the elements of `x` are integers, bools or other floats.

    >>> conj(1j)
    Array(0.-1.j, dtype=complex64, weak_type=True)
    """
    x = check_one("conj", x)
    aval = type_of(x)
    if dtypes.kind(aval.dtype) == "c":
        return e.conj(x)
    return e.conj(e.complex_(x, to_dtype(literal(x, 0), aval.dtype, aval.weak_type)))


def reciprocal(x: ArrayLike) -> Array:
    """1 / x, elementwise (as ``numpy.reciprocal``).

    Args:
      x: array of floats or complex numbers, of any shape.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      DtypeError: the elements of `x` are integers or bools.

    >>> reciprocal(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    return integer_pow(x, -1)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """`x` limited to the range from `min` to `max` (StableHLO's ``clamp``).

    Args:
      min, max: lower and upper bound, of the dtype of `x`: scalars, or arrays of the shape of `x`. Where `min` is
        larger than `max`, the result is `max`.
      x: array of real numbers or bools.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      DtypeError: the dtypes differ, or are complex.
      ShapeError: a bound is neither a scalar nor of the shape of `x`.

    >>> clamp(0.0, 2.0, 1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return logic.clamp(*check("clamp", min, x, max))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Elements of `on_true` where `pred` is True, and of `on_false` elsewhere (StableHLO's ``select``).

    Args:
      pred: array of bools, or of integers, where 0 selects `on_false`; a scalar, or of the shape of `on_true`.
      on_true, on_false: arrays of the same shape and dtype.

    Returns:
      An array of the shape and dtype of `on_true`.

    Raises:
      ShapeError: the shapes differ.
      DtypeError: the dtypes of `on_true` and `on_false` differ, or `pred` has floats or complex numbers.

    >>> select(True, 1.0, 2.0)
    Array(1., dtype=float32, weak_type=True)
    """
    pred, on_true, on_false = check("select", pred, on_true, on_false)
    return logic.select_n(pred, on_false, on_true)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Elements selected from several arrays by an array of case numbers (StableHLO's ``select``).

    Args:
      which: case number for each element: array of integers, or of bools for at most two cases; a scalar, or of the
        shape of the cases. Negative numbers select the first case, too large ones the last.
      *cases: one or more arrays of the same shape and dtype.

    Returns:
      An array of the shape and dtype of the cases.

    Raises:
      ShapeError: there are no cases, `which` is of bools and there are more than two cases, or the shapes differ.
      DtypeError: the dtypes of the cases differ, or `which` has floats or complex numbers.

    >>> select_n(False, 1.0, 2.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return logic.select_n(*check("select_n", which, *cases))


def stop_gradient(x: Any) -> Any:
    """A pytree of arrays unchanged, but with zero derivative (as ``jax.lax.stop_gradient``).

    Args:
      x: pytree of arrays of any dtype.

    Returns:
      A pytree like `x`, with the same values.

    >>> phlox.grad(lambda x: x * stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def stop(leaf: Any) -> Any:
        leaf = check_one("stop_gradient", leaf)
        return e.stop_gradient(leaf) if dtypes.is_inexact(type_of(leaf).dtype) else leaf

    return pytree.tree_map(stop, x)
