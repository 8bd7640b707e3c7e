"""SciPy's solvers of linear equations, and det and inv; SciPy's options about memory and checks are ignored."""

from __future__ import annotations

import functools
from typing import Any

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import OptionError, ShapeError
from ..._base.source import warn
from ..._ir import dtypes
from ..._operands.checks import type_of
from ..._operands.promotion import promote_inexact
from ..._ops.elementwise.arithmetic import stop_gradient
from ..._ops.linalg.cholesky import cholesky as cholesky_p
from ..._ops.linalg.lu import lu_pivots_to_permutation, lu_solve as lu_solve_with
from ..._ops.linalg.matrices import adjoint, product
from ..._ops.linalg.triangular import solve_triangular as solve_triangle
from ...lax import custom_linear_solve
from ...numpy._creation.from_data import listed
from ...typing import Array, ArrayLike


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices (as ``scipy.linalg.det``).

    Args:
      a: square matrices, of shape [..., n, n]; integers are converted to floats.
      overwrite_a, check_finite: accepted as in SciPy, without effect.

    Returns:
      An array of the shape of `a` without its last two axes, of its inexact dtype.

    Raises:
      ShapeError: the matrices are not square.

    >>> det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    return jnp.linalg.det(a)


@docs_from(det)
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices (as ``scipy.linalg.inv``).

    Returns:
      Matrices of the shape and inexact dtype of `a`; singular ones give inf or nan.

    Raises:
      DtypeError: there is no routine for the dtype (float16, bfloat16).

    >>> inv(jnp.array([[4.0]]))
    Array([[0.25]], dtype=float32)
    """
    return jnp.linalg.inv(a)


def _columns(function: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Matrices and right hand sides with equal batch axes, and whether the right hand sides were vectors."""
    left, right = type_of(a).shape, type_of(b).shape
    vectors = len(right) == 1
    if not vectors and len(left) == len(right) + 1 and left[-1] == right[-1]:
        warn(
            f"{function}: a stack of vectors as b is deprecated: say {function}(a, b[..., None]).squeeze(-1)",
            FutureWarning,
        )
        vectors = True
    b = b[..., None] if vectors else b
    shape = type_of(b).shape
    if len(left) < 2 or left[-1] != left[-2] or len(shape) < 2 or shape[-2] != left[-1]:
        raise ShapeError(f"{function}: {type_of(a).short} and {type_of(b).short} do not fit", shapes=[left, right])
    stack = jnp.broadcast_shapes(left[:-2], shape[:-2])
    return jnp.broadcast_to(a, (*stack, *left[-2:])), jnp.broadcast_to(b, (*stack, *shape[-2:])), vectors


def _without_column(x: Any, vectors: bool) -> Any:
    """Removes the axis that `_columns` added to vectors."""
    return x[..., 0] if vectors else x


def _cho_solve(c: Any, b: Any, lower: bool) -> Any:
    is_complex = dtypes.kind(type_of(c).dtype) == "c"
    # a = L Lᴴ or Uᴴ U: the lower triangle of the two comes first.
    for back in (not lower, lower):
        b = solve_triangle(c, b, lower=lower, transpose_a=back, conjugate_a=back and is_complex)
    return b


@functools.partial(jit, static_argnames=("lower",))
def _cho_solved(c: Any, b: Any, lower: bool) -> Any:
    c, b, vectors = _columns("cho_solve", *promote_inexact(*listed("cho_solve", c, b)))
    return _without_column(_cho_solve(c, b, lower), vectors)


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The solution x of ``a @ x = b`` from the Cholesky factor of `a` (as ``scipy.linalg.cho_solve``).

    Args:
      c_and_lower: result of `cho_factor`: triangular factors of shape [..., n, n], and whether they are lower
        triangular.
      b: matrices of shape [..., n, k], or one vector [n].
      overwrite_b, check_finite: accepted as in SciPy, without effect.

    Returns:
      An array of shape [..., n, k], for a vector [..., n], of the promoted inexact dtype.

    Raises:
      ShapeError: the shapes are incompatible.

    >>> cho_solve(phlox.scipy.linalg.cho_factor(jnp.array([[4.0]])), jnp.array([2.0]))
    Array([0.5], dtype=float32)
    """
    c, lower = c_and_lower
    return _cho_solved(c, b, lower)


@functools.partial(jit, static_argnames=("trans", "overwrite_b", "check_finite"))
@docs_from(cho_solve)
def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solution x of ``a @ x = b`` from the LU decomposition of `a` (as ``scipy.linalg.lu_solve``).

    Args:
      lu_and_piv: result of `lu_factor`: both factors [..., n, n], and pivots [..., n].
      trans: 0 solves with a, 1 with aᵀ, 2 with aᴴ.

    Raises:
      OptionError: `trans` is not 0, 1 or 2.

    >>> lu_solve(phlox.scipy.linalg.lu_factor(jnp.array([[4.0]])), jnp.array([2.0]))
    Array([0.5], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise OptionError(f"lu_solve: there is no trans={trans!r}", instead="0, 1 or 2")
    factors, pivots, b = listed("lu_solve", *lu_and_piv, b)
    factors, b = promote_inexact(factors, b)
    if type_of(factors).ndim < 2:
        raise ShapeError(f"lu_solve: takes factors of matrices, got {type_of(factors).short}", shapes=[factors.shape])
    order = lu_pivots_to_permutation(pivots, permutation_size=type_of(factors).shape[-2])
    factors, b, vectors = _columns("lu_solve", factors, b)
    order = jnp.broadcast_to(order, type_of(factors).shape[:-1])
    return _without_column(lu_solve_with(factors, order, b, trans), vectors)


_TRANSPOSED = {0: (False, False), "N": (False, False), 1: (True, False), "T": (True, False), 2: (True, True)}
_TRANSPOSED["C"] = (True, True)


@functools.partial(jit, static_argnames=("trans", "lower", "unit_diagonal"))
def _solve_triangular(a: Any, b: Any, trans: int | str, lower: bool, unit_diagonal: bool) -> Any:
    if trans not in _TRANSPOSED:
        raise OptionError(f"solve_triangular: there is no trans={trans!r}", instead="0, 1, 2, 'N', 'T' or 'C'")
    transposed, conjugated = _TRANSPOSED[trans]
    a, b, vectors = _columns("solve_triangular", *promote_inexact(*listed("solve_triangular", a, b)))
    x = solve_triangle(
        a,
        b,
        lower=lower,
        transpose_a=transposed,
        conjugate_a=conjugated and dtypes.kind(type_of(a).dtype) == "c",
        unit_diagonal=unit_diagonal,
    )
    return _without_column(x, vectors)


@docs_from(lu_solve)
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """The solution x of ``a @ x = b`` for triangular `a` (as ``scipy.linalg.solve_triangular``).

    Args:
      a: matrices of shape [..., n, n], of which one triangle is read.
      trans: 0 or 'N' solves with a, 1 or 'T' with aᵀ, 2 or 'C' with aᴴ.
      lower: whether `a` is lower triangular; if False, upper triangular.
      unit_diagonal: whether the diagonal is assumed to be 1, and not read.
      overwrite_b, debug, check_finite: accepted as in SciPy, without effect.

    Raises:
      OptionError: `trans` is unknown.

    >>> solve_triangular(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))
    Array([1., 2.], dtype=float32)
    """
    return _solve_triangular(a, b, trans, lower, unit_diagonal)


@functools.partial(jit, static_argnames=("lower",))
def _solve_positive(a: Any, b: Any, lower: bool) -> Any:
    a, b = promote_inexact(*listed("solve", a, b))
    left, right = type_of(a).shape, type_of(b).shape
    vectors = len(right) in (1, len(left) - 1)
    if (
        len(left) < 2
        or not (vectors or len(right) == len(left))
        or not left[-1] == left[-2] == right[-1 if vectors else -2]
    ):
        raise ShapeError(f"solve: {type_of(a).short} and {type_of(b).short} do not fit", shapes=[left, right])
    b = b[..., None] if vectors else b
    b = jnp.broadcast_to(b, (*left[:-1], type_of(b).shape[-1]))
    # Only one triangle is read. The factor is not differentiated: derivatives are those of the full equation.
    factor = cholesky_p(stop_gradient(a if lower else adjoint(a)))
    x = custom_linear_solve(lambda x: product(a, x), b, lambda _, b: _cho_solve(factor, b, True), symmetric=True)
    return _without_column(x, vectors)


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The solution x of ``a @ x = b`` (as ``scipy.linalg.solve``).

    Args:
      a: square matrices, of shape [..., n, n].
      b: matrices of shape [..., n, k], or one vector [n]; for 'pos' with one axis less than `a` vectors, [..., n].
      lower: whether the lower triangle of a positive definite `a` is read; if False, the upper one.
      overwrite_a, overwrite_b, debug, check_finite: accepted as in SciPy, without effect.
      assume_a: structure of `a`: 'pos' for positive definite, which uses the Cholesky decomposition; 'gen', 'sym' and
        'her' all use the LU decomposition.

    Returns:
      An array of shape [..., n, k], for vectors [..., n], of the promoted inexact dtype.

    Raises:
      OptionError: `assume_a` is unknown.
      ShapeError: the shapes are incompatible.

    >>> solve(jnp.array([[4.0]]), jnp.array([2.0]), assume_a="pos")
    Array([0.5], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise OptionError(f"solve: there is no assume_a={assume_a!r}", instead="'gen', 'sym', 'her' or 'pos'")
    # LU serves symmetric and Hermitian matrices too.
    return _solve_positive(a, b, lower) if assume_a == "pos" else jnp.linalg.solve(a, b)
