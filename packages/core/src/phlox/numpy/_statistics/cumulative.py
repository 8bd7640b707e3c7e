"""cumulative_sum and cumulative_prod of the array API standard: the axis is required, an initial element optional."""

from __future__ import annotations

from typing import Any

from ..._base.docstrings import docs_from
from ..._base.errors import ShapeError
from ..._ir import dtypes
from ..._operands.checks import canonical_axis, check_one, type_of
from ..._operands.promotion import to_dtype
from ...typing import Array, ArrayLike, DTypeLike
from .._manipulation.broadcasting import broadcast_to
from .._manipulation.joining import concatenate
from . import reductions as r


def _along(function: str, total: str, x: Any, axis: int | None) -> int:
    """The axis to accumulate along; it may be omitted for vectors only."""
    rank = type_of(x).ndim
    if rank == 0:
        raise ShapeError(
            f"The input must be non-scalar to take a {total}: {function} of {type_of(x).short}",
            instead="phlox.numpy.atleast_1d(x)",
        )
    if axis is None and rank > 1:
        raise ShapeError(f"{function}: which of the {rank} axes of {type_of(x).short}?", instead="axis=...")
    return canonical_axis(0 if axis is None else axis, rank, function)


def _with_first(totals: Any, first: int, axis: int) -> Any:
    """The totals with `first`, the total of no elements, in front."""
    shape = type_of(totals).shape
    one = broadcast_to(to_dtype(first, type_of(totals).dtype), (*shape[:axis], 1, *shape[axis + 1 :]))
    return concatenate([one, totals], axis)


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Cumulative sums of `x` along `axis` (as ``numpy.cumulative_sum``).

    Args:
      x: array with at least one axis.
      axis: axis along which sums accumulate; required unless `x` is a vector.
      dtype: dtype of the sums; by default the dtype of `x`, for integers and bools an integer dtype of at least 32 bits
        (64 in x64 mode).
      include_initial: True starts the result with the initial sum 0, which makes `axis` longer by one.

    Returns:
      An array of `dtype` and the shape of `x`, longer by one along `axis` with `include_initial`.

    Raises:
      ShapeError: `x` is a number, or has several axes and `axis` is None.

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    x = check_one("cumulative_sum", x)
    at = _along("cumulative_sum", "cumulative sum", x, axis)
    out_dtype = r.accumulator(type_of(x).dtype) if dtype is None else dtypes.user_dtype(dtype, "cumulative_sum")
    out = r.cumsum(x, at, out_dtype)
    return _with_first(out, 0, at) if include_initial else out


@docs_from(cumulative_sum)
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Cumulative products of `x` along `axis` (as ``numpy.cumulative_prod``).

    Args:
      axis: axis along which products accumulate; required unless `x` is a vector.
      dtype: dtype of the products; by default the dtype of `x`, or int32 (int64 in x64 mode) for bools.
      include_initial: True starts the result with the initial product 1, which makes `axis` longer by one.

    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    x = check_one("cumulative_prod", x)
    at = _along("cumulative_prod", "cumulative product", x, axis)
    out = r.cumprod(x, at, dtype)
    return _with_first(out, 1, at) if include_initial else out
