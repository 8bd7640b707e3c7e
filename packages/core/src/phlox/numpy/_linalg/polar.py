"""The polar decomposition, and the nuclear norm, whose gradient is a polar factor.

Their derivatives solve linear equations with the positive factor. They do not differentiate singular vectors, so that
equal singular values need no care.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._api.derivatives.custom import custom_jvp
from ..._operands.checks import type_of
from ..._ops.elementwise.arithmetic import add, mul, stop_gradient, sub
from ..._ops.linalg.matrices import (
    adjoint,
    conjugated,
    over_columns,
    over_rows,
    product,
    safe_inverse,
    scaled,
)
from .._statistics.reductions import sum
from .decompositions import svd, vectors_and_values

#: Maps matrices a with at least as many rows as columns to (q, h) with ``a = q h``.
Kernel = Callable[[Any], tuple[Any, Any]]


def factors_by_svd(a: Any) -> tuple[Any, Any]:
    """The isometry q and the positive semidefinite h with ``a = q h``."""
    u, s, vh = svd(a, full_matrices=False)
    return product(u, vh), product(_by_columns(adjoint(vh), s), vh)


def _factors_of_range(a: Any) -> tuple[Any, Any]:
    """(q, h) with ``a = q h``, where q is zero on the null space of `a`."""
    u, s, vh = svd(a, full_matrices=False)
    in_range = mul(s, safe_inverse(s, s))  # 1, and 0 where s is zero
    return product(_by_columns(u, in_range), vh), product(_by_columns(adjoint(vh), s), vh)


def _by_columns(x: Any, factors: Any) -> Any:
    """The columns of each matrix times real factors."""
    return scaled(x, over_rows(factors, type_of(x).shape[-2]))


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def polar_factors(a: Any, kernel: Kernel) -> tuple[Any, Any]:
    """``kernel(a)``, with the derivatives of the polar decomposition."""
    return kernel(a)


@polar_factors.defjvp
def _polar_factors_jvp(kernel: Kernel, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    """With W = qᴴ dq skew-Hermitian, qᴴ da = W h + dh; minus its adjoint: h W + W h = qᴴ da - daᴴ q."""
    (a,), (da,) = primals, tangents
    q, h = polar_factors(a, kernel)
    inner = product(adjoint(q), da)
    turn = _solved_on_both_sides(h, sub(inner, adjoint(inner)))
    dq = product(q, turn)
    m, n = type_of(a).shape[-2:]
    if m > n or kernel is _factors_of_range:
        dq = add(dq, _solved_from_right(h, sub(da, product(q, inner))))
    return (q, h), (dq, sub(inner, product(turn, h)))


def _solved_on_both_sides(h: Any, c: Any) -> Any:
    """The X with ``h X + X h = c``, for positive semidefinite `h`; zero between null vectors of `h`."""
    v, w = vectors_and_values(stop_gradient(h))
    n = type_of(w).shape[-1]
    inverse = safe_inverse(add(over_rows(w, n), over_columns(w, n)), w)
    v_adjoint = adjoint(v)

    def solve(_: Any, c: Any) -> Any:
        return product(v, scaled(product(v_adjoint, c, v), inverse), v_adjoint)

    return _solution(lambda x: add(product(h, x), product(x, h)), c, solve)


def _solved_from_right(h: Any, c: Any) -> Any:
    """The X with ``X h = c``, for positive semidefinite `h`; zero on null vectors of `h`."""
    v, w = vectors_and_values(stop_gradient(h))
    inverse = safe_inverse(w, w)
    return _solution(lambda x: product(x, h), c, lambda _, c: product(_by_columns(product(c, v), inverse), adjoint(v)))


def _solution(equation: Callable[[Any], Any], c: Any, solve: Callable[[Any, Any], Any]) -> Any:
    """`custom_linear_solve` for an equation with Hermitian matrices: its transpose is its conjugate."""
    from ...lax._solves import custom_linear_solve  # here, so that `import phlox.numpy.linalg` does not import lax

    def transposed(matvec: Any, c: Any) -> Any:
        return conjugated(solve(matvec, conjugated(c)))

    return custom_linear_solve(equation, c, solve=solve, transpose_solve=transposed)


@custom_jvp
def nuclear_norm(a: Any) -> Any:
    """The sum of the singular values of each matrix; its derivative at zero singular values is that of abs at zero."""
    return sum(svd(a, compute_uv=False), -1)


@nuclear_norm.defjvp
def _nuclear_norm_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (a,), (da,) = primals, tangents
    m, n = type_of(a).shape[-2:]
    tall, change = (a, da) if m >= n else (adjoint(a), adjoint(da))
    q, _ = polar_factors(tall, _factors_of_range)
    tangent = sum(mul(conjugated(q), change), (-2, -1))
    return nuclear_norm(a), tangent.real
