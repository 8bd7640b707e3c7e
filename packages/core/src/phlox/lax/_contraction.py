"""Products of ``phlox.lax`` that sum over axes: `dot_general` and `dot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._api.devices.out_sharding import OutSharding, compute_with_sharding
from .._base.errors import ArgumentError, ShapeError
from .._ir import dtypes
from .._operands.checks import check, several, type_of
from .._operands.products import contract
from .._operands.promotion import promote_dtypes, to_dtype
from .._ops.linalg import algorithms as _algorithms, dot as _dot
from ..typing import Array, ArrayLike, DTypeLike

Ints = Sequence[int]


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """The sum of products over contracted axes, with optional batch axes (StableHLO's ``dot_general``).

    Args:
      lhs, rhs: arrays of any dtype. If their dtypes differ, both are converted to the more precise one.
      dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)): sequences of axis numbers, not
        negative. Corresponding axes of lhs and rhs have the same length. An integer stands for a sequence of one axis.
      precision: a `Precision` or its name, a pair of these for `lhs` and `rhs`, a `DotAlgorithm` or a
        `DotAlgorithmPreset`; None means the value of the flag ``default_matmul_precision``.
      preferred_element_type: dtype in which products are summed, and of the result; None means the dtype of the
        operands.
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result; None: derived
        from the operands, or chosen by the compiler.

    Returns:
      An array with the batch axes first, then the remaining axes of `lhs`, then those of `rhs`.

    Raises:
      ShapeError: an axis is out of range or is named twice, or corresponding axes differ in length.
      OptionError: `precision` is unknown.

    >>> dot_general(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """

    lhs, rhs = check("dot_general", lhs, rhs)
    if out_sharding is not None:
        options: dict[str, Any] = {"precision": precision, "preferred_element_type": preferred_element_type}
        return compute_with_sharding(
            "dot_general", dot_general, (lhs, rhs), out_sharding, dimension_numbers=dimension_numbers, **options
        )
    preferred = dtypes.optional_dtype(preferred_element_type)
    if preferred is not None and _of_different_bytes(lhs, rhs):
        # Both hold the numbers of both. XLA's CPU has not all products of bfloat16 with results of float32.
        wide = dtypes.float32 if preferred in (dtypes.float32, dtypes.float64) else dtypes.bfloat16
        lhs, rhs = to_dtype(lhs, wide), to_dtype(rhs, wide)
    lhs, rhs = _of_higher_precision(lhs, rhs)
    try:
        (lc, rc), (lb, rb) = dimension_numbers
    except (TypeError, ValueError):
        raise ArgumentError(
            f"dot_general: dimension_numbers must be two pairs, of contracted axes and of batch axes, got "
            f"{dimension_numbers!r:.60}",
            instead="(((1,), (0,)), ((), ())) for a product of matrices",
            argument="dimension_numbers",
            value=dimension_numbers,
        ) from None
    out = contract(lhs, rhs, (several(lc), several(rc)), (several(lb), several(rb)), precision, preferred)
    # Unlike functions of `numpy`, this one keeps weak types of a preferred dtype too, as in JAX.
    return to_dtype(out, type_of(out).dtype, type_of(lhs).weak_type and type_of(rhs).weak_type)


def _of_different_bytes(lhs: Any, rhs: Any) -> bool:
    """Whether these are two kinds of floats of 8 bits, none of which holds the numbers of the other."""
    first, second = type_of(lhs).dtype, type_of(rhs).dtype
    return first != second and all(dtypes.kind(d) == "f" and dtypes.itemsize_bits(d) <= 8 for d in (first, second))


def _of_higher_precision(lhs: Any, rhs: Any) -> list[Any]:
    """Operands in the dtype of that which XLA takes for the more precise; integers are computed modulo their width."""
    types = [type_of(x) for x in (lhs, rhs)]
    if types[0].dtype == types[1].dtype:
        return promote_dtypes(lhs, rhs)

    def precision(dtype: Any) -> tuple[Any, ...]:
        inside = dtypes.real_part(dtype)
        if not dtypes.is_inexact(inside):
            bits = 1 if dtypes.kind(inside) == "b" else dtypes.itemsize_bits(inside)
            return False, -1, -1, bits, dtypes.kind(inside) != "u"
        info = dtypes.finfo(inside)
        # Complex numbers before real ones; floats by range and then by digits, so that bfloat16 is above float16. All
        # integers are below all floats, and of two of one width the signed one is above.
        return inside != dtype, info.maxexp, info.nmant, dtypes.itemsize_bits(inside), True

    dtype = max((aval.dtype for aval in types), key=precision)
    return [to_dtype(x, dtype, all(aval.weak_type for aval in types)) for x in (lhs, rhs)]


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product of vectors and matrices: sums over the last axis of `lhs` and the first axis of `rhs` (as
    ``numpy.dot``).

    Args:
      lhs, rhs: vectors or matrices; arrays of any shape if `dimension_numbers` is given. If their dtypes differ, both
        are converted to the more precise one.
      dimension_numbers, precision, preferred_element_type: as for `dot_general`; without `dimension_numbers`, the
        contracted axes are those of the matrix product.
      out_sharding: as for `dot_general`.

    Returns:
      An array with the remaining axes of `lhs`, then those of `rhs`, as for `dot_general`.

    Raises:
      ShapeError: an operand is not a vector or matrix, or the contracted axes differ in length.
      OptionError: `precision` is unknown.

    >>> dot(np.ones(2, np.float32), np.ones(2, np.float32))
    Array(2., dtype=float32)
    """
    lhs, rhs = check("dot", lhs, rhs)
    if out_sharding is not None:
        options: dict[str, Any] = {"precision": precision, "preferred_element_type": preferred_element_type}
        return compute_with_sharding(
            "dot", dot, (lhs, rhs), out_sharding, dimension_numbers=dimension_numbers, **options
        )
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    if not (1 <= type_of(lhs).ndim <= 2 and 1 <= type_of(rhs).ndim <= 2):
        raise ShapeError(
            f"dot takes vectors and matrices, got {type_of(lhs).short} and {type_of(rhs).short}",
            instead="dot_general, or phlox.numpy.dot",
            shapes=[type_of(lhs).shape, type_of(rhs).shape],
        )
    numbers = (((type_of(lhs).ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, numbers, precision, preferred_element_type)


Precision = _dot.Precision
DotAlgorithm = _algorithms.DotAlgorithm
DotAlgorithmPreset = _algorithms.DotAlgorithmPreset
DotDimensionNumbers = _dot.DotDimensionNumbers
# The one of `_ops.linalg.dot` is a text, since programs that name no algorithm do not import them.
PrecisionLike = (
    str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset | None
)
