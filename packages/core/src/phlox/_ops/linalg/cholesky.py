"""Positive definite matrices: `cholesky`, its rank-one update, and the product A Aᵀ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._base.errors import ShapeError
from ..._ir import dtypes
from ..._trace.trace import typeof
from ..._transform.array_operations import move_axis
from ..._xla.cuda_calls import cuda_call, is_cuda
from ..._xla.lapack import lapack
from ..._xla.matrix_calls import nan_unless, status, succeeded
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import abs_, add, div, max_, mul, neg, rsqrt, square, sub
from ..elementwise.families import FLOAT, literal, lowered_as
from ..elementwise.logic import eq, select
from ..reductions.reduce import reduce_sum
from ..structure.iota import iota
from ..structure.shape import broadcast_in_dim
from .matrices import (
    Shape,
    adjoint,
    filled,
    hermitian_part,
    linalg,
    loop_over_rows,
    lower_triangle,
    need_square,
    plus_identity,
    product,
    swapped,
    times,
)
from .padding import square_pad, symmetric_product_pad
from .triangular import solve_triangular


def _square(dtype: Any, shape: Shape) -> list[tuple[Shape, Any]]:
    need_square("cholesky", shape)
    return [(shape, dtype)]


def _lower(f: Function, x: Value) -> Value:
    outs = [x.aval, status(x.aval.shape[:-2])]
    if is_cuda(f):
        factor, info = cuda_call(f, "cusolver_potrf_ffi", [x], outs, aliases={0: 0}, lower=True)
    else:
        factor, info = lapack(f, "potrf", [x], outs, aliases={0: 0}, uplo="L")
    # Both leave the operand's elements above the diagonal.
    return lowered_as(lower_triangle)(f, nan_unless(f, succeeded(f, info), factor))


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """A = L Lᴴ gives dL = L Φ(L⁻¹ dA L⁻ᴴ), where Φ keeps the lower triangle and halves the diagonal."""
    (x,), (dx,) = primals, tangents
    factor = cholesky.bind(x)
    # Only the lower triangle is read, and of a complex diagonal only the real part: so it is for the tangent.
    below = lower_triangle(dx, -1)
    dx = add(hermitian_part(sub(lower_triangle(dx), below)), add(below, adjoint(below)))
    right = solve_triangular(factor, dx, left_side=False, transpose_a=True, conjugate_a=True)
    inner = lower_triangle(solve_triangular(factor, right))
    # The triangle is taken again so that nan is below the diagonal only, as in the factor.
    # The divisor is 1, and 2 on the diagonal.
    return factor, lower_triangle(product(factor, div(inner, plus_identity(filled(inner, 1)))))


cholesky = linalg("cholesky", ranks=(2,), result=_square, lower=_lower, jvp=_jvp, pad=square_pad)


# --- updates --------------------------------------------------------------------------------------------


def _update_result(dtype: Any, r: Shape, w: Shape) -> list[tuple[Shape, Any]]:
    if r[0] != r[1] or w[0] != r[1]:
        raise ShapeError(
            f"cholesky_update: takes a square matrix and a vector of its size, got shapes {r} and {w}", shapes=[r, w]
        )
    return [(r, dtype)]


def _update(r: Any, w: Any) -> Any:
    """Applies a rotation to `w` and each row of `r` in turn; each makes one element of `w` zero."""
    shape, stack = typeof(w).shape, typeof(w).ndim - 1
    n = shape[-1]

    def step(w: Any, row: Any, k: Any) -> list[Any]:
        positions = iota(dtype=dtypes.int32, shape=shape, dimension=stack)
        is_diagonal = eq(positions, broadcast_in_dim(k, shape=shape, broadcast_dimensions=()))
        x, y = (reduce_sum(select(is_diagonal, v, literal(v, 0)), axes=(stack,)) for v in (row, w))
        # The rotation is computed from scaled numbers, whose squares neither overflow nor underflow.
        size = max_(abs_(x), abs_(y))
        # Where there is nothing to rotate, the rotation is the identity: 0 / 0 would be nan.
        still = eq(y, filled(y, 0))
        size = select(still, filled(y, 1), size)
        a, b = div(x, size), div(y, size)
        length = rsqrt(add(square(a), square(b)))
        cosine = select(still, literal(y, 1), mul(a, length))
        sine = select(still, literal(y, 0), neg(mul(b, length)))
        c, s = (broadcast_in_dim(v, shape=shape, broadcast_dimensions=tuple(range(stack))) for v in (cosine, sine))
        return [add(mul(c, w), mul(s, row)), sub(mul(c, row), mul(s, w))]

    rows = move_axis(r, stack, 0)
    _, out = loop_over_rows(step, [w], [rows, iota(dtype=dtypes.int32, shape=(n,), dimension=0)])
    return move_axis(out, 0, stack)


cholesky_update = linalg(
    "cholesky_update", ranks=(2, 1), result=_update_result, lower=lowered_as(_update), kinds=(FLOAT, FLOAT), narrow=True
)


# --- squares --------------------------------------------------------------------------------------------


def _symmetric_result(dtype: Any, a: Shape, c: Shape, **_: Any) -> list[tuple[Shape, Any]]:
    if a[0] != c[1] or c[0] != c[1]:
        raise ShapeError(
            f"symmetric_product: a of shape {a} needs a square c of as many rows, got shape {c}", shapes=[a, c]
        )
    return [(c, dtype)]


def _symmetric(a: Any, c: Any, alpha: Any, beta: Any) -> Any:
    return add(times(product(a, swapped(a)), alpha), times(c, beta))


symmetric_product = linalg(
    "symmetric_product",
    ranks=(2, 2),
    result=_symmetric_result,
    lower=lowered_as(_symmetric),
    kinds=(FLOAT, FLOAT),
    narrow=True,
    pad=symmetric_product_pad,
)
