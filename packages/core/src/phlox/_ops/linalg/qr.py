"""The primitive `qr`: factorization into an orthogonal (unitary) and a triangular matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._trace.trace import typeof
from ..._transform.array_operations import zero_tangent, zeros
from ..elementwise.arithmetic import add, sub
from ..elementwise.families import literal, lowered_as
from ..structure.shape import concatenate, convert, pad
from .householder import geqp3, geqrf, householder_product
from .lu import lu, lu_solve
from .matrices import (
    Shape,
    adjoint,
    block,
    diagonal_matrix,
    diagonal_of,
    filled,
    identity,
    linalg,
    lower_triangle,
    minus_identity,
    product,
    real_part,
    take_columns,
    upper_triangle,
)
from .padding import qr_pad
from .triangular import solve_triangular


def _result(dtype: Any, shape: Shape, *, pivoting: bool, full_matrices: bool, **_: Any) -> list[tuple[Shape, Any]]:
    m, n = shape
    k = m if full_matrices else min(m, n)
    return [((m, k), dtype), ((k, n), dtype), *([((n,), dtypes.int32)] if pivoting else [])]


def _factors(a: Any, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> list[Any]:
    aval = typeof(a)
    *stack, m, n = aval.shape
    k = m if full_matrices else min(m, n)
    blank = zeros(shaped((*stack, n), dtypes.int32))
    if m == 0 or n == 0:
        empty = [identity((*stack, m, k), aval.dtype), zeros(shaped((*stack, k, n), aval.dtype))]
        return [*empty, blank] if pivoting else empty
    order = []
    if pivoting:
        # Zeros in the order leave all columns free to move.
        r, pivots, taus = geqp3.bind(a, blank, use_magma=use_magma)
        order = [sub(pivots, filled(pivots, 1))]  # LAPACK counts from one
    else:
        r, taus = geqrf.bind(a)
    if m < n:
        q = householder_product.bind(block(r, (0, m), (0, m)), taus)
    elif full_matrices:
        none = ((0, 0, 0),) * (aval.ndim - 1)
        # The columns of zeros have no reflections, and become the completion of Q.
        q = householder_product.bind(pad(r, literal(r, 0), padding_config=(*none, (0, m - n, 0))), taus)
    else:
        q = householder_product.bind(r, taus)
        r = block(r, (0, n), (0, n))
    # Below the diagonal are the vectors of the reflections.
    return [q, upper_triangle(r), *order]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    (x,), (dx,) = primals, tangents
    q, r, *order = qr.bind(x, **params)
    *stack, m, n = typeof(x).shape
    if order:
        dx = take_columns(dx, order[0])
        x = take_columns(x, order[0])
    last = len(stack) + 1
    if m < n:
        # X = [X₁ X₂] = Q [R₁ R₂]: the square part gives dQ, and R₂ = Qᴴ X₂ the rest.
        dq, dfirst = _thin_jvp(q, block(r, (0, m), (0, m)), block(dx, (0, m), (0, m)))
        rest = (0, m), (m, n)
        dsecond = add(product(adjoint(dq), block(x, *rest)), product(adjoint(q), block(dx, *rest)))
        dr = concatenate(dfirst, dsecond, dimension=last)
    elif params["full_matrices"] and m > n:
        thin = block(q, (0, m), (0, n))
        dthin, dtop = _thin_jvp(thin, block(r, (0, n), (0, n)), dx)
        dq = concatenate(dthin, _completion_jvp(q, thin, dthin), dimension=last)
        dr = concatenate(dtop, zeros(shaped((*stack, m - n, n), typeof(r).dtype)), dimension=last - 1)
    else:
        dq, dr = _thin_jvp(q, r, dx)
    return [q, r, *order], [dq, dr, *map(zero_tangent, order)]


def _thin_jvp(q: Any, r: Any, dx: Any) -> tuple[Any, Any]:
    """X = Q R with square R, so dX R⁻¹ = dQ + Q dR R⁻¹, where Qᴴ dQ is skew-Hermitian and dR R⁻¹ triangular.

    See https://j-towns.github.io/papers/qr-derivative.pdf.
    """
    change = solve_triangular(r, dx, left_side=False, lower=False)
    inner = product(adjoint(q), change)
    below = lower_triangle(inner, -1)
    diagonal = diagonal_of(inner)
    # LAPACK's R has a real diagonal. So the imaginary part of the diagonal belongs to the skew-Hermitian part, the real
    # one to dR R⁻¹.
    turn = sub(diagonal, convert(real_part(diagonal), typeof(diagonal).dtype))
    skew = add(sub(below, adjoint(below)), diagonal_matrix(turn))
    return add(product(q, sub(skew, inner)), change), product(sub(inner, skew), r)


def _completion_jvp(q: Any, thin: Any, dthin: Any) -> Any:
    """The tangent of the columns of square Q that the thin factor lacks; see https://arxiv.org/abs/2409.13374."""
    m, n = typeof(thin).shape[-2:]
    top, bottom = block(thin, (0, n), (0, n)), block(thin, (n, m), (0, n))
    dtop, dbottom = block(dthin, (0, n), (0, n)), block(dthin, (n, m), (0, n))
    # The thin factor determines the reflections, and they the other columns.
    factors, _, order = lu.bind(minus_identity(top))
    z_adjoint = lu_solve(factors, order, adjoint(bottom), trans=2)
    z = adjoint(z_adjoint)
    span = add(thin, product(block(q, (0, m), (n, m)), z))
    return sub(product(dthin, z_adjoint), product(span, adjoint(sub(dbottom, product(z, dtop)))))


qr = linalg("qr", ranks=(2,), result=_result, lower=lowered_as(_factors, many=True), many=True, jvp=_jvp, pad=qr_pad)
