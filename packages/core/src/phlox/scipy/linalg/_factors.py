"""SciPy's factorizations: `phlox.numpy.linalg` under SciPy's names and options.

Options about memory and checks (``overwrite_a``, ``check_finite`` …) are accepted and ignored.
"""

from __future__ import annotations

import functools
from typing import Any

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import OptionError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import check_one, type_of
from ..._operands.promotion import promote_inexact
from ..._ops.linalg.cholesky import cholesky as cholesky_p
from ..._ops.linalg.householder import geqp3, geqrf, householder_product, ormqr
from ..._ops.linalg.lu import lu as lu_p
from ..._ops.linalg.matrices import adjoint, hermitian_part, product
from ..._ops.linalg.similar import hessenberg as hessenberg_p
from ...lax import linalg
from ...numpy._creation.from_data import listed
from ...typing import Array, ArrayLike


@functools.partial(jit, static_argnames=("lower", "overwrite_a", "check_finite"))
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The Cholesky factor: upper U with ``a = Uᴴ U``, or lower L with ``a = L Lᴴ`` (as ``scipy.linalg.cholesky``).

    Only that triangle of `a` is read. Where `a` is not positive definite the result is nan.

    Args:
      a: Hermitian positive definite matrices, of shape [..., n, n]; integers are converted to floats.
      lower: whether to return L, the lower factor, instead of U.
      overwrite_a, check_finite: accepted as in SciPy, without effect.

    Returns:
      Triangular matrices, of the shape and inexact dtype of `a`.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: there is no routine for the dtype (float16, bfloat16).

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    (a,) = promote_inexact(*listed("cholesky", a))
    if lower:
        return cholesky_p(a)
    if type_of(a).ndim < 2:
        raise ShapeError(f"cholesky: takes matrices, got {type_of(a).short}", shapes=[type_of(a).shape])
    # SciPy reads the upper triangle here, which is the lower one of the adjoint.
    return adjoint(cholesky_p(adjoint(a)))


@docs_from(cholesky)
def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor of `a` in the form that `cho_solve` takes (as ``scipy.linalg.cho_factor``).

    Args:
      lower: whether the lower triangle is read and returned.

    Returns:
      A pair: the triangular factors, of the shape and inexact dtype of `a`, and `lower`.

    >>> cho_factor(jnp.array([[4.0]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(*listed("cho_factor", a), lower=lower), lower


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:
    """The singular value decomposition ``a = U @ diag(s) @ Vh`` (as ``scipy.linalg.svd``).

    Args:
      a: matrices, of shape [..., m, n]; integers are converted to floats.
      full_matrices: whether U and Vh are square; otherwise they have min(m, n) columns and rows.
      compute_uv: False returns only s.
      overwrite_a, check_finite, lapack_driver: accepted as in SciPy, without effect.

    Returns:
      ``(U, s, Vh)``: orthonormal columns [..., m, m]; singular values [..., min(m, n)], real and descending;
      orthonormal rows [..., n, n].

    Raises:
      ShapeError: `a` has fewer than two axes.
      DtypeError: there is no routine for the dtype (float16, bfloat16).

    >>> svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    out = jnp.linalg.svd(*listed("svd", a), full_matrices, compute_uv)
    return tuple(out) if compute_uv else out


@functools.partial(jit, inline=True, static_argnames=("lower", "eigvals_only", "eigvals", "type"))
def _eigh(a: Any, b: Any, lower: bool, eigvals_only: bool, eigvals: Any, type: int) -> Any:
    if eigvals is not None:
        raise UnsupportedError(f"eigh: eigvals={eigvals!r} is not supported", instead="eigvals=None")
    if type not in (1, 2, 3):
        raise OptionError(f"eigh: there is no type={type!r}", instead="1, 2 or 3")
    if b is not None:
        return _generalized_eigh(a, b, eigvals_only, type)
    (a,) = promote_inexact(*listed("eigh", a))
    v, w = linalg.eigh(a, lower=lower)
    return w if eigvals_only else (w, v)


def _generalized_eigh(a: Any, b: Any, eigvals_only: bool, type: int) -> Any:
    """Eigenvalues, and eigenvectors, of the pair. With b = L Lᴴ they come from a Hermitian matrix that is similar to
    b⁻¹ a, or to a b and b a (Golub and Van Loan, Matrix Computations, 8.7.2)."""
    a, b = promote_inexact(*listed("eigh", a, b))
    if type_of(a).shape[-2:] != type_of(b).shape[-2:]:
        shapes = [type_of(a).shape, type_of(b).shape]
        raise ShapeError(f"eigh: matrices {type_of(a).short} and {type_of(b).short} differ", shapes=shapes)
    a, b = jnp.broadcast_arrays(a, b)
    factor = linalg.cholesky(b)
    solve = functools.partial(linalg.triangular_solve, factor, lower=True)
    if type == 1:
        similar = solve(solve(hermitian_part(a), left_side=True), transpose_a=True, conjugate_a=True)
    else:
        similar = product(adjoint(factor), hermitian_part(a), factor)
    v, w = linalg.eigh(similar)
    if eigvals_only:
        return w
    # With A = `a`, B = `b` = L Lᴴ: A x = w B x and A B x = w x have the eigenvectors L⁻ᴴ v, and B A x = w x has L v.
    if type == 3:
        return w, product(factor, v)
    return w, solve(v, left_side=True, transpose_a=True, conjugate_a=True)


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, or of pairs (as ``scipy.linalg.eigh``).

    Args:
      a: Hermitian matrices, of shape [..., n, n]; integers are converted to floats.
      b: Hermitian positive definite matrices of the same n; their batch axes broadcast with those of `a`. None: the
        identity. Where `b` is not positive definite, the results are nan.
      lower: accepted as in SciPy; of `a` and `b` the Hermitian part counts.
      eigvals_only: whether to return only the eigenvalues.
      eigvals: must be None; selecting eigenvalues is not supported.
      type: the problem with `b`: 1 for ``a v = w b v``, 2 for ``a b v = w v``, 3 for ``b a v = w v``. Eigenvectors have
        ``vᴴ b v = 1``, for type 3 ``vᴴ b⁻¹ v = 1``.
      overwrite_a, overwrite_b, turbo, check_finite: accepted as in SciPy, without effect.

    Returns:
      ``(w, v)``: eigenvalues [..., n], real; and eigenvectors [..., n, n], in columns, of the inexact dtype of `a`.

    Raises:
      UnsupportedError: `eigvals` is not None.
      DtypeError: there is no routine for the dtype (float16, bfloat16).
      OptionError: `type` is not 1, 2 or 3.
      ShapeError: the matrices are not square, or `a` and `b` differ in size.

    >>> eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    return _eigh(a, b, lower, eigvals_only, eigvals, type)


@functools.partial(jit, static_argnames=("output",))
def schur(a: ArrayLike, output: str = "real") -> list[Array]:
    """Schur form T and Schur vectors Z, with ``a = Z T Zᴴ`` (as ``scipy.linalg.schur``).

    Args:
      a: square matrices, of shape [..., n, n], of floats or complex numbers.
      output: form of T: 'complex' gives an upper triangular T; with 'real', T of a real matrix may have 2 × 2 blocks on
        its diagonal, for pairs of complex eigenvalues.

    Returns:
      ``[T, Z]``, each of the shape of `a`; complex for 'complex', else of the dtype of `a`.

    Raises:
      OptionError: `output` is unknown.
      ShapeError: the matrices are not square.
      DtypeError: `a` has an integer dtype.
      DtypeError: there is no routine for the dtype (float16, bfloat16).

    >>> schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise OptionError(f"schur: there is no output={output!r}", instead="'real' or 'complex'")
    (a,) = listed("schur", a)
    return linalg.schur(a.astype(dtypes.to_complex(type_of(a).dtype)) if output == "complex" else a)


@functools.partial(jit, static_argnames=("overwrite_a", "check_finite"))
@docs_from(svd)
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """The LU decomposition in the form that `lu_solve` takes: both factors in one matrix, and pivots (as
    ``scipy.linalg.lu_factor``).

    Args:
      overwrite_a, check_finite: accepted as in SciPy, without effect.

    Returns:
      ``(lu, piv)``: U on and above the diagonal, L without its diagonal of ones below, of the shape and inexact dtype
      of `a`; and int32 [..., min(m, n)]: row i was exchanged with row ``piv[i]``.

    >>> lu_factor(jnp.array([[0.0, 1.0], [2.0, 3.0]]))[1]
    Array([1, 1], dtype=int32)
    """
    factors, pivots, _ = lu_p(*promote_inexact(*listed("lu_factor", a)))
    return factors, pivots


@functools.partial(jit, static_argnames=("permute_l", "overwrite_a", "check_finite"))
@docs_from(lu_factor)
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """The LU decomposition ``a = P L U`` (as ``scipy.linalg.lu``).

    Args:
      a: matrices of shape [..., m, n]; integers are converted to floats.
      permute_l: whether the result is ``(P L, U)``.

    Returns:
      ``(P, L, U)``: permutation matrices [..., m, m], lower triangles [..., m, k] with ones on the diagonal, and upper
      triangles [..., k, n], where k = min(m, n); of the inexact dtype of `a`.

    >>> lu(jnp.array([[0.0, 1.0], [2.0, 3.0]]))[0]
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    (a,) = promote_inexact(*listed("lu", a))
    factors, _, order = lu_p(a)
    (m, n), dtype = type_of(a).shape[-2:], type_of(a).dtype
    k = min(m, n)
    # A[order] = L U, so that the ones of P, with A = P L U, are in row order[j] of column j.
    p = (order[..., None, :] == jnp.arange(m, dtype=jnp.int32)[:, None]).astype(dtype)
    left = jnp.tril(factors, -1)[..., :k] + jnp.eye(m, k, dtype=dtype)
    right = jnp.triu(factors)[..., :k, :]
    # SciPy's permutation is real for complex matrices too.
    p = jnp.real(p)
    return (product(p.astype(dtype), left), right) if permute_l else (p, left, right)


@functools.partial(jit, static_argnames=("mode", "pivoting"))
def _qr(a: Any, mode: str, pivoting: bool) -> Any:
    if mode not in ("full", "r", "economic"):
        raise OptionError(f"qr: there is no mode {mode!r}", instead="'full', 'economic' or 'r'")
    (a,) = promote_inexact(*listed("qr", a))
    q, r, *order = linalg.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return (r, *order) if mode == "r" else (q, r, *order)


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array] | tuple[Array, Array] | tuple[Array, Array, Array]:
    """The QR decomposition: orthonormal columns Q times an upper triangle R (as ``scipy.linalg.qr``).

    Args:
      a: matrices, of shape [..., m, n]; integers are converted to floats.
      mode: 'full': Q is square; 'economic': it has min(m, n) columns; 'r': R alone, in a tuple.
      pivoting: whether to permute columns, with ``a[:, P] = Q R``; P is then the last result.
      overwrite_a, lwork, check_finite: accepted as in SciPy, without effect.

    Returns:
      ``(Q, R)``: [..., m, m] and [..., m, n], for 'economic' [..., m, k] and [..., k, n] with k = min(m, n), of the
      inexact dtype of `a`; with `pivoting` also P, int32 [..., n].

    Raises:
      OptionError: `mode` is unknown.
      ShapeError: `a` has fewer than two axes.
      DtypeError: there is no routine for the dtype (float16, bfloat16).

    >>> qr(jnp.array([[3.0], [4.0]]), mode="r")
    (Array([[-5.],
           [ 0.]], dtype=float32),)
    """
    return _qr(a, mode, pivoting)


@functools.partial(jit, static_argnames=("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c"))
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """``(c Q, R)`` for the QR decomposition of `a`, without making Q (as ``scipy.linalg.qr_multiply``).

    Q has k = min(m, n) columns, as in the mode 'economic' of `qr`.

    Args:
      a: matrices, of shape [..., m, n]; integers are converted to floats.
      c: matrices, of shape [..., p, m], for the mode 'left' [..., k, p]; or one vector.
      mode: 'right': the result is ``c Q``; 'left': ``Q c``.
      pivoting: whether to permute columns of `a`; the permutation is then the third result.
      conjugate: whether Q is replaced by its complex conjugate.
      overwrite_a, overwrite_c: accepted as in SciPy, without effect.

    Returns:
      The product, [..., p, k], for the mode 'left' [..., m, p], a vector for a vector; R, [..., k, n]; with `pivoting`
      the order of columns, int32 [..., n].

    Raises:
      OptionError: `mode` is unknown.
      ShapeError: `c` does not fit Q.

    >>> qr_multiply(jnp.array([[3.0], [4.0]]), jnp.array([5.0, 0.0]))
    (Array([-3.], dtype=float32), Array([[-5.]], dtype=float32))
    """
    if mode not in ("right", "left"):
        raise OptionError(f"qr_multiply: there is no mode {mode!r}", instead="'right' or 'left'")
    a, c = promote_inexact(*listed("qr_multiply", a, c))
    left = mode == "left"
    if not type_of(c).ndim:
        raise ShapeError(f"qr_multiply: c must be a vector or a matrix, got {type_of(c).short}", shapes=[()])
    vector = type_of(c).ndim == 1
    if vector:
        c = c[:, None] if left else c[None, :]
    m, n = type_of(a).shape[-2:]
    k = min(m, n)
    if type_of(c).shape[-2 if left else -1] != (k if left else m):
        raise ShapeError(
            f"qr_multiply: the orthogonal factor of {type_of(a).short} does not fit {type_of(c).short}",
            shapes=[type_of(a).shape, type_of(c).shape],
        )
    stack = jnp.broadcast_shapes(type_of(a).shape[:-2], type_of(c).shape[:-2])
    a, c = (jnp.broadcast_to(x, (*stack, *type_of(x).shape[-2:])) for x in (a, c))
    order = []
    if pivoting:
        r, pivots, taus = geqp3(a, jnp.zeros((*stack, n), jnp.int32), use_magma=None)
        # LAPACK counts from 1.
        order = [pivots - 1]
    else:
        r, taus = geqrf(a)
    # The reflections are those of the square Q. Rows of zeros in `c` multiply the columns that only the square Q has.
    if left and m > n:
        c = jnp.concatenate([c, jnp.zeros((*stack, m - k, type_of(c).shape[-1]), type_of(c).dtype)], axis=-2)
    # conj(Q) c = (cᵀ Qᴴ)ᵀ: in the transposed product the factors are exchanged.
    c = jnp.matrix_transpose(c) if conjugate else c
    out = ormqr(r, taus, c, left=bool(left) != bool(conjugate), transpose=bool(conjugate))
    out = jnp.matrix_transpose(out) if conjugate else out
    out = out if left else out[..., :k]
    return (jnp.ravel(out) if vector else out, jnp.triu(r[..., :k, :]), *order)


@functools.partial(jit, static_argnames=("calc_q", "overwrite_a", "check_finite"))
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """The Hessenberg form H of square matrices, with ``a = Q H Qᴴ`` (as ``scipy.linalg.hessenberg``).

    Args:
      a: square matrices, of shape [..., n, n], of floats or complex numbers.
      calc_q: whether Q is returned too.
      overwrite_a, check_finite: accepted as in SciPy, without effect.

    Returns:
      H, zero below the first subdiagonal, of the shape and dtype of `a`; with `calc_q` the pair ``(H, Q)``.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: `a` has an integer dtype.
      DtypeError: there is no routine for the dtype (float16, bfloat16).

    >>> hessenberg(jnp.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    a = check_one("hessenberg", a)
    if type_of(a).ndim >= 1 and type_of(a).shape[-1] == 0:
        return (jnp.zeros_like(a), jnp.zeros_like(a)) if calc_q else jnp.zeros_like(a)
    reflections, taus = hessenberg_p(a)
    form = jnp.triu(reflections, -1)
    if not calc_q:
        return form
    # No reflection touches the first row, where Q is that of the identity; the others are a matrix of one row less.
    q = householder_product(reflections[..., 1:, :-1], taus)
    widths = [(0, 0)] * (type_of(q).ndim - 2) + [(1, 0), (1, 0)]
    return form, jnp.pad(q, widths).at[..., 0, 0].set(1)
