"""The primitive `svd`: singular values and vectors."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from ..._base.errors import OptionError, UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._ir.dimensions import min_dim, surely_at_least
from ..._trace.trace import typeof
from ..._transform.array_operations import zeros
from ..._xla.cuda_calls import cuda_call, is_cuda
from ..._xla.lapack import lapack
from ..._xla.matrix_calls import nan_unless, status, succeeded
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import add, mul, sub
from ..elementwise.families import lowered_as
from ..elementwise.logic import eq, select
from .matrices import (
    Shape,
    adjoint,
    block,
    by_values,
    by_vectors,
    column_products,
    decomposition,
    diagonal_of,
    differences,
    filled,
    hermitian_part,
    identity,
    is_rounding,
    linalg,
    over_columns,
    over_rows,
    product,
    real_of,
    safe_inverse,
    scaled,
)
from .spectral_padding import svd_pad


class SvdAlgorithm(enum.Enum):
    """Algorithms of `svd`. CPUs have QR and DIVIDE_AND_CONQUER, the default.

    >>> phlox.lax.linalg.svd(jnp.eye(2), algorithm=SvdAlgorithm.QR)[1]
    Array([1., 1.], dtype=float32)
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


_ROUTINES = {
    None: "gesdd",
    SvdAlgorithm.DEFAULT: "gesdd",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    SvdAlgorithm.QR: "gesvd",
}


def _result(
    dtype: Any, shape: Shape, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any, **_: Any
) -> list[tuple[Shape, Any]]:
    m, n = shape
    rank = min_dim(m, n)
    if subset_by_index is not None:
        if full_matrices and tuple(subset_by_index) != (0, rank):
            raise OptionError("svd: a part of the singular values has no full matrices", instead="full_matrices=False")
        rank = min(rank, subset_by_index[1] - subset_by_index[0])
    left, right = (m, n) if full_matrices else (rank, rank)
    vectors = [((m, left), dtype), ((right, n), dtype)] if compute_uv else []
    return [((rank,), real_of(dtype)), *vectors]


def _lower(
    f: Function, x: Value, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any, algorithm: Any
) -> list[Value]:
    *stack, m, n = x.aval.shape
    rank = min(m, n)
    if subset_by_index is not None and tuple(subset_by_index) != (0, rank):
        raise UnsupportedError("svd: subset_by_index is not there", instead="all of them, and then a slice")
    if rank == 0:
        return lowered_as(_empty, many=True)(f, x, full_matrices=full_matrices, compute_uv=compute_uv)
    if is_cuda(f):
        return _cuda_lower(f, x, full_matrices, compute_uv, algorithm)
    if algorithm not in _ROUTINES:
        raise UnsupportedError(f"svd: {algorithm} is not there on a CPU", instead="algorithm=None")
    # Without vectors LAPACK does not write their arrays, but they are allocated.
    left, right = (m, n) if full_matrices and compute_uv else (rank, rank)
    vectors = [shaped((*stack, *shape), x.aval.dtype) for shape in ((m, left), (right, n))]
    _, *outs, info = lapack(
        f,
        _ROUTINES[algorithm],
        [x],
        [x.aval, f.outs[0], *vectors, status(tuple(stack))],
        aliases={0: 0},
        mode="N" if not compute_uv else "A" if full_matrices else "S",
    )
    ok = succeeded(f, info)
    return [nan_unless(f, ok, y) for y in (outs if compute_uv else outs[:1])]


#: Up to this size Jacobi's method is the default on GPUs, as in JAX.
_JACOBI_SIZE = 1024
#: Up to this size cuSOLVER computes a stack of matrices at once, and always whole matrices of vectors.
_BATCHED_JACOBI_SIZE = 32


def _cuda_lower(f: Function, x: Value, full_matrices: bool, compute_uv: bool, algorithm: Any) -> list[Value]:
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        algorithm = SvdAlgorithm.JACOBI if max(x.aval.shape[-2:]) <= _JACOBI_SIZE else SvdAlgorithm.QR
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER:
        raise UnsupportedError(f"svd: {algorithm} is not there on NVIDIA GPUs", instead="algorithm=None")
    if algorithm is SvdAlgorithm.QR:
        s, u, vh, info = _cuda_qr(f, x, full_matrices, compute_uv)
    else:
        s, u, vh, info = _cuda_rotations(f, x, full_matrices, compute_uv, algorithm)
    ok = succeeded(f, info)
    return [nan_unless(f, ok, y) for y in ((s, u, vh) if compute_uv else (s,))]


def _cuda_rotations(f: Function, x: Value, full_matrices: bool, compute_uv: bool, algorithm: Any) -> list[Value]:
    """Jacobi's method, or that of the polar decomposition: both return V, not its adjoint."""
    *stack, m, n = x.aval.shape
    rank = min(m, n)
    jacobi = algorithm is SvdAlgorithm.JACOBI
    whole = full_matrices or (jacobi and rank <= _BATCHED_JACOBI_SIZE)
    left, right = (m, n) if whole else (rank, rank)
    outs = [x.aval, f.outs[0], *[shaped((*stack, *s), x.aval.dtype) for s in ((m, left), (n, right))]]
    target = f"cusolver_{'gesvdj' if jacobi else 'gesvdp'}_ffi"
    outs.append(status(tuple(stack)))
    _, s, u, v, info = cuda_call(f, target, [x], outs, aliases={0: 0}, full_matrices=whole, compute_uv=compute_uv)
    if not compute_uv:
        return [s, u, v, info]
    width = (m, n) if full_matrices else (rank, rank)
    u, vh = (lowered_as(_columns)(f, y, count=k) for y, k in zip((u, v), width, strict=True))
    return [s, u, lowered_as(adjoint)(f, vh), info]


def _columns(x: Any, count: int) -> Any:
    return block(x, (0, typeof(x).shape[-2]), (0, count))


def _cuda_qr(f: Function, x: Value, full_matrices: bool, compute_uv: bool) -> list[Value]:
    """The QR method, which cuSOLVER has for matrices with at least as many rows as columns.

    The transpose of others is given to it: a row-major matrix is the transpose of a column-major one.
    """
    *stack, m, n = x.aval.shape
    transposed = m < n
    # The call has these two results in any case. Scalars take their place if they are not computed.
    u, vh = f.outs[1:] if compute_uv else [shaped((), x.aval.dtype)] * 2
    outs = [x.aval, f.outs[0], *((vh, u) if transposed else (u, vh)), status(tuple(stack))]
    _, s, first, second, info = cuda_call(
        f,
        "cusolver_gesvd_ffi",
        [x],
        outs,
        aliases={0: 0},
        column_major=not transposed,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        transposed=transposed,
    )
    return [s, second, first, info] if transposed else [s, first, second, info]


def _empty(x: Any, full_matrices: bool, compute_uv: bool) -> list[Any]:
    aval = typeof(x)
    *stack, m, n = aval.shape
    values = zeros(shaped((*stack, 0), real_of(aval.dtype)))
    if not compute_uv:
        return [values]
    left, right = (m, n) if full_matrices else (0, 0)
    return [values, identity((*stack, m, left), aval.dtype), identity((*stack, right, n), aval.dtype)]


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, full_matrices: bool, compute_uv: bool, **params: Any
) -> tuple[list[Any], list[Any]]:
    """A = U S Vᴴ. With M = Uᴴ dA V: dS = diag(M), dU = U X and dV = V Y, each with its part outside of the thin basis.

    With H and K the Hermitian and skew-Hermitian parts of M, off the diagonal X and Y are H[i, j] / (s[j] - s[i]) ±
    K[i, j] / (s[j] + s[i]). See https://people.maths.ox.ac.uk/gilesm/files/NA-08-01.pdf. Quotients by zero, of equal or
    zero singular values, are zero: see `safe_inverse`.
    """
    (a,), (da,) = primals, tangents
    m, n = typeof(a).shape[-2:]
    # The derivative of the values alone needs the vectors too.
    s, u, vh = svd.bind(a, full_matrices=False, compute_uv=True, **params)
    if compute_uv and full_matrices and m != n:
        raise UnsupportedError(
            "svd: no derivatives of the full matrices, whose last columns are arbitrary", instead="full_matrices=False"
        )
    v, uh = adjoint(vh), adjoint(u)
    change = product(da, v)
    inner = product(uh, change)
    ds = column_products(u, change)
    k = typeof(s).shape[-1]
    # The sums of two singular values are zero only where both are.
    hermitian, inverse_sums = hermitian_part(inner), safe_inverse(add(over_rows(s, k), over_columns(s, k)), s)
    # Left and right vectors of zeros are independent of each other.
    of = decomposition(s, select(eq(inverse_sums, filled(inverse_sums, 0)), inner, hermitian), ds)
    if not compute_uv:  # a function of the values alone: its derivative at zero is that of abs
        return [s], [by_values(select(is_rounding(s, s), filled(s, 0), ds), of)]
    turn = scaled(sub(inner, hermitian), inverse_sums)
    common = scaled(hermitian, safe_inverse(differences(s), s))
    du, dv = product(u, add(common, turn)), product(v, sub(common, turn))
    if dtypes.kind(typeof(a).dtype) == "c":
        # The phases of each pair of vectors change together. All of the change is that of U.
        phase = diagonal_of(turn)
        phase = select(of.has_equal, filled(phase, 0), phase)
        du, dv = (add(x, mul(y, over_rows(phase, typeof(y).shape[-2]))) for x, y in ((du, u), (dv, v)))
    # These parts are zero for a square matrix, which one of symbolic lengths may be.
    if not surely_at_least(n, m):
        du = add(du, _outside(change, u, uh, s))
    if not surely_at_least(m, n):
        dv = add(dv, _outside(product(adjoint(da), u), v, vh, s))
    return [s, u, vh], [by_values(ds, of), by_vectors(du, of), by_vectors(adjoint(dv), of, are_rows=True)]


def _outside(x: Any, basis: Any, basis_adjoint: Any, s: Any) -> Any:
    """The component of `x` orthogonal to the space that `basis` spans, divided by the singular values."""
    rest = sub(x, product(basis, product(basis_adjoint, x)))
    return scaled(rest, safe_inverse(over_rows(s, typeof(x).shape[-2]), s))


svd = linalg(
    "svd",
    ranks=(2,),
    result=_result,
    lower=_lower,
    many=True,
    jvp=_jvp,
    pad=svd_pad,
    decomposes=True,
)
