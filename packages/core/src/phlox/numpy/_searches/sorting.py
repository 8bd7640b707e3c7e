"""`sort` and `argsort`."""

from __future__ import annotations

import functools
from typing import Any

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError
from ..._ir import dtypes
from ..._operands.checks import check_one, type_of
from ..._operands.promotion import to_dtype
from ..._ops.structure.iota import iota
from ..._ops.structure.sort import sort as sort_op
from ...typing import Array, ArrayLike, DTypeLike
from .._manipulation.shapes import flat_or_along, flip


def _check_options(function: str, kind: Any, order: Any) -> None:
    """Raises for NumPy's options `kind` (other algorithms) and `order` (structured arrays)."""
    if kind is not None:
        raise ArgumentError(f"{function}: kind={kind!r} is not supported", instead="stable=True or stable=False")
    if order is not None:
        raise ArgumentError(f"{function}: order={order!r} is not supported: arrays have no fields")


@functools.partial(jit, static_argnames=("axis", "kind", "order", "stable", "descending"))
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """A sorted copy of `a`: elements ascend along `axis`, nan last (as ``numpy.sort``).

    Args:
      a: array of any dtype; complex numbers are ordered by their real, then their imaginary parts.
      axis: axis along which to sort, by default the last; None sorts the flattened array.
      kind, order: not supported, must be None: `stable` chooses the algorithm, and arrays have no fields.
      stable: True keeps the order of elements that compare equal, such as 0.0 and -0.0.
      descending: True sorts in descending order, nan first; the order of equal elements is then reversed.

    Returns:
      An array of the dtype of `a` and of its shape, or a vector where `axis` is None.

    Raises:
      ArgumentError: `kind` or `order` is not None.

    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    _check_options("sort", kind, order)
    a, at = flat_or_along("sort", check_one("sort", a), axis)
    (out,) = sort_op(a, dimension=at, is_stable=bool(stable), num_keys=1)
    return flip(out, at) if descending else out


@functools.partial(jit, static_argnames=("axis", "kind", "order", "stable", "descending", "dtype"))
@docs_from(sort)
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The indices that sort `a` along `axis` (as ``numpy.argsort``).

    Args:
      stable: True keeps the indices of equal elements in ascending order.
      descending: True sorts in descending order, nan first.
      dtype: integer dtype of the indices; None is int32 (int64 in x64 mode).

    Returns:
      An array of indices of the shape of `a`, or a vector where `axis` is None.

    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _check_options("argsort", kind, order)
    a, at = flat_or_along("argsort", check_one("argsort", a), axis)
    # Stable and descending: sort the reversed array in ascending order, and reverse the result.
    a = flip(a, at) if descending else a
    n = type_of(a).shape[at]
    positions = iota(dtype=dtypes.canonical(dtypes.int64), shape=type_of(a).shape, dimension=at)
    _, permutation = sort_op(a, positions, dimension=at, is_stable=stable, num_keys=1)
    permutation = (n - 1) - flip(permutation, at) if descending else permutation
    return permutation if dtype is None else to_dtype(permutation, dtypes.user_dtype(dtype, "argsort"))
