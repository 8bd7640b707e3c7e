"""Reductions and cumulative operations of ``phlox.lax`` along axes, one for each primitive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .._api.devices.out_sharding import OutSharding, compute_with_sharding
from .._base.docstrings import docs_from
from .._operands.checks import check_one, integer, integers
from .._ops.reductions import reduce as _reduce, running as _running
from ..typing import Array, ArrayLike

Ints = Sequence[int]


class _Cumulative(Protocol):
    def __call__(self, operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...


class _Reduction(Protocol):
    def __call__(self, operand: ArrayLike, axes: Ints) -> Array: ...


def _cumulative(primitive: Any, name: str, what: str, mirrored: str, result: str, note: str = "") -> _Cumulative:
    def function(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        operand = check_one(name, operand)
        return primitive(operand, axis=integer(primitive.name, "axis", axis), reverse=bool(reverse))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.lax"
    function.__doc__ = (
        f"Cumulative {what} along an axis (as ``numpy.{mirrored}``).\n\n"
        f"Args:\n  operand: array of numbers.{note}\n"
        "  axis: axis number to accumulate along, not negative.\n"
        "  reverse: whether to accumulate from the end of the axis to its start.\n\n"
        "Returns:\n  An array of the shape and dtype of `operand`.\n\n"
        "Raises:\n  DtypeError: `operand` is bool.\n  ShapeError: the axis number is out of range.\n\n"
        f">>> from phlox import lax\n>>> lax.{name}(np.array([1, 3, 2]))\nArray({result}, dtype=int32)\n"
    )
    return function


_ORDER = " Complex ones are ordered by real part, then by imaginary part."

cumsum = _cumulative(_running.cumsum, "cumsum", "sums", "cumsum", "[1, 4, 6]")

cumprod = _cumulative(_running.cumprod, "cumprod", "products", "cumprod", "[1, 3, 6]")

cummax = _cumulative(_running.cummax, "cummax", "maxima", "maximum.accumulate", "[1, 3, 3]", _ORDER)

cummin = _cumulative(_running.cummin, "cummin", "minima", "minimum.accumulate", "[1, 1, 1]", _ORDER)


@docs_from(cumsum)
def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative log-sum-exp along an axis: log(cumsum(exp(x))) without overflow (as ``numpy.logaddexp.accumulate``).

    Args:
      operand: array of floats or complex numbers.

    Raises:
      DtypeError: the elements are not floats or complex numbers.

    >>> cumlogsumexp(np.zeros(2, np.float32))
    Array([0.       , 0.6931472], dtype=float32)
    """
    operand = check_one("cumlogsumexp", operand)
    return _running.cumlogsumexp(operand, axis=integer("cumlogsumexp", "axis", axis), reverse=bool(reverse))


_OUT_SHARDING = (
    "  out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result; None:\n"
    "    derived from the operand, or chosen by the compiler.\n"
)
_ANY, _BITS = "numbers or bools", "integers or bools"


def _reduction(
    primitive: Any,
    name: str,
    what: str,
    example: str,
    result: str,
    takes: str,
    nothing: str,
    combines: str | None = None,
) -> _Reduction:
    def plain(operand: ArrayLike, axes: Ints) -> Array:
        operand = check_one(name, operand)
        return primitive(operand, axes=integers(name, "axes", axes))

    def with_out_sharding(operand: ArrayLike, axes: Ints, *, out_sharding: OutSharding = None) -> Array:
        if out_sharding is None:
            return plain(operand, axes)
        return compute_with_sharding(name, plain, (check_one(name, operand),), out_sharding, combines, axes=axes)

    function: Any = plain if combines is None else with_out_sharding
    entry = "" if combines is None else _OUT_SHARDING
    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.lax"
    function.__doc__ = (
        f"{what} of the elements over `axes` (StableHLO's ``reduce``).\n\n"
        f"Args:\n  operand: array of {takes}.\n  axes: axis numbers to reduce over, distinct and not negative.\n"
        f"{entry}\n"
        f"Returns:\n  An array of the dtype of `operand`, without `axes`; {nothing} where there are no elements.\n\n"
        f"Raises:\n  DtypeError: the elements are not {takes}.\n"
        "  ShapeError: an axis is out of range, or is named twice.\n\n"
        f">>> from phlox import lax\n>>> lax.{name}(np.array({example}), (0,))\n{result}\n"
    )
    return function


def reduce_sum(operand: ArrayLike, axes: Ints, *, out_sharding: OutSharding = None) -> Array:
    """The sum of the elements over `axes` (StableHLO's ``reduce``).

    Args:
      operand: array of numbers.
      axes: axis numbers to sum over, distinct and not negative.
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result; None: derived
        from the operand, or chosen by the compiler.

    Returns:
      An array of the dtype of `operand`, without `axes`; 0 where there are no elements.

    Raises:
      DtypeError: `operand` is bool, or has 16-bit floats and the flag ``allow_f16_reductions`` is False.
      ShapeError: an axis is out of range, or is named twice.

    >>> reduce_sum(np.array([1, 2]), (0,))
    Array(3, dtype=int32)
    """
    operand = check_one("reduce_sum", operand)
    if out_sharding is not None:
        return compute_with_sharding("reduce_sum", reduce_sum, (operand,), out_sharding, axes=axes)
    return _reduce.reduce_sum(operand, axes=integers("reduce_sum", "axes", axes))


reduce_prod = _reduction(
    _reduce.reduce_prod, "reduce_prod", "The product", "[2, 3]", "Array(6, dtype=int32)", "numbers", "1"
)

reduce_max = _reduction(
    _reduce.reduce_max,
    "reduce_max",
    "The largest",
    "[1, 2]",
    "Array(2, dtype=int32)",
    _ANY,
    "-inf or the smallest integer",
    combines="max",
)

reduce_min = _reduction(
    _reduce.reduce_min,
    "reduce_min",
    "The smallest",
    "[1, 2]",
    "Array(1, dtype=int32)",
    _ANY,
    "inf or the largest integer",
    combines="min",
)

reduce_and = _reduction(
    _reduce.reduce_and, "reduce_and", "The bitwise and", "[True]", "Array(True, dtype=bool)", _BITS, "all bits set"
)

reduce_or = _reduction(
    _reduce.reduce_or, "reduce_or", "The bitwise or", "[False]", "Array(False, dtype=bool)", _BITS, "0"
)

reduce_xor = _reduction(
    _reduce.reduce_xor, "reduce_xor", "The bitwise exclusive or", "[1, 3]", "Array(2, dtype=int32)", _BITS, "0"
)
