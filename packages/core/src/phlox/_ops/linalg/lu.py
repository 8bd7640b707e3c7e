"""General square systems: `lu`, the permutation of its pivots, and solving with the factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import ShapeError
from ..._ir import dtypes
from ..._ir.dimensions import min_dim, value_of
from ..._trace.trace import typeof
from ..._transform.array_operations import move_axis, zero_tangent
from ..._xla.cuda_calls import cuda_call, is_cuda
from ..._xla.lapack import lapack
from ..._xla.matrix_calls import nan_unless, status, succeeded
from ..._xla.text import Function, Value
from ..control.loop import repeat as loop
from ..elementwise.arithmetic import add
from ..elementwise.families import literal, lowered_as
from ..elementwise.logic import eq, ge, lt, select
from ..reductions.reduce import reduce_sum
from ..structure.iota import iota
from ..structure.shape import broadcast_in_dim, broadcast_to, convert, pad, reshape
from ..structure.slicing import dynamic_slice, dynamic_update_slice
from ..structure.sort import sort
from .matrices import (
    Shape,
    block,
    diagonal_matrix,
    linalg,
    lower_triangle,
    plus_identity,
    product,
    take_rows,
    upper_triangle,
)
from .padding import permutation_pad, square_pad
from .triangular import solve_triangular


def _permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation from 0, 1, 2 … by swapping the elements at i and ``pivots[i]``, for one i after the other."""
    stack = typeof(pivots).shape[:-1]
    shape = (*stack, permutation_size)
    start = broadcast_to(iota(dtype=dtypes.int32, shape=(permutation_size,), dimension=0), shape)
    count = typeof(pivots).shape[-1]
    if not count:
        return start
    corner = [np.int32(0)] * len(stack)
    turns = move_axis(pivots, len(stack), 0)

    def swap(i: Any, order: Any) -> list[Any]:
        j = reshape(dynamic_slice(turns, i, *corner, slice_sizes=(1, *stack)), new_sizes=stack, dimensions=None)
        return [add(i, np.int32(1)), swapped(order, i, j)]

    def swapped(order: Any, i: Any, j: Any) -> Any:
        x = dynamic_slice(order, *corner, i, slice_sizes=(*stack, 1))
        # One matrix: two elements change places. `lu` of 64 by 64 takes 0.96 of jax's time this way.
        if not stack:
            y = dynamic_slice(order, j, slice_sizes=(1,))
            return dynamic_update_slice(dynamic_update_slice(order, x, j), y, i)
        # Each matrix of the stack has its own pivots.
        positions = broadcast_to(iota(dtype=dtypes.int32, shape=(permutation_size,), dimension=0), shape)
        is_pivot = eq(positions, broadcast_in_dim(j, shape=shape, broadcast_dimensions=tuple(range(len(stack)))))
        y = reduce_sum(select(is_pivot, order, literal(order, 0)), axes=(len(stack),))
        y = reshape(y, new_sizes=(*stack, 1), dimensions=None)
        x = broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(range(len(shape))))
        return dynamic_update_slice(select(is_pivot, x, order), y, *corner, i)

    return loop(lambda i, order: lt(i, np.int32(count)), swap, [np.int32(0), start])[1]


def _permutation_result(dtype: Any, pivots: Shape, *, permutation_size: int) -> list[tuple[Shape, Any]]:
    if permutation_size < pivots[0]:
        raise ShapeError(f"lu_pivots_to_permutation: {pivots[0]} pivots for a permutation of {permutation_size}")
    return [((permutation_size,), dtype)]


def _permutation_lower(f: Function, pivots: Value, *, permutation_size: int) -> Value:
    if is_cuda(f):
        return cuda_call(f, "cu_lu_pivots_to_permutation", [pivots], [f.out], column_major=False)[0]
    return lowered_as(_permutation)(f, pivots, permutation_size=permutation_size)


lu_pivots_to_permutation = linalg(
    "lu_pivots_to_permutation",
    ranks=(1,),
    result=_permutation_result,
    lower=_permutation_lower,
    kinds=("i",),
    pad=permutation_pad,
)


# --- the factors ----------------------------------------------------------------------------------------


def _result(dtype: Any, shape: Shape) -> list[tuple[Shape, Any]]:
    return [(shape, dtype), ((min(shape),), dtypes.int32), ((shape[0],), dtypes.int32)]


def _lower(f: Function, x: Value) -> list[Value]:
    factors, pivots, _ = f.outs
    rows = x.aval.shape[-2]
    outs = [factors, pivots, status(x.aval.shape[:-2])]
    if is_cuda(f):
        out, pivot, info = cuda_call(f, "cusolver_getrf_ffi", [x], outs, aliases={0: 0})
    else:
        out, pivot, info = lapack(f, "getrf", [x], outs, aliases={0: 0})
    pivot = f.same("stablehlo.subtract", pivot, f.constant(1, pivots))  # both count from one
    order = lowered_as(lu_pivots_to_permutation.bind)(f, pivot, permutation_size=rows)
    # A positive status says that a pivot is zero: the factors exist, and the matrix is singular. Negative ones are
    # errors.
    return [nan_unless(f, succeeded(f, info, "GE"), out), pivot, order]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """P A = L U gives dL = L tril(M, -1) and dU = triu(M) U with M = L⁻¹ P dA U⁻¹."""
    (a,), (da,) = primals, tangents
    factors, pivots, order = lu.bind(a)
    aval = typeof(a)
    m, n = aval.shape[-2:]
    k = min_dim(m, n)
    # Triangles of matrices that are not square are extended to square ones by the identity.
    left = plus_identity(_wider(lower_triangle(block(factors, (0, m), (0, k)), -1), (0, m - k)))
    right = _wider(upper_triangle(block(factors, (0, k), (0, n))), (n - k, 0))
    positions = iota(dtype=dtypes.int32, shape=(n,), dimension=0)
    beyond = diagonal_matrix(convert(ge(positions, convert(value_of(k), dtypes.int32)), aval.dtype))
    right = add(right, broadcast_to(beyond, typeof(right).shape))
    inner = solve_triangular(left, take_rows(da, order), unit_diagonal=True)
    inner = solve_triangular(right, inner, left_side=False, lower=False)
    tangent = add(product(left, lower_triangle(inner, -1)), product(upper_triangle(inner), right))
    return [factors, pivots, order], [tangent, zero_tangent(pivots), zero_tangent(order)]


def _wider(x: Any, more: tuple[int, int]) -> Any:
    """Matrices padded with this many rows and columns of zeros."""
    none = ((0, 0, 0),) * (typeof(x).ndim - 2)
    return pad(x, literal(x, 0), padding_config=(*none, (0, more[0], 0), (0, more[1], 0)))


lu = linalg("lu", ranks=(2,), result=_result, lower=_lower, many=True, jvp=_jvp, pad=square_pad)


def lu_solve(factors: Any, order: Any, b: Any, trans: int = 0) -> Any:
    """The solution of ``A x = b`` (Aᵀ for `trans` 1, Aᴴ for 2) for stacks of equal shape; `b` are matrices."""
    if trans == 0:
        x = solve_triangular(factors, take_rows(b, order), unit_diagonal=True)
        return solve_triangular(factors, x, lower=False)
    # Aᵀ = Uᵀ Lᵀ P: the factors in the other order, and the permutation last, inverted.
    options = {"transpose_a": True, "conjugate_a": trans == 2 and dtypes.kind(typeof(factors).dtype) == "c"}
    x = solve_triangular(factors, b, lower=False, **options)
    x = solve_triangular(factors, x, unit_diagonal=True, **options)
    return take_rows(x, inverse_order(order))


def inverse_order(order: Any) -> Any:
    """The inverse permutation."""
    shape = typeof(order).shape
    last = len(shape) - 1
    positions = iota(dtype=dtypes.int32, shape=shape, dimension=last)
    # Sorting positions by the permutation puts the position of 0 first, then that of 1: the inverse.
    return sort.bind(order, positions, dimension=last, is_stable=True, num_keys=1)[1]


def solve(a: Any, b: Any) -> Any:
    """The solution of ``A x = b`` for stacks of equal shape; `b` are matrices."""
    factors, _, order = lu.bind(a)
    return lu_solve(factors, order, b)
