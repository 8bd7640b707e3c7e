"""Matrix decompositions: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import OptionError
from ..._ir import dtypes
from ..._operands.broadcasting import where
from ..._operands.checks import check, check_square, matrix_shape, type_of
from ..._operands.promotion import promote_inexact
from ..._ops.elementwise import arithmetic as e
from ..._ops.elementwise.families import literal
from ..._ops.linalg.cholesky import cholesky as cholesky_p
from ..._ops.linalg.eigen import eig as eig_p, eigh as eigh_p
from ..._ops.linalg.householder import geqrf
from ..._ops.linalg.matrices import adjoint, hermitian_part, swapped
from ..._ops.linalg.qr import qr as qr_p
from ..._ops.linalg.svd import svd as svd_p
from ..._ops.structure.iota import iota
from ..._ops.structure.shape import rev
from ..._ops.structure.sort import sort
from ...typing import Array, ArrayLike
from .._indexing.reading import take_along_axis


class EighResult(NamedTuple):
    """Result of `eigh`."""

    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    """Result of `eig`."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """Result of `qr`."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """Result of `svd`."""

    U: Any
    S: Any
    Vh: Any


def _matrix(function: str, a: Any) -> Any:
    (a,) = promote_inexact(*check(function, a))
    matrix_shape(function, a)
    return a


def square_matrix(function: str, a: Any) -> Any:
    """A stack of square matrices, of floats or complex numbers. Raises `ShapeError` for other shapes."""
    (a,) = promote_inexact(*check(function, a))
    check_square(function, a)
    return a


@functools.partial(jit, static_argnames=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangle L with ``a = L Lᴴ`` (as ``numpy.linalg.cholesky``); nan where `a` is not positive definite.

    Args:
      a: stack of Hermitian matrices, ``(..., n, n)``.
      upper: True returns the upper triangle Lᴴ instead of L.
      symmetrize_input: True factors ``(a + aᴴ) / 2``; False reads only the lower triangle of `a`.

    Returns:
      An array of the shape and dtype of `a`; integers become floats.

    Raises:
      ShapeError: the matrices are not square.

    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    a = square_matrix("cholesky", a)
    factor = cholesky_p(hermitian_part(a) if symmetrize_input else a)
    return adjoint(factor) if upper else factor


@functools.partial(jit, static_argnames=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """QR decomposition: ``a = Q R`` with orthonormal columns and an upper triangle (as ``numpy.linalg.qr``).

    Args:
      a: stack of matrices, ``(..., m, n)``.
      mode: 'reduced' (or 'full'): Q has as many columns as the shorter side of `a`; 'complete': Q is square; 'r': only
        R; 'raw': LAPACK's Householder vectors, transposed, and factors.

    Returns:
      A `QRResult` of Q ``(..., m, k)`` and R ``(..., k, n)``, where k is ``min(m, n)``, or m for 'complete'; R alone
      for 'r'. The dtype is that of `a`; integers become floats.

    Raises:
      OptionError: `mode` is not one of the listed names.
      ShapeError: `a` has fewer than two axes.

    >>> jnp.linalg.qr(jnp.array([[3.0], [4.0]])).R
    Array([[-5.]], dtype=float32)
    """
    a = _matrix("qr", a)
    if mode == "raw":
        reflections, taus = geqrf(a)
        # NumPy's "raw" is the transpose of LAPACK's matrix.
        return QRResult(swapped(reflections), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise OptionError(f"qr: there is no mode {mode!r}", instead="'reduced', 'complete', 'r' or 'raw'")
    q, r = qr_p(a, pivoting=False, full_matrices=mode == "complete", use_magma=None)
    return r if mode == "r" else QRResult(q, r)


@functools.partial(jit, inline=True, static_argnames=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Singular value decomposition of matrices: ``(U, S, Vh)`` with ``a = U diag(S) Vh`` (as ``numpy.linalg.svd``).

    Args:
      a: stack of matrices, ``(..., m, n)``.
      full_matrices: True returns square U and Vh, which have no derivatives unless `a` is square.
      compute_uv: True also computes U and Vh; False returns only S.
      hermitian: True promises that `a` is Hermitian; singular values are then computed by `eigh`.
      subset_by_index: pair (start, stop): only the singular values with these indices, stop excluded, and their vectors
        are computed; None computes all.

    Returns:
      An `SVDResult` of U ``(..., m, m)``, S ``(..., k)`` and Vh ``(..., n, n)``, where k is ``min(m, n)``; without
      `full_matrices`, U is ``(..., m, k)`` and Vh ``(..., k, n)``. S is real and descending. Integers become floats.

    Raises:
      ShapeError: `a` has fewer than two axes, or `hermitian` is given and the matrices are not square.
      OptionError: `subset_by_index` selects some of the values and `full_matrices` is true.
      UnsupportedError: `subset_by_index` selects a part on a CPU.

    >>> jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.], dtype=float32)
    """
    a = _matrix("svd", a)
    if hermitian:
        check_square("svd with hermitian=True", a)
        return _hermitian_svd(a, compute_uv, subset_by_index)
    s, *vectors = svd_p(
        a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=None
    )
    return SVDResult(vectors[0], s, vectors[1]) if compute_uv else s


def _hermitian_svd(a: Any, compute_uv: bool, subset_by_index: Any) -> Any:
    """The SVD of Hermitian matrices by `eigh`: absolute eigenvalues, with their signs in one of the factors."""
    v, w = vectors_and_values(hermitian_part(a), subset_by_index=subset_by_index)
    s = e.abs_(w)
    last = type_of(s).ndim - 1
    # The order of eigenvalues is not that of their sizes.
    order = {"dimension": last, "is_stable": True, "num_keys": 1}
    if not compute_uv:
        return rev(sort(s, **order)[0], dimensions=(last,))
    order_of = iota(dtype=dtypes.int32, shape=type_of(s).shape, dimension=last)
    # 0 counts as positive: with the sign 0 its row of vh would be 0.
    signs = where(w < 0, literal(w, -1), literal(w, 1))
    s, order_of, signs = (rev(x, dimensions=(last,)) for x in sort(s, order_of, signs, **order))
    u = take_along_axis(v, order_of[..., None, :], axis=-1)
    return SVDResult(u, s, adjoint(u * signs[..., None, :].astype(type_of(u).dtype)))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices, descending (as ``numpy.linalg.svdvals``).

    Args:
      x: stack of matrices, ``(..., m, n)``.

    Returns:
      A float array ``(..., min(m, n))``.

    Raises:
      ShapeError: `x` has fewer than two axes.

    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)
    """
    return svd(*check("svdvals", x), compute_uv=False)


def vectors_and_values(a: Any, lower: bool = True, subset_by_index: Any = None) -> list[Any]:
    """The eigenvectors and the ascending eigenvalues of Hermitian matrices, of which one triangle is read."""
    return eigh_p(a, lower=lower, sort_eigenvalues=True, subset_by_index=subset_by_index, algorithm=None)


@functools.partial(jit, inline=True, static_argnames=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors, in columns, of Hermitian matrices (as ``numpy.linalg.eigh``).

    Args:
      a: stack of Hermitian matrices, ``(..., n, n)``.
      UPLO: 'L' or 'U': triangle that is read when `symmetrize_input` is False; None means 'L'.
      symmetrize_input: True decomposes ``(a + aᴴ) / 2``; False reads only the triangle `UPLO` of `a`.

    Returns:
      An `EighResult`: real `eigenvalues` ``(..., n)`` and `eigenvectors` ``(..., n, n)`` of the dtype of `a`. Integers
      become floats.

    Raises:
      OptionError: `UPLO` is neither 'L' nor 'U'.
      ShapeError: the matrices are not square.

    >>> jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    if UPLO not in (None, "L", "U"):
        raise OptionError(f"eigh: there is no UPLO={UPLO!r}", instead="'L' or 'U'")
    a = square_matrix("eigh", a)
    v, w = vectors_and_values(hermitian_part(a) if symmetrize_input else a, UPLO != "U")
    return EighResult(w, v)


@functools.partial(jit, static_argnames=("UPLO", "symmetrize_input"))
@docs_from(eigh)
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, ascending (as ``numpy.linalg.eigvalsh``); see `eigh`.

    Args:
      UPLO: 'L' or 'U': triangle that is read when `symmetrize_input` is False.

    Returns:
      A float array ``(..., n)``.

    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def _eig(function: str, a: Any, vectors: bool) -> list[Any]:
    return eig_p(
        square_matrix(function, a),
        compute_left_eigenvectors=False,
        compute_right_eigenvectors=vectors,
        enable_eigvec_derivs=False,
        implementation=None,
    )


@jit
def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and eigenvectors, in columns, of general matrices (as ``numpy.linalg.eig``): complex numbers.

    Eigenvectors have no derivatives; see `phlox.lax.linalg.eig`.

    Args:
      a: stack of square matrices, ``(..., n, n)``.

    Returns:
      An `EigResult`: complex `eigenvalues` ``(..., n)``, in no particular order, and `eigenvectors` ``(..., n, n)``.

    Raises:
      ShapeError: the matrices are not square.

    >>> jnp.linalg.eig(jnp.array([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*_eig("eig", a, True))


@jit
@docs_from(eig)
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of general matrices, complex numbers (as ``numpy.linalg.eigvals``).

    Returns:
      A complex array ``(..., n)``, in no particular order.

    >>> jnp.linalg.eigvals(jnp.array([[0.0, -1.0], [1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return _eig("eigvals", a, False)[0]
