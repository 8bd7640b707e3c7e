"""``phlox.lax.linalg``: factorizations and systems of equations, of stacks of matrices in the last two axes.

The primitives are here too, as ``cholesky_p`` and so on. On a CPU LAPACK does the work. Where it finds no answer, for a
matrix that is not positive definite or when an iteration does not converge, that matrix of the result is nan. Its
routines are for float32, float64 and complex numbers; other floats raise `UnsupportedError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base.docstrings import docs_from
from .._base.public_names import publish
from .._base.source import warn
from .._base.strictness import composed
from .._ir import dtypes
from .._operands.checks import check, check_one, check_square, integer, type_of
from .._operands.promotion import promote_inexact
from .._ops.elementwise.arithmetic import add
from .._ops.linalg import (
    cholesky as _cholesky,
    householder as _householder,
    lu as _lu,
    similar as _similar,
    triangular as _tri,
)
from .._ops.linalg.eigen import EighImplementation, EigImplementation, eig as eig_p, eigh as eigh_p
from .._ops.linalg.matrices import hermitian_part, lower_triangle, swapped
from .._ops.linalg.qr import qr as qr_p
from .._ops.linalg.svd import SvdAlgorithm, svd as svd_p
from .._ops.linalg.tridiagonal import tridiagonal as tridiagonal_p, tridiagonal_solve as tridiagonal_solve_p
from ..typing import Array, ArrayLike
from ._polar import qdwh
from ._structural import expand_dims, squeeze

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qdwh",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "symmetric_product_p",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]

cholesky_p = _cholesky.cholesky
cholesky_update_p = _cholesky.cholesky_update
symmetric_product_p = _cholesky.symmetric_product
householder_product_p = _householder.householder_product
ormqr_p = _householder.ormqr
lu_p = _lu.lu
lu_pivots_to_permutation_p = _lu.lu_pivots_to_permutation
hessenberg_p = _similar.hessenberg
schur_p = _similar.schur
triangular_solve_p = _tri.triangular_solve


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with ``x = L Lᴴ``, for positive definite `x`; nan for others (as
    ``numpy.linalg.cholesky``).

    Args:
      x: square matrices of floats or complex numbers: an array of shape (..., n, n).
      symmetrize_input: whether to factor ``(x + xᴴ) / 2``, which converts integers to floats; if False, only the lower
        triangle of `x` is read.

    Returns:
      An array of the shape and dtype of `x`, zero above the diagonal.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the elements are not floats or complex numbers, and `symmetrize_input` is False.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return cholesky_p(_prepared("cholesky", x, symmetrize_input))


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangle R' with ``R'ᵀ R' = Rᵀ R + w wᵀ``, in quadratic time (as ``jax.lax.linalg.cholesky_update``).

    Args:
      r_matrix: upper triangular R, an array of floats of shape (..., n, n).
      w_vector: vector w, an array of the dtype of `r_matrix`, of shape (..., n).

    Returns:
      An array of the shape and dtype of `r_matrix`.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: the elements are not floats, or the dtypes differ.

    >>> cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
    Array([[5.]], dtype=float32)
    """
    return cholesky_update_p(*check("cholesky_update", r_matrix, w_vector))


@docs_from(cholesky_update)
def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """``alpha a aᵀ + beta c`` for symmetric `c` (as ``jax.lax.linalg.symmetric_product``).

    Args:
      a_matrix: a, an array of floats of shape (..., n, m).
      c_matrix: c, an array of the dtype of `a_matrix`, of shape (..., n, n).
      alpha, beta: factors, Python numbers.
      symmetrize_output: whether to copy the lower triangle of the result to the upper one; if False, the upper triangle
        is undefined on some platforms.

    Returns:
      An array of the shape and dtype of `c_matrix`.

    >>> symmetric_product(jnp.array([[1.0, 2.0]]), jnp.array([[1.0]]), beta=2.0)
    Array([[7.]], dtype=float32)
    """
    a_matrix, c_matrix = check("symmetric_product", a_matrix, c_matrix)
    out = symmetric_product_p(a_matrix, c_matrix, alpha=alpha, beta=beta)
    return add(lower_triangle(out), swapped(lower_triangle(out, -1))) if symmetrize_output else out


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues and eigenvectors of general square matrices, as complex numbers: ``[w, left, right]`` (as
    ``numpy.linalg.eig``).

    Args:
      x: square matrices of floats or complex numbers: an array of shape (..., n, n).
      compute_left_eigenvectors, compute_right_eigenvectors: whether to return the left and the right eigenvectors.
      enable_eigvec_derivs: whether derivatives pass through the eigenvectors. They are correct if the eigenvalues are
        distinct and the computation does not depend on the scale of the eigenvectors.
      implementation: an `EigImplementation`; None means the default of the platform.
      use_magma: deprecated: True means ``EigImplementation.MAGMA``, False ``EigImplementation.LAPACK``, None no choice.

    Returns:
      A list of complex arrays: w of shape (..., n), in no particular order, and eigenvectors in columns, of shape
      (..., n, n) each.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the elements are not floats or complex numbers.
      OptionError: `implementation` is not available on the platform.

    >>> [x.shape for x in eig(jnp.eye(2), compute_left_eigenvectors=False)]
    [(2,), (2, 2)]
    """
    if use_magma is not None:
        warn("use_magma is deprecated: say implementation=EigImplementation.MAGMA", DeprecationWarning)
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    return eig_p(
        *check("eig", x),
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=implementation,
    )


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Eigenvectors, in columns, and eigenvalues, ascending, of Hermitian matrices: ``(v, w)`` (as
    ``numpy.linalg.eigh``).

    Args:
      x: square matrices of floats or complex numbers: an array of shape (..., n, n).
      lower: whether the lower triangle is read if `symmetrize_input` is False; otherwise the upper one.
      symmetrize_input: whether to decompose ``(x + xᴴ) / 2``, which converts integers to floats.
      sort_eigenvalues: whether the eigenvalues are sorted; on CPUs they always are.
      subset_by_index: index range (start, end) of the eigenvalues to compute, end not included; None means all. Not
        available on CPUs.
      implementation: an `EighImplementation`; None means the default of the platform.

    Returns:
      The pair (v, w): eigenvectors of the shape and dtype of `x`, and real eigenvalues of shape (..., n).

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the elements are not floats or complex numbers, and `symmetrize_input` is False.
      UnsupportedError: `subset_by_index` or `implementation` is not available on the platform.

    >>> eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))[1]
    Array([1., 3.], dtype=float32)
    """
    v, w = eigh_p(
        _prepared("eigh", x, symmetrize_input),
        lower=lower,
        sort_eigenvalues=sort_eigenvalues,
        subset_by_index=subset_by_index,
        algorithm=implementation,
    )
    return v, w


def hessenberg(a: ArrayLike) -> list[Array]:
    """Square matrices reduced to Hessenberg form, and the factors of the reflections (LAPACK's ``gehrd``).

    Args:
      a: square matrices of floats or complex numbers: an array of shape (..., n, n), n at least 1.

    Returns:
      The list [h, taus], of shapes (..., n, n) and (..., n - 1) and the dtype of `a`. Below the first subdiagonal of h
      are Householder vectors, as for `householder_product`.

    Raises:
      ShapeError: the matrices are not square, or empty.
      DtypeError: the elements are not floats or complex numbers.

    >>> [x.shape for x in hessenberg(jnp.eye(3))]
    [(3, 3), (2,)]
    """
    return hessenberg_p(*check("hessenberg", a))


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of a product of Householder reflections (LAPACK's ``orgqr``).

    Args:
      a: Householder vectors, below the diagonal: an array of shape (..., m, n), with n at most m.
      taus: scale factors of the reflections: an array of the dtype of `a`, of shape (..., k), with k at most n.

    Returns:
      An array of the shape and dtype of `a`, with orthonormal columns.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: the elements are not floats or complex numbers, or the dtypes differ.

    >>> householder_product(jnp.array([[1.0], [1.0]]), jnp.array([1.0]))
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    return householder_product_p(*check("householder_product", a, taus))


@docs_from(householder_product)
def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """``Q c`` for the Q that is a product of Householder reflections, without forming Q (LAPACK's ``ormqr``).

    Args:
      a, taus: the reflections, as for `householder_product`: arrays of shapes (..., m, n) and (..., k).
      c: matrix to multiply: an array of the dtype of `a`, of shape (..., m, p); (..., p, m) with ``left=False``.
      left: whether to compute ``Q c``; if False, ``c Q``.
      transpose: whether to multiply by Qᴴ instead of Q.

    Returns:
      An array of the shape and dtype of `c`.

    >>> ormqr(jnp.array([[1.0], [0.0]]), jnp.array([2.0]), jnp.eye(2))
    Array([[-1.,  0.],
           [ 0.,  1.]], dtype=float32)
    """
    return ormqr_p(*check("ormqr", a, taus, c), left=bool(left), transpose=bool(transpose))


@composed
def lu(x: ArrayLike) -> list[Array]:
    """The LU decomposition with row pivoting: ``[lu, pivots, permutation]`` with ``x[permutation] = L U`` (LAPACK's
    ``getrf``).

    Args:
      x: matrices of floats or complex numbers: an array of shape (..., m, n).

    Returns:
      The list [lu, pivots, permutation]. lu has the shape and dtype of `x`: U on and above the diagonal, L below it,
      without its diagonal of ones. pivots is int32 of shape (..., min(m, n)): row i was exchanged with row
      ``pivots[i]``. permutation is int32 of shape (..., m).

    Raises:
      ShapeError: `x` has fewer than two axes.
      DtypeError: the elements are not floats or complex numbers.

    >>> lu(jnp.array([[0.0, 1.0], [2.0, 3.0]]))[2]
    Array([1, 0], dtype=int32)
    """
    return lu_p(*check("lu", x))


@composed
def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that results from exchanging i and ``pivots[i]``, one i after the other (as
    ``jax.lax.linalg.lu_pivots_to_permutation``).

    Args:
      pivots: an array of int32 of shape (..., k).
      permutation_size: the number of elements of the permutation, at least k.

    Returns:
      An array of int32 of shape (..., permutation_size).

    Raises:
      ShapeError: there are more pivots than elements of the permutation.
      DtypeError: `pivots` are not signed integers.

    >>> lu_pivots_to_permutation(jnp.array([2, 2, 2]), 3)
    Array([2, 0, 1], dtype=int32)
    """
    pivots = check_one("lu_pivots_to_permutation", pivots)
    size = integer("lu_pivots_to_permutation", "permutation_size", permutation_size)
    return lu_pivots_to_permutation_p(pivots, permutation_size=size)


@docs_from(lu)
def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """The QR decomposition: ``(q, r)`` with ``x = q r``, q with orthonormal columns, r upper triangular (as
    ``numpy.linalg.qr``).

    Args:
      pivoting: whether to permute columns so that the diagonal of r decreases; the result is then ``(q, r, p)`` with
        ``x[:, p] = q r``.
      full_matrices: whether q is square; otherwise it has min(m, n) columns.
      use_magma: without effect on a CPU.

    Returns:
      The tuple (q, r), of the dtype of `x` and shapes (..., m, k) and (..., k, n), where k is m or min(m, n); with
      `pivoting` also p, int32 of shape (..., n).

    >>> [x.shape for x in qr(jnp.ones((3, 2)), full_matrices=False)]
    [(3, 2), (2, 2)]
    """
    return tuple(qr_p(*check("qr", x), pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma))


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Array]:
    """Schur form and Schur vectors: ``[t, q]`` with ``x = q t qᴴ`` (LAPACK's ``gees``).

    Args:
      x: square matrices of floats or complex numbers: an array of shape (..., n, n).
      compute_schur_vectors: whether to return q.
      sort_eig_vals, select_callable: must be False and None; sorting is not supported.

    Returns:
      The list [t, q] or [t] of arrays of the shape and dtype of `x`. t is upper triangular; for real matrices with
      complex eigenvalues, it has 2 × 2 blocks on the diagonal.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the elements are not floats or complex numbers.
      UnsupportedError: `sort_eig_vals` is True.

    >>> schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    return schur_p(
        *check("schur", x),
        compute_schur_vectors=compute_schur_vectors,
        sort_eig_vals=sort_eig_vals,
        select_callable=select_callable,
    )


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The singular value decomposition: ``(u, s, vh)`` with ``x = u diag(s) vh`` and s descending (as
    ``numpy.linalg.svd``).

    Args:
      x: matrices of floats or complex numbers: an array of shape (..., m, n).
      full_matrices: whether u and vh are square; derivatives are then available for square `x` only.
      compute_uv: whether to compute u and vh; if False, the result is s.
      subset_by_index: index range (start, end) of the singular values to compute, end not included; None means all. Not
        available on CPUs.
      algorithm: an `SvdAlgorithm`; None means the default of the platform.

    Returns:
      The tuple (u, s, vh), or s: u of shape (..., m, k), s real of shape (..., min(m, n)), vh of shape (..., l, n),
      where k and l are m and n, or min(m, n) without `full_matrices`.

    Raises:
      ShapeError: `x` has fewer than two axes.
      DtypeError: the elements are not floats or complex numbers.
      OptionError: both `subset_by_index` and `full_matrices` are given.
      UnsupportedError: `subset_by_index` or `algorithm` is not available on the platform.

    >>> svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    s, *vectors = svd_p(
        *check("svd", x),
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        subset_by_index=subset_by_index,
        algorithm=algorithm,
    )
    return (vectors[0], s, vectors[1]) if compute_uv else s


@docs_from(householder_product)
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The solution x of ``x a = b`` (``a x = b`` with `left_side`), for triangular `a` (StableHLO's
    ``triangular_solve``).

    Args:
      a: square matrices of floats or complex numbers, of which one triangle is read: an array of shape (..., n, n).
      b: an array of the dtype of `a`: matrices with n columns (rows with `left_side`), or vectors of n elements.
      left_side: whether the equation is ``a x = b``; if False, ``x a = b``.
      lower: whether `a` is lower triangular; if False, upper triangular.
      transpose_a, conjugate_a: whether to use the transpose, the conjugate, or both, of `a`.
      unit_diagonal: whether the diagonal of `a` is assumed to be 1, and not read.

    Returns:
      An array of the shape and dtype of `b`.

    >>> triangular_solve(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]), left_side=True)
    Array([1., 2.], dtype=float32)
    """
    a, b = check("triangular_solve", a, b)
    vectors = type_of(b).ndim == type_of(a).ndim - 1
    # A vector is a column in `a x = b`, and a row in `x a = b`.
    axis = -1 if left_side else -2
    out = triangular_solve_p(
        a,
        expand_dims(b, (axis,)) if vectors else b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a and dtypes.kind(type_of(a).dtype) == "c",
        unit_diagonal=unit_diagonal,
    )
    return squeeze(out, (axis,)) if vectors else out


@docs_from(hessenberg)
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Hermitian matrices reduced to tridiagonal form: ``[a, d, e, taus]`` (LAPACK's ``sytrd``).

    Args:
      a: Hermitian matrices of floats or complex numbers: an array of shape (..., n, n), n at least 1.
      lower: whether the lower triangle is read; if False, the upper one.

    Returns:
      The list [a, d, e, taus]: an array like `a` with the Householder vectors and the tridiagonal form; the diagonal d,
      real of shape (..., n); the off-diagonal e (below the diagonal with `lower`, else above), real of shape (..., n -
      1); and the scale factors of the reflections, of shape (..., n - 1).

    >>> tridiagonal(jnp.eye(2))[1]
    Array([1., 1.], dtype=float32)
    """
    return tridiagonal_p(*check("tridiagonal", a), lower=lower)


@docs_from(triangular_solve)
def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """The solution x of ``A x = b`` for tridiagonal A with diagonals `dl` (below), `d` and `du` (above) (LAPACK's
    ``gtsv``).

    Args:
      dl, d, du: the diagonals, floats or complex numbers: arrays of one shape (..., n) and dtype. ``A[i, i - 1] =
        dl[i]`` and ``A[i, i + 1] = du[i]``; the first element of `dl` and the last of `du` are not read.
      b: right-hand sides: an array of the dtype of the diagonals, of shape (..., n, k).
      perturb_singular: whether to replace pivots near zero by larger ones, so that x is finite.

    >>> x = tridiagonal_solve(jnp.zeros(2), jnp.array([1.0, 2.0]), jnp.zeros(2), jnp.array([[3.0], [4.0]]))
    >>> x.ravel()
    Array([3., 2.], dtype=float32)
    """
    return tridiagonal_solve_p(*check("tridiagonal_solve", dl, d, du, b), perturb_singular=perturb_singular)


def _prepared(function: str, x: Any, symmetrize: bool) -> Any:
    """`x` as it is, or made Hermitian; a division by two turns integers into floats."""
    x = check_one(function, x)
    if not symmetrize:
        return x
    check_square(function, x)
    return hermitian_part(*promote_inexact(x))


publish(__name__)
