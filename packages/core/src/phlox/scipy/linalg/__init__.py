"""``phlox.scipy.linalg``: SciPy's linear algebra. See also `phlox.numpy.linalg` and `phlox.lax.linalg`."""

from ..._base.public_names import publish
from ._factors import cho_factor, cholesky, eigh, hessenberg, lu, lu_factor, qr, qr_multiply, schur, svd
from ._functions import expm, expm_frechet, funm, polar, rsf2csf, solve_sylvester, sqrtm
from ._special import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from ._systems import cho_solve, det, inv, lu_solve, solve, solve_triangular
from ._tridiagonal import eigh_tridiagonal

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lu",
    "lu_factor",
    "lu_solve",
    "pascal",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "toeplitz",
]


publish(__name__)
